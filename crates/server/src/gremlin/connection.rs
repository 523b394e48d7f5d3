//! The state of a Gremlin connection: login, running requests, sessions.
//!
//! # Shape
//! A request becomes a [`Job`] and runs in a task of its own, or in the session that it names. Requests of a
//! client that must log in first are held until it has.

use super::access::Access;
use super::error::{GremlinError, MALFORMED, UNAUTHORIZED};
use super::job::{BoxFuture, Job, Operation, RequestResources, SessionHost};
use super::request::GremlinRequest;
use super::response::{ClientState, PendingResponse};
use super::run::{self, Rerouted};
use super::session;
use crate::admission::Tier;
use crate::network::timed_stream::ReceivedBytes;
use crate::options::Role;
use crate::state::State;
use crate::worker_threads;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use vervet::gremlin::{Extended, Map, Value};
use vervet_model::lock;
use vervet_tinkerpop::Request;

/// Session names are kept in memory.
const SESSION_NAME_BYTES_MAX: usize = 256;

/// See the header of this file.
pub(super) struct Connection {
    pub(super) state: Arc<State>,
    login: Mutex<Login>,
    /// Limits what the client may send before a login.
    received: Arc<ReceivedBytes>,
    client: Arc<ClientState>,
    sessions: Mutex<HashMap<Arc<str>, UnboundedSender<Job>>>,
    tasks: Mutex<JoinSet<()>>,
}

struct Login {
    access: Access,
    /// Requests held until the login, after a challenge was sent.
    awaiting_login: Vec<Job>,
    /// When the client was first required to log in; `None`: it has logged in, or need not.
    due_since: Option<Instant>,
}

impl SessionHost for Connection {
    fn state(&self) -> &Arc<State> {
        &self.state
    }

    fn access(&self) -> Access {
        Self::access(self)
    }

    fn refuse_boxed(self: Arc<Self>, job: Job, error: GremlinError) -> BoxFuture {
        Box::pin(async move { Self::refuse(&self, job, error).await })
    }

    fn queue_until_login_boxed(self: Arc<Self>, job: Job) -> BoxFuture {
        Box::pin(async move { Self::queue_until_login(&self, job).await })
    }

    fn dispatch_boxed(self: Arc<Self>, job: Job) -> BoxFuture {
        Box::pin(async move { Self::dispatch(&self, job).await })
    }
}

impl Connection {
    pub(super) fn new(
        state: Arc<State>,
        access: Access,
        received: Arc<ReceivedBytes>,
        client: Arc<ClientState>,
    ) -> Arc<Self> {
        let due_since = access.needs_login().then(Instant::now);
        let login = Mutex::new(Login { access, awaiting_login: Vec::new(), due_since });
        let (sessions, tasks) = (Mutex::default(), Mutex::default());
        Arc::new(Self { state, login, received, client, sessions, tasks })
    }

    /// The permissions of the client.
    pub(super) fn access(&self) -> Access {
        lock(&self.login).access.clone()
    }

    /// Completes once the client is overdue to log in, by [`crate::Limits::login_timeout`].
    pub(super) async fn login_overdue(&self) {
        let timeout = self.state.options.limits.login_timeout;
        loop {
            let left = match lock(&self.login).due_since {
                None => timeout,
                Some(since) => match timeout.checked_sub(since.elapsed()) {
                    None => return,
                    Some(left) => left + Duration::from_millis(1),
                },
            };
            tokio::time::sleep(left).await;
        }
    }

    /// Handles a request, or queues it.
    pub(super) async fn handle(
        self: &Arc<Self>,
        request: Request,
        response: PendingResponse,
        resources: RequestResources,
    ) {
        let Request { op, processor, mut args, .. } = request;
        if op == "authentication" {
            let connection = Arc::clone(self);
            self.spawn(async move { connection.authenticate(&args, response, resources).await });
            return;
        }
        let session = match &*processor {
            "session" => match args.swap_remove(&Value::text("session")) {
                Some(Value::String(name)) if name.len() <= SESSION_NAME_BYTES_MAX => Some(name),
                Some(Value::Uuid(name)) => Some(name.to_string().into()),
                Some(_) => {
                    let message =
                        format!("session must be a string of at most {SESSION_NAME_BYTES_MAX} bytes");
                    return response.fail(GremlinError::argument(message)).await;
                }
                None => {
                    return response
                        .fail(GremlinError::argument("the request has no argument session"))
                        .await;
                }
            },
            _ => None,
        };
        let is_managed = matches!(args.get(&Value::text("manageTransaction")), Some(Value::Boolean(true)));
        let operation = match (&*processor, &*op) {
            ("" | "session", "eval") => {
                GremlinRequest::text(args).map(|request| Operation::Unparsed(Box::new(request)))
            }
            ("traversal" | "session", "bytecode") => {
                GremlinRequest::bytecode(args).map(|request| Operation::Unparsed(Box::new(request)))
            }
            ("session", "close") => Ok(Operation::CloseSession),
            _ => {
                let message = format!("the processor {processor:?} has no operation {op:?}");
                Err(GremlinError::new(MALFORMED, message).hint(
                    "eval; bytecode of the processor traversal; eval, bytecode, close of session; authentication",
                ))
            }
        };
        match operation {
            Ok(operation) => {
                self.dispatch(Job {
                    operation,
                    session,
                    is_managed,
                    response,
                    progress: None,
                    _resources: resources,
                })
                .await
            }
            Err(error) => response.fail(error).await,
        }
    }

    /// Dispatches a job; holds it if its client may do nothing yet.
    ///
    /// Boxed, as a session may dispatch a job that it does not run itself.
    pub(super) fn dispatch(self: &Arc<Self>, job: Job) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            match (self.access().allow(Role::Read), job.session.clone()) {
                (Err(error), _) if error.is_challenge() => self.queue_until_login(job).await,
                (Err(error), _) => job.response.fail(error).await,
                (Ok(()), Some(name)) => self.queue_in_session(name, job).await,
                (Ok(()), None) => self.spawn(Arc::clone(self).run_sessionless(job)),
            }
        })
    }

    /// Runs a job that is a transaction of its own: at once, on a light thread, or among heavy ones
    /// (`crate::admission`).
    async fn run_sessionless(self: Arc<Self>, mut job: Job) {
        let state = &self.state;
        if !job.needs_worker_to_parse() {
            if let Err(error) = job.prepare(state, &self.access()) {
                return self.refuse(job, error).await;
            }
            if let Some(outcome) = run::run_on_fast_path(state, &mut job) {
                return run::send_outcome(job.response, outcome, state).await;
            }
        }
        let mut running = match state.acquire_permit(job.describe(&self.access())).await {
            Ok(running) => running,
            Err(failure) => return job.response.fail(failure.into()).await,
        };
        let mut guard = running.guard();
        job.progress = Some(running.entry.progress.clone());
        if !job.is_heavy(state) {
            let worker_connection = Arc::clone(&self);
            let light = worker_threads::light(&state.threads, move |sender: oneshot::Sender<_>| {
                let rerouted = run::run_sessionless(
                    (&worker_connection.state, &worker_connection.access()),
                    job,
                    &running.token,
                    Tier::Light,
                );
                let _ = sender.send((rerouted, running));
            });
            // After a panic, dropping its reply has sent the error.
            let rerouted = light.await.ok().and_then(|(rerouted, running)| Some((rerouted?, running)));
            match rerouted {
                Some((Rerouted::TooHeavy(again), still)) => (job, running) = (again, still),
                Some((Rerouted::Challenge(job), still)) => {
                    guard.disarm();
                    drop(still);
                    return self.queue_until_login(job).await;
                }
                None => return guard.disarm(),
            }
        }
        if let Err(failure) = state.acquire_heavy_permit(&mut running).await {
            guard.disarm();
            return job.response.fail(failure.into()).await;
        }
        let worker_connection = Arc::clone(&self);
        let work = move |sender: oneshot::Sender<()>| {
            let _ = run::run_sessionless(
                (&worker_connection.state, &worker_connection.access()),
                job,
                &running.token,
                Tier::Heavy,
            );
            drop(running);
            let _ = sender.send(());
        };
        // Without a thread, or after a panic, dropping its reply has sent the error.
        let _ = worker_threads::heavy(&state.threads, work).await;
        guard.disarm();
    }

    /// Sends the failure of a job; holds the job instead if it needs a login.
    pub(super) async fn refuse(self: &Arc<Self>, job: Job, error: GremlinError) {
        if error.is_challenge() {
            self.queue_until_login(job).await;
        } else {
            job.response.fail(error).await;
        }
    }

    /// Queues a job in its session, and creates the session with its first job.
    async fn queue_in_session(self: &Arc<Self>, name: Arc<str>, job: Job) {
        if matches!(job.operation, Operation::CloseSession) && !lock(&self.sessions).contains_key(&name) {
            return job.response.send_empty().await;
        }
        let mut sessions = lock(&self.sessions);
        let refused = match sessions.get(&name) {
            Some(queue) => match queue.send(job) {
                Ok(()) => return,
                Err(refused) => refused.0,
            },
            None => job,
        };
        sessions.retain(|_, queue| !queue.is_closed());
        let (sender, receiver) = mpsc::unbounded_channel();
        let _ = sender.send(refused);
        sessions.insert(name, sender);
        drop(sessions);
        self.spawn(session::run(Arc::clone(self), receiver));
    }

    /// Holds a job until its client has logged in, and sends a challenge.
    pub(super) async fn queue_until_login(self: &Arc<Self>, job: Job) {
        let challenge = {
            let mut login = lock(&self.login);
            if login.access.is_authenticated() {
                // The login has just happened.
                Err(job)
            } else {
                let challenge = login.awaiting_login.is_empty().then(|| job.response.challenge());
                login.awaiting_login.push(job);
                login.due_since.get_or_insert_with(Instant::now);
                Ok(challenge)
            }
        };
        match challenge {
            Ok(Some(challenge)) => challenge.await,
            Ok(None) => {}
            Err(job) => self.dispatch(job).await,
        }
    }

    async fn authenticate(
        self: Arc<Self>,
        args: &Map,
        response: PendingResponse,
        _resources: RequestResources,
    ) {
        let mut user = String::new();
        let role = match credentials(args) {
            Ok((name, password)) => {
                user.clone_from(&name);
                let peer = self.access().peer();
                self.state.users.password(&name, &password, peer).await.map_err(|failure| failure.text())
            }
            Err(message) => Err(message),
        };
        let awaiting_login = {
            let mut login = lock(&self.login);
            if let Ok(Some(role)) = role {
                login.access.record_login(&user, role);
                self.received.limit(None);
            }
            // A wrong password does not extend the time; a client that may act without a login continues.
            if !login.access.needs_login() {
                login.due_since = None;
            }
            std::mem::take(&mut login.awaiting_login)
        };
        // Credentials arrive under the id of the held request, or under an id that their driver does not
        // track: the driver waits for the responses to the held requests.
        let answered = !awaiting_login.is_empty();
        let refusal = match role {
            Ok(Some(_)) => None,
            Ok(None) => Some("the name or the password is wrong".to_owned()),
            Err(message) => Some(message),
        };
        for job in awaiting_login {
            match &refusal {
                None => self.dispatch(job).await,
                Some(message) => job.response.fail(GremlinError::new(UNAUTHORIZED, message)).await,
            }
        }
        match refusal {
            _ if answered => response.discard(),
            None => response.send_empty().await,
            Some(message) => response.fail(GremlinError::new(UNAUTHORIZED, message)).await,
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Drops the held requests of a client that gets no more responses.
    pub(super) fn drop_jobs_awaiting_login(&self) {
        let awaiting_login = std::mem::take(&mut lock(&self.login).awaiting_login);
        awaiting_login.into_iter().for_each(|job| job.response.discard());
    }

    /// Ends all running requests and the sessions.
    pub(super) fn end(&self) {
        self.client.set_disconnected();
        self.drop_jobs_awaiting_login();
        lock(&self.sessions).clear();
        lock(&self.tasks).abort_all();
    }
}

/// Name and password in the arguments of an authentication: SASL PLAIN (RFC 4616), as base64 or as bytes.
fn credentials(args: &Map) -> Result<(String, String), String> {
    match args.get(&Value::text("saslMechanism")) {
        None | Some(Value::Null) => {}
        Some(mechanism) if mechanism.as_text().is_some_and(|name| name.eq_ignore_ascii_case("PLAIN")) => {}
        Some(mechanism) => return Err(format!("the SASL mechanism must be PLAIN, not {mechanism}")),
    }
    let bytes = match args.get(&Value::text("sasl")) {
        Some(Value::String(text)) => STANDARD.decode(text.as_bytes()).ok(),
        Some(Value::Extended(extended)) => match extended.as_ref() {
            Extended::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        },
        _ => None,
    };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let parts: Option<Vec<&str>> = text.as_deref().map(|text| text.split('\0').collect());
    match parts.as_deref() {
        // The first part is the authorization identity: only the user's own.
        Some([other, name, password]) if other.is_empty() || other == name => {
            Ok(((*name).to_owned(), (*password).to_owned()))
        }
        _ => Err("sasl is not a name and password in the base64 form of RFC 4616".to_owned()),
    }
}
