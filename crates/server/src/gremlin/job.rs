//! A Gremlin request in progress on a WebSocket.

use super::access::Access;
use super::digest::SharedDigest;
use super::error::{GremlinError, MALFORMED};
use super::exchange::ForwardedMessage;
use super::request::{GremlinRequest, PreparedRequest};
use super::response::PendingResponse;
use crate::network::body_memory::BodyReservation;
use crate::operations::metrics::RequestKind;
use crate::operations::running::RequestDescription;
use crate::state::State;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::tungstenite::Bytes;
use vervet::RowCounter;
use vervet::gremlin::text::{Statement, Transaction};
use vervet::gremlin::{Bytecode, GremlinScript, Value};
use vervet_tinkerpop::Request;

/// Session names are kept in memory.
const SESSION_NAME_BYTES_MAX: usize = 256;

/// Step whose results have an order.
const ORDER_STEP: &str = "order";

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
    /// The message of the client, if another server may have to run it.
    pub(super) message: Option<Bytes>,
    /// Describes its results, if another server may have to run it again.
    pub(super) digest: Option<SharedDigest>,
    pub(super) _resources: RequestResources,
}

/// The resources that a request occupies.
pub(super) struct RequestResources {
    /// Its share of its connection; `None`: another server has sent it on.
    pub(super) _request_permits: Option<OwnedSemaphorePermit>,
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

/// What the arguments of a request say.
pub(super) struct JobArguments {
    pub(super) session: Option<Arc<str>>,
    pub(super) is_managed: bool,
    pub(super) operation: Operation,
}

impl JobArguments {
    /// # Errors
    /// 498: there is no such operation. 499: an argument is missing or wrong.
    pub(super) fn of(request: Request) -> Result<Self, GremlinError> {
        let Request { op, processor, mut args, .. } = request;
        let session = match &*processor {
            "session" => match args.swap_remove(&Value::text("session")) {
                Some(Value::String(name)) if name.len() <= SESSION_NAME_BYTES_MAX => Some(name),
                Some(Value::Uuid(name)) => Some(name.to_string().into()),
                Some(_) => {
                    let message =
                        format!("session must be a string of at most {SESSION_NAME_BYTES_MAX} bytes");
                    return Err(GremlinError::argument(message));
                }
                None => return Err(GremlinError::argument("the request has no argument session")),
            },
            _ => None,
        };
        let is_managed = matches!(args.get(&Value::text("manageTransaction")), Some(Value::Boolean(true)));
        let operation = match (&*processor, &*op) {
            ("" | "session", "eval") => Operation::Unparsed(Box::new(GremlinRequest::text(args)?)),
            ("traversal" | "session", "bytecode") => {
                Operation::Unparsed(Box::new(GremlinRequest::bytecode(args)?))
            }
            ("session", "close") => Operation::CloseSession,
            _ => {
                let message = format!("the processor {processor:?} has no operation {op:?}");
                return Err(GremlinError::new(MALFORMED, message).hint(
                    "eval; bytecode of the processor traversal; eval, bytecode, close of session; authentication",
                ));
            }
        };
        Ok(Self { session, is_managed, operation })
    }
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
        if let Operation::Prepared(prepared) = &mut self.operation {
            prepared.result_options.digest.clone_from(&self.digest);
        }
        match &self.operation {
            Operation::Prepared(prepared) => access.allow_script(&prepared.script, &state.options),
            _ => Ok(()),
        }
    }

    /// Its script, once it is parsed.
    pub(super) fn script(&self) -> Option<&GremlinScript> {
        match &self.operation {
            Operation::Prepared(prepared) => Some(&prepared.script),
            _ => None,
        }
    }

    /// Whether it ends a transaction, perhaps among other statements.
    pub(super) fn ends_transaction(&self) -> bool {
        let ends = |statement: &Statement| {
            let Statement::Transaction { action, .. } = statement else { return false };
            matches!(action, Transaction::Commit | Transaction::Rollback)
        };
        self.is_managed || self.script().is_some_and(|script| script.statements().iter().any(ends))
    }

    /// Whether it commits a transaction, perhaps among other statements.
    pub(super) fn commits(&self) -> bool {
        let is_commit = |statement: &Statement| {
            matches!(statement, Statement::Transaction { action: Transaction::Commit, .. })
        };
        self.is_managed || self.script().is_some_and(|script| script.statements().iter().any(is_commit))
    }

    /// Whether it rolls a transaction back, and does nothing else.
    pub(super) fn only_rolls_back(&self) -> bool {
        !self.is_managed
            && self.script().is_some_and(|script| {
                !script.statements().is_empty() && script.statements().iter().all(is_rollback)
            })
    }

    /// Whether it first rolls back what was open.
    pub(super) fn begins_with_rollback(&self) -> bool {
        self.script().is_some_and(|script| script.statements().first().is_some_and(is_rollback))
    }

    /// Whether it reads or writes the graph.
    pub(super) fn traverses(&self) -> bool {
        let traverses = |statement: &Statement| matches!(statement, Statement::Traversal { .. });
        self.script().is_some_and(|script| script.statements().iter().any(traverses))
    }

    /// The message for another server, if it is kept. It has the results, if they are complete.
    pub(super) fn forwarded(&self) -> Option<ForwardedMessage> {
        let (bytes, is_text) = (self.message.clone()?, self.response.is_text());
        let digest = self.digest.as_ref().and_then(SharedDigest::complete);
        let results = digest.map(|digest| (digest, self.script().is_some_and(has_order)));
        Some(ForwardedMessage { bytes, is_text, results })
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

    /// A session has finished its requests so far. `is_open`: it has a transaction.
    fn note_turn(&self, _is_open: bool) {}

    /// Whether a session outlives a transaction that was idle for too long, to tell the client.
    fn tells_of_idle_end(&self) -> bool {
        true
    }
}

fn is_rollback(statement: &Statement) -> bool {
    matches!(statement, Statement::Transaction { action: Transaction::Rollback, .. })
}

/// Whether the results of a script have an order. Texts and messages limit the depth.
fn has_order(script: &GremlinScript) -> bool {
    fn of(bytecode: &Bytecode) -> bool {
        bytecode.steps.iter().any(|step| {
            let nested = |argument: &Value| matches!(argument, Value::Traversal(nested) if of(nested));
            &*step.name == ORDER_STEP || step.arguments.iter().any(nested)
        })
    }
    script
        .statements()
        .iter()
        .any(|statement| matches!(statement, Statement::Traversal { bytecode, .. } if of(bytecode)))
}

/// A boxed future: sessions and connections start each other.
pub(super) type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
