//! `vervet health`: whether a server responds; for supervisors and containers without other programs.

use crate::arguments::HealthArguments;
use crate::output::{Outcome, Output};
use std::fmt::Display;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;
use ureq::http::{StatusCode, Uri};
use ureq::tls::TlsConfig;
use vervet::{Error, ErrorKind};
use vervet_server::BIND_DEFAULT;

/// Of a whole request. Supervisors have limits of their own.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Prints the server's response.
pub(crate) fn run(arguments: &HealthArguments) -> Outcome {
    let path = if arguments.ready { "ready" } else { "health" };
    let ask = |url: &str| ask(&format!("{}/{path}", url.trim_end_matches('/')));
    let answer = match &arguments.url {
        Some(url) => ask(url),
        // The error of the first: without a server both are the same.
        None => ask(&format!("http://{BIND_DEFAULT}"))
            .or_else(|error| ask(&format!("https://{BIND_DEFAULT}")).map_err(|_| error)),
    };
    let (url, status, text) = answer?;
    if !status.is_success() {
        return Err(failed(&url, &format!("{status}: {text}")).into());
    }
    let mut out = Output::standard();
    writeln!(out, "{text}")?;
    out.finish()
}

/// The URL, and the status and text of its response.
fn ask(url: &str) -> vervet::Result<(String, StatusCode, String)> {
    // A certificate has the public name of the server. The request has no secrets.
    let tls = TlsConfig::builder().disable_verification(is_loopback(url)).build();
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .max_redirects(0)
        .proxy(None)
        .http_status_as_error(false)
        .tls_config(tls)
        .build();
    let mut answer =
        ureq::Agent::new_with_config(config).get(url).call().map_err(|error| failed(url, &error))?;
    let text = answer.body_mut().read_to_string().map_err(|error| failed(url, &error))?;
    Ok((url.to_owned(), answer.status(), text.trim().to_owned()))
}

fn failed(url: &str, reason: &dyn Display) -> Error {
    Error::new(ErrorKind::Input, format!("{url}: {reason}"))
}

/// Whether the host of a URL is this machine.
fn is_loopback(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    // The brackets belong to an address of IPv6.
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn loopback_is_recognized() {
        for url in [
            "https://127.0.0.1:7878/",
            "https://127.8.0.1",
            "http://localhost:1/ready",
            "https://[::1]:7878/health",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "https://example.org/",
            "https://127.0.0.1.example.org:1/",
            "https://10.0.0.1/",
            "https://a/127.0.0.1",
            "https://localhost:1@example.org/",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
