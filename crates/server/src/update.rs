//! Updates: each request is one transaction.

use crate::query::STOPPED;
use crate::reply::{Failure, Outcome};
use crate::running::RequestDescription;
use crate::state::State;
use crate::worker_threads;
use hyper::StatusCode;
use std::sync::Arc;
use vervet::QueryOptions;
use vervet::update::UpdateOptions;

/// Runs an update. When the client goes away before the commit has begun, nothing of it happens.
///
/// `LOAD` is off: a request must not read files of the server, or make it talk to its network.
pub(crate) async fn run(
    state: &Arc<State>,
    description: RequestDescription,
    text: String,
    options: QueryOptions,
) -> Outcome<()> {
    work(state, description, move |state, token| {
        let mut options = UpdateOptions { query: options.with_cancel(token), documents: None };
        state.database.update_with(&text, &mut options).map(drop).map_err(Failure::from)
    })
    .await
}

/// Has `work` done on a light thread, in a place of its own.
pub(crate) async fn work<T: Send + 'static>(
    state: &Arc<State>,
    description: RequestDescription,
    work: impl FnOnce(&State, &vervet::CancelToken) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    let running = state.acquire_permit(description).await?;
    let mut guard = running.guard();
    let on_thread = Arc::clone(state);
    let done = worker_threads::light(state, move |sender| {
        let done = work(&on_thread, &running.token).map_err(|failure| match failure.kind() {
            "cancelled" if running.entry.is_stopped() => {
                Failure::new(StatusCode::SERVICE_UNAVAILABLE, STOPPED)
            }
            _ => failure,
        });
        // Its place is free when the client hears of the end.
        drop(running);
        let _ = sender.send(done);
    })
    .await;
    guard.disarm();
    done.flatten()
}
