//! The interface of a device.

use crate::address::Address;
use crate::parameters::Kernel;
use std::fmt;

/// What a caller can do about an error of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DeviceErrorKind {
    /// Not enough memory on the device: less data may fit.
    Memory,
    /// The call failed; the device works on.
    Failed,
    /// The device does not answer any more: no later call can succeed.
    Lost,
}

/// A failure of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceError {
    /// What a caller can do about it.
    pub kind: DeviceErrorKind,
    /// One line for people.
    pub message: String,
}

impl DeviceError {
    /// An error with a message.
    #[must_use]
    pub fn new(kind: DeviceErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DeviceError {}

/// A device with memory of its own. Calls take effect in their order; [`Device::download`] waits for the
/// launches before it.
pub trait Device: Send + fmt::Debug {
    /// Its name, for people.
    fn name(&self) -> String;

    /// Bytes of memory that can be allocated.
    fn memory_bytes(&self) -> u64;

    /// Threads of a block.
    fn block_threads(&self) -> u32;

    /// Blocks that run at the same time. A launch with more blocks is slower, or does not end.
    fn blocks_max(&self) -> u32;

    /// Allocates memory, aligned to 256 bytes.
    ///
    /// # Errors
    /// [`DeviceErrorKind::Memory`]; those of the device.
    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError>;

    /// Frees memory that [`Device::allocate`] returned.
    fn free(&mut self, address: Address);

    /// Called before a part of allocated memory is handed out. Only fault injection fails it.
    ///
    /// # Errors
    /// Those of fault injection.
    fn suballocate(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Copies words to the device.
    ///
    /// # Errors
    /// The words do not lie in allocated memory; those of the device.
    fn upload(&mut self, to: Address, words: &[u64]) -> Result<(), DeviceError>;

    /// Copies words from the device.
    ///
    /// # Errors
    /// As [`Device::upload`].
    fn download(&mut self, from: Address, words: &mut [u64]) -> Result<(), DeviceError>;

    /// Sets words to zero.
    ///
    /// # Errors
    /// As [`Device::upload`].
    fn clear(&mut self, at: Address, words: u64) -> Result<(), DeviceError>;

    /// Runs a kernel with these parameters on at most [`Device::blocks_max`] blocks. All addresses in
    /// `parameters` lie in allocated memory of this device; that is for the caller to ensure, as the kernel
    /// cannot check it.
    ///
    /// # Errors
    /// Those of the device; some appear only at the next call.
    fn launch(&mut self, kernel: Kernel, parameters: &[u64], blocks: u32) -> Result<(), DeviceError>;
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn memory_bytes(&self) -> u64 {
        (**self).memory_bytes()
    }

    fn block_threads(&self) -> u32 {
        (**self).block_threads()
    }

    fn blocks_max(&self) -> u32 {
        (**self).blocks_max()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        (**self).allocate(bytes)
    }

    fn free(&mut self, address: Address) {
        (**self).free(address);
    }

    fn suballocate(&mut self) -> Result<(), DeviceError> {
        (**self).suballocate()
    }

    fn upload(&mut self, to: Address, words: &[u64]) -> Result<(), DeviceError> {
        (**self).upload(to, words)
    }

    fn download(&mut self, from: Address, words: &mut [u64]) -> Result<(), DeviceError> {
        (**self).download(from, words)
    }

    fn clear(&mut self, at: Address, words: u64) -> Result<(), DeviceError> {
        (**self).clear(at, words)
    }

    fn launch(&mut self, kernel: Kernel, parameters: &[u64], blocks: u32) -> Result<(), DeviceError> {
        (**self).launch(kernel, parameters, blocks)
    }
}
