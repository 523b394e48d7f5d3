//! GPU driver: parts of heavy plans on a device, the rest on the CPU, with the same results.
//!
//! # Shape
//! ```text
//! head ─rows─▶ strips ─▶ device part ─rows─▶ tail ─▶ result
//!  CPU         of rows    device               CPU
//!                         └─ a strip that does not fit, or fails: the same steps on the CPU
//! ```
//! [`GpuDriver`] wraps another driver. `lower` finds the run of steps that the device kernels support and
//! resolves their segments; `driver` runs head and tail with the kernels of the CPU; `engine` has the device;
//! `strip` runs a strip of rows through the steps between them. Every step is one or two launches: *locate*
//! finds the candidates of each row, *produce* tests them and writes the rows that stay. A scan is an
//! expansion whose keys the CPU lists. `nested` runs the pipelines of `EXISTS` and optional parts; `result`
//! combines equal rows before they leave the device.
//!
//! The device holds *windows* of segments: runs of keys with all their neighbours (`windows`), copied when a
//! strip needs them and evicted in order of last use (`cache`). Binding tables are columns of ids in the rest
//! of its memory.
//! # Invariants
//! 1. The result is the same multiset of rows as on the CPU.
//! 2. A strip either runs on the device as a whole, or hands over nothing and runs on the CPU. So no error
//!    of a device is an error of a query.
//! 3. Nothing of a query runs on the device after [`Driver::execute`](vervet_driver_local::Driver::execute)
//!    has returned. Two queries never use the device at the same time.
//! 4. Only segments with a [`ContentId`](vervet_snapshot::ContentId) are copied: never those whose reads are
//!    recorded for validation. A segment that changes gets another id, so its windows are made anew.
//! # Not here
//! Semantics of steps: `vervet-kernel`. Copies of the kernels' sources, and devices: `vervet-device`.
#![forbid(unsafe_code)]

mod arena;
mod cache;
mod cost;
mod driver;
mod engine;
mod lower;
mod nested;
mod options;
mod rest;
mod result;
mod stop;
mod strip;
mod table;
mod windows;

pub use driver::{DeviceCounts, GpuDriver};
pub use engine::OpenDevice;
pub use options::GpuOptions;
