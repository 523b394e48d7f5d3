//! Threads for heavy queries and traversals: one for each while it runs, behind all others in line for the
//! processor.
//!
//! Heavy queries take whole cores for seconds. Where there are more of them than cores, the threads that
//! answer light ones would stand in one line with theirs at every wake-up.
//!
//! # Shape
//! On Linux a thread can be nicer than its process, and whatever it starts is as nice: here the helpers of
//! the query. It cannot be less nice again, so these threads are no pool that others use. Elsewhere they are
//! as all others.
//!
//! When a heavy query has ended, the allocator is asked within [`RELEASED_WITHIN`] to give back what it left:
//! glibc keeps much of it in each of its arenas otherwise, and there are eight of those for each core.
//! # Cost
//! 30 to 50 µs for a thread, of a query that takes 1 ms at least.

use crate::reply::{Failure, Outcome};
use crate::state::State;
use hyper::StatusCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use vervet_model::Error;

/// Room for the recursion of parsers and planners, whose limits of nesting are made for the main thread's.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// How soon memory goes back; not at once, as that takes milliseconds where much is in pieces.
const RELEASED_WITHIN: Duration = Duration::from_secs(1);

/// Has `work` done on a thread for heavy queries, and waits for what it tells first.
///
/// # Errors
/// 503: the system gives no threads.
pub(crate) async fn run<T: Send + 'static>(
    state: &Arc<State>,
    work: impl FnOnce(oneshot::Sender<T>) + Send + 'static,
) -> Outcome<T> {
    let (sender, receiver) = oneshot::channel();
    let (handle, state) = (Handle::current(), Arc::clone(state));
    let started = std::thread::Builder::new().name("vervet-heavy".to_owned()).stack_size(STACK_BYTES).spawn(
        move || {
            let _entered = handle.enter();
            let _after = ReleaseMemory(state);
            step_back();
            work(sender);
        },
    );
    if let Err(error) = started {
        let message = format!("there is no thread for this query: {error}");
        return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, message).hint("try again later"));
    }
    receiver.await.map_err(|_| Error::internal("a query ended without an answer").into())
}

/// Makes this thread one that others go before.
fn step_back() {
    // One that may not is as all others, which is slower for them and not wrong.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
}

/// Has memory released when a query has ended, also by a panic.
struct ReleaseMemory(Arc<State>);

impl Drop for ReleaseMemory {
    fn drop(&mut self) {
        if self.0.releases.swap(true, Ordering::AcqRel) {
            return;
        }
        let state = Arc::clone(&self.0);
        // By an ordinary thread: it holds locks of the allocator meanwhile.
        tokio::spawn(async move {
            tokio::time::sleep(RELEASED_WITHIN).await;
            state.releases.store(false, Ordering::Release);
            let _ = tokio::task::spawn_blocking(vervet_env::release_free_memory).await;
        });
    }
}
