//! The address of a server as a user types it: a URL, or host and port alone.

use std::net::IpAddr;
use ureq::http::Uri;
use vervet_server::BIND_DEFAULT;

/// Parses `HOST:PORT` or the URL of a server.
pub(crate) fn server_address(text: &str) -> Result<String, String> {
    let example = "such as 127.0.0.1:7878 or https://graph.example.org";
    let rest = match text.split_once("://") {
        Some(("http" | "https", rest)) => rest,
        Some(_) => return Err(format!("must be http:// or https://, {example}")),
        None => {
            let port = text.trim_end_matches('/').rsplit_once(':').map(|(_, port)| port);
            if port.is_none_or(|port| port.parse::<u16>().is_err()) {
                return Err(format!("is neither HOST:PORT nor a URL, {example}"));
            }
            text
        }
    };
    if rest.is_empty() || rest.starts_with([':', '/']) || rest.contains(char::is_whitespace) {
        return Err(format!("has no name of a host, {example}"));
    }
    Ok(text.to_owned())
}

/// The URLs to try in turn. A host and port without a scheme is tried with and without TLS; a request with a
/// secret goes without TLS to this machine only, unless the user has typed `http://`.
pub(crate) fn urls(address: Option<&str>, has_secret: bool) -> Vec<String> {
    let address = address.unwrap_or(BIND_DEFAULT).trim_end_matches('/');
    if address.contains("://") {
        return vec![address.to_owned()];
    }
    let [plain, tls] = ["http", "https"].map(|scheme| format!("{scheme}://{address}"));
    if has_secret && !is_loopback(&plain) { vec![tls] } else { vec![plain, tls] }
}

/// Whether the host of a URL is this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    // The brackets belong to an address of IPv6.
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_a_scheme() {
        for text in ["127.0.0.1:7878", "localhost:1/", "[::1]:7878", "http://a", "https://a.b:1/"] {
            assert_eq!(server_address(text), Ok(text.to_owned()));
        }
        for text in ["", "localhost", "a:b", ":7878", "ftp://a", "http://", "https:///x", "a b:1", "1:99999"]
        {
            assert!(server_address(text).is_err(), "{text}");
        }
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

    #[test]
    fn a_secret_leaves_this_machine_with_tls_only() {
        assert_eq!(urls(None, true), ["http://127.0.0.1:7878", "https://127.0.0.1:7878"]);
        assert_eq!(urls(Some("a.example:1"), false), ["http://a.example:1", "https://a.example:1"]);
        assert_eq!(urls(Some("a.example:1"), true), ["https://a.example:1"]);
        assert_eq!(urls(Some("http://a.example/"), true), ["http://a.example"]);
    }
}
