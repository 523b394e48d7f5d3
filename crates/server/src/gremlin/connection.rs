//! The state of a Gremlin connection: login, running requests, sessions.
//!
//! # Shape
//! A request becomes a [`Job`] and runs in a task of its own, or in the session that it names. Requests of a
//! client that must log in first are held until it has.

use super::access::Access;
use super::digest::SharedDigest;
use super::error::{GremlinError, UNAUTHORIZED};
use super::job::{BoxFuture, Job, JobArguments, Operation, RequestResources, SessionHost};
use super::response::{ClientState, PendingResponse};
use super::session;
use super::sessionless;
use crate::network::timed_stream::ReceivedBytes;
use crate::options::Role;
use crate::state::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Bytes;
use vervet::gremlin::{Extended, Map, Value};
use vervet_model::lock;
use vervet_tinkerpop::Request;

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

    /// Handles a request, or queues it. `message`: its bytes, if another server may have to run it.
    pub(super) async fn handle(
        self: &Arc<Self>,
        request: Request,
        message: Option<Bytes>,
        response: PendingResponse,
        resources: RequestResources,
    ) {
        if request.op == "authentication" {
            let (connection, args) = (Arc::clone(self), request.args);
            self.spawn(async move { connection.authenticate(&args, response, resources).await });
            return;
        }
        match JobArguments::of(request) {
            Ok(JobArguments { session, is_managed, operation }) => {
                let may_move = session.is_some() && message.is_some() && self.state.options.forwards();
                let digest = may_move.then(SharedDigest::default);
                self.dispatch(Job {
                    operation,
                    session,
                    is_managed,
                    response,
                    progress: None,
                    message,
                    digest,
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
                (Ok(()), None) => self.spawn(sessionless::run(Arc::clone(self), job)),
            }
        })
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
        let (mut user, mut password) = (String::new(), String::new());
        let role = match credentials(args) {
            Ok(given) => {
                (user, password) = given;
                let peer = self.access().peer();
                self.state.users.password(&user, &password, peer).await.map_err(|failure| failure.text())
            }
            Err(message) => Err(message),
        };
        let awaiting_login = {
            let mut login = lock(&self.login);
            if let Ok(Some(role)) = role {
                login.access.record_login(&user, role);
                if self.state.options.cluster.is_some() {
                    login.access.keep_password(&user, &password);
                }
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
