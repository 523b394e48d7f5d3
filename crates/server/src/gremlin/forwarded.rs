//! Transactions that this server executes for clients of other servers of the cluster, since it takes
//! changes.
//!
//! # Shape
//! A server that does not take changes sends the messages of a client on (`remote`, `exchange`). Each
//! transaction is a session here, under a random name that its sender has drawn: it has the permits, limits
//! and threads of the session of a client of this server. Its response goes back in parts of about
//! [`PART_BYTES`]; the sender asks for each, so a slow client slows its traversal down.
//! # Invariants
//! 1. The credentials of the client are checked for each request, and are those of one user.
//! 2. A transaction has one request at a time. Its end, or that of a request whose sender has gone, removes
//!    it from the list, and rolls it back if it is open.
//! 3. It ends here once it is idle for [`crate::Limits::session_timeout`], or this server does not take
//!    changes any more. [`end_idle`] also ends one whose sender does not ask for the rest of a response.
//! 4. Messages that wait for their sender count against [`crate::Limits::bodies_bytes`].

use super::access::Access;
use super::authorize;
use super::digest::SharedDigest;
use super::error::GremlinError;
use super::exchange::{
    Action, CLIENT, CODE, ForwardedMessage, PROGRESS, Progress, read_headers, write_message,
};
use super::job::{BoxFuture, Job, JobArguments, RequestResources, SessionHost};
use super::response::{ClientState, PendingResponse};
use super::session;
use super::sessionless;
use super::socket::read_request;
use super::transactions::{ForwardedTransactions, Listed};
use crate::context::RequestContext;
use crate::forwarding::{DELIVERY, NOT_ANSWERED, wait_for_shown};
use crate::http::reply::{Failure, Outcome, Reply, full, set};
use crate::http::request::{FORWARDED_BYTES, read_body};
use crate::settings::Settings;
use crate::state::{State, overloaded};
use hyper::StatusCode;
use hyper::body::Incoming;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use vervet_model::lock;

/// Messages that wait for the next part of the response.
const MESSAGES_MAX: usize = 16;

/// A part of a response ends with the message that reaches this size, …
const PART_BYTES: usize = 1 << 20;

/// … or after this time, if it has any.
const PART_TIME: Duration = Duration::from_millis(500);

/// Longest message that is sent on: it has room in an answer between servers, behind others.
const MESSAGE_BYTES_MAX: usize = 13 << 20;

/// Time between two looks for transactions that are over: a part of the time after which they are, …
const LOOKS_PER_TIMEOUT: u32 = 4;

/// … within these bounds.
const LOOK_INTERVALS: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(10)];

/// What the session of a transaction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    Busy,
    /// It waits for the next request, with a transaction.
    Open,
    /// It waits for the next request, without a transaction.
    Closed,
    Ended,
}

/// A transaction of a client of another server.
struct ForwardedTransaction {
    state: Arc<State>,
    access: Mutex<Access>,
    client: Arc<ClientState>,
    /// The requests of the session; `None`: a request of its own.
    queue: Option<UnboundedSender<Job>>,
    turn: watch::Sender<Turn>,
    task: Mutex<Option<AbortHandle>>,
    /// The rest of a response. It has a lock for the time of a request.
    response: tokio::sync::Mutex<Option<mpsc::Receiver<Message>>>,
    used: Mutex<Instant>,
}

impl Listed for ForwardedTransaction {
    fn end(&self) {
        self.client.set_disconnected();
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }

    fn is_over(&self, idle_max: Duration) -> bool {
        let has_ended = self.queue.is_some() && *self.turn.borrow() == Turn::Ended;
        // The lock last: a request that comes at this moment would be refused.
        (has_ended || lock(&self.used).elapsed() > idle_max) && self.response.try_lock().is_ok()
    }
}

impl SessionHost for ForwardedTransaction {
    fn state(&self) -> &Arc<State> {
        &self.state
    }

    fn access(&self) -> Access {
        lock(&self.access).clone()
    }

    fn refuse_boxed(self: Arc<Self>, job: Job, error: GremlinError) -> BoxFuture {
        // Its login would not help: its client waits at the other server.
        if error.is_challenge() {
            self.queue_until_login_boxed(job)
        } else {
            Box::pin(job.response.fail(error))
        }
    }

    /// Its client has logged in at the other server.
    fn queue_until_login_boxed(self: Arc<Self>, job: Job) -> BoxFuture {
        Box::pin(job.response.fail(GremlinError::argument("a login is required")))
    }

    /// The session has ended, and no other one continues its transaction.
    fn dispatch_boxed(self: Arc<Self>, job: Job) -> BoxFuture {
        Box::pin(async move {
            self.turn.send_replace(Turn::Ended);
            job.response.discard();
        })
    }

    fn note_turn(&self, is_open: bool) {
        self.turn.send_replace(if is_open { Turn::Open } else { Turn::Closed });
    }

    fn tells_of_idle_end(&self) -> bool {
        false
    }
}

/// Notes the end of a session.
struct EndOfTurns(Arc<ForwardedTransaction>);

impl Drop for EndOfTurns {
    fn drop(&mut self) {
        self.0.turn.send_replace(Turn::Ended);
    }
}

impl ForwardedTransaction {
    /// `is_session`: further requests may follow.
    fn new(state: &Arc<State>, access: Access, host: &str, is_session: bool) -> Arc<Self> {
        let queue = is_session.then(mpsc::unbounded_channel);
        let (sender, receiver) = queue.unzip();
        let transaction = Arc::new(Self {
            state: Arc::clone(state),
            access: Mutex::new(access),
            client: Arc::new(ClientState::new(host.into())),
            queue: sender,
            turn: watch::Sender::new(Turn::Closed),
            task: Mutex::default(),
            response: tokio::sync::Mutex::default(),
            used: Mutex::new(Instant::now()),
        });
        if let Some(receiver) = receiver {
            transaction.run_session(receiver);
        }
        transaction
    }

    fn run_session(self: &Arc<Self>, queue: UnboundedReceiver<Job>) {
        let end = EndOfTurns(Arc::clone(self));
        let task = self.state.spawn(async move { session::run(Arc::clone(&end.0), queue).await });
        *lock(&self.task) = Some(task.abort_handle());
    }

    /// Runs a message; its response. `None`: the transaction has ended, and nothing has run.
    ///
    /// # Errors
    /// 503: there is no memory for the message.
    async fn start(
        self: &Arc<Self>,
        message: ForwardedMessage,
        digest: Option<SharedDigest>,
    ) -> Outcome<Option<mpsc::Receiver<Message>>> {
        let (out, receiver) = mpsc::channel(MESSAGES_MAX);
        let mut memory = self.state.body_memory.reserve();
        if !memory.grow(message.bytes.len()) {
            return Err(overloaded("the memory for messages is exhausted", 1));
        }
        let resources = RequestResources { _request_permits: None, _memory: memory };
        let response = PendingResponse::new(&self.state, out, &self.client, message.is_text);
        let mut response = response.counted();
        let request = read_request(&self.state, message.bytes, message.is_text, &mut response).await;
        let arguments = match request.and_then(JobArguments::of) {
            Ok(arguments) => arguments,
            Err(error) => {
                response.fail(error).await;
                return Ok(Some(receiver));
            }
        };
        let JobArguments { session, is_managed, operation } = arguments;
        let job = Job {
            operation,
            session,
            is_managed,
            response,
            progress: None,
            message: None,
            digest,
            _resources: resources,
        };
        match &self.queue {
            Some(queue) => {
                self.turn.send_replace(Turn::Busy);
                if let Err(refused) = queue.send(job) {
                    refused.0.response.discard();
                    return Ok(None);
                }
            }
            None => {
                let task = self.state.spawn(sessionless::run(Arc::clone(self), job));
                *lock(&self.task) = Some(task.abort_handle());
            }
        }
        Ok(Some(receiver))
    }

    /// Runs a message that the other server has executed, too; whether the results are the same.
    async fn repeat(self: &Arc<Self>, message: ForwardedMessage) -> Outcome<bool> {
        let (expected, digest) = (message.results, SharedDigest::default());
        let Some(mut response) = self.start(message, Some(digest.clone())).await? else { return Ok(false) };
        while response.recv().await.is_some() {}
        self.wait_for_turn().await;
        let is_same = |(expected, has_order)| {
            digest.complete().is_some_and(|digest| digest.matches(&expected, has_order))
        };
        Ok(expected.is_some_and(is_same))
    }

    /// What has become of the transaction, once its session waits for the next request.
    async fn wait_for_turn(&self) -> Turn {
        if self.queue.is_none() {
            return Turn::Closed;
        }
        let mut turns = self.turn.subscribe();
        turns.wait_for(|turn| *turn != Turn::Busy).await.map_or(Turn::Ended, |turn| *turn)
    }
}

/// Ends a transaction whose request does not get to its end.
struct EndTransactionOnDrop<'t> {
    of: &'t ForwardedTransactions,
    name: Option<&'t str>,
}

impl Drop for EndTransactionOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            _ = self.of.end(name);
        }
    }
}

/// Ends transactions that are over ([`Listed::is_over`]) for as long as the server runs.
pub(crate) async fn end_idle(settings: watch::Receiver<Settings>) {
    let [interval_min, interval_max] = LOOK_INTERVALS;
    loop {
        let state = Arc::clone(&settings.borrow().state);
        let timeout = state.options.limits.session_timeout;
        state.forwarded.end_over(timeout);
        drop(state);
        tokio::time::sleep((timeout / LOOKS_PER_TIMEOUT).clamp(interval_min, interval_max)).await;
    }
}

/// Handles a request of another server of the cluster.
pub(crate) async fn answer(context: &RequestContext<'_>, body: Incoming) -> Outcome {
    answer_checked(context, body).await.map_err(|failure| match failure.is_elsewhere() {
        true => failure,
        false => failure.header(PROGRESS, Progress::Refused.name()),
    })
}

async fn answer_checked(context: &RequestContext<'_>, body: Incoming) -> Outcome {
    let access = authorize::of_request(context).await?;
    let headers = &context.parts.headers;
    let (name, action) =
        read_headers(headers).ok_or_else(|| Failure::bad("the request names no transaction"))?;
    let body = read_body(context, body, FORWARDED_BYTES).await?;
    let (state, all) = (context.state, &*context.state.forwarded);
    if state.options.refuses_changes() {
        if all.end(&name).is_some() {
            return Ok(reply(Progress::Lost, 0, Vec::new()));
        }
        // The server that takes changes may hold it.
        return Err(state.options.refuse_changes());
    }
    let lost = || Ok(reply(Progress::Lost, 0, Vec::new()));
    match action {
        Action::Close => {
            _ = all.end(&name);
            Ok(reply(Progress::Closed, 0, Vec::new()))
        }
        Action::Begin | Action::Single => {
            let (repeated, message) = read_messages(&body)?;
            wait_for_shown(state, headers).await?;
            if state.options.refuses_changes() {
                // It has learned meanwhile that another server leads.
                return Err(state.options.refuse_changes());
            }
            if action == Action::Begin && state.acquire_session_permit().is_none() {
                return Err(overloaded(&session::too_many(state), 1));
            }
            let host = headers.get(CLIENT).and_then(|host| host.to_str().ok()).unwrap_or_default();
            let transaction = ForwardedTransaction::new(state, access, host, action == Action::Begin);
            all.add(&name, Arc::clone(&transaction));
            run(context, (&name, &transaction), repeated, Some(message)).await
        }
        Action::Run | Action::Continue => {
            let Some(transaction) = all.get::<ForwardedTransaction>(&name) else { return lost() };
            if transaction.access().user() != access.user() {
                return Err(Failure::new(StatusCode::FORBIDDEN, "this is a transaction of another user"));
            }
            *lock(&transaction.access) = access;
            let (repeated, message) = match action {
                Action::Run => read_messages(&body).map(|(repeated, message)| (repeated, Some(message)))?,
                _ => (Vec::new(), None),
            };
            run(context, (&name, &transaction), repeated, message).await
        }
    }
}

fn read_messages(body: &Bytes) -> Outcome<(Vec<ForwardedMessage>, ForwardedMessage)> {
    ForwardedMessage::read_all(body).ok_or_else(|| Failure::bad("the messages are damaged"))
}

/// Runs messages, or goes on with the response of the last one.
async fn run(
    context: &RequestContext<'_>,
    (name, transaction): (&str, &Arc<ForwardedTransaction>),
    repeated: Vec<ForwardedMessage>,
    message: Option<ForwardedMessage>,
) -> Outcome {
    let Ok(mut response) = transaction.response.try_lock() else {
        return Err(Failure::bad("the transaction runs another request"));
    };
    let mut end = EndTransactionOnDrop { of: &context.state.forwarded, name: Some(name) };
    *lock(&transaction.used) = Instant::now();
    for message in repeated {
        if !transaction.repeat(message).await? {
            return Ok(reply(Progress::Changed, 0, Vec::new()));
        }
    }
    let is_first = message.is_some();
    if let Some(message) = message {
        *response = transaction.start(message, None).await?;
    }
    let Some(messages) = &mut *response else { return Ok(reply(Progress::Lost, 0, Vec::new())) };
    let (part, is_complete) = match part(messages).await {
        Ok(part) => part,
        // Its transaction may have been committed.
        Err(failure) => return Ok(failure.header(DELIVERY, NOT_ANSWERED).reply(false)),
    };
    let code = transaction.client.last_code();
    let progress = if is_complete {
        *response = None;
        let turn = transaction.wait_for_turn().await;
        if is_first && part.is_empty() && turn != Turn::Ended {
            // It was cancelled: its transaction may have been committed.
            let lost = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "its response was lost");
            return Ok(lost.header(DELIVERY, NOT_ANSWERED).reply(false));
        }
        match turn {
            Turn::Open => Progress::Open,
            Turn::Ended if part.is_empty() => Progress::Lost,
            Turn::Closed | Turn::Ended | Turn::Busy => Progress::Closed,
        }
    } else {
        Progress::Unfinished
    };
    *lock(&transaction.used) = Instant::now();
    if matches!(progress, Progress::Open | Progress::Unfinished) {
        end.name = None;
    }
    Ok(reply(progress, code, part))
}

/// The next messages of a response, and whether they are the last.
///
/// # Errors
/// One is too long.
async fn part(messages: &mut mpsc::Receiver<Message>) -> Outcome<(Vec<u8>, bool)> {
    let mut part = Vec::new();
    let until = tokio::time::Instant::now() + PART_TIME;
    loop {
        let next = if part.is_empty() {
            messages.recv().await
        } else {
            match tokio::time::timeout_at(until, messages.recv()).await {
                Ok(next) => next,
                Err(_) => return Ok((part, false)),
            }
        };
        let Some(message) = next else { return Ok((part, true)) };
        let bytes = message.into_data();
        if bytes.len() > MESSAGE_BYTES_MAX {
            let what = format!(
                "a message of its response has {} bytes, more than {MESSAGE_BYTES_MAX}: ask it directly",
                bytes.len()
            );
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, what));
        }
        write_message(&bytes, &mut part);
        if part.len() >= PART_BYTES {
            return Ok((part, false));
        }
    }
}

fn reply(progress: Progress, code: i32, part: Vec<u8>) -> Reply {
    let mut reply = full(StatusCode::OK, "application/octet-stream", part);
    set(&mut reply, PROGRESS, progress.name());
    set(&mut reply, CODE, &code.to_string());
    reply
}
