//! The context of an HTTP request: its head, the state of the server, and the permissions of its sender.

use crate::gremlin::access::UpgradeCell;
use crate::http::reply::Outcome;
use crate::network::body_memory::BodyReservation;
use crate::operations::metrics::RequestKind;
use crate::operations::running::RequestDescription;
use crate::options::Role;
use crate::security::auth::Caller;
use crate::security::origin::Site;
use crate::state::State;
use bytes::Bytes;
use hyper::http::request::Parts;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use vervet_model::lock;

/// The client of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) peer: IpAddr,
    pub(crate) tls: bool,
    /// Another server of the cluster sends it on.
    pub(crate) is_forwarded: bool,
}

/// A request in progress.
pub(crate) struct RequestContext<'a> {
    pub(crate) state: &'a Arc<State>,
    pub(crate) parts: &'a Parts,
    pub(crate) tls: bool,
    /// Another server of the cluster sends the request on.
    pub(crate) is_forwarded: bool,
    /// Set when the connection becomes a WebSocket.
    pub(crate) upgrade: &'a UpgradeCell,
    /// The kind of the request, for the metrics.
    pub(crate) kind: RequestKind,
    /// The site of the page that sends the request.
    pub(crate) site: Site,
    pub(crate) caller: Caller,
    /// The memory of its body.
    pub(crate) body_reservation: Mutex<Option<BodyReservation>>,
    /// Its body, if another server may have to answer the request.
    pub(crate) body: Mutex<Option<Bytes>>,
}

impl RequestContext<'_> {
    /// Holds the memory of the body until the end of the request, and the body itself for the server that
    /// takes changes: this one may be deposed before it executes the request.
    pub(crate) fn hold_body(&self, body: &Bytes, body_reservation: BodyReservation) {
        *lock(&self.body_reservation) = Some(body_reservation);
        if self.state.options.may_forward() {
            *lock(&self.body) = Some(body.clone());
        }
    }

    /// Checks that the client has at least the role `role`.
    ///
    /// # Errors
    /// 401, 403, also for a page of another site.
    pub(crate) async fn allow(&self, role: Role) -> Outcome<()> {
        self.state.users.check(&self.parts.headers, self.caller, Role::Read).await?;
        self.site.allow_read()?;
        if role == Role::Read {
            return Ok(());
        }
        self.state.users.check(&self.parts.headers, self.caller, role).await?;
        // Before the request is sent on: the other server relies on this check.
        self.site.allow_write()?;
        if self.state.options.refuses_changes() {
            return Err(self.state.options.refuse_changes());
        }
        Ok(())
    }

    /// The user whose credentials the request has, once [`RequestContext::allow`] has checked them.
    pub(crate) fn user(&self) -> Option<Arc<str>> {
        self.state.users.name(&self.parts.headers)
    }

    /// The description in the list of running requests.
    pub(crate) fn describe(&self, text: &str) -> RequestDescription {
        RequestDescription::new(self.kind, self.user(), text)
    }
}
