//! Access control of Gremlin requests: the permissions of a client, before and after its login.

use super::error::GremlinError;
use crate::http::reply::Failure;
use crate::options::{Role, ServerOptions};
use crate::security::auth;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use vervet::gremlin::GremlinScript;

/// See the header of this file.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    role: Option<Role>,
    /// Its user name, if it has one.
    user: Option<Arc<str>>,
    /// The client has authenticated, or need not.
    is_authenticated: bool,
    /// Why pages of the site of the client may not write, whatever its role.
    site_refusal: Option<Failure>,
    /// The address of the client.
    peer: IpAddr,
    /// Its credentials as a header, for the server to which its changes are sent on.
    authorization: Option<HeaderValue>,
}

impl Access {
    /// `user`: the user name; `site_refusal`: why pages of the site of the client may not write.
    pub(super) fn new(
        role: Option<Role>,
        user: Option<Arc<str>>,
        is_authenticated: bool,
        site_refusal: Option<Failure>,
        peer: IpAddr,
    ) -> Self {
        Self { role, user, is_authenticated, site_refusal, peer, authorization: None }
    }

    /// Keeps the credentials for the server to which changes are sent on.
    pub(super) fn with_authorization(mut self, authorization: Option<HeaderValue>) -> Self {
        self.authorization = authorization;
        if let Some(authorization) = &mut self.authorization {
            // Debugging output does not show it.
            authorization.set_sensitive(true);
        }
        self
    }

    /// [`Access::with_authorization`], of a client that has sent name and password.
    pub(super) fn keep_password(&mut self, user: &str, password: &str) {
        let basic = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        *self = self.clone().with_authorization(HeaderValue::try_from(basic).ok());
    }

    /// The credentials of the client, as a header.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
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
        Ok(auth::allow(self.role, self.is_authenticated, needed)?)
    }

    /// Checks that the client may run this script. Another server may have begun to take changes since the
    /// last call.
    ///
    /// # Errors
    /// As [`Access::allow`]. For a script that writes also: 403 for the site of the client; the reason of a
    /// server that takes no changes.
    pub(super) fn allow_script(
        &self,
        script: &GremlinScript,
        options: &ServerOptions,
    ) -> Result<(), GremlinError> {
        if !script.mutates() {
            return self.allow(Role::Read);
        }
        self.allow(Role::Write)?;
        if let Some(failure) = &self.site_refusal {
            return Err(failure.clone().into());
        }
        if options.refuses_changes() { Err(options.refuse_changes().into()) } else { Ok(()) }
    }
}

/// Tells the connection that it has become a WebSocket, with the permissions of its client.
#[derive(Debug, Default)]
pub(crate) struct UpgradeCell(Mutex<Option<Access>>);

impl UpgradeCell {
    pub(super) fn set(&self, access: Access) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(access);
    }

    /// Takes the value, if set.
    pub(crate) fn take(&self) -> Option<Access> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
