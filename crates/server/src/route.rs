//! Request routing, and what applies to every response: permissions, CORS, errors in a format that the client
//! reads, and counting.

use crate::consistency;
use crate::context::{Client, RequestContext};
use crate::endpoints::api;
use crate::endpoints::changes;
use crate::endpoints::cluster;
use crate::endpoints::console;
use crate::endpoints::protocol;
use crate::endpoints::protocol::Endpoint;
use crate::endpoints::store;
use crate::forwarding;
use crate::gremlin;
use crate::gremlin::access::UpgradeCell;
use crate::http::content_negotiation::AcceptHeader;
use crate::http::reply::{Failure, Outcome, Reply, empty, full, not_allowed, set};
use crate::load;
use crate::operations::metrics;
use crate::operations::metrics::{RequestKind, RequestTimer};
use crate::options::Role;
use crate::security::auth::Caller;
use crate::security::origin::{self, Host, Site};
use crate::state::State;
use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW, HeaderValue,
    ORIGIN, SERVER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use vervet_cluster::{ChangesStatus, Cluster};

/// Handles any request.
pub(crate) async fn answer(
    state: &Arc<State>,
    Client { peer, tls, is_forwarded }: Client,
    upgrade: &UpgradeCell,
    request: Request<Incoming>,
) -> Reply {
    let begin = Instant::now();
    let (parts, body) = request.into_parts();
    // The server that sends it on has checked host and origin.
    let caller = Caller { peer, has_trusted_host: is_forwarded };
    let mut context = RequestContext {
        state,
        parts: &parts,
        tls,
        is_forwarded,
        upgrade,
        kind: RequestKind::Other,
        site: Site::Trusted,
        caller,
        body_reservation: Mutex::default(),
        body: Mutex::default(),
    };
    let checked = if is_forwarded { Ok(()) } else { check_host_and_origin(&mut context) };
    let outcome = match checked {
        Ok(()) => match route(&mut context, body).await {
            Err(failure) if failure.is_elsewhere() => forwarding::send_on(&context, failure).await,
            outcome => outcome,
        },
        Err(failure) => Err(failure),
    };
    let kind = context.kind;
    let mut reply = match outcome {
        Ok(reply) => reply,
        Err(failure) => {
            log(&parts, kind, &failure);
            failure.reply(AcceptHeader::of(&parts.headers).prefers_json())
        }
    };
    cors(state, &parts, &mut reply);
    let headers = reply.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(SERVER, HeaderValue::from_static(concat!("vervet/", env!("CARGO_PKG_VERSION"))));
    let timer = RequestTimer::new(&state.metrics, kind, reply.status().as_u16(), begin);
    reply.body_mut().timer = Some(timer);
    reply
}

/// Determines host name and origin of a request, and checks them.
///
/// # Errors
/// 400 for an invalid `Host` or `Origin`, 421 for an untrusted name.
fn check_host_and_origin(context: &mut RequestContext<'_>) -> Outcome<()> {
    let (state, parts) = (context.state, context.parts);
    let host = Host::of(parts)?;
    let is_trusted = origin::is_trusted(host.as_ref(), &state.options.hosts);
    if !is_trusted && state.users.is_open() {
        return Err(origin::misdirected(host.as_ref()));
    }
    context.caller.has_trusted_host = is_trusted;
    context.site = Site::of(parts, host.as_ref(), context.tls, &state.options.cors)?;
    Ok(())
}

/// Logs a failed request, at a level that reflects its relevance to the operator.
fn log(parts: &Parts, kind: RequestKind, failure: &Failure) {
    let (kind, path, status) = (kind.name(), parts.uri.path(), failure.status.as_u16());
    let message = failure.text();
    if path == "/ready" {
        // `Readiness` logs the changes; a probe comes every few seconds.
        tracing::debug!(path, status, error = message.as_str(), "not ready");
    } else if failure.status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(kind, path, status, error = message.as_str(), "request failed");
    } else if failure.status.is_server_error() {
        tracing::warn!(kind, path, status, error = message.as_str(), "request failed");
    } else if failure.kind() == "conflict" {
        tracing::info!(kind, path, error = message.as_str(), "transaction refused");
    } else {
        tracing::debug!(kind, path, status, error = message.as_str(), "request refused");
    }
}

/// Readiness: whether writes can be expected to succeed, and queries where other servers have data.
///
/// # Errors
/// 503 with the reason.
fn ready(state: &State) -> Outcome {
    let reason = not_ready(state);
    state.readiness.note(reason.as_deref());
    match reason {
        Some(reason) => Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, reason)),
        None => Ok(full(StatusCode::OK, "text/plain; charset=utf-8", "ready\n")),
    }
}

/// Why the server is not ready; `None`: it is.
fn not_ready(state: &State) -> Option<String> {
    if state.ending.load(Ordering::Acquire) {
        return Some("the server is ending".to_owned());
    }
    let refusal = state.database.storage_status().refusal.filter(|_| !state.options.refuses_changes());
    if let Some(error) = refusal {
        return Some(format!("the database is not writable: {}", error.message()));
    }
    state.options.cluster.as_deref().and_then(unreachable)
}

/// The other servers of a cluster that cannot be reached. Names alone: the response needs no credentials.
fn unreachable(cluster: &Cluster) -> Option<String> {
    let peers = cluster.peers().into_iter().filter(|peer| peer.unreachable.is_some());
    let away: Vec<String> = peers.map(|peer| peer.name).collect();
    let map = cluster.map();
    let missing = map.partitions_without(|entry| away.contains(&entry.name));
    let reason = |changes: ChangesStatus| match changes {
        ChangesStatus { has_left: true, .. } => Some("was removed from the cluster: end it"),
        ChangesStatus { has_ended: true, .. } => {
            Some("does not follow the changes of the graph: start it again")
        }
        ChangesStatus { is_complete: false, .. } => {
            Some("does not have all changes of the graph yet, or has no vote yet")
        }
        // Where it reads the whole graph without others, it goes on with the changes that it has.
        ChangesStatus { failure: Some(_), .. } if map.fewest_replicas() == 1 => {
            Some("gets no changes of the graph at present")
        }
        _ => None,
    };
    if let Some(reason) = cluster.changes().and_then(reason) {
        return Some(format!("this server {reason}"));
    }
    let has_missing = |name: &&String| {
        let entry = map.servers.iter().find(|entry| entry.name == **name);
        entry.is_some_and(|entry| entry.partitions.iter().any(|partition| missing.contains(partition)))
    };
    let names: Vec<&str> = away.iter().filter(has_missing).map(String::as_str).collect();
    let servers = match names.as_slice() {
        [] => return None,
        [one] => format!("server {one} cannot"),
        _ => format!("servers {} cannot", names.join(", ")),
    };
    Some(format!("{servers} be reached, so queries that need their partitions fail"))
}

async fn route(context: &mut RequestContext<'_>, body: Incoming) -> Outcome {
    let path = context.parts.uri.path();
    let method = &context.parts.method;
    if *method == Method::OPTIONS {
        return Ok(options(context.parts));
    }
    let reads = *method == Method::GET || *method == Method::HEAD;
    if matches!(path, "/query" | "/query/" | "/sparql" | "/sparql/" | "/gremlin" | "/gremlin/")
        || path == "/store"
        || path.starts_with("/store/")
    {
        // No server asks the leader for clients without permissions.
        if context.parts.headers.contains_key(&consistency::CONSISTENCY) {
            context.allow(Role::Read).await?;
            consistency::wait(context).await?;
        }
    }
    // Gremlin's messages wait only where they begin a transaction.
    let begins = context.is_forwarded && path != gremlin::FORWARDED_PATH;
    if begins && !context.state.options.refuses_changes() {
        forwarding::wait_for_shown(context.state, &context.parts.headers).await?;
    }
    match path {
        "/query" | "/query/" => {
            context.kind = RequestKind::Query;
            protocol::answer(context, Endpoint::Query, body).await
        }
        "/update" | "/update/" => {
            context.kind = RequestKind::Update;
            protocol::answer(context, Endpoint::Update, body).await
        }
        "/sparql" | "/sparql/" => {
            context.kind = RequestKind::Query;
            protocol::answer(context, Endpoint::Both, body).await
        }
        "/gremlin" | "/gremlin/" => {
            context.kind = RequestKind::Gremlin;
            gremlin::answer(context, body).await
        }
        // Its messages are counted as those of a WebSocket.
        gremlin::FORWARDED_PATH if context.is_forwarded => gremlin::answer_forwarded(context, body).await,
        "/health" if reads => Ok(full(StatusCode::OK, "text/plain; charset=utf-8", "ok\n")),
        "/ready" if reads => ready(context.state),
        "/metrics" if reads => {
            context.allow(Role::Read).await?;
            Ok(full(StatusCode::OK, metrics::CONTENT_TYPE, context.state.metrics.text()))
        }
        "/cluster" if reads => {
            context.allow(Role::Read).await?;
            cluster::answer(context).await
        }
        "/health" | "/ready" | "/metrics" | "/cluster" => Err(not_allowed("GET, HEAD, OPTIONS")),
        _ if path == "/store" || path.starts_with("/store/") => {
            context.kind = RequestKind::Store;
            store::answer(context, body).await
        }
        "/changes" | "/changes/" => {
            context.kind = RequestKind::Changes;
            changes::answer(context).await
        }
        "/load" | "/load/" => {
            context.kind = RequestKind::Store;
            load::answer(context, body).await
        }
        _ if path.starts_with("/api/") => {
            context.kind = RequestKind::Api;
            api::answer(context, body).await
        }
        _ => {
            context.kind = RequestKind::Page;
            console::answer(context.parts)
        }
    }
}

/// The response to `OPTIONS`: the allowed methods, for CORS preflight requests.
fn options(parts: &Parts) -> Reply {
    let mut reply = empty(StatusCode::NO_CONTENT);
    set(&mut reply, ALLOW, "GET, HEAD, POST, PUT, DELETE, OPTIONS");
    if parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        set(&mut reply, ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, DELETE, OPTIONS");
        set(&mut reply, ACCESS_CONTROL_ALLOW_HEADERS, "Accept, Authorization, Content-Type, Last-Event-ID");
        set(&mut reply, ACCESS_CONTROL_MAX_AGE, "3600");
    }
    reply
}

/// Sets the CORS headers, if pages of the origin may read the response.
fn cors(state: &State, parts: &Parts, reply: &mut Reply) {
    let Some(origin) = parts.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok()) else { return };
    let cors = &state.options.cors;
    if cors.iter().any(|allowed| allowed == origin::ALL) {
        set(reply, ACCESS_CONTROL_ALLOW_ORIGIN, origin::ALL);
    } else if origin::is_named(cors, origin) {
        set(reply, ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        set(reply, VARY, "Accept, Accept-Encoding, Origin");
    } else {
        return;
    }
    set(reply, ACCESS_CONTROL_EXPOSE_HEADERS, "Location, Retry-After, Vervet-Position");
}
