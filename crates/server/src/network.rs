//! Connections: I/O threads, streams with write timeouts, memory of request bodies.

pub(crate) mod body_memory;
pub(crate) mod io_threads;
pub(crate) mod timed_stream;
