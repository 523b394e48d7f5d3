//! Other servers, as this crate needs them: something that answers requests.

use std::fmt::Debug;
use vervet_model::Result;

/// Another server, which has partitions of the same graph. `vervet_partition::PartitionedBase::answer` is
/// what answers its requests.
pub trait Remote: Send + Sync + Debug {
    /// Its name.
    fn name(&self) -> &str;

    /// Whether it has not answered lately, so that another server with the same partitions is asked first.
    fn is_suspected(&self) -> bool {
        false
    }

    /// Finds out whether it answers, in a fraction of a second, for [`Remote::is_suspected`].
    fn probe(&self) {}

    /// Sends a request; requests to several servers may be under way at once.
    ///
    /// # Errors
    /// Unavailable: it cannot be reached. Cancelled, Deadline: the limits of the calling thread
    /// ([`vervet_model::ThreadLimits`]).
    fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>>;
}

/// An answer that is awaited. Dropping it gives it up.
pub trait Answer {
    /// Waits for the answer.
    ///
    /// # Errors
    /// As [`Remote::send`]; the error that the other server answered.
    fn receive(self: Box<Self>) -> Result<Vec<u8>>;

    /// Whether nothing was sent: this process has kept the answer to an equal request.
    fn is_kept(&self) -> bool {
        false
    }
}
