//! Devices that run kernels beside the CPU.
//!
//! # Shape
//! A [`Device`] has memory of its own, copies words to and from it, and launches a [`Kernel`] on some blocks
//! of threads. The kernels are CUDA C++ in the folder `kernels`, written in a small dialect
//! (`dialect.cuh`). [`Locate`], [`Produce`], [`Number`], [`Mark`] and [`Combine`] are their parameters;
//! [`Window`] encodes the data that they read. `Simulated`, behind the feature `simulated`, runs the same
//! sources as C++ on the CPU: every thread of a block is a fibre, and barriers, shuffles and atomics have
//! their exact meaning. `Cuda`, behind the feature `cuda`, runs them on a GPU, by a driver that is loaded at
//! run time.
//! [`FaultInjector`] makes any device fail.
//! # Invariants
//! 1. Every failure of a device is a [`DeviceError`]; no call panics.
//! 2. All data is words of 8 bytes, so alignment never depends on what was allocated before.
//! # Not here
//! Ids, segments, plans: see `vervet-driver-gpu`. The compiler for GPUs: see `gpu/compile.py`.

#![deny(unsafe_code)]

mod address;
#[cfg(all(feature = "cuda", unix))]
mod cuda;
mod device;
mod faults;
#[cfg(feature = "cuda")]
mod image;
mod parameters;
#[cfg(feature = "simulated")]
mod simulated;
mod window;

pub use address::Address;
#[cfg(all(feature = "cuda", unix))]
pub use cuda::{Cuda, GpuFacts, GpuModel};
pub use device::{Device, DeviceError, DeviceErrorKind};
pub use faults::{FaultInjector, Faults};
#[cfg(feature = "cuda")]
pub use image::{KernelImage, embedded_kernels};
pub use parameters::{
    COLUMNS_MAX, Combine, ITEMS, Intervals, Kernel, LEGS_MAX, Leg, Locate, Mark, Number, Operand, Produce,
    Relation, STATUS_WORDS, Status, TESTS_MAX, Test, Windows,
};
#[cfg(feature = "simulated")]
pub use simulated::Simulated;
pub use window::{WINDOW_HEADER_BYTES, Window, window_bytes_max};
