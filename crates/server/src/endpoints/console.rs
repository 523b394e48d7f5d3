//! Serves the console from the binary: see `build.rs`. It contains no data, so access is unrestricted.

use crate::http::content_negotiation::quality;
use crate::http::reply::{Failure, Outcome, full, not_allowed, set};
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// A file of the console.
struct File {
    /// The URL path.
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    gzip: Option<&'static [u8]>,
}

static ASSETS: &[File] = &include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Content security policy: only the page's own scripts run, and no other page may frame it.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                      font-src 'self' data:; worker-src 'self' blob:; connect-src 'self'; frame-ancestors 'none'";

/// Whether the binary contains the web console.
#[must_use]
pub fn has_console() -> bool {
    ASSETS.iter().any(|file| file.path == "/index.html")
}

/// Handles a request.
pub(crate) fn answer(parts: &Parts) -> Outcome {
    let path = if parts.uri.path() == "/" { "/index.html" } else { parts.uri.path() };
    let Some((at, file)) = ASSETS.iter().enumerate().find(|(_, file)| file.path == path) else {
        return Err(Failure::new(StatusCode::NOT_FOUND, "there is nothing at this address").hint(
            "queries go to /query, updates to /update, graphs to /store, files to /load, Gremlin to /gremlin",
        ));
    };
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(not_allowed("GET, HEAD, OPTIONS"));
    }
    let tag = &tags()[at];
    let known = parts.headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    if known.is_some_and(|known| known.split(',').any(|known| known.trim() == tag)) {
        let mut reply = crate::http::reply::empty(StatusCode::NOT_MODIFIED);
        set(&mut reply, ETAG, tag);
        return Ok(reply);
    }
    let accepted = parts.headers.get(ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok());
    let gzip = file.gzip.filter(|_| accepted.is_some_and(|accepted| quality(accepted, "gzip") > 0));
    let mut reply = full(StatusCode::OK, file.content_type, gzip.unwrap_or(file.bytes));
    if gzip.is_some() {
        set(&mut reply, CONTENT_ENCODING, "gzip");
    }
    set(&mut reply, VARY, "Accept-Encoding");
    set(&mut reply, ETAG, tag);
    set(&mut reply, CACHE_CONTROL, "no-cache");
    set(&mut reply, CONTENT_SECURITY_POLICY, POLICY);
    Ok(reply)
}

/// The entity tags of the files.
fn tags() -> &'static [String] {
    static TAGS: OnceLock<Vec<String>> = OnceLock::new();
    TAGS.get_or_init(|| {
        let tag = |file: &File| format!("\"{}\"", vervet_model::hex(&Sha256::digest(file.bytes)[..8]));
        ASSETS.iter().map(tag).collect()
    })
}
