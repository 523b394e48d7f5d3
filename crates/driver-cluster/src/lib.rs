//! Queries over the servers of a cluster: rows go where the data is.
//!
//! # Shape
//! A light plan runs where it was asked and reads other servers in place. Of a heavy plan, the part between
//! head and tail runs at all servers (`placement`). Each server scans its own partitions and runs the kernels
//! of a *fragment* on the scanned rows. Then it sends each row to the server that owns the key of the next
//! fragment (`worker`). The server that was asked runs the tail over the rows that arrive (`driver`, `round`,
//! `inbox`). `task` and `wire`: requests between servers, and their bytes. `host`, `running`: what else a
//! server runs.
//! # Invariants
//! 1. The result is that of [`vervet_driver_local::LocalDriver`] on the whole graph, whatever the servers.
//! 2. A query over all servers is a tree of requests that wait for each other. It ends as they do: with all
//!    answers, or with the first error, which cancels the others. No server keeps anything of it.
//! 3. Whatever bytes a request has, it takes a bounded number of threads, stack and memory, and ends.
//! # Not here
//! Connections (`vervet-peer`), partitions and in-place reads (`vervet-partition`), kernels.
#![forbid(unsafe_code)]

mod at_work;
mod cost;
mod driver;
mod execution;
mod host;
mod inbox;
mod legs;
mod moved;
mod output;
mod partial_groups;
mod parts;
mod placement;
mod plan_bytes;
mod round;
mod rows;
mod running;
mod servers;
mod task;
#[cfg(test)]
mod tests;
mod threads;
mod wire;
mod worker;

pub use driver::{ClusterCounts, ClusterDriver};
pub use servers::Servers;
