//! GPUs by the CUDA driver, which is loaded at run time.
//!
//! # Shape
//! [`Cuda::open`] loads `libcuda.so.1`, which comes with the driver of the GPU, and resolves the 20 functions
//! that it calls; each has existed under its name since CUDA 7.0. Kernels are a cubin for the architecture
//! of the GPU, or PTX, made by `cargo xtask gpu build`. All work is on the default stream of the primary
//! context, so calls take effect in their order.
//! # Invariants
//! A library, symbol or GPU that is missing is an error, never a panic. Managed memory is never used.
//! # Not here
//! Streams, pinned memory and asynchronous copies. This file has run against a driver in software only
//! (`tests/cuda.rs`), not yet against one of a GPU.
#![expect(unsafe_code, reason = "calls functions of a library that is loaded at run time")]

use crate::address::Address;
use crate::device::{Device, DeviceError, DeviceErrorKind};
use crate::image::KernelImage;
use crate::parameters::Kernel;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::null_mut;

/// Threads of a block (`VERVET_BLOCK` in `kernels/dialect.cuh`).
const BLOCK_THREADS: c_uint = 256;
/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSOR_COUNT: c_int = 16;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const COMPUTE_CAPABILITY: [c_int; 2] = [75, 76];
/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: c_int = 2;
/// Errors after which a context cannot be used any more: devices that are gone, and failed kernels.
const LOST: [c_int; 15] = [4, 46, 201, 214, 219, 220, 700, 702, 709, 714, 715, 716, 717, 718, 719];
const UNKNOWN: c_int = 999;

/// A handle of the driver: a context, module, function or stream.
type Handle = *mut c_void;

/// The functions of the driver, by their fields: names and types of parameters. Results are `CUresult`.
macro_rules! functions {
    ($($field:ident: $name:literal($($parameter:ty),*);)*) => {
        #[derive(Debug)]
        struct Functions {
            $($field: unsafe extern "C" fn($($parameter),*) -> c_int,)*
        }

        impl Functions {
            /// Finds all functions.
            fn new(symbol: &dyn Fn(&CStr) -> Result<*mut c_void, DeviceError>) -> Result<Self, DeviceError> {
                Ok(Self {
                    $($field: {
                        type Function = unsafe extern "C" fn($($parameter),*) -> c_int;
                        let found = symbol($name)?;
                        // SAFETY: the symbol is not null, and is a function with this signature by the
                        // driver's documentation (cuda.h, which maps some names to those with `_v2`).
                        unsafe { std::mem::transmute::<*mut c_void, Function>(found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    init: c"cuInit"(c_uint);
    driver_get_version: c"cuDriverGetVersion"(*mut c_int);
    device_get_count: c"cuDeviceGetCount"(*mut c_int);
    device_total_memory: c"cuDeviceTotalMem_v2"(*mut usize, c_int);
    device_get: c"cuDeviceGet"(*mut c_int, c_int);
    device_get_name: c"cuDeviceGetName"(*mut c_char, c_int, c_int);
    device_get_attribute: c"cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
    retain_context: c"cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
    release_context: c"cuDevicePrimaryCtxRelease"(c_int);
    set_context: c"cuCtxSetCurrent"(Handle);
    mem_get_info: c"cuMemGetInfo_v2"(*mut usize, *mut usize);
    mem_alloc: c"cuMemAlloc_v2"(*mut u64, usize);
    mem_free: c"cuMemFree_v2"(u64);
    copy_to_device: c"cuMemcpyHtoD_v2"(u64, *const c_void, usize);
    copy_to_host: c"cuMemcpyDtoH_v2"(*mut c_void, u64, usize);
    set_bytes: c"cuMemsetD8_v2"(u64, u8, usize);
    module_load: c"cuModuleLoadData"(*mut Handle, *const c_void);
    module_get_function: c"cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    blocks_per_multiprocessor:
        c"cuOccupancyMaxActiveBlocksPerMultiprocessor"(*mut c_int, Handle, c_int, usize);
    launch:
        c"cuLaunchKernel"(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
            *mut *mut c_void, *mut *mut c_void
        );
}

/// The library of the driver.
const LIBRARY: &str = "libcuda.so.1";

/// The driver and the GPUs of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuFacts {
    /// The CUDA version of the driver: 12090 for 12.9.
    pub driver_version: u32,
    /// The GPUs, by number.
    pub gpus: Vec<GpuModel>,
}

/// One GPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuModel {
    /// Its name.
    pub name: String,
    /// Major and minor compute capability.
    pub capability: (u32, u32),
    /// Its memory in bytes.
    pub memory_bytes: u64,
}

impl GpuFacts {
    /// Asks the driver. Creates no context.
    ///
    /// # Errors
    /// There is no driver, or one without a function that is needed, or no GPU.
    pub fn new() -> Result<Self, DeviceError> {
        let functions = load(Path::new(LIBRARY))?;
        let (mut version, mut count) = (0, 0);
        // SAFETY: each function has the signature of the driver's documentation; pointers are to variables
        // of the stated types, which live until the call returns.
        unsafe {
            check("cuDriverGetVersion", (functions.driver_get_version)(&raw mut version))?;
            check("cuInit", (functions.init)(0))?;
            check("cuDeviceGetCount", (functions.device_get_count)(&raw mut count))?;
        }
        let mut gpus = Vec::new();
        for ordinal in 0..count {
            let (mut device, mut memory) = (0, 0);
            // SAFETY: as above.
            unsafe {
                check("cuDeviceGet", (functions.device_get)(&raw mut device, ordinal))?;
                let total = (functions.device_total_memory)(&raw mut memory, device);
                check("cuDeviceTotalMem", total)?;
            }
            gpus.push(GpuModel {
                name: name(&functions, device)?,
                capability: capability(&functions, device)?,
                memory_bytes: memory as u64,
            });
        }
        Ok(Self { driver_version: u32::try_from(version).unwrap_or(0), gpus })
    }
}

/// The name of a device.
fn name(functions: &Functions, device: c_int) -> Result<String, DeviceError> {
    let mut name = [0; 256];
    // SAFETY: the function has the signature of the driver's documentation; `name` has 256 bytes.
    check("cuDeviceGetName", unsafe { (functions.device_get_name)(name.as_mut_ptr(), 256, device) })?;
    let name: Vec<u8> = name.iter().map(|c| c.cast_unsigned()).take_while(|c| *c != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// The compute capability of a device.
fn capability(functions: &Functions, device: c_int) -> Result<(u32, u32), DeviceError> {
    let mut found = [0; 2];
    for (value, attribute) in found.iter_mut().zip(COMPUTE_CAPABILITY) {
        // SAFETY: the function has the signature of the driver's documentation; `value` lives until it
        // returns.
        let result = unsafe { (functions.device_get_attribute)(value, attribute, device) };
        check("cuDeviceGetAttribute", result)?;
    }
    let [major, minor] = found.map(|value| u32::try_from(value).unwrap_or(0));
    Ok((major, minor))
}

/// A GPU. See the header of this file.
#[derive(Debug)]
pub struct Cuda {
    functions: Functions,
    ordinal: c_int,
    name: String,
    context: Handle,
    /// By [`Kernel`].
    kernels: [Handle; Kernel::ALL.len()],
    blocks_max: u32,
    /// Allocations by address, with their lengths in words.
    allocations: BTreeMap<u64, u64>,
}

// SAFETY: the handles belong to the driver, whose functions may be called on any thread; every call first
// makes the context current on its own thread. Calls that take `&self` only ask for free memory.
unsafe impl Send for Cuda {}

impl Cuda {
    /// Opens the GPU with this number. `kernels`: a cubin or PTX.
    ///
    /// # Errors
    /// There is no driver, or one without a function that is needed; no such GPU; kernels that it cannot run.
    pub fn open(ordinal: u32, kernels: &[u8]) -> Result<Self, DeviceError> {
        Self::open_library(Path::new(LIBRARY), ordinal, kernels)
    }

    /// Opens the GPU with this number, with the best of these images for it.
    ///
    /// # Errors
    /// As [`Cuda::open`]; the GPU runs none of the images.
    pub fn open_with(ordinal: u32, images: &[KernelImage]) -> Result<Self, DeviceError> {
        let facts = GpuFacts::new()?;
        let number = usize::try_from(ordinal).unwrap_or(usize::MAX);
        let gpu = facts.gpus.get(number).ok_or_else(|| failed(format!("there is no GPU {ordinal}")))?;
        let (major, minor) = gpu.capability;
        let image = KernelImage::choose(images, gpu.capability).ok_or_else(|| {
            failed(match images {
                [] => "this program was built without kernels for GPUs".to_owned(),
                _ => format!(
                    "{} has compute capability {major}.{minor}, for which there are no kernels",
                    gpu.name
                ),
            })
        })?;
        Self::open(ordinal, image.bytes)
    }

    /// As [`Cuda::open`], with the library of a driver.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn open_library(library: &Path, ordinal: u32, kernels: &[u8]) -> Result<Self, DeviceError> {
        let functions = load(library)?;
        let number = c_int::try_from(ordinal).map_err(|_| failed("no GPU has such a number"))?;
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: each function has the signature of the driver's documentation; pointers are to variables
        // of the stated types, which live until the call returns.
        unsafe {
            check("cuInit", (functions.init)(0))?;
            check("cuDeviceGet", (functions.device_get)(&raw mut device, number))?;
            check("cuDevicePrimaryCtxRetain", (functions.retain_context)(&raw mut context, device))?;
        }
        let mut gpu = Self {
            functions,
            ordinal: device,
            name: String::new(),
            context,
            kernels: [null_mut(); Kernel::ALL.len()],
            blocks_max: 1,
            allocations: BTreeMap::new(),
        };
        // From here on, dropping `gpu` releases the context.
        gpu.make_current()?;
        gpu.load_kernels(kernels)?;
        Ok(gpu)
    }

    fn load_kernels(&mut self, kernels: &[u8]) -> Result<(), DeviceError> {
        // PTX ends with a zero byte; a cubin has its length inside.
        let mut image = kernels.to_vec();
        image.push(0);
        let functions = &self.functions;
        let mut module = null_mut();
        let mut multiprocessors = 0;
        // SAFETY: as in `open_library`. `image` is a cubin or ends with a zero byte.
        unsafe {
            check("cuModuleLoadData", (functions.module_load)(&raw mut module, image.as_ptr().cast()))?;
            let attribute = (functions.device_get_attribute)(
                &raw mut multiprocessors,
                MULTIPROCESSOR_COUNT,
                self.ordinal,
            );
            check("cuDeviceGetAttribute", attribute)?;
        }
        let mut blocks = c_int::MAX;
        for (kernel, name) in self.kernels.iter_mut().zip(Kernel::ALL.map(Kernel::symbol)) {
            let mut of_one = 0;
            // SAFETY: as above; `module` was loaded, and `name` ends with a zero byte.
            unsafe {
                let found = (functions.module_get_function)(kernel, module, name.as_ptr());
                check("cuModuleGetFunction", found)?;
                let threads = BLOCK_THREADS.cast_signed();
                let occupancy = (functions.blocks_per_multiprocessor)(&raw mut of_one, *kernel, threads, 0);
                check("cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy)?;
            }
            blocks = blocks.min(of_one.saturating_mul(multiprocessors));
        }
        self.blocks_max = u32::try_from(blocks).unwrap_or(1).max(1);
        self.name = name(&self.functions, self.ordinal)?;
        Ok(())
    }

    fn make_current(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is retained until `self` is dropped.
        check("cuCtxSetCurrent", unsafe { (self.functions.set_context)(self.context) })
    }

    /// Fails unless `words` words at an address lie in one allocation. Returns their size in bytes.
    fn check_range(&self, at: Address, words: u64) -> Result<usize, DeviceError> {
        let outside = || failed("an access outside of allocated memory");
        let (start, length) = self.allocations.range(..=at.0).next_back().ok_or_else(outside)?;
        let offset = at.0 - start;
        let end = (offset / 8).checked_add(words);
        if !offset.is_multiple_of(8) || end.is_none_or(|end| end > *length) {
            return Err(outside());
        }
        usize::try_from(8 * words).map_err(|_| outside())
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        let addresses: Vec<u64> = self.allocations.keys().copied().collect();
        for address in addresses {
            self.free(Address(address));
        }
        // SAFETY: the context was retained once. An error leaves nothing to do.
        let _ = unsafe { (self.functions.release_context)(self.ordinal) };
    }
}

impl Device for Cuda {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn memory_bytes(&self) -> u64 {
        let (mut free, mut total) = (0, 0);
        if self.make_current().is_err() {
            return 0;
        }
        // SAFETY: pointers to variables that live until the call returns.
        match unsafe { (self.functions.mem_get_info)(&raw mut free, &raw mut total) } {
            0 => free as u64,
            _ => 0,
        }
    }

    fn block_threads(&self) -> u32 {
        BLOCK_THREADS
    }

    fn blocks_max(&self) -> u32 {
        self.blocks_max
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.make_current()?;
        let words = bytes.div_ceil(8).max(1);
        let size = usize::try_from(8 * words).map_err(|_| failed("an allocation that is too large"))?;
        let mut address = 0;
        // SAFETY: a pointer to a variable that lives until the call returns.
        check("cuMemAlloc", unsafe { (self.functions.mem_alloc)(&raw mut address, size) })?;
        self.allocations.insert(address, words);
        Ok(Address(address))
    }

    fn free(&mut self, address: Address) {
        if self.allocations.remove(&address.0).is_some() && self.make_current().is_ok() {
            // SAFETY: the address was allocated and not freed before. An error leaves nothing to do.
            let _ = unsafe { (self.functions.mem_free)(address.0) };
        }
    }

    fn upload(&mut self, to: Address, words: &[u64]) -> Result<(), DeviceError> {
        let bytes = self.check_range(to, words.len() as u64)?;
        self.make_current()?;
        // SAFETY: `words` has this many bytes, and so has the allocation at `to` (`check_range`).
        check("cuMemcpyHtoD", unsafe { (self.functions.copy_to_device)(to.0, words.as_ptr().cast(), bytes) })
    }

    fn download(&mut self, from: Address, words: &mut [u64]) -> Result<(), DeviceError> {
        let bytes = self.check_range(from, words.len() as u64)?;
        self.make_current()?;
        // SAFETY: as in `upload`; the driver has written `words` when the call returns.
        check("cuMemcpyDtoH", unsafe {
            (self.functions.copy_to_host)(words.as_mut_ptr().cast(), from.0, bytes)
        })
    }

    fn clear(&mut self, at: Address, words: u64) -> Result<(), DeviceError> {
        let bytes = self.check_range(at, words)?;
        self.make_current()?;
        // SAFETY: the allocation has this many bytes at `at` (`check_range`).
        check("cuMemsetD8", unsafe { (self.functions.set_bytes)(at.0, 0, bytes) })
    }

    fn launch(&mut self, kernel: Kernel, parameters: &[u64], blocks: u32) -> Result<(), DeviceError> {
        if parameters.len() != kernel.parameter_words() {
            return Err(failed("wrong parameters of a kernel"));
        }
        self.make_current()?;
        let function = self.kernels[kernel as usize];
        let blocks = blocks.clamp(1, self.blocks_max);
        let mut words = parameters.to_vec();
        // The only parameter is a structure, which the driver copies.
        let mut pointers = [words.as_mut_ptr().cast::<c_void>()];
        // SAFETY: `function` is the kernel, whose only parameter has as many words as `words`; addresses in
        // them lie in allocations of this device, by the contract of `Device::launch`.
        check("cuLaunchKernel", unsafe {
            (self.functions.launch)(
                function,
                blocks,
                1,
                1,
                BLOCK_THREADS,
                1,
                1,
                0,
                null_mut(),
                pointers.as_mut_ptr(),
                null_mut(),
            )
        })
    }
}

fn failed(message: impl Into<String>) -> DeviceError {
    DeviceError::new(DeviceErrorKind::Failed, message)
}

fn check(function: &str, result: c_int) -> Result<(), DeviceError> {
    let kind = match result {
        0 => return Ok(()),
        OUT_OF_MEMORY => DeviceErrorKind::Memory,
        UNKNOWN => DeviceErrorKind::Lost,
        lost if LOST.contains(&lost) => DeviceErrorKind::Lost,
        _ => DeviceErrorKind::Failed,
    };
    Err(DeviceError::new(kind, format!("{function} failed with CUDA error {result}")))
}

/// Loads a library and finds its functions. It stays loaded: drivers do not support unloading.
fn load(library: &Path) -> Result<Functions, DeviceError> {
    let name = CString::new(library.as_os_str().as_encoded_bytes())
        .map_err(|_| failed("the name of a library has a zero byte"))?;
    // SAFETY: `name` ends with a zero byte. Loading runs the initializers of the library, which is that of
    // the GPU's driver, or one that the caller has chosen.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: after a failed call the result is a message that ends with a zero byte, or null.
        let message = unsafe { libc::dlerror() };
        let message = match message.is_null() {
            true => "it could not be loaded".into(),
            // SAFETY: as above; the next call on this thread may overwrite it, and there is none before.
            false => unsafe { CStr::from_ptr(message) }.to_string_lossy(),
        };
        return Err(failed(format!("no CUDA driver: {message}")));
    }
    Functions::new(&|name| {
        // SAFETY: `handle` is a loaded library, and `name` ends with a zero byte.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if found.is_null() {
            return Err(failed(format!("the CUDA driver is too old: it has no {}", name.to_string_lossy())));
        }
        Ok(found)
    })
}
