//! The write-ahead log (WAL): an append-only sequence of checksummed records with group commit.
//!
//! # Shape
//! A log is a sequence of records (a kind of one byte, and a payload) in files `wal-<first LSN>.log` of one
//! directory. An [`Lsn`] is a byte position in the whole log. **The LSN of a record is its end**: the log up
//! to that LSN contains the record. One number therefore states what a version of the graph contains, what a
//! wait waits for, and where recovery starts.
//!
//! * [`read`] finds the records after an LSN, distinguishes a torn tail from damage, and changes nothing.
//! * [`Log::open`] continues a log that was read, and cuts the torn or damaged part.
//! * [`Log::append_then`] copies a record into a buffer; [`Log::wait`] returns once the record is as durable
//!   as the [`Durability`] promises and all records up to it are published in the order of LSNs.
//! * [`Log::rotate`] begins a new file, [`Log::remove_before`] removes old ones: the two halves of a
//!   checkpoint.
//!
//! ```
//! # use std::path::Path;
//! # use vervet_env::Environment;
//! use vervet_log::{Log, LogOptions, Lsn, ReadOptions, read};
//! # fn main() -> vervet_model::Result<()> {
//! # let environment = Environment::simulated(1);
//! # let directory = Path::new("/db");
//! # environment.files.create_dir_all(directory).map_err(|e| vervet_model::Error::io("make", &e))?;
//! let found = read(&environment, directory, Lsn(0), &ReadOptions::default(), &mut |_, _, _| Ok(()))?;
//! let log = Log::open(&environment, directory, found, LogOptions::default())?;
//! let lsn = log.append(1, b"ann knows bob")?;
//! log.wait(lsn)?; // survives a loss of power from here on
//! log.close()?;
//!
//! let mut seen = Vec::new();
//! let found = read(&environment, directory, Lsn(0), &ReadOptions::default(), &mut |lsn, kind, payload| {
//!     seen.push((lsn, kind, payload.to_vec()));
//!     Ok(())
//! })?;
//! assert_eq!(seen, [(lsn, 1, b"ann knows bob".to_vec())]);
//! assert!(found.truncation.is_none());
//! # Ok(())
//! # }
//! ```
//! # Invariants
//! 1. Bytes of a file that has its final name never change; files only grow, after everything that was read.
//! 2. All bytes of a file are synced before the next file gets its final name.
//! 3. A record is published after it is acknowledged as the level defines it, before any wait for it returns,
//!    and after all records before it.
//! 4. After a failed write or sync the log writes nothing more. A full disk is the exception: see `log.rs`.
//! # Not here
//! The meaning of records; the lock of the directory (the caller that opens a log holds it); checkpoints,
//! which only use this crate. Preallocation: `env` has no call for it, and zeros after the end would make a
//! torn tail harder to recognize. Each sync therefore also makes the file's new length durable, which costs a
//! journaling file system one more write.
#![forbid(unsafe_code)]

mod files;
mod flush;
mod frame;
mod log;
mod open;
mod options;
mod read;
mod state;
mod stream;
mod sync;
mod waiters;

#[cfg(test)]
mod explore;

pub use log::{Log, LogStatus};
pub use open::LAST_FILE_BYTES_MAX;
pub use options::{Durability, LogId, LogOptions, Lsn, ReadOptions};
pub use read::{RecoveryReport, Truncation, Visit, find_id, first_lsn, read};
pub use state::Publish;

/// Maximum payload of one record, in bytes.
///
/// One transaction is one record: at 40 bytes a statement this is 26 million statements.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

/// Largest record kind available to callers; the log itself uses the kind above it.
pub const KIND_MAX: u8 = 254;

/// Default of [`LogOptions::buffer_bytes`]. A larger record is accepted when the buffer is empty.
pub const BUFFER_BYTES_DEFAULT: usize = 8 << 20;

/// At [`Durability::Interval`] and [`Durability::None`], the log writes its buffer once it holds this many
/// bytes. Large enough that a system call costs little compared with the copy, small enough that the copy
/// stays in a cache.
pub const WRITE_BYTES: usize = 256 << 10;

/// Minimum of [`Durability::Interval`]; a shorter interval is raised to this.
pub const INTERVAL_MIN: std::time::Duration = std::time::Duration::from_millis(1);
