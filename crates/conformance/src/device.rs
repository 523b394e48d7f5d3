//! Databases of cases with a device.
//!
//! With `--device simulated`, queries run with a [`GpuDriver`] that moves every step that it can to the
//! simulated device, with windows of 256 bytes, strips of 64 rows and 64 KiB of memory. With
//! `--device cuda --kernels FILE`, they run on the first GPU, with sizes for it; the file is made by
//! `cargo xtask gpu build`. With `--faults N`, every N-th allocation, copy and launch fails as well. Answers
//! must not depend on any of it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use vervet::Database;
use vervet_device::{Device, FaultInjector, Faults, Simulated};
use vervet_driver_gpu::{DeviceCounts, GpuDriver, GpuOptions};
use vervet_driver_local::{Driver, LocalDriver};

static DRIVER: OnceLock<Arc<GpuDriver>> = OnceLock::new();

/// Memory of the simulated device: the driver takes at most 90 % of it.
const MEMORY_BYTES: u64 = 1 << 20;

/// Uses a device for all cases from now on.
///
/// `kernels`: the file of the kernels, for `cuda`. `faults`: every n-th call of each kind fails; 0: none.
///
/// # Errors
/// There is no device with this name; it cannot be used; another one was chosen before.
pub fn choose(name: &str, kernels: Option<&str>, faults: u64) -> Result<(), String> {
    let (device, options) = match (name, kernels) {
        ("simulated", None) => simulated(1),
        ("cuda", Some(file)) => (gpu(file)?, GpuOptions { force: true, ..GpuOptions::default() }),
        ("cuda", None) => return Err("--device cuda needs --kernels FILE".to_owned()),
        _ => return Err(format!("no device {name}: `simulated` and `cuda` are possible")),
    };
    let driver = Arc::new(with_faults(device, options, faults));
    DRIVER.set(driver).map_err(|_| "the device is chosen twice".to_owned())
}

#[cfg(unix)]
fn gpu(kernels: &str) -> Result<Box<dyn Device>, String> {
    let kernels = std::fs::read(kernels).map_err(|error| format!("could not read {kernels}: {error}"))?;
    let gpu = vervet_device::Cuda::open(0, &kernels).map_err(|error| error.to_string())?;
    Ok(Box::new(gpu))
}

#[cfg(not(unix))]
fn gpu(_: &str) -> Result<Box<dyn Device>, String> {
    Err("no GPU on this system".to_owned())
}

fn simulated(seed: u64) -> (Box<dyn Device>, GpuOptions) {
    (Box::new(Simulated::new(MEMORY_BYTES, seed)), GpuOptions::TINY)
}

fn with_faults(device: Box<dyn Device>, options: GpuOptions, faults: u64) -> GpuDriver {
    let faults = Faults { allocation: faults, copy: faults, launch: faults, lost_from: 0 };
    GpuDriver::new(Arc::new(LocalDriver::default()), Box::new(FaultInjector::new(device, faults)), options)
}

/// A driver with a simulated device.
#[cfg(test)]
pub(crate) fn driver(seed: u64, faults: u64) -> GpuDriver {
    let (device, options) = simulated(seed);
    with_faults(device, options, faults)
}

/// The same database, with queries on the device that was chosen, if one was.
pub(crate) fn attach(database: Database) -> Database {
    match DRIVER.get() {
        Some(driver) => database.with_driver(Arc::<GpuDriver>::clone(driver)),
        None => database,
    }
}

/// The driver of plans that run without a database.
pub(crate) fn driver_of_plans() -> Arc<dyn Driver> {
    match DRIVER.get() {
        Some(driver) => Arc::<GpuDriver>::clone(driver),
        None => Arc::new(LocalDriver::default()),
    }
}

/// What ran on the device that was chosen.
#[derive(Clone, Copy, Debug)]
pub struct DeviceUse(DeviceCounts);

impl DeviceUse {
    /// What ran so far; `None`: no device was chosen.
    #[must_use]
    pub fn so_far() -> Option<Self> {
        DRIVER.get().map(|driver| Self(driver.counts()))
    }

    /// Whether any query had a part on the device.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.queries_on_device > 0
    }
}

impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.0;
        write!(
            f,
            "device: {} of {} runs of plans had a part on the device; {} strips ran there ({} steps, {} launches, \
             {} bytes of windows, {} result rows, {} rows left at a step that ids do not decide), {} did not fit \
             and {} failed and ran on the CPU",
            counts.queries_on_device,
            counts.queries,
            counts.strips_on_device,
            counts.steps_on_device,
            counts.launches,
            counts.copied_bytes,
            counts.rows,
            counts.rows_undecided,
            counts.strips_unfit,
            counts.strips_failed
        )
    }
}
