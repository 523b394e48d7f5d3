//! Operations: metrics, log events, the registry of running requests, service-manager notification.

pub(crate) mod events;
pub(crate) mod feed_streams;
pub(crate) mod metrics;
pub(crate) mod notify;
pub(crate) mod peer_metrics;
pub(crate) mod readiness;
pub(crate) mod running;
pub(crate) mod storage_monitor;
