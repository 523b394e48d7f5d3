//! Fault injection: a device whose calls fail at a fixed rate.

use crate::address::Address;
use crate::device::{Device, DeviceError, DeviceErrorKind};
use crate::parameters::Kernel;

/// Which calls fail: every n-th of each kind; 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Every n-th allocation, or part of allocated memory that is handed out.
    pub allocation: u64,
    /// Every n-th copy or clearing.
    pub copy: u64,
    /// Every n-th launch.
    pub launch: u64,
    /// The call, of any kind, from which on the device is lost.
    pub lost_from: u64,
}

/// A device that fails as [`Faults`] says.
#[derive(Debug)]
pub struct FaultInjector<D> {
    device: D,
    faults: Faults,
    allocations: u64,
    copies: u64,
    launches: u64,
    calls: u64,
}

impl<D: Device> FaultInjector<D> {
    /// Wraps a device.
    pub fn new(device: D, faults: Faults) -> Self {
        Self { device, faults, allocations: 0, copies: 0, launches: 0, calls: 0 }
    }

    fn call(&mut self) -> Result<(), DeviceError> {
        self.calls += 1;
        if self.faults.lost_from != 0 && self.calls >= self.faults.lost_from {
            return Err(DeviceError::new(DeviceErrorKind::Lost, "injected fault: the device is lost"));
        }
        Ok(())
    }

    fn allocation(&mut self) -> Result<(), DeviceError> {
        self.call()?;
        self.allocations += 1;
        fault(self.allocations, self.faults.allocation, DeviceErrorKind::Memory, "an allocation")
    }

    fn copy(&mut self) -> Result<(), DeviceError> {
        self.call()?;
        self.copies += 1;
        fault(self.copies, self.faults.copy, DeviceErrorKind::Failed, "a copy")
    }
}

fn fault(count: u64, every: u64, kind: DeviceErrorKind, what: &str) -> Result<(), DeviceError> {
    if every != 0 && count.is_multiple_of(every) {
        return Err(DeviceError::new(kind, format!("injected fault: {what} failed")));
    }
    Ok(())
}

impl<D: Device> Device for FaultInjector<D> {
    fn name(&self) -> String {
        self.device.name()
    }

    fn memory_bytes(&self) -> u64 {
        self.device.memory_bytes()
    }

    fn block_threads(&self) -> u32 {
        self.device.block_threads()
    }

    fn blocks_max(&self) -> u32 {
        self.device.blocks_max()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.allocation()?;
        self.device.allocate(bytes)
    }

    fn free(&mut self, address: Address) {
        self.device.free(address);
    }

    fn suballocate(&mut self) -> Result<(), DeviceError> {
        self.allocation()
    }

    fn upload(&mut self, to: Address, words: &[u64]) -> Result<(), DeviceError> {
        self.copy()?;
        self.device.upload(to, words)
    }

    fn download(&mut self, from: Address, words: &mut [u64]) -> Result<(), DeviceError> {
        self.copy()?;
        self.device.download(from, words)
    }

    fn clear(&mut self, at: Address, words: u64) -> Result<(), DeviceError> {
        self.copy()?;
        self.device.clear(at, words)
    }

    fn launch(&mut self, kernel: Kernel, parameters: &[u64], blocks: u32) -> Result<(), DeviceError> {
        self.call()?;
        self.launches += 1;
        fault(self.launches, self.faults.launch, DeviceErrorKind::Failed, "a launch")?;
        self.device.launch(kernel, parameters, blocks)
    }
}
