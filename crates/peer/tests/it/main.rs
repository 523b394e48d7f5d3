//! Connections between servers on loopback: answers, limits, faults, hostile bytes, lives of servers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod answers;
mod faults;
mod hostile;
mod lives;
mod refusals;
mod support;
mod versions;
mod waits;
