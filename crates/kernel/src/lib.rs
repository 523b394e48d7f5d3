//! Plans and the kernels that run them: a batch of bindings to a batch of bindings.
//!
//! A kernel owns no thread, no socket and no file; a driver decides where it runs.
#![forbid(unsafe_code)]

pub mod plan;
