//! Updates: each request is one transaction.

use crate::reply::{Failure, Outcome};
use crate::state::State;
use std::sync::Arc;
use vervet::update::UpdateOptions;
use vervet::{Error, QueryOptions};

/// Runs an update. When the client goes away before the commit has begun, nothing of it happens.
///
/// `LOAD` is off: a request must not read files of the server, or make it talk to its network.
pub(crate) async fn run(state: &Arc<State>, text: String, options: QueryOptions) -> Outcome<()> {
    work(state, move |state, token| {
        let mut options = UpdateOptions { query: options.with_cancel(token), documents: None };
        state.database.update_with(&text, &mut options).map(drop).map_err(Failure::from)
    })
    .await
}

/// Has `work` done on a blocking thread, in a place of its own.
pub(crate) async fn work<T: Send + 'static>(
    state: &Arc<State>,
    work: impl FnOnce(&State, &vervet::CancelToken) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    let running = state.place().await?;
    let mut guard = running.guard();
    let state = Arc::clone(state);
    let done = tokio::task::spawn_blocking(move || work(&state, &running.token)).await;
    guard.disarm();
    done.unwrap_or_else(|_| Err(Error::internal("a request ended without an answer").into()))
}
