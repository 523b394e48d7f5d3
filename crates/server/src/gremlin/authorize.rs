//! Authorization of Gremlin requests over HTTP, and of WebSocket handshakes.

use super::access::Access;
use crate::context::RequestContext;
use crate::http::reply::{Failure, Outcome};
use crate::options::Role;
use hyper::header::AUTHORIZATION;

/// The permissions of the sender of an HTTP request.
///
/// # Errors
/// 401 for wrong or missing credentials, 403 for pages without read access.
pub(super) async fn of_request(context: &RequestContext<'_>) -> Outcome<Access> {
    let access = of(context, context.site.allow_write().err()).await?;
    // Only callers with a role may send a body.
    access.allow(Role::Read).map_err(|error| *error.failure)?;
    context.site.allow_read()?;
    Ok(access)
}

/// The permissions of a WebSocket client.
///
/// # Errors
/// 401 for wrong credentials, 403 for pages of other sites.
pub(super) async fn of_socket(context: &RequestContext<'_>) -> Outcome<Access> {
    context.site.allow_socket()?;
    of(context, None).await
}

async fn of(context: &RequestContext<'_>, site_refusal: Option<Failure>) -> Outcome<Access> {
    let (state, headers) = (context.state, &context.parts.headers);
    let role = state.users.role(headers, context.caller).await?;
    let is_authenticated = state.users.is_open() || headers.contains_key(AUTHORIZATION);
    let user = context.user();
    // A server alone sends nothing on.
    let authorization = headers.get(AUTHORIZATION).filter(|_| state.options.cluster.is_some()).cloned();
    let access = Access::new(role, user, is_authenticated, site_refusal, context.caller.peer);
    Ok(access.with_authorization(authorization))
}
