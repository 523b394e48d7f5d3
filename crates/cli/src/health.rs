//! `vervet health`: whether a Vervet server responds; for supervisors and containers without other programs.

use crate::arguments::HealthArguments;
use crate::output::{Outcome, Output};
use std::fmt::Display;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::time::Duration;
use ureq::http::{StatusCode, Uri};
use ureq::tls::TlsConfig;
use vervet::{Error, ErrorKind};
use vervet_server::BIND_DEFAULT;

/// Of a whole request. Supervisors have limits of their own.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a response; those of Vervet are a line.
const RESPONSE_BYTES_MAX: u64 = 16 << 10;

/// Maximum number of characters of a response that are shown.
const SHOWN_MAX: usize = 200;

/// Prints the server's response.
///
/// # Errors
/// [`ErrorKind::Input`]: no response, not a success, or a response that is not that of a Vervet server.
pub(crate) fn run(arguments: &HealthArguments) -> Outcome {
    let (path, healthy) = if arguments.ready { ("ready", "ready") } else { ("health", "ok") };
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
    if text != healthy {
        let reason = match text.as_str() {
            "" => format!("the response is empty; a Vervet server answers {healthy}"),
            text => format!("the response is not that of a Vervet server, which answers {healthy}: {text}"),
        };
        return Err(failed(&url, &reason).into());
    }
    let mut out = Output::standard();
    writeln!(out, "{text}")?;
    out.finish()
}

/// The URL, and the status and the first line of its response.
fn ask(url: &str) -> vervet::Result<(String, StatusCode, String)> {
    let mut answer = agent(url).get(url).call().map_err(|error| failed(url, &error))?;
    // A longer response is cut: it is another server's.
    let mut bytes = Vec::new();
    let mut body = answer.body_mut().as_reader().take(RESPONSE_BYTES_MAX);
    body.read_to_end(&mut bytes).map_err(|error| failed(url, &error))?;
    Ok((url.to_owned(), answer.status(), first_line(&bytes)))
}

/// A client for requests without secrets to the server of a URL.
pub(crate) fn agent(url: &str) -> ureq::Agent {
    // A certificate has the public name of the server. The request has no secrets.
    let tls = TlsConfig::builder().disable_verification(is_loopback(url)).build();
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .max_redirects(0)
        .proxy(None)
        .http_status_as_error(false)
        .tls_config(tls)
        .build();
    ureq::Agent::new_with_config(config)
}

/// The first line with text, without control characters, as far as it is worth showing.
fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut letters = line.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter });
    let mut shown: String = letters.by_ref().take(SHOWN_MAX).collect();
    if letters.next().is_some() {
        shown.push('\u{2026}');
    }
    shown
}

pub(crate) fn failed(url: &str, reason: &dyn Display) -> Error {
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
    use super::{first_line, is_loopback};

    #[test]
    fn a_response_is_shown_as_one_readable_line() {
        assert_eq!(first_line(b"ok\n"), "ok");
        assert_eq!(first_line(b"\n <html>\n<body>"), "<html>");
        assert_eq!(first_line(b"\x1b[31m\x00\xff red"), "\u{fffd}[31m\u{fffd}\u{fffd} red");
        assert_eq!(first_line(&[b'x'; 300]).chars().count(), 201);
        assert_eq!(first_line(b""), "");
    }

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
