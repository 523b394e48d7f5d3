//! HTTP client of other endpoints, for `SERVICE`.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use vervet::{Error, ErrorKind, NamedNode, SERVICE_BYTES_MAX, ServiceAnswer, ServiceClient, Services};

/// Accepted formats, the cheapest to parse first.
const ACCEPT: &str = "application/sparql-results+json, application/sparql-results+xml;q=0.8, \
                      text/tab-separated-values;q=0.6";

/// The endpoints that a query may use; `None`: there are none.
pub(crate) fn services(endpoints: &[NamedNode]) -> Option<Services> {
    let names: Vec<String> = endpoints.iter().map(|iri| iri.as_str().to_owned()).collect();
    (!names.is_empty()).then(|| Services { endpoints: names, client: Arc::new(Http) })
}

#[derive(Debug)]
struct Http;

impl ServiceClient for Http {
    fn ask(&self, endpoint: &str, query: &str, timeout: Option<Duration>) -> vervet::Result<ServiceAnswer> {
        let failed = |what: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Input, format!("the endpoint <{endpoint}> could not be queried: {what}"))
        };
        // A redirect would lead to an endpoint that is not listed.
        let config = ureq::Agent::config_builder().timeout_global(timeout).max_redirects(0).build();
        let mut answer = ureq::Agent::new_with_config(config)
            .post(endpoint)
            .header("Accept", ACCEPT)
            .header("Content-Type", "application/sparql-query")
            .send(query)
            .map_err(|error| failed(&error))?;
        let media_type = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        let mut body = Vec::new();
        let mut reader = answer.body_mut().as_reader().take(SERVICE_BYTES_MAX as u64 + 1);
        reader.read_to_end(&mut body).map_err(|error| failed(&error))?;
        Ok(ServiceAnswer { media_type, body })
    }
}
