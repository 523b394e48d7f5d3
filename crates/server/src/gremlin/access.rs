//! Access control of Gremlin requests: the permissions of a client, before and after its login.

use super::error::GremlinError;
use crate::http::reply::Failure;
use crate::options::Role;
use crate::security::auth;
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
    /// Why the client may not write, whatever its role.
    write_refusal: Option<Failure>,
    /// The address of the client.
    peer: IpAddr,
}

impl Access {
    /// `user`: the user name; `write_refusal`: why the client may not write, whatever its role.
    pub(super) fn new(
        role: Option<Role>,
        user: Option<Arc<str>>,
        is_authenticated: bool,
        write_refusal: Option<Failure>,
        peer: IpAddr,
    ) -> Self {
        Self { role, user, is_authenticated, write_refusal, peer }
    }

    /// The same permissions while this server refuses changes for this reason, or takes them.
    pub(super) fn with_write_refusal(self, write_refusal: Option<Failure>) -> Self {
        Self { write_refusal, ..self }
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
