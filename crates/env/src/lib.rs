//! The outside world as parameters: files, clock, randomness.
//!
//! Everything in Vervet that touches a disk, asks for the time or draws a random number does it through
//! an [`Environment`]. A test hands in a [`Simulation`] instead of the real one: same calls, but one
//! seed decides everything, power can fail ([`SimulatedFiles::crash`]) and disks can refuse.
//! # Not here
//! Threads: they are `std`'s. Networks.

mod bytes;
mod clock;
mod files;
mod memory;
mod random;
mod real_files;
mod simulated_files;
mod space;

pub use bytes::Bytes;
pub use clock::{Clock, RealClock, SimulatedClock};
pub use files::{FileSystem, LockGuard, WriteFile, cannot_sync_dir, is_disk_full};
pub use memory::release_free_memory;
pub use random::{Random, RealRandom, SeededRandom};
pub use real_files::RealFiles;
pub use simulated_files::{Fault, SimulatedFiles};

use std::sync::Arc;

/// Files, clock and randomness. Clones share them.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where files are.
    pub files: Arc<dyn FileSystem>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where random bytes come from.
    pub random: Arc<dyn Random>,
}

impl Environment {
    /// That of the operating system.
    #[must_use]
    pub fn real() -> Self {
        Self { files: Arc::new(RealFiles), clock: Arc::new(RealClock::new()), random: Arc::new(RealRandom) }
    }

    /// A new one in memory, decided by `seed`. A test that wants to crash it or move its clock makes a
    /// [`Simulation`] instead.
    #[must_use]
    pub fn simulated(seed: u64) -> Self {
        Simulation::new(seed).environment()
    }
}

/// A simulated environment with its levers. Clones share one world.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The disk.
    pub files: Arc<SimulatedFiles>,
    /// The clock, which stands still until it is told to move.
    pub clock: Arc<SimulatedClock>,
    /// The generator.
    pub random: Arc<SeededRandom>,
}

impl Simulation {
    /// An empty disk, a clock at zero, and a generator, all decided by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            files: Arc::new(SimulatedFiles::new(seed)),
            clock: Arc::new(SimulatedClock::default()),
            random: Arc::new(SeededRandom::new(seed)),
        }
    }

    /// The same world without its levers.
    #[must_use]
    pub fn environment(&self) -> Environment {
        Environment { files: self.files.clone(), clock: self.clock.clone(), random: self.random.clone() }
    }
}
