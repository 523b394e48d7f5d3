//! Threads of this crate.

use crate::task::STACK_BYTES;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use vervet_model::{Error, Result};

/// Starts a thread that runs tasks.
///
/// # Errors
/// Io: the system has no more threads.
pub(crate) fn spawn<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    work: impl FnOnce() -> T + Send + 's,
) -> Result<ScopedJoinHandle<'s, T>> {
    let builder = Builder::new().name("task".to_owned()).stack_size(STACK_BYTES);
    builder.spawn_scoped(scope, work).map_err(|error| Error::io("start a thread for a query", &error))
}
