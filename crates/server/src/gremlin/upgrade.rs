//! The WebSocket handshake (RFC 6455, §4.2).

use super::authorize;
use crate::context::RequestContext;
use crate::http::reply::{Failure, Outcome, empty, not_allowed, set};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::{HeaderMap, Method, StatusCode, Version};
use sha1::{Digest, Sha1};

/// The fixed GUID of the handshake (§1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Whether a request asks for a WebSocket.
pub(super) fn is_upgrade_request(headers: &HeaderMap) -> bool {
    has_token(headers, &UPGRADE, "websocket")
}

/// Accepts a valid handshake.
pub(super) async fn answer(context: &RequestContext<'_>) -> Outcome {
    let parts = context.parts;
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if parts.method != Method::GET {
        return Err(not_allowed("GET, POST, OPTIONS"));
    }
    if parts.version != Version::HTTP_11 || !has_token(&parts.headers, &CONNECTION, "upgrade") {
        return Err(Failure::bad("a WebSocket needs HTTP/1.1 and Connection: Upgrade"));
    }
    if header(&SEC_WEBSOCKET_VERSION) != Some("13") {
        let message = "the version of WebSockets must be 13";
        return Err(Failure::new(StatusCode::UPGRADE_REQUIRED, message).header(SEC_WEBSOCKET_VERSION, "13"));
    }
    let key = header(&SEC_WEBSOCKET_KEY).unwrap_or_default();
    if STANDARD.decode(key).ok().is_none_or(|bytes| bytes.len() != 16) {
        return Err(Failure::bad("Sec-WebSocket-Key is not the base64 of 16 bytes"));
    }
    let access = authorize::of_socket(context).await?;
    let mut digest = Sha1::new();
    digest.update(key.as_bytes());
    digest.update(GUID);
    let mut reply = empty(StatusCode::SWITCHING_PROTOCOLS);
    set(&mut reply, SEC_WEBSOCKET_ACCEPT, &STANDARD.encode(digest.finalize()));
    set(&mut reply, UPGRADE, "websocket");
    set(&mut reply, CONNECTION, "Upgrade");
    context.upgrade.set(access);
    Ok(reply)
}

/// Whether a header contains this token in its list.
fn has_token(headers: &HeaderMap, name: &hyper::header::HeaderName, word: &str) -> bool {
    headers.get_all(name).iter().any(|value| {
        value.to_str().is_ok_and(|list| list.split(',').any(|item| item.trim().eq_ignore_ascii_case(word)))
    })
}
