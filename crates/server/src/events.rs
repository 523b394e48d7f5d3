//! Events of the log that several handlers share.

use crate::metrics::Metrics;
use std::net::IpAddr;

/// Characters of a name that are logged.
const NAME_CHARS_LOGGED: usize = 64;

/// A request with a wrong name, password or token. `name` is what the client has said, and may hold anything.
pub(crate) fn login_failed(metrics: &Metrics, peer: IpAddr, name: Option<&str>) {
    metrics.failed_logins.inc();
    let user: String = name.unwrap_or_default().chars().take(NAME_CHARS_LOGGED).collect();
    tracing::warn!(%peer, ?user, "login failed");
}
