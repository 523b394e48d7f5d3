//! `vervet health`: whether a Vervet server responds; for supervisors and containers without other programs.

use crate::arguments::HealthArguments;
use crate::http_client::{agent, failed, first_answer};
use crate::output::{Outcome, Output};
use crate::server_address;
use std::io::{Read, Write};
use ureq::http::StatusCode;

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
    let urls = server_address::urls(arguments.address.as_deref(), false);
    let answer = first_answer(&urls, |url| ask(&format!("{url}/{path}")));
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
    out.finish()?;
    if !arguments.ready {
        note_readiness(url.trim_end_matches("health"));
    }
    Ok(())
}

/// Why a server that responds is not ready, on standard error; for people, and no failure.
fn note_readiness(root: &str) {
    if let Ok((_, StatusCode::SERVICE_UNAVAILABLE, text)) = ask(&format!("{root}ready")) {
        eprintln!("note: not ready: {}", text.trim_start_matches("error: "));
    }
}

/// The URL, and the status and the first line of its response.
fn ask(url: &str) -> vervet::Result<(String, StatusCode, String)> {
    let mut answer = agent(url, false).get(url).call().map_err(|error| failed(url, &error))?;
    // A longer response is cut: it is another server's.
    let mut bytes = Vec::new();
    let mut body = answer.body_mut().as_reader().take(RESPONSE_BYTES_MAX);
    body.read_to_end(&mut bytes).map_err(|error| failed(url, &error))?;
    Ok((url.to_owned(), answer.status(), first_line(&bytes)))
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

#[cfg(test)]
mod tests {
    use super::first_line;

    #[test]
    fn a_response_is_shown_as_one_readable_line() {
        assert_eq!(first_line(b"ok\n"), "ok");
        assert_eq!(first_line(b"\n <html>\n<body>"), "<html>");
        assert_eq!(first_line(b"\x1b[31m\x00\xff red"), "\u{fffd}[31m\u{fffd}\u{fffd} red");
        assert_eq!(first_line(&[b'x'; 300]).chars().count(), 201);
        assert_eq!(first_line(b""), "");
    }
}
