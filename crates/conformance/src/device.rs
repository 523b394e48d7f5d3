//! Databases of cases with a device.
//!
//! With `--device simulated`, queries run with a [`GpuDriver`] that moves every step that it can to the
//! simulated device, with windows of 256 bytes, strips of 64 rows and 64 KiB of memory. With `--faults N`,
//! every N-th allocation, copy and launch fails as well. Answers must not depend on either.

use std::fmt;
use std::sync::{Arc, OnceLock};
use vervet::Database;
use vervet_device::{Device, FaultInjector, Faults, Simulated};
use vervet_driver_gpu::{DeviceCounts, GpuDriver, GpuOptions};
use vervet_driver_local::{Driver, LocalDriver};

static DRIVER: OnceLock<Arc<GpuDriver>> = OnceLock::new();

/// Memory of the simulated device: the driver takes at most 90 % of it.
const MEMORY_BYTES: u64 = 1 << 20;

/// Uses a device for all cases from now on. `faults`: every n-th call of each kind fails; 0: none.
///
/// # Errors
/// There is no device with this name; another one was chosen before.
pub fn choose(name: &str, faults: u64) -> Result<(), String> {
    if name != "simulated" {
        return Err(format!("no device {name}: `simulated` is possible"));
    }
    DRIVER.set(Arc::new(driver(1, faults))).map_err(|_| "the device is chosen twice".to_owned())
}

/// A driver with a simulated device.
pub(crate) fn driver(seed: u64, faults: u64) -> GpuDriver {
    let device = Simulated::new(MEMORY_BYTES, seed);
    let device: Box<dyn Device> = match faults {
        0 => Box::new(device),
        every => {
            let faults = Faults { allocation: every, copy: every, launch: every, lost_from: 0 };
            Box::new(FaultInjector::new(device, faults))
        }
    };
    GpuDriver::new(LocalDriver::default(), device, GpuOptions::TINY)
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
             {} bytes of windows, {} result rows), {} did not fit and {} failed and ran on the CPU",
            counts.queries_on_device,
            counts.queries,
            counts.strips_on_device,
            counts.steps_on_device,
            counts.launches,
            counts.copied_bytes,
            counts.rows,
            counts.strips_unfit,
            counts.strips_failed
        )
    }
}
