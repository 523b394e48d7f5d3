//! Log events shared by several handlers.

use crate::operations::metrics::Metrics;
use std::net::IpAddr;

/// The maximum characters of a logged name.
const NAME_CHARS_LOGGED: usize = 64;

/// A request with a wrong name, password or token. `name` comes from the client, and may contain anything.
pub(crate) fn login_failed(metrics: &Metrics, peer: IpAddr, name: Option<&str>) {
    metrics.failed_logins.inc();
    let user: String = name.unwrap_or_default().chars().take(NAME_CHARS_LOGGED).collect();
    tracing::warn!(%peer, ?user, "login failed");
}
