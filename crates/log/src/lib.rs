//! The write-ahead log: bytes in, bytes out, and nothing that was acknowledged is lost.
//!
//! # Shape
//! A log is a sequence of records (a kind of one byte, and a payload) in files `wal-<first LSN>.log` of one
//! directory. An [`Lsn`] is a position in the whole log, in bytes. **The LSN of a record is its end**: the
//! log up to that LSN contains it. So one number says what a version of the graph contains, what a wait waits
//! for, and where recovery goes on.
//!
//! * [`read`] finds the records behind an LSN, tells a torn tail from damage, and changes nothing.
//! * [`Log::open`] goes on behind what was found: it cuts what is to be cut.
//! * [`Log::append_then`] copies a record into a buffer; [`Log::wait`] returns once it is as safe as the
//!   [`Level`] promises, having published what came with it, in the order of LSNs.
//! * [`Log::rotate`] begins a new file, [`Log::remove_before`] drops old ones: the two halves of a
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
//! assert!(found.cut.is_none());
//! # Ok(())
//! # }
//! ```
//! # Invariants
//! 1. Bytes that a file has under its name never change; files only grow, behind everything that was read.
//! 2. All of a file's bytes are synced before the next file gets its name.
//! 3. A record is published after it is acknowledged by the level's measure, before any wait for it returns,
//!    and after all records before it.
//! 4. After a failed write or sync nothing is written any more, but for want of room: see `log.rs`.
//! # Not here
//! What records mean; the lock of the directory (whoever opens a log holds it); checkpoints, which only use
//! this. Preallocation: `env` has no call for it, and zeros behind the end would make a tail harder to judge.
//! So each sync makes the file's new length durable too, which costs a file system with a journal one more
//! write.
#![forbid(unsafe_code)]

mod files;
mod flush;
mod frame;
mod log;
mod open;
mod options;
mod read;
mod stream;
mod sync;
mod waiters;

#[cfg(test)]
mod explore;

pub use log::{Log, LogStatus, Publish};
pub use open::LAST_FILE_BYTES_MAX;
pub use options::{Level, LogId, LogOptions, Lsn, ReadOptions};
pub use read::{Cut, Found, Visit, find_id, read};

/// The most bytes of a record's payload.
///
/// One transaction is one record: at 40 bytes a statement this is 26 million statements.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

/// The largest kind of a record; the one above it is the log's own.
pub const KIND_MAX: u8 = 254;

/// How many bytes may wait to be written before appending waits too, unless the options say otherwise. A
/// larger record is let in when nothing else waits.
pub const BUFFER_BYTES_DEFAULT: usize = 8 << 20;

/// At [`Level::Interval`] and [`Level::None`], so many bytes are written without waiting for more. Large
/// enough that a system call costs little beside the copy, small enough that the copy stays in a cache.
pub const WRITE_BYTES: usize = 256 << 10;

/// The shortest [`Level::Interval`]; a shorter one is raised to this.
pub const INTERVAL_MIN: std::time::Duration = std::time::Duration::from_millis(1);
