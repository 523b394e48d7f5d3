//! Execution of plans: compilation of steps to kernels, on one thread or cut for many.

pub(crate) mod compile;
pub(crate) mod cut;
pub(crate) mod execute;
pub mod parallel;
pub(crate) mod volatile;
