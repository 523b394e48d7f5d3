//! A simulation of a cluster of voters: `cargo xtask simulate`.
//!
//! # Shape
//! The servers are the code that runs in production, unchanged: elections, the replicated log, transactions,
//! connections with TLS. Below it is a virtual machine (`machine`): threads run one at a time, in an order
//! drawn from a seed; time is virtual; bytes travel over a virtual network; logs are on simulated disks. So
//! minutes of elections and timeouts take milliseconds, and a seed gives the same run again.
//!
//! An *episode* is a cluster from its first start to its end, with clients and faults (`episode`, `server`,
//! `disk`, `faults`), and then a verdict on all that clients were told and have read (`judge`). Each episode
//! is a process of its own, since what a dead server owned stays.
//! # Planted faults
//! With `--fault NAME` an episode makes a mistake on purpose, which the judge must find.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod disk;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod episode;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod faults;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod judge;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "functions of the C library")]
#[allow(clippy::cast_possible_truncation, reason = "numbers of the C library")]
mod machine;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod merges;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod operator;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod runs;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod server;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod telling;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod transaction;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn main() -> std::process::ExitCode {
    runs::main()
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() {
    println!("the simulation needs Linux with glibc\n0 passed, 0 failed");
}
