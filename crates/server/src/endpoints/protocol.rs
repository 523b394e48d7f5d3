//! SPARQL 1.1 Protocol: requests to `/query`, `/update` and `/sparql`.
//!
//! # Source
//! SPARQL 1.1 Protocol, W3C 2013, §2.1 and §2.2. Parameters may be in the URL and in a form. A parameter that
//! is limited to one occurrence may not be in both. A dataset in the request replaces that of the query; in
//! an update with `USING` or `WITH` it is an error (§2.2.3).

use crate::context::RequestContext;
use crate::endpoints::query::{self, QueryRequest};
use crate::endpoints::service_description;
use crate::endpoints::update;
use crate::http::content_negotiation::AcceptHeader;
use crate::http::encoding::Encoding;
use crate::http::reply::{Failure, Outcome, empty, not_allowed, set};
use crate::http::request::{MediaType, Parameters, TEXT_BYTES, address, read_body, text};
use crate::operations::metrics::RequestKind;
use crate::options::Role;
use hyper::body::Incoming;
use hyper::header::HeaderName;
use hyper::{Method, StatusCode};

/// The header with the numbers of statements that an update has added and removed, as JSON.
const CHANGES: HeaderName = HeaderName::from_static("vervet-changes");

/// The operations that an address accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Query,
    Update,
    Both,
}

const FORM: &str = "application/x-www-form-urlencoded";
const QUERY: &str = "application/sparql-query";
const UPDATE: &str = "application/sparql-update";

impl Endpoint {
    fn takes_queries(self) -> bool {
        self != Self::Update
    }

    fn takes_updates(self) -> bool {
        self != Self::Query
    }

    fn allowed(self) -> &'static str {
        if self.takes_queries() { "GET, HEAD, POST, OPTIONS" } else { "POST, OPTIONS" }
    }
}

/// Handles a request.
pub(crate) async fn answer(context: &mut RequestContext<'_>, endpoint: Endpoint, body: Incoming) -> Outcome {
    let parts = context.parts;
    let mut parameters = Parameters::of_query(parts);
    if parts.method == Method::GET || parts.method == Method::HEAD {
        if parameters.has("update") {
            return Err(not_allowed("POST, OPTIONS").hint("an update is sent by POST"));
        }
        if !endpoint.takes_queries() {
            return Err(not_allowed(endpoint.allowed()));
        }
        return match parameters.one("query")? {
            Some(text) => run_query(context, text.to_owned(), &parameters).await,
            None => {
                context.allow(Role::Read).await?;
                service_description::answer(context, endpoint == Endpoint::Both).await
            }
        };
    }
    if parts.method != Method::POST {
        return Err(not_allowed(endpoint.allowed()));
    }
    let Some(media_type) = MediaType::of(&parts.headers) else {
        return Err(unsupported(endpoint, "the request has no Content-Type"));
    };
    media_type.check_charset()?;
    // No body is read from clients without permissions.
    context.allow(Role::Read).await?;
    let read = read_body(context, body, TEXT_BYTES);
    match media_type.name.as_str() {
        QUERY if endpoint.takes_queries() => {
            if parameters.has("query") || parameters.has("update") {
                return Err(Failure::bad("the request has a query in its body and one in its address"));
            }
            let text = text(&read.await?)?;
            run_query(context, text, &parameters).await
        }
        UPDATE if endpoint.takes_updates() => {
            if parameters.has("query") || parameters.has("update") {
                return Err(Failure::bad("the request has an update in its body and one in its address"));
            }
            let text = text(&read.await?)?;
            run_update(context, text, &parameters).await
        }
        FORM => {
            let form = read.await?;
            if std::str::from_utf8(&form).is_err() {
                return Err(Failure::bad("the form is not UTF-8"));
            }
            parameters.extend(&form);
            match (parameters.one("query")?, parameters.one("update")?) {
                (Some(_), Some(_)) => Err(Failure::bad("the request has a query and an update")),
                (Some(query), None) if endpoint.takes_queries() => {
                    run_query(context, query.to_owned(), &parameters).await
                }
                (None, Some(update)) if endpoint.takes_updates() => {
                    run_update(context, update.to_owned(), &parameters).await
                }
                (Some(_), None) => {
                    Err(Failure::bad("this address takes updates").hint("queries go to /query"))
                }
                (None, Some(_)) => {
                    Err(Failure::bad("this address takes queries").hint("updates go to /update"))
                }
                (None, None) => Err(Failure::bad(match endpoint {
                    Endpoint::Query => "the form has no field query",
                    Endpoint::Update => "the form has no field update",
                    Endpoint::Both => "the form has neither a field query nor a field update",
                })),
            }
        }
        other => {
            Err(unsupported(endpoint, &format!("this address does not take bodies of the type {other}")))
        }
    }
}

async fn run_query(context: &mut RequestContext<'_>, text: String, parameters: &Parameters) -> Outcome {
    context.kind = RequestKind::Query;
    context.allow(Role::Read).await?;
    let mut options = query::options(context.state, parameters)?;
    options.dataset = parameters.dataset("default-graph-uri", "named-graph-uri")?;
    options.base_iri = base(context);
    let request = QueryRequest {
        user: context.user(),
        text,
        options,
        accepted: AcceptHeader::of(&context.parts.headers),
        encoding: Encoding::choose(&context.parts.headers),
    };
    query::answer(context.state, request).await
}

async fn run_update(context: &mut RequestContext<'_>, text: String, parameters: &Parameters) -> Outcome {
    context.kind = RequestKind::Update;
    context.allow(Role::Write).await?;
    let mut options = query::options(context.state, parameters)?;
    options.dataset = parameters.dataset("using-graph-uri", "using-named-graph-uri")?;
    options.base_iri = base(context);
    let report = update::run(context.state, context.describe(&text), text, options).await?;
    let mut reply = empty(StatusCode::NO_CONTENT);
    let changes = serde_json::json!({ "inserted": report.inserted, "removed": report.removed });
    set(&mut reply, CHANGES, &changes.to_string());
    Ok(reply)
}

/// The URL of the request without parameters.
fn base(context: &RequestContext<'_>) -> Option<String> {
    let path = context.parts.uri.path();
    address(context.parts, context.tls, path).map(vervet::NamedNode::into_string)
}

fn unsupported(endpoint: Endpoint, message: &str) -> Failure {
    let types: Vec<&str> =
        [(endpoint.takes_queries(), QUERY), (endpoint.takes_updates(), UPDATE), (true, FORM)]
            .into_iter()
            .filter_map(|(takes, name)| takes.then_some(name))
            .collect();
    Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
        .hint(format!("say Content-Type: {}", types.join(" or ")))
}
