//! The part of a running server that a reload replaces.

use crate::state::State;
use std::sync::Arc;
use tokio_rustls::rustls::ServerConfig;

/// The parts that a reload replaces. Connections read them when they start, and for each request.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) state: Arc<State>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
}
