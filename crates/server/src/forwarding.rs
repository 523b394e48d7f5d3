//! Requests that change the graph, sent on to the server of the cluster that takes changes.
//!
//! # Shape
//! A server that does not take changes checks a request as if it did, and refuses it with a failure that says
//! so ([`Failure::elsewhere`]). The router then sends it on ([`send_on`]): a line with the address of the
//! client and whether it came over TLS, then the request as HTTP/1.0, through the connection between the
//! servers. The other server answers it as one of its own clients ([`receive`]); the answer comes back as
//! HTTP/1.0. The client then sees its change here, too, as far as this server votes. Gremlin over a WebSocket
//! uses the same connection for its own messages ([`forward`], `gremlin::remote`).
//! # Invariants
//! A request is sent on twice at most: by a server that does not vote to a voter, and by that to the leader.
//! The end of the connection of its client cancels it at each of them. It names the newest commit that the
//! server of its client showed, and is executed on a graph with that commit ([`wait_for_shown`]).
//! An error says whether the change may have taken effect. A request that no server has taken waits for the
//! next leader, so a server that ends, or dies, fails none that it has not got.

use crate::cancel::CHECK_INTERVAL;
use crate::context::{Client, RequestContext};
use crate::http::reply::{Body, Failure, Outcome, Reply};
use crate::operations::metrics::RequestKind;
use crate::options::Limits;
use crate::state::{State, overloaded};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, DATE, EXPECT, HeaderMap, HeaderName, HeaderValue, ORIGIN, TRANSFER_ENCODING,
    UPGRADE,
};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use vervet::{CancelToken, Timestamp};
use vervet_cluster::Cluster;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};

/// The number of the newest commit that the server of the client showed when it sent a request on.
const SHOWN: HeaderName = HeaderName::from_static("vervet-shown");

/// Time between two looks at the newest commit.
const SHOWN_INTERVAL: Duration = Duration::from_millis(1);

/// How often a request was sent on.
const HOPS: HeaderName = HeaderName::from_static("vervet-hops");

/// Most times.
const HOPS_MAX: u32 = 2;

/// Longest request that is sent on, and longest answer that comes back.
pub(crate) const BYTES_MAX: usize = 15 << 20;

/// Most headers of an answer.
const HEADERS_MAX: usize = 64;

/// Time that a request may take beyond the limit of queries: for waiting, and for both ways.
pub(crate) const EXTRA_TIME: Duration = Duration::from_secs(30);

/// Longest wait for a server that takes changes: the voters elect another one within two seconds, …
pub(crate) const LEADER_WAIT: Duration = Duration::from_secs(5);

/// … for which a thread looks after this time.
const LEADER_INTERVAL: Duration = Duration::from_millis(10);

/// Longest wait for a change to be visible at a server.
pub(crate) const CATCH_UP_MAX: Duration = Duration::from_secs(5);

/// Whether a request that failed has reached a server that takes changes, for the servers on its way.
pub(crate) const DELIVERY: HeaderName = HeaderName::from_static("vervet-delivery");

/// Values of [`DELIVERY`].
pub(crate) const NOT_DELIVERED: &str = "none";
pub(crate) const NOT_ANSWERED: &str = "no-answer";

/// Bytes between the two ends of a connection within this process.
const PIPE_BYTES: usize = 256 << 10;

/// Headers that concern one connection, or that the other server makes.
const OF_CONNECTION: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, EXPECT, UPGRADE, DATE, ORIGIN];

/// Sends a request on to the server that takes changes. `refused`: why this one does not answer it.
///
/// # Errors
/// `refused`, 413: the request is not sent on. 503: the other server cannot be reached, and nothing was
/// changed, or the outcome is unknown, which the message says.
pub(crate) async fn send_on(context: &RequestContext<'_>, refused: Failure) -> Outcome {
    let Some(cluster) = context.state.options.cluster.clone() else { return Err(refused) };
    let body = context.body.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    let hops = hops(context.parts) + 1;
    if hops > HOPS_MAX {
        return Err(refused);
    }
    if body.len() > BYTES_MAX {
        let what = format!("a change of more than {BYTES_MAX} bytes is not sent on: {}", refused.text());
        return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, what));
    }
    let client = Client { peer: context.caller.peer, tls: context.tls, is_forwarded: true };
    // The first server that sends the request on is that of the client.
    let shown = (!context.is_forwarded).then(|| context.state.database.newest_commit());
    let bytes = request_bytes(context.parts, (client, hops), shown, &body);
    let time_max = context.state.options.limits.timeout.saturating_add(EXTRA_TIME);
    let running = context.state.register_remote(context.describe(&description_text(context, &body)));
    let _guard = running.guard();
    let sending = Sending { server: None, wait: LEADER_WAIT, time_max, cancel: running.token.clone() };
    let sent = tokio::task::spawn_blocking(move || {
        let forwarded = forward(&cluster, &bytes, &sending);
        if matches!(forwarded, Forwarded::Answer { .. }) {
            // A server that does not vote, or reaches no majority, shows the change a little later.
            let _ = cluster.catch_up(CATCH_UP_MAX);
        }
        forwarded
    })
    .await;
    match sent {
        Ok(Forwarded::Answer { bytes, .. }) => reply(&bytes).ok_or_else(|| unknown("its answer is damaged")),
        Ok(Forwarded::NotSent) => Err(match running.cancellation() {
            Some(reason) => {
                overloaded(&format!("{reason}; nothing was changed"), 1).header(DELIVERY, NOT_DELIVERED)
            }
            None => not_sent(),
        }),
        Ok(Forwarded::NoAnswer(error)) => Err(unknown(running.cancellation().unwrap_or(error.message()))),
        Err(_) => Err(unknown("a thread that waited for it has ended")),
    }
}

/// The text of a request in the list of running requests: its body, if that is a text, or its target.
fn description_text(context: &RequestContext<'_>, body: &[u8]) -> String {
    let (method, uri) = (&context.parts.method, &context.parts.uri);
    match (context.kind, std::str::from_utf8(body)) {
        (RequestKind::Update | RequestKind::Gremlin, Ok(text)) if !text.is_empty() => text.to_owned(),
        _ => format!("{method} {}", uri.path_and_query().map_or("/", |target| target.as_str())),
    }
}

/// How a request is sent on.
pub(crate) struct Sending {
    /// The server; `None`: the one that takes changes.
    pub(crate) server: Option<String>,
    /// Longest wait until a server takes it.
    pub(crate) wait: Duration,
    /// Longest wait for the answer.
    pub(crate) time_max: Duration,
    /// Ends the wait, and the request at the other server.
    pub(crate) cancel: CancelToken,
}

/// What has become of a request.
pub(crate) enum Forwarded {
    /// No server has executed it.
    NotSent,
    NoAnswer(Error),
    Answer {
        /// The server that has answered.
        server: String,
        bytes: Vec<u8>,
    },
}

/// Sends a request on, and waits for the answer.
pub(crate) fn forward(cluster: &Cluster, bytes: &[u8], sending: &Sending) -> Forwarded {
    let deadline = Instant::now().checked_add(sending.time_max).map(|end| (end, sending.time_max));
    let cancelled = Some(sending.cancel.flag());
    let _limits = ThreadLimits { cancelled, deadline, ..ThreadLimits::default() }.enter();
    let begun = Instant::now();
    loop {
        if let Some(server) = sending.server.clone().or_else(|| cluster.taker()) {
            match cluster.forward(&server, bytes) {
                Ok(Err(error)) => return Forwarded::NoAnswer(error),
                Ok(Ok(bytes)) if !bytes.is_empty() => return Forwarded::Answer { server, bytes },
                // No server has executed it.
                Ok(Ok(_)) | Err(_) => {}
            }
        }
        if cluster.has_resigned() || begun.elapsed() >= sending.wait || ThreadLimits::check().is_err() {
            return Forwarded::NotSent;
        }
        std::thread::sleep(LEADER_INTERVAL);
    }
}

/// No server has executed a request.
pub(crate) fn not_sent() -> Failure {
    overloaded("the server that takes changes cannot be reached from here; nothing was changed", 1)
        .hint("try again in a second: voters elect another one, if a majority of them is up; vervet cluster status says who is")
        .header(DELIVERY, NOT_DELIVERED)
}

fn unknown(why: &str) -> Failure {
    let message = format!(
        "the outcome of this change is unknown: the server that takes changes got it, and then {why}"
    );
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, message)
        .hint("it may have taken effect: look before you repeat it")
        .header(DELIVERY, NOT_ANSWERED)
}

fn hops(parts: &Parts) -> u32 {
    let value = parts.headers.get(HOPS).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.parse().ok()).unwrap_or(0).min(HOPS_MAX)
}

fn request_bytes(parts: &Parts, sender: (Client, u32), shown: Option<Timestamp>, body: &[u8]) -> Vec<u8> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    encode((parts.method.as_str(), path), &parts.headers, sender, shown, body)
}

/// The request of a message that this server makes itself for a client. `shown`: the newest commit that this
/// server shows, for a request that begins a transaction.
pub(crate) fn message_bytes(
    path: &str,
    headers: &HeaderMap,
    client: Client,
    shown: Option<Timestamp>,
    body: &[u8],
) -> Vec<u8> {
    encode(("POST", path), headers, (client, 1), shown, body)
}

/// `shown`: `None`: as the headers say.
fn encode(
    (method, path): (&str, &str),
    headers: &HeaderMap,
    (client, hops): (Client, u32),
    shown: Option<Timestamp>,
    body: &[u8],
) -> Vec<u8> {
    let mut bytes = format!("{} {}\n{method} {path} HTTP/1.0\r\n", client.peer, client.tls).into_bytes();
    for (name, value) in headers {
        if !OF_CONNECTION.contains(name) && *name != HOPS && (shown.is_none() || *name != SHOWN) {
            push_header(name.as_str(), value.as_bytes(), &mut bytes);
        }
    }
    push_header(HOPS.as_str(), hops.to_string().as_bytes(), &mut bytes);
    if let Some(Timestamp(shown)) = shown {
        push_header(SHOWN.as_str(), shown.to_string().as_bytes(), &mut bytes);
    }
    push_header(CONTENT_LENGTH.as_str(), body.len().to_string().as_bytes(), &mut bytes);
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

fn push_header(name: &str, value: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(b": ");
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(b"\r\n");
}

/// The response of the other server.
fn reply(answer: &[u8]) -> Option<Reply> {
    let (status, headers, body) = read_answer(answer)?;
    let mut reply = Reply::new(Body::from((body.to_vec(),)));
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    Some(reply)
}

/// Status, headers and body of a response of HTTP/1.0.
pub(crate) fn read_answer(answer: &[u8]) -> Option<(StatusCode, HeaderMap, &[u8])> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = head.parse(answer).ok()? else { return None };
    let status = StatusCode::from_u16(head.code?).ok()?;
    let mut map = HeaderMap::new();
    for header in head.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        if !OF_CONNECTION.contains(&name) {
            map.append(name, HeaderValue::from_bytes(header.value).ok()?);
        }
    }
    Some((status, map, answer.get(length..)?))
}

/// Waits until this server shows the newest commit that the server of the client showed. A server that has
/// not published that commit yet, or does not know that it was deposed, would execute the request on an
/// earlier graph than its client has seen.
///
/// # Errors
/// 503: the commit does not arrive in time.
pub(crate) async fn wait_for_shown(state: &State, headers: &HeaderMap) -> Outcome<()> {
    let shown = headers.get(SHOWN).and_then(|value| value.to_str().ok()?.parse().ok());
    // Servers of earlier versions do not send it.
    let Some(shown) = shown.map(Timestamp) else { return Ok(()) };
    let begun = Instant::now();
    while state.database.newest_commit() < shown {
        if begun.elapsed() >= CATCH_UP_MAX {
            let what = format!(
                "the server that takes changes does not show commit {}, which the server of the client shows; \
                 nothing was changed",
                shown.0
            );
            return Err(overloaded(&what, 1));
        }
        tokio::time::sleep(SHOWN_INTERVAL).await;
    }
    Ok(())
}

/// Answers a request that another server sends on, by `answer`.
///
/// # Errors
/// Corrupt: it is no request. Unavailable: there is no whole answer. Cancelled, deadline: its sender does not
/// wait any more ([`ThreadLimits`] of the thread that polls this).
pub(crate) async fn receive(
    limits: &Limits,
    bytes: &[u8],
    answer: impl AsyncFn(Client, Request<Incoming>) -> Reply,
) -> Result<Vec<u8>> {
    let (client, request) =
        read(bytes).ok_or_else(|| Error::corrupt("a request that was sent on", "it is damaged"))?;
    let (near, far) = duplex(PIPE_BYTES);
    let service = service_fn(|request| {
        let answered = answer(client, request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let serving = http1::Builder::new()
        .max_headers(limits.headers)
        .max_buf_size(limits.head_bytes.max(PIPE_BYTES))
        .serve_connection(TokioIo::new(far), service);
    let (mut reader, mut writer) = tokio::io::split(near);
    let mut bytes = Vec::new();
    let reading = async {
        let mut limited = (&mut reader).take(BYTES_MAX as u64 + 1);
        limited.read_to_end(&mut bytes).await.map(drop)
    };
    // The writing half stays open until the answer is there.
    let exchange = async { tokio::try_join!(writer.write_all(request), reading).map(drop) };
    let abandoned = async {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if let Err(error) = ThreadLimits::check() {
                return error;
            }
        }
    };
    let (served, exchanged) = tokio::select! {
        done = async { tokio::join!(serving, exchange) } => done,
        error = abandoned => return Err(error),
    };
    let failed = |what: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Unavailable, format!("it could not answer: {what}"))
    };
    served.map_err(|error| failed(&error))?;
    exchanged.map_err(|error| failed(&error))?;
    if bytes.len() > BYTES_MAX {
        return Err(failed(&format_args!("its answer has more than {BYTES_MAX} bytes; ask it directly")));
    }
    Ok(bytes)
}

/// The client, and the request as HTTP/1.0.
fn read(bytes: &[u8]) -> Option<(Client, &[u8])> {
    let at = memchr::memchr(b'\n', bytes)?;
    let (peer, tls) = std::str::from_utf8(&bytes[..at]).ok()?.split_once(' ')?;
    let (peer, tls): (IpAddr, bool) = (peer.parse().ok()?, tls.parse().ok()?);
    Some((Client { peer, tls, is_forwarded: true }, &bytes[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_responses() {
        let answer = b"HTTP/1.0 409 Conflict\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nno\n";
        let response = reply(answer).expect("a response");
        assert_eq!(response.status(), StatusCode::CONFLICT);
        assert_eq!(response.headers().len(), 1);
        for end in 0..70 {
            assert!(reply(&answer[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn requests_name_their_client() {
        let (client, rest) = read(b"::1 true\nPOST /update HTTP/1.0\r\n\r\n").expect("a request");
        assert!(client.tls && client.is_forwarded && client.peer.is_loopback());
        assert!(rest.starts_with(b"POST"));
        for wrong in ["", "::1 true", "::1\nPOST", "x true\nPOST", "::1 2\nPOST"] {
            assert!(read(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
