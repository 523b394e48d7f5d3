//! Defence against cross-site requests: checks of `Host` and `Origin`.
//!
//! A web page can make its visitor's browser send requests to every address that the browser reaches, this
//! server included. Three attacks follow, each with its own defence:
//!
//! 1. **Cross-site requests.** Browsers send the origin of the page in `Origin`, or at least state in
//!    `Sec-Fetch-Site` that the page belongs to another site. Such a request is refused before it runs,
//!    unless `cors` allows it: for reads `*` is enough, writes need the origin by name.
//! 2. **DNS rebinding.** The attacker makes the name of the page's own site resolve to this server, so that
//!    the browser sees a single origin. `Host` still contains that name. A request without credentials is
//!    therefore answered only under a name that no other party can make resolve to this server: an address,
//!    `localhost`, or a name in `hosts` of the configuration. With credentials any name is accepted, since
//!    browsers keep credentials per origin.
//! 3. **WebSockets** are exempt from CORS: the page reads whatever the server sends. They need the server's
//!    own origin or one listed by name.
//!
//! Clients other than browsers normally send no `Origin`, and pass.
//!
//! # Source
//! RFC 9110, §7.2 (`Host`), §15.5.20 (421); RFC 9112, §3.2; RFC 6454 (`Origin`); RFC 6455, §10.2; W3C Fetch
//! Metadata.

use crate::http::reply::{Failure, Outcome};
use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::http::request::Parts;
use hyper::{StatusCode, Version};
use std::net::{IpAddr, Ipv6Addr};
use vervet_model::{Error, ErrorKind, Result};

/// A name or an address, in lower case and without a trailing dot, with an optional port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    name: String,
    port: Option<u16>,
}

impl Host {
    /// `None`: malformed.
    fn parse(text: &str) -> Option<Self> {
        let (name, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (address.parse::<Ipv6Addr>().ok()?.to_string(), port)
        } else {
            let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
            let name = name.strip_suffix('.').unwrap_or(name);
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if !name.bytes().all(is_name) {
                return None;
            }
            (name.to_ascii_lowercase(), port)
        };
        let port = match port {
            None | Some("") => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            Some(_) => return None,
        };
        Some(Self { name, port })
    }

    /// The host of a request; `None` for HTTP/1.0 without `Host`, which no browser sends.
    ///
    /// # Errors
    /// 400 if it is missing, malformed, duplicated, or differs from the host of an absolute request URI.
    pub(crate) fn of(parts: &Parts) -> Outcome<Option<Self>> {
        let mut values = parts.headers.get_all(HOST).iter();
        let (first, second) = (values.next(), values.next());
        let Some(value) = first else {
            return match parts.version {
                Version::HTTP_09 | Version::HTTP_10 => Ok(None),
                _ => Err(Failure::bad("the request has no Host, which HTTP/1.1 requires")),
            };
        };
        if second.is_some() {
            return Err(Failure::bad("the request has more than one Host"));
        }
        let malformed = || Failure::bad("the Host is neither a name nor an address");
        let host = value.to_str().ok().and_then(Self::parse).ok_or_else(malformed)?;
        match parts.uri.authority() {
            Some(authority) if Self::parse(authority.as_str()).as_ref() != Some(&host) => {
                Err(Failure::bad("the Host is not the one of the address"))
            }
            _ => Ok(Some(host)),
        }
    }

    /// Whether no other party can make this name resolve to this server.
    fn is_trusted(&self, names: &[String]) -> bool {
        self.name == "localhost"
            || self.name.parse::<IpAddr>().is_ok()
            || names.iter().any(|name| Self::parse(name).is_some_and(|host| host.name == self.name))
    }

    fn is_same(&self, other: &Self, default_port: u16) -> bool {
        self.name == other.name && self.port.unwrap_or(default_port) == other.port.unwrap_or(default_port)
    }
}

/// Whether a request without credentials may be answered: see the header of this file.
pub(crate) fn is_trusted(host: Option<&Host>, names: &[String]) -> bool {
    host.is_none_or(|host| host.is_trusted(names))
}

/// The error of a request under an untrusted name.
pub(crate) fn misdirected(host: Option<&Host>) -> Failure {
    let name = host.map_or("", |host| &host.name);
    Failure::new(StatusCode::MISDIRECTED_REQUEST, format!("{name:?} is not a name of this server"))
        .hint(NAMES_HINT)
}

/// How to add a name to the trusted ones.
pub(crate) const NAMES_HINT: &str = "without a user a request must be sent to an address, to localhost, or to a name \
                                     in `hosts` of the configuration (--host NAME)";

/// The scheme and the host of an origin; `None`: without a host, like `null`, or malformed.
fn origin(text: &str) -> Option<(&str, Host)> {
    let (scheme, authority) = text.split_once("://")?;
    let host = Host::parse(authority)?;
    (!scheme.is_empty() && !host.name.is_empty()).then_some((scheme, host))
}

fn default_port(scheme: &str) -> u16 {
    if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 }
}

fn is_same_origin(a: &str, b: &str) -> bool {
    match (origin(a), origin(b)) {
        (Some((a, host)), Some((b, other))) => {
            a.eq_ignore_ascii_case(b) && host.is_same(&other, default_port(a))
        }
        _ => false,
    }
}

/// The origin of a request, by trust.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Site {
    /// No page, a page of this server, or a page of an origin listed in `cors`.
    Trusted,
    /// Another origin, which may read because `cors` contains `*`.
    Reader(String),
    /// Another origin.
    Foreign(String),
}

impl Site {
    /// # Errors
    /// 400 for more than one `Origin`.
    pub(crate) fn of(parts: &Parts, host: Option<&Host>, tls: bool, cors: &[String]) -> Outcome<Self> {
        let headers = &parts.headers;
        let mut values = headers.get_all(ORIGIN).iter();
        let (value, second) = (values.next(), values.next());
        if second.is_some() {
            return Err(Failure::bad("the request has more than one Origin"));
        }
        let other = match value {
            None if is_embedded(headers) => "another site".to_owned(),
            None => return Ok(Self::Trusted),
            Some(value) => {
                let text = value.to_str().unwrap_or_default();
                if is_named(cors, text) || host.is_some_and(|host| is_own(text, host, tls)) {
                    return Ok(Self::Trusted);
                }
                text.to_owned()
            }
        };
        let all = cors.iter().any(|allowed| allowed == ALL);
        Ok(if all { Self::Reader(other) } else { Self::Foreign(other) })
    }

    /// # Errors
    /// 403.
    pub(crate) fn allow_read(&self) -> Outcome<()> {
        match self {
            Self::Trusted | Self::Reader(_) => Ok(()),
            Self::Foreign(origin) => Err(refused(origin, "read")),
        }
    }

    /// Whether the site may change the database, or open a WebSocket.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn allow_write(&self) -> Outcome<()> {
        match self {
            Self::Trusted => Ok(()),
            Self::Reader(origin) | Self::Foreign(origin) => Err(refused(origin, "change")),
        }
    }

    /// # Errors
    /// 403.
    pub(crate) fn allow_socket(&self) -> Outcome<()> {
        match self {
            Self::Trusted => Ok(()),
            Self::Reader(origin) | Self::Foreign(origin) => Err(refused(origin, "open a WebSocket to")),
        }
    }
}

fn refused(origin: &str, what: &str) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, format!("pages of {origin} may not {what} the database"))
        .hint("name the origin in `cors` of the configuration to allow it")
}

/// All origins, in `cors`.
pub(crate) const ALL: &str = "*";

/// Whether `cors` lists this origin.
pub(crate) fn is_named(cors: &[String], origin: &str) -> bool {
    cors.iter().any(|allowed| is_same_origin(allowed, origin))
}

/// Whether an origin is this server's. With TLS the page must have come by TLS too: an attacker on the
/// network path could have written a page that came without it. Without TLS, a proxy in front of the server
/// may terminate it.
fn is_own(text: &str, host: &Host, tls: bool) -> bool {
    let Some((scheme, origin)) = origin(text) else { return false };
    let is_https = scheme.eq_ignore_ascii_case("https");
    (is_https || (!tls && scheme.eq_ignore_ascii_case("http"))) && origin.is_same(host, default_port(scheme))
}

/// Whether a page of another site embeds the request without an `Origin`, as for an image or a script. The
/// target of a followed link is only shown to the visitor.
fn is_embedded(headers: &HeaderMap) -> bool {
    let is = |name, value: &str| headers.get(name).is_some_and(|found| found == value);
    (is("sec-fetch-site", "cross-site") || is("sec-fetch-site", "same-site"))
        && !is("sec-fetch-mode", "navigate")
}

/// Checks that `cors` contains origins and `hosts` contains names: a misspelt entry must not silently allow
/// or refuse anything.
///
/// # Errors
/// [`ErrorKind::Input`].
pub(crate) fn check_options(cors: &[String], hosts: &[String]) -> Result<()> {
    for allowed in cors.iter().filter(|allowed| *allowed != ALL) {
        let http = origin(allowed).is_some_and(|(scheme, _)| matches!(scheme, "http" | "https"));
        if !http {
            let message = format!("cors: {allowed:?} is not an origin");
            return Err(Error::new(ErrorKind::Input, message)
                .with_hint("such as \"https://app.example.org\", without a path, or \"*\""));
        }
    }
    for name in hosts {
        if !Host::parse(name).is_some_and(|host| !host.name.is_empty() && host.port.is_none()) {
            let message = format!("hosts: {name:?} is not a host name");
            return Err(
                Error::new(ErrorKind::Input, message).with_hint("such as \"db.example.org\", without a port")
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses() {
        let names = ["db.test".to_owned()];
        for host in [
            "localhost",
            "LOCALHOST:7878",
            "localhost.",
            "127.0.0.1:1",
            "[::1]:80",
            "[0::1]",
            "192.168.0.3",
            "db.test",
            "DB.Test.:1",
            "localhost:",
        ] {
            assert!(Host::parse(host).is_some_and(|host| host.is_trusted(&names)), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org:80",
            "localhost..",
            "a.db.test",
            "db",
            "127.1",
        ] {
            assert!(Host::parse(host).is_some_and(|host| !host.is_trusted(&names)), "{host}");
        }
        for host in [
            "a b",
            "a@localhost",
            "localhost:x",
            "localhost:1:2",
            "[::1",
            "::1",
            "[::1]x",
            "a:65536",
            "a/",
            "[x]",
        ] {
            assert_eq!(Host::parse(host), None, "{host}");
        }
    }

    #[test]
    fn origins_are_compared_with_their_default_ports() {
        for (a, b, same) in [
            ("http://a", "HTTP://A:80", true),
            ("https://a:443", "https://a", true),
            ("http://a:443", "https://a:443", false),
            ("http://a", "http://a:81", false),
            ("null", "null", false),
            ("http://[::1]:1", "http://[0:0::1]:1", true),
        ] {
            assert_eq!(is_same_origin(a, b), same, "{a} {b}");
        }
        let host = Host::parse("db.test:7878").expect("a host");
        assert!(is_own("http://db.test:7878", &host, false));
        assert!(is_own("https://DB.test:7878", &host, true));
        assert!(!is_own("http://db.test:7878", &host, true), "the page came in plain text");
        for other in ["null", "", "http://db.test", "http://db.test:7879", "ftp://db.test:7878"] {
            assert!(!is_own(other, &host, false), "{other}");
        }
    }

    #[test]
    fn misspelt_options_are_errors() {
        let check = |cors: &str, host: &str| check_options(&[cors.to_owned()], &[host.to_owned()]);
        check("*", "db.test").expect("they are right");
        check("http://localhost:3000", "db").expect("they are right");
        for cors in ["", "null", "app.example", "https://app.example/", "https://", "file://x"] {
            assert!(check(cors, "db").is_err(), "{cors}");
        }
        for host in ["", "db:80", "http://db", "*"] {
            assert!(check("*", host).is_err(), "{host}");
        }
    }
}
