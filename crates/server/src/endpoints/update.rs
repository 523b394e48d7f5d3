//! Updates: each request is one transaction.

use crate::http::reply::{Failure, Outcome};
use crate::operations::running::{RequestDescription, STOPPED};
use crate::state::{RunningRequest, State};
use crate::worker_threads;
use hyper::StatusCode;
use std::sync::Arc;
use tokio::sync::oneshot;
use vervet::QueryOptions;
use vervet::update::{UpdateOptions, UpdateReport};

/// Runs an update. If the client disconnects before the commit begins, the update has no effect.
///
/// `LOAD` is disabled: a request must not read files of the server or access its network.
pub(crate) async fn run(
    state: &Arc<State>,
    description: RequestDescription,
    text: String,
    options: QueryOptions,
) -> Outcome<UpdateReport> {
    let running = state.acquire_permit(description).await?;
    let mut guard = running.guard();
    let on_thread = Arc::clone(state);
    let done = worker_threads::light(&state.threads, move |sender| {
        let mut options = UpdateOptions { query: options.with_cancel(&running.token), documents: None };
        match on_thread.database.update_pending(&text, &mut options) {
            Err(error) => finish(running, sender, Err(error.into())),
            Ok((report, commit)) => on_thread.commit_waits.wait(
                commit,
                Box::new(move |committed| {
                    finish(running, sender, committed.map(|()| report).map_err(Failure::from));
                }),
            ),
        }
    })
    .await;
    guard.disarm();
    done.flatten()
}

/// Runs `work` on a light thread, with its own permit.
pub(crate) async fn work<T: Send + 'static>(
    state: &Arc<State>,
    description: RequestDescription,
    work: impl FnOnce(&State, &vervet::CancelToken) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    let running = state.acquire_permit(description).await?;
    let mut guard = running.guard();
    let on_thread = Arc::clone(state);
    let done = worker_threads::light(&state.threads, move |sender| {
        let done = work(&on_thread, &running.token);
        finish(running, sender, done);
    })
    .await;
    guard.disarm();
    done.flatten()
}

/// Returns the permit, and then sends the result of a request.
fn finish<T>(running: RunningRequest, sender: oneshot::Sender<Outcome<T>>, done: Outcome<T>) {
    let done = done.map_err(|failure| match failure.kind() {
        "cancelled" if running.entry.is_stopped() => Failure::new(StatusCode::SERVICE_UNAVAILABLE, STOPPED),
        _ => failure,
    });
    drop(running);
    let _ = sender.send(done);
}
