//! Strict reads: a request sees everything that was committed before it, whichever server of the cluster
//! answers it.
//!
//! A server of a cluster shows the graph of one commit, a little behind the leader. With the header
//! `Vervet-Consistency: strict` it first asks the leader, which a majority confirms, and waits until it shows
//! as much.

use crate::context::RequestContext;
use crate::http::reply::{Failure, Outcome};
use hyper::header::HeaderName;
use std::time::Duration;

/// Name of the header.
pub(crate) const CONSISTENCY: HeaderName = HeaderName::from_static("vervet-consistency");

/// Longest wait.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Waits until this server shows what the request asks for.
///
/// # Errors
/// 400: another value of the header, or a server that does not vote. 503: no majority answers in time.
pub(crate) async fn wait(context: &RequestContext<'_>) -> Outcome<()> {
    let Some(value) = context.parts.headers.get(CONSISTENCY) else { return Ok(()) };
    match value.as_bytes() {
        b"session" => return Ok(()),
        b"strict" => {}
        _ => {
            let what = "the header Vervet-Consistency is neither `strict` nor `session`";
            return Err(
                Failure::bad(what).hint("leave it out for `session`: what this server shows at present")
            );
        }
    }
    // A server alone shows all that it has acknowledged; so does the writer.
    let Some(cluster) = context.state.options.cluster.clone() else { return Ok(()) };
    let map = cluster.map();
    if map.writer.is_none() && map.voters.is_empty() || map.is_writer() {
        return Ok(());
    }
    let timeout = context.state.options.limits.timeout.min(WAIT_MAX);
    let waited = tokio::task::spawn_blocking(move || cluster.catch_up(timeout)).await;
    let ended = |_| Failure::from(vervet::Error::internal("a thread that asked the leader has ended"));
    Ok(waited.map_err(ended)??)
}
