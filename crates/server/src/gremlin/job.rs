//! A Gremlin request in progress on a WebSocket.

use super::access::Access;
use super::error::GremlinError;
use super::request::{GremlinRequest, PreparedRequest};
use super::response::PendingResponse;
use crate::network::body_memory::BodyReservation;
use crate::operations::metrics::RequestKind;
use crate::operations::running::RequestDescription;
use crate::state::State;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use vervet::RowCounter;

/// A request in progress.
pub(super) struct Job {
    pub(super) operation: Operation,
    /// The session of the request.
    pub(super) session: Option<Arc<str>>,
    /// Whether the request ends the transaction of the session (managed transaction).
    pub(super) is_managed: bool,
    pub(super) response: PendingResponse,
    /// Counts its results while it runs.
    pub(super) progress: Option<RowCounter>,
    pub(super) _resources: RequestResources,
}

/// The resources that a request occupies.
pub(super) struct RequestResources {
    /// Its share of its connection.
    pub(super) _request_permits: OwnedSemaphorePermit,
    /// Its share of the memory for messages of all connections.
    pub(super) _memory: BodyReservation,
}

/// The work of a job.
pub(super) enum Operation {
    /// Not parsed yet.
    Unparsed(Box<GremlinRequest>),
    Prepared(Box<PreparedRequest>),
    CloseSession,
}

impl Job {
    /// Whether parsing needs a blocking thread.
    pub(super) fn needs_worker_to_parse(&self) -> bool {
        matches!(&self.operation, Operation::Unparsed(request) if !request.can_parse_on_io_thread())
    }

    /// Parses the request if necessary, and checks the permissions of its client.
    ///
    /// # Errors
    /// A mistake in the request; an insufficient role.
    pub(super) fn prepare(&mut self, state: &State, access: &Access) -> Result<(), GremlinError> {
        self.operation = match std::mem::replace(&mut self.operation, Operation::CloseSession) {
            Operation::Unparsed(request) => Operation::Prepared(Box::new(request.prepare(state)?)),
            operation => operation,
        };
        match &self.operation {
            Operation::Prepared(prepared) => access.allow_script(&prepared.script, &state.options),
            _ => Ok(()),
        }
    }

    /// Its description in the list of running requests.
    pub(super) fn describe(&self, access: &Access) -> RequestDescription {
        let text = match &self.operation {
            Operation::Unparsed(request) => request.source_text(),
            Operation::Prepared(prepared) => prepared.text(),
            Operation::CloseSession => String::new(),
        };
        RequestDescription::new(RequestKind::Gremlin, access.user(), &text)
    }

    /// Whether it was heavy the last time.
    pub(super) fn is_heavy(&self, state: &State) -> bool {
        matches!(&self.operation, Operation::Prepared(prepared) if state.admission.is_heavy(prepared.fingerprint))
    }
}

/// The connection of a session, as the session uses it.
pub(super) trait SessionHost: Send + Sync + 'static {
    fn state(&self) -> &Arc<State>;

    /// The permissions of the client.
    fn access(&self) -> Access;

    /// Sends the failure of a job; holds the job instead if it needs a login.
    fn refuse_boxed(self: Arc<Self>, job: Job, error: GremlinError) -> BoxFuture;

    /// Holds a job until its client has logged in.
    fn queue_until_login_boxed(self: Arc<Self>, job: Job) -> BoxFuture;

    /// Dispatches a job that belongs to another session.
    fn dispatch_boxed(self: Arc<Self>, job: Job) -> BoxFuture;
}

/// A boxed future: sessions and connections start each other.
pub(super) type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
