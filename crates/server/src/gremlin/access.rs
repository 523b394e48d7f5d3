//! What a client may do, as far as it has said who it is.

use super::answer::Trouble;
use crate::auth;
use crate::options::Role;
use crate::reply::{Failure, Outcome};
use crate::route::Context;
use hyper::StatusCode;
use hyper::header::AUTHORIZATION;
use std::net::IpAddr;
use std::sync::Arc;
use vervet::gremlin::GremlinScript;

/// See the header of this file.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    role: Option<Role>,
    /// Its name, if it has one.
    user: Option<Arc<str>>,
    /// It has said who it is, or nobody needs to.
    named: bool,
    /// Why it may not write, whoever it is.
    no_writes: Option<Failure>,
    /// Where the connection comes from.
    peer: IpAddr,
}

impl Access {
    /// What the sender of a request over HTTP may do.
    ///
    /// # Errors
    /// 401 for wrong or missing credentials, 403 for pages that may not even read.
    pub(super) async fn of_request(context: &Context<'_>) -> Outcome<Self> {
        let access = Self::of(context, context.site.allow_write().err()).await?;
        // A body is read for callers with a role alone.
        access.allow(Role::Read).map_err(|trouble| *trouble.failure)?;
        context.site.allow_read()?;
        Ok(access)
    }

    /// What the client of a WebSocket may do.
    ///
    /// # Errors
    /// 401 for wrong credentials, 403 for pages of other sites.
    pub(super) async fn of_socket(context: &Context<'_>) -> Outcome<Self> {
        context.site.allow_socket()?;
        Self::of(context, None).await
    }

    async fn of(context: &Context<'_>, other_site: Option<Failure>) -> Outcome<Self> {
        let (state, headers) = (context.state, &context.parts.headers);
        let role = state.users.role(headers, context.caller).await?;
        let read_only = state.options.read_only.then(|| {
            Failure::new(StatusCode::FORBIDDEN, "this server is read-only")
                .hint("it was started with --read-only")
        });
        let named = state.users.is_open() || headers.contains_key(AUTHORIZATION);
        let user = context.user();
        Ok(Self { role, user, named, no_writes: read_only.or(other_site), peer: context.caller.peer })
    }

    /// It has said who it is.
    pub(super) fn name(&mut self, user: &str, role: Role) {
        self.role = Some(role);
        self.user = Some(user.into());
        self.named = true;
    }

    /// Where the connection comes from.
    pub(super) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Whether it may do nothing before it has said who it is.
    pub(super) fn needs_login(&self) -> bool {
        self.role.is_none()
    }

    /// Its name; `None`: anonymous.
    pub(super) fn user(&self) -> Option<Arc<str>> {
        self.user.clone()
    }

    /// Whether it has said who it is, or need not.
    pub(super) fn is_named(&self) -> bool {
        self.named
    }

    /// Makes sure that it may do what this role may.
    ///
    /// # Errors
    /// 407 for those who have not said who they are, 403 for those who may not.
    pub(super) fn allow(&self, needed: Role) -> Result<(), Trouble> {
        auth::allow(self.role, self.named, needed)?;
        match &self.no_writes {
            Some(failure) if needed > Role::Read => Err(failure.clone().into()),
            _ => Ok(()),
        }
    }

    /// Makes sure that it may run this.
    ///
    /// # Errors
    /// As [`Access::allow`].
    pub(super) fn allow_script(&self, script: &GremlinScript) -> Result<(), Trouble> {
        self.allow(if script.mutates() { Role::Write } else { Role::Read })
    }
}
