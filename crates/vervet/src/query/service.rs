//! The endpoints that `SERVICE` may query, and the client that queries them; see `federation`.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use vervet_model::Result;

/// The maximum bytes of one response of an endpoint.
pub const SERVICE_BYTES_MAX: usize = 256 << 20;

/// Sends queries to endpoints.
pub trait ServiceClient: Debug + Send + Sync {
    /// Sends `query` to `endpoint` by the SPARQL Protocol and returns the response: at most
    /// [`SERVICE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// The endpoint does not answer in time, or not with results.
    fn ask(&self, endpoint: &str, query: &str, timeout: Option<Duration>) -> Result<ServiceAnswer>;
}

/// The response of an endpoint.
#[derive(Clone, Debug)]
pub struct ServiceAnswer {
    /// Its media type, such as `application/sparql-results+json`.
    pub media_type: String,
    /// The document.
    pub body: Vec<u8>,
}

/// The endpoints that queries may use, and the client.
#[derive(Clone, Debug)]
pub struct Services {
    /// Their IRIs, compared exactly.
    pub endpoints: Vec<String>,
    /// Sends the requests.
    pub client: Arc<dyn ServiceClient>,
}
