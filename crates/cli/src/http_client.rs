//! Requests to a running server.

use crate::password;
use crate::server_address::is_loopback;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;
use ureq::tls::TlsConfig;
use vervet::{Error, ErrorKind};

/// Of a whole request. Supervisors have limits of their own.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The hint of an error 401 or 403.
pub(crate) const LOGIN_HINT: &str =
    "name a user with the role read: --user NAME (the password is asked), or --token-file FILE";

/// The value of the header `Authorization`, if the user has named credentials.
pub(crate) fn login(user: Option<&str>, token_file: Option<&Path>) -> vervet::Result<Option<String>> {
    if let Some(user) = user {
        let pair = format!("{user}:{}", password::existing()?);
        return Ok(Some(format!("Basic {}", STANDARD.encode(pair))));
    }
    let Some(file) = token_file else { return Ok(None) };
    let text = match file == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| Error::io(format!("read {}", file.display()), &error))?;
    match text.lines().next().map(str::trim).filter(|token| !token.is_empty()) {
        Some(token) => Ok(Some(format!("Bearer {token}"))),
        None => Err(Error::new(ErrorKind::Input, format!("{} has no token", file.display()))),
    }
}

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
    agent_with(url, has_secret, Some(TIMEOUT))
}

/// The same for responses that may take any time.
pub(crate) fn streaming_agent(url: &str, has_secret: bool) -> ureq::Agent {
    agent_with(url, has_secret, None)
}

fn agent_with(url: &str, has_secret: bool, timeout: Option<Duration>) -> ureq::Agent {
    // A certificate has the public name of the server. A request with a secret needs that name.
    let tls = TlsConfig::builder().disable_verification(!has_secret && is_loopback(url)).build();
    let config = ureq::Agent::config_builder()
        .timeout_global(timeout)
        .timeout_connect(Some(TIMEOUT))
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
