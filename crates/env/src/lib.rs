//! The environment: files, clock and randomness as injectable dependencies.
//!
//! All of Vervet accesses disks, time and random numbers through an [`Environment`]. A test uses a
//! [`Simulation`] in place of the real one: the same calls, but deterministic from one seed, with power
//! failures ([`SimulatedFiles::crash`]) and disk errors.
//! # Not here
//! Threads, which are `std`'s, except their time slices ([`request_time_slice`]). Networks.

mod bytes;
mod clock;
mod cpu_time;
mod files;
mod memory;
mod random;
mod real_files;
mod scheduling;
mod simulated_files;
mod space;

pub use bytes::Bytes;
pub use clock::{Clock, RealClock, SimulatedClock};
pub use cpu_time::{cpu_time_of_process, cpu_time_of_this_process, cpu_time_of_thread};
pub use files::{FileSystem, LockGuard, WriteFile, is_directory_sync_unsupported, is_disk_full};
pub use memory::release_free_memory;
pub use random::{Random, RealRandom, SeededRandom};
pub use real_files::RealFiles;
pub use scheduling::request_time_slice;
pub use simulated_files::{Fault, SimulatedFiles};

use std::sync::Arc;

/// Files, clock and randomness. Clones share them.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The file system.
    pub files: Arc<dyn FileSystem>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes.
    pub random: Arc<dyn Random>,
}

impl Environment {
    /// The environment of the operating system.
    #[must_use]
    pub fn real() -> Self {
        Self { files: Arc::new(RealFiles), clock: Arc::new(RealClock::new()), random: Arc::new(RealRandom) }
    }

    /// A new simulated environment in memory, deterministic from `seed`. A test that crashes it or moves its
    /// clock uses a [`Simulation`] instead.
    #[must_use]
    pub fn simulated(seed: u64) -> Self {
        Simulation::new(seed).environment()
    }
}

/// A simulated environment with access to its controls. Clones share one world.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The disk.
    pub files: Arc<SimulatedFiles>,
    /// The clock, which moves only by [`SimulatedClock::advance`].
    pub clock: Arc<SimulatedClock>,
    /// The generator.
    pub random: Arc<SeededRandom>,
}

impl Simulation {
    /// An empty disk, a clock at zero, and a generator, all deterministic from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            files: Arc::new(SimulatedFiles::new(seed)),
            clock: Arc::new(SimulatedClock::default()),
            random: Arc::new(SeededRandom::new(seed)),
        }
    }

    /// The same world as an [`Environment`].
    #[must_use]
    pub fn environment(&self) -> Environment {
        Environment { files: self.files.clone(), clock: self.clock.clone(), random: self.random.clone() }
    }
}
