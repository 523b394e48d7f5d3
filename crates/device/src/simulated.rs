//! The simulated device: kernels as C++ on the calling thread. See `kernels/simulated.hpp`.
#![expect(unsafe_code, reason = "calls compiled kernels, which read and write memory by address")]

use crate::address::Address;
use crate::device::{Device, DeviceError, DeviceErrorKind};
use crate::parameters::Kernel;
use std::collections::BTreeMap;

unsafe extern "C" {
    fn vervet_simulated_launch(kernel: u32, words: *const u64, count: u64, blocks: u32, seed: u64) -> i32;
}

/// Threads of a block (`VERVET_BLOCK` in `kernels/simulated.hpp`).
const BLOCK_THREADS: u32 = 64;

/// A device in software, for tests.
///
/// Its memory is on the heap. An address is a pointer; each allocation is a separate block of the heap, so
/// that an address sanitizer finds accesses outside of it.
#[derive(Debug)]
pub struct Simulated {
    memory_bytes: u64,
    used_bytes: u64,
    seed: u64,
    launches: u64,
    /// Allocations by address, with their lengths in words.
    allocations: BTreeMap<u64, usize>,
}

impl Simulated {
    /// A device with this much memory. `seed` determines the order in which threads run.
    #[must_use]
    pub fn new(memory_bytes: u64, seed: u64) -> Self {
        Self { memory_bytes, used_bytes: 0, seed, launches: 0, allocations: BTreeMap::new() }
    }

    /// A pointer to `count` words at an address, all in one allocation.
    fn words(&self, at: Address, count: usize) -> Result<*mut u64, DeviceError> {
        let outside = || DeviceError::new(DeviceErrorKind::Failed, "an access outside of allocated memory");
        let (start, length) = self.allocations.range(..=at.0).next_back().ok_or_else(outside)?;
        let offset = at.0 - start;
        let end = usize::try_from(offset / 8).ok().and_then(|offset| offset.checked_add(count));
        if !offset.is_multiple_of(8) || end.is_none_or(|end| end > *length) {
            return Err(outside());
        }
        Ok(std::ptr::with_exposed_provenance_mut(usize::try_from(at.0).map_err(|_| outside())?))
    }

    fn release(&mut self, address: u64, words: usize) {
        let Ok(at) = usize::try_from(address) else { return };
        self.used_bytes -= 8 * words as u64;
        let slice = std::ptr::slice_from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(at), words);
        // SAFETY: `allocate` made this pointer with `Box::into_raw` from a slice of this length, and the
        // caller has removed it from `allocations`, so it is released once.
        drop(unsafe { Box::<[u64]>::from_raw(slice) });
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        for (address, words) in std::mem::take(&mut self.allocations) {
            self.release(address, words);
        }
    }
}

impl Device for Simulated {
    fn name(&self) -> String {
        "simulated device".to_owned()
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes - self.used_bytes
    }

    fn block_threads(&self) -> u32 {
        BLOCK_THREADS
    }

    fn blocks_max(&self) -> u32 {
        2
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        let words = bytes.div_ceil(8).max(1);
        let free = self.memory_bytes();
        let length = usize::try_from(words).ok().filter(|_| words <= free / 8);
        let Some(length) = length else {
            let message = format!("{bytes} bytes of device memory are needed, {free} are free");
            return Err(DeviceError::new(DeviceErrorKind::Memory, message));
        };
        // Not zero, as on a device.
        let memory = vec![0xA5A5_A5A5_A5A5_A5A5_u64; length].into_boxed_slice();
        let address = Box::into_raw(memory).cast::<u64>().expose_provenance() as u64;
        self.used_bytes += 8 * words;
        self.allocations.insert(address, length);
        Ok(Address(address))
    }

    fn free(&mut self, address: Address) {
        if let Some(words) = self.allocations.remove(&address.0) {
            self.release(address.0, words);
        }
    }

    fn upload(&mut self, to: Address, words: &[u64]) -> Result<(), DeviceError> {
        let target = self.words(to, words.len())?;
        // SAFETY: `target` points to as many words of an allocation (checked by `words`), which no reference
        // refers to, so it cannot overlap with `words`.
        unsafe { target.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(())
    }

    fn download(&mut self, from: Address, words: &mut [u64]) -> Result<(), DeviceError> {
        let source = self.words(from, words.len())?;
        // SAFETY: as in `upload`.
        unsafe { source.copy_to_nonoverlapping(words.as_mut_ptr(), words.len()) };
        Ok(())
    }

    fn clear(&mut self, at: Address, words: u64) -> Result<(), DeviceError> {
        let count = usize::try_from(words).unwrap_or(usize::MAX);
        let target = self.words(at, count)?;
        // SAFETY: as in `upload`; all bits zero are a valid `u64`.
        unsafe { target.write_bytes(0, count) };
        Ok(())
    }

    fn launch(&mut self, kernel: Kernel, parameters: &[u64], blocks: u32) -> Result<(), DeviceError> {
        self.launches += 1;
        let seed = self.seed ^ self.launches.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (words, count) = (parameters.as_ptr(), parameters.len() as u64);
        let blocks = blocks.clamp(1, self.blocks_max());
        // SAFETY: `words` points to `count` words, and the callee checks that these are the parameters of the
        // kernel. Addresses in them lie in allocations of this device, by the contract of `Device::launch`;
        // all of these are alive, and no reference to them exists.
        let result = unsafe { vervet_simulated_launch(kernel as u32, words, count, blocks, seed) };
        match result {
            0 => Ok(()),
            1 => Err(DeviceError::new(DeviceErrorKind::Failed, "threads of a block wait for each other")),
            _ => Err(DeviceError::new(DeviceErrorKind::Failed, "wrong parameters of a kernel")),
        }
    }
}
