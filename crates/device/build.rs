//! Compiles the device kernels for the simulated device, if the feature `simulated` is on. Embeds kernels for
//! GPUs, if the feature `cuda` is on and `VERVET_GPU_KERNELS` is a folder of `cargo xtask gpu build`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    #[cfg(feature = "simulated")]
    {
        // Changed copies of the sources: `cargo xtask gpu mutate`.
        const SOURCES: &str = "VERVET_KERNEL_SOURCES";
        println!("cargo::rerun-if-env-changed={SOURCES}");
        let sources = std::env::var_os(SOURCES).map_or_else(|| PathBuf::from("kernels"), PathBuf::from);
        println!("cargo::rerun-if-changed={}", sources.display());
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").file(sources.join("simulated.cpp")).warnings(true);
        // Unoptimised kernels take four times as long, and tests run millions of their threads.
        build.opt_level(2).compile("vervet_simulated");
    }
    if cfg!(feature = "cuda")
        && let Err(message) = embed()
    {
        println!("cargo::error={message}");
    }
}

/// Writes `kernels.rs`: a list of the images in the folder.
fn embed() -> Result<(), String> {
    const FOLDER: &str = "VERVET_GPU_KERNELS";
    println!("cargo::rerun-if-env-changed={FOLDER}");
    let mut list = String::from("&[\n");
    let folder = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let images = match &folder {
        Some(folder) => images(folder).map_err(|error| format!("{}: {error}", folder.display()))?,
        None => Vec::new(),
    };
    if let Some(folder) = folder.filter(|_| images.is_empty()) {
        return Err(format!("{}: no kernels; make them with cargo xtask gpu build", folder.display()));
    }
    for (architecture, is_ptx, path) in images {
        println!("cargo::rerun-if-changed={}", path.display());
        let line = format!(
            "KernelImage {{ architecture: {architecture}, is_ptx: {is_ptx}, bytes: include_bytes!({path:?}) }},"
        );
        writeln!(list, "{line}").map_err(|error| error.to_string())?;
    }
    list.push(']');
    let target = std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    std::fs::write(Path::new(&target).join("kernels.rs"), list).map_err(|error| error.to_string())
}

/// The images of a folder: `kernels_sm_90.cubin`, `kernels_compute_80.ptx`.
fn images(folder: &Path) -> std::io::Result<Vec<(u32, bool, PathBuf)>> {
    let mut images = Vec::new();
    for entry in folder.canonicalize()?.read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let cubin = name.strip_prefix("kernels_sm_").and_then(|name| name.strip_suffix(".cubin"));
        let ptx = name.strip_prefix("kernels_compute_").and_then(|name| name.strip_suffix(".ptx"));
        if let Some(architecture) = cubin.or(ptx).and_then(|number| number.parse().ok()) {
            images.push((architecture, ptx.is_some(), path));
        }
    }
    images.sort();
    Ok(images)
}
