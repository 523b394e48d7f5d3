//! Kernels for GPUs: images of the compiler, and the choice of one for a GPU.
//!
//! A cubin runs on GPUs of its major compute capability with the same or a greater minor one. The driver
//! compiles PTX for any later GPU (CUDA C++ Programming Guide, "Binary Compatibility").

/// The kernels for one architecture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KernelImage {
    /// Compute capability: 90 for 9.0.
    pub architecture: u32,
    /// Whether it is PTX, which the driver compiles, instead of a cubin.
    pub is_ptx: bool,
    /// The file.
    pub bytes: &'static [u8],
}

static EMBEDDED: &[KernelImage] = include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The images in this program; none if it was built without `VERVET_GPU_KERNELS`.
#[must_use]
pub fn embedded_kernels() -> &'static [KernelImage] {
    EMBEDDED
}

impl KernelImage {
    /// The best image for a GPU with this compute capability; `None`: it runs none of them.
    #[must_use]
    pub fn choose(images: &[Self], capability: (u32, u32)) -> Option<&Self> {
        let own = 10 * capability.0 + capability.1;
        let runs = |image: &&Self| {
            image.architecture <= own && (image.is_ptx || image.architecture / 10 == capability.0)
        };
        images.iter().filter(runs).max_by_key(|image| (!image.is_ptx, image.architecture))
    }

    /// Its name: `sm_90`, or `compute_80` for PTX.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}_{}", if self.is_ptx { "compute" } else { "sm" }, self.architecture)
    }
}

impl std::fmt::Debug for KernelImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name(), self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_gets_the_nearest_image_that_it_runs() {
        let image = |architecture, is_ptx| KernelImage { architecture, is_ptx, bytes: b"" };
        let all = [image(80, false), image(80, true), image(90, false), image(100, false), image(120, false)];
        let name = |capability| KernelImage::choose(&all, capability).map(KernelImage::name);
        for (capability, expected) in [
            ((7, 5), None),
            ((8, 0), Some("sm_80")),
            ((8, 9), Some("sm_80")),
            ((9, 0), Some("sm_90")),
            ((10, 3), Some("sm_100")),
            ((11, 0), Some("compute_80")),
            ((12, 1), Some("sm_120")),
            ((13, 0), Some("compute_80")),
        ] {
            assert_eq!(name(capability).as_deref(), expected, "{capability:?}");
        }
    }
}
