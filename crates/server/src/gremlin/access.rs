//! What a client may do, as far as it has said who it is.

use super::answer::Trouble;
use crate::auth;
use crate::options::Role;
use crate::reply::{Failure, Outcome};
use crate::route::Context;
use crate::state::State;
use hyper::header::{AUTHORIZATION, ORIGIN};
use hyper::{HeaderMap, StatusCode};
use vervet::gremlin::GremlinScript;

/// See the header of this file.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    role: Option<Role>,
    /// It has said who it is, or nobody needs to.
    named: bool,
    /// Why it may not write, whoever it is.
    no_writes: Option<Failure>,
}

impl Access {
    /// What whoever sends a request may do.
    ///
    /// # Errors
    /// 401 for those who say wrongly who they are, 403 for pages that may not even read.
    pub(super) async fn of(context: &Context<'_>) -> Outcome<Self> {
        let (state, headers) = (context.state, &context.parts.headers);
        let role = state.users.role(headers).await?;
        let other_site = context.check_origin().err();
        if other_site.is_some() && !may_read(state, headers) {
            let message = "pages of this origin may not read the database";
            return Err(Failure::new(StatusCode::FORBIDDEN, message)
                .hint("name the origin in `cors` of the configuration to allow it"));
        }
        let read_only = state.options.read_only.then(|| {
            Failure::new(StatusCode::FORBIDDEN, "this server is read-only")
                .hint("it was started with --read-only")
        });
        let named = state.users.is_open() || headers.contains_key(AUTHORIZATION);
        Ok(Self { role, named, no_writes: read_only.or(other_site) })
    }

    /// It has said who it is.
    pub(super) fn name(&mut self, role: Role) {
        self.role = Some(role);
        self.named = true;
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

/// Whether a page of another site may read answers.
fn may_read(state: &State, headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok()).unwrap_or_default();
    state.options.cors.iter().any(|allowed| allowed == "*" || allowed == origin)
}
