//! Requests to a running server.

use crate::server_address::is_loopback;
use std::fmt::Display;
use std::time::Duration;
use ureq::tls::TlsConfig;
use vervet::{Error, ErrorKind};

/// Of a whole request. Supervisors have limits of their own.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The first success of these; if there is none, the error of the first.
pub(crate) fn first_answer<T>(urls: &[String], ask: impl Fn(&str) -> vervet::Result<T>) -> vervet::Result<T> {
    let mut first = None;
    for url in urls {
        match ask(url) {
            Ok(answer) => return Ok(answer),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| Error::internal("no address to ask")))
}

/// A client for requests to the server of a URL.
pub(crate) fn agent(url: &str, has_secret: bool) -> ureq::Agent {
    // A certificate has the public name of the server. A request with a secret needs that name.
    let tls = TlsConfig::builder().disable_verification(!has_secret && is_loopback(url)).build();
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .max_redirects(0)
        .proxy(None)
        .http_status_as_error(false)
        .tls_config(tls)
        .build();
    ureq::Agent::new_with_config(config)
}

pub(crate) fn failed(url: &str, reason: &dyn Display) -> Error {
    Error::new(ErrorKind::Input, format!("{url}: {reason}"))
}
