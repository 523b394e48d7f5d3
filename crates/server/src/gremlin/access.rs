//! Access control of Gremlin requests: the permissions of a client, before and after its login.

use super::response::GremlinError;
use crate::auth;
use crate::options::Role;
use crate::reply::{Failure, Outcome};
use crate::route::RequestContext;
use hyper::StatusCode;
use hyper::header::AUTHORIZATION;
use std::net::IpAddr;
use std::sync::Arc;
use vervet::gremlin::GremlinScript;

/// See the header of this file.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    role: Option<Role>,
    /// Its user name, if it has one.
    user: Option<Arc<str>>,
    /// The client has authenticated, or need not.
    is_authenticated: bool,
    /// Why the client may not write, whatever its role.
    write_refusal: Option<Failure>,
    /// The address of the client.
    peer: IpAddr,
}

impl Access {
    /// The permissions of the sender of an HTTP request.
    ///
    /// # Errors
    /// 401 for wrong or missing credentials, 403 for pages without read access.
    pub(super) async fn of_request(context: &RequestContext<'_>) -> Outcome<Self> {
        let access = Self::of(context, context.site.allow_write().err()).await?;
        // Only callers with a role may send a body.
        access.allow(Role::Read).map_err(|error| *error.failure)?;
        context.site.allow_read()?;
        Ok(access)
    }

    /// The permissions of a WebSocket client.
    ///
    /// # Errors
    /// 401 for wrong credentials, 403 for pages of other sites.
    pub(super) async fn of_socket(context: &RequestContext<'_>) -> Outcome<Self> {
        context.site.allow_socket()?;
        Self::of(context, None).await
    }

    async fn of(context: &RequestContext<'_>, other_site: Option<Failure>) -> Outcome<Self> {
        let (state, headers) = (context.state, &context.parts.headers);
        let role = state.users.role(headers, context.caller).await?;
        let read_only = state.options.read_only.then(|| {
            Failure::new(StatusCode::FORBIDDEN, "this server is read-only")
                .hint("it was started with --read-only")
        });
        let is_authenticated = state.users.is_open() || headers.contains_key(AUTHORIZATION);
        let user = context.user();
        Ok(Self {
            role,
            user,
            is_authenticated,
            write_refusal: read_only.or(other_site),
            peer: context.caller.peer,
        })
    }

    /// Records a successful login.
    pub(super) fn record_login(&mut self, user: &str, role: Role) {
        self.role = Some(role);
        self.user = Some(user.into());
        self.is_authenticated = true;
    }

    /// The address of the client.
    pub(super) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Whether the client has no permissions before its login.
    pub(super) fn needs_login(&self) -> bool {
        self.role.is_none()
    }

    /// Its user name; `None`: anonymous.
    pub(super) fn user(&self) -> Option<Arc<str>> {
        self.user.clone()
    }

    /// Whether the client has authenticated, or need not.
    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    /// Checks that the client has at least this role.
    ///
    /// # Errors
    /// 407 before a login, 403 for an insufficient role.
    pub(super) fn allow(&self, needed: Role) -> Result<(), GremlinError> {
        auth::allow(self.role, self.is_authenticated, needed)?;
        match &self.write_refusal {
            Some(failure) if needed > Role::Read => Err(failure.clone().into()),
            _ => Ok(()),
        }
    }

    /// Checks that the client may run this script.
    ///
    /// # Errors
    /// As [`Access::allow`].
    pub(super) fn allow_script(&self, script: &GremlinScript) -> Result<(), GremlinError> {
        self.allow(if script.mutates() { Role::Write } else { Role::Read })
    }
}
