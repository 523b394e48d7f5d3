//! What an operator wants to know of when it happens.

use crate::metrics::Metrics;
use std::net::IpAddr;
use std::sync::atomic::Ordering;

/// A request with a wrong name, password or token. `name` is what the client has said, and may hold anything.
pub(crate) fn login_failed(metrics: &Metrics, peer: IpAddr, name: Option<&str>) {
    metrics.failed_logins.fetch_add(1, Ordering::Relaxed);
    let _ = (peer, name);
}
