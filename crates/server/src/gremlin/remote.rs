//! Transactions that another server of the cluster executes for clients of this one, which does not take
//! changes.
//!
//! # Shape
//! ```text
//! session, sessionless ──> begin, run_single, run ──> exchange ──> forwarding ──> `forwarded` there
//!                                  │ messages for the client, part after part
//!                                  v
//!                            PendingResponse
//! ```
//! # Invariants
//! 1. No request is repeated once a server may have taken it.
//! 2. A transaction that is lost was rolled back: only its own requests commit it, and they are sent once.
//!    The outcome of a request that commits is unknown if its response is lost, and the client is told so.
//! 3. Dropping a transaction rolls it back at the other server; if that is unreachable, its idle time does.
//! 4. What the client has seen never goes back. A transaction begins at the other server once that shows the
//!    newest commit of this one (`forwarding::wait_for_shown`). The client gets responses once this server
//!    shows the graph with which the transaction has begun there, and what it has committed, as far as this
//!    server votes.

use super::access::Access;
use super::error::{GremlinError, SUCCESS};
use super::exchange::{
    ACTION, Action, CLIENT, CODE, FORWARDED_PATH, ForwardedMessage, PROGRESS, Progress, TRANSACTION,
    read_messages,
};
use super::job::{Job, SessionHost};
use super::response::Disconnected;
use crate::cancel::cancelled;
use crate::context::Client;
use crate::forwarding::{
    self, BYTES_MAX, CATCH_UP_MAX, DELIVERY, EXTRA_TIME, Forwarded, LEADER_WAIT, NOT_ANSWERED, NOT_DELIVERED,
    Sending,
};
use crate::http::reply::Failure;
use crate::options::ServerOptions;
use crate::security::auth::random;
use crate::state::State;
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use vervet::CancelToken;
use vervet_cluster::Cluster;
use vervet_model::{Error, ErrorKind, hex};

/// Longest wait of the request that rolls a transaction back, …
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// … which is sent as often at most, …
const CLOSE_ATTEMPTS: usize = 16;

/// … first after the one time, later after the other: for a minute together.
const CLOSE_INTERVALS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(5)];

pub(super) const AGAIN: &str = "roll back, and run the transaction again from its start";

/// A transaction at another server.
pub(super) struct RemoteTransaction {
    cluster: Arc<Cluster>,
    /// The server that has answered; `None`: it is not known yet.
    server: Option<String>,
    client: Client,
    headers: HeaderMap,
    /// Longest wait for a server that takes it, and for its answers.
    wait: Duration,
    time_max: Duration,
    /// Whether the other server may have it.
    is_begun: bool,
    runtime: Handle,
}

/// What has become of a transaction with a job.
pub(super) enum RemoteOutcome {
    /// The response is sent, and the transaction is open.
    Open(RemoteTransaction),
    /// The response is sent, and the transaction has ended.
    Closed,
    /// No server has begun it, or the one that has rolls it back; why. The client has no response.
    NotTaken(Job, GremlinError),
    /// The transaction was rolled back; why. The job has no effect, and its response is not complete.
    RolledBack(Job, Error),
}

/// What has become of a request to the other server.
enum Asked {
    NotSent,
    /// Why there is no answer.
    NoAnswer(String),
    Answered(Answer),
    /// The server that has answered has not executed it: it is of an earlier version, or knows no leader.
    NotExecuted,
}

/// How far an exchange with the other server has come.
struct Stage {
    action: Action,
    /// The job commits a transaction.
    commits: bool,
    /// The other server has sent a part of the response.
    has_run: bool,
}

struct Answer {
    progress: Progress,
    code: i32,
    messages: Vec<Vec<u8>>,
    /// Why the request was refused.
    refusal: Option<Failure>,
}

/// Runs a job that is a transaction of its own at the server that takes changes, and sends its response.
pub(super) async fn run_single(host: &impl SessionHost, job: Job) {
    match begin_with(host.state(), &host.access(), (Action::Single, LEADER_WAIT), &[], job).await {
        RemoteOutcome::NotTaken(job, error) => job.response.fail(error).await,
        RemoteOutcome::RolledBack(job, error) => job.response.fail(error.into()).await,
        // The other server has nothing left to do.
        RemoteOutcome::Open(_) | RemoteOutcome::Closed => {}
    }
}

/// Begins a transaction at the server that takes changes with a job. `repeated`: what this server has
/// executed of it, which the other one executes again; the results must be the same. `waits`: for such a
/// server, if there is none at present.
pub(super) async fn begin(
    state: &State,
    access: &Access,
    repeated: &[ForwardedMessage],
    job: Job,
    waits: bool,
) -> RemoteOutcome {
    let wait = if waits { LEADER_WAIT } else { Duration::ZERO };
    begin_with(state, access, (Action::Begin, wait), repeated, job).await
}

async fn begin_with(
    state: &State,
    access: &Access,
    (action, wait): (Action, Duration),
    repeated: &[ForwardedMessage],
    job: Job,
) -> RemoteOutcome {
    let mut body = Vec::new();
    repeated.iter().for_each(|message| message.write(&mut body));
    let transaction = RemoteTransaction::new(&state.options, access, &job, wait);
    let Some(transaction) = transaction.filter(|_| write_message(&job, &mut body)) else {
        return RemoteOutcome::NotTaken(job, no_server(&state.options));
    };
    if body.len() > BYTES_MAX {
        return RemoteOutcome::NotTaken(job, too_long());
    }
    transaction.exchange((state, access), action, body, job).await
}

/// Why no server has taken a request.
fn no_server(options: &ServerOptions) -> GremlinError {
    // This one may take changes since then.
    if options.refuses_changes() { options.refuse_changes().into() } else { forwarding::not_sent().into() }
}

fn write_message(job: &Job, body: &mut Vec<u8>) -> bool {
    let Some(message) = job.forwarded() else { return false };
    ForwardedMessage { results: None, ..message }.write(body);
    true
}

fn too_long() -> GremlinError {
    GremlinError::argument(format!("a change of more than {BYTES_MAX} bytes is not sent on"))
        .hint("send it to the server that takes changes")
}

impl RemoteTransaction {
    /// One that no server has yet; `None`: this server sends no changes on.
    fn new(options: &ServerOptions, access: &Access, job: &Job, wait: Duration) -> Option<Self> {
        let cluster = options.cluster.clone()?;
        let mut name = [0; 16];
        random(&mut name).ok()?;
        let mut headers = HeaderMap::new();
        headers.insert(TRANSACTION, HeaderValue::try_from(hex(&name)).ok()?);
        headers.insert(CLIENT, HeaderValue::try_from(&**job.response.client_host()).ok()?);
        headers.extend(access.authorization().map(|value| (AUTHORIZATION, value.clone())));
        // Gremlin has no relative names, for which TLS would count.
        let client = Client { peer: access.peer(), tls: false, is_forwarded: true };
        let time_max = options.limits.timeout.saturating_add(EXTRA_TIME);
        let runtime = Handle::current();
        Some(Self { cluster, server: None, client, headers, wait, time_max, is_begun: false, runtime })
    }

    /// Runs a job in the transaction.
    pub(super) async fn run(self, state: &State, access: &Access, job: Job) -> RemoteOutcome {
        let mut body = Vec::new();
        if !write_message(&job, &mut body) {
            return RemoteOutcome::RolledBack(job, rolled_back("it cannot be sent on"));
        }
        if body.len() > BYTES_MAX {
            job.response.fail(too_long()).await;
            return RemoteOutcome::Open(self);
        }
        self.exchange((state, access), Action::Run, body, job).await
    }

    async fn exchange(
        mut self,
        (state, access): (&State, &Access),
        action: Action,
        body: Vec<u8>,
        job: Job,
    ) -> RemoteOutcome {
        let begins = action != Action::Run;
        // A request of its own commits.
        let commits = action == Action::Single || job.commits();
        let ends = commits || job.ends_transaction();
        self.is_begun |= begins;
        let mut has_run = false;
        let running = state.register_remote(job.describe(access));
        let _guard = running.guard();
        let mut asked = self.ask(state, &running.token, action, body).await;
        loop {
            let answer = match asked {
                Asked::Answered(answer) => answer,
                asked => {
                    let cancellation = running.cancellation();
                    // The failure may wait for a client that does not read.
                    drop(running);
                    let stage = Stage { action, commits, has_run };
                    return self.end_without_answer(state, job, (asked, cancellation), stage).await;
                }
            };
            // The graph that it reads, or has made, may be newer than what this server shows.
            let is_newer = match answer.progress {
                Progress::Unfinished => begins && !has_run,
                Progress::Open | Progress::Closed => begins && !has_run || ends,
                Progress::Lost | Progress::Changed | Progress::Refused => false,
            };
            if is_newer {
                self.catch_up(&running.token).await;
            }
            match answer.progress {
                Progress::Open | Progress::Closed => {
                    self.is_begun = answer.progress == Progress::Open;
                    drop(running);
                    job.response.send(answer.messages, answer.code).await;
                    return match self.is_begun {
                        true => RemoteOutcome::Open(self),
                        false => RemoteOutcome::Closed,
                    };
                }
                Progress::Unfinished => {
                    (has_run, self.is_begun) = (true, true);
                    let sent = tokio::select! {
                        sent = job.response.send_part(answer.messages) => sent,
                        () = cancelled(&running.token) => Ok(()),
                    };
                    if let Err(Disconnected) = sent {
                        return RemoteOutcome::Closed;
                    }
                    asked = self.ask(state, &running.token, Action::Continue, Vec::new()).await;
                }
                Progress::Lost | Progress::Refused if commits && has_run => {
                    // The failure may wait for a client that does not read.
                    drop(running);
                    return self.fail_unknown(job, "its answer did not arrive whole").await;
                }
                Progress::Lost => {
                    self.is_begun = false;
                    let what = format!(
                        "{} does not hold it any more: it was idle for too long, or another server leads",
                        self.place()
                    );
                    return RemoteOutcome::RolledBack(job, rolled_back(&what));
                }
                Progress::Changed => {
                    self.is_begun = false;
                    let what = format!(
                        "what this transaction has read here differs at {}, where its changes are made; nothing \
                         was changed",
                        self.place()
                    );
                    return RemoteOutcome::RolledBack(
                        job,
                        Error::new(ErrorKind::Conflict, what).with_hint(AGAIN),
                    );
                }
                Progress::Refused => {
                    let refusal = answer.refusal.unwrap_or_else(|| Failure::bad("it gave no reason"));
                    if begins && !has_run {
                        self.is_begun = false;
                        return RemoteOutcome::NotTaken(job, refusal.into());
                    }
                    let what = format!("{} refused a request: {}", self.place(), refusal.text());
                    return RemoteOutcome::RolledBack(job, rolled_back(&what));
                }
            }
        }
    }

    /// The outcome of a job for which the other server has not answered. `asked`: what has become of its
    /// last request, and why that was cancelled.
    async fn end_without_answer(
        mut self,
        state: &State,
        job: Job,
        (asked, cancellation): (Asked, Option<&'static str>),
        Stage { action, commits, has_run }: Stage,
    ) -> RemoteOutcome {
        let is_first = action != Action::Run && !has_run;
        if is_first && !matches!(asked, Asked::NoAnswer(_)) {
            self.is_begun = false;
        }
        if commits && (has_run || matches!(asked, Asked::NoAnswer(_))) {
            let why = match &asked {
                Asked::NoAnswer(why) => why,
                _ => "its answer did not arrive whole",
            };
            return self.fail_unknown(job, cancellation.unwrap_or(why)).await;
        }
        if let Some(reason) = cancellation {
            return match action {
                Action::Single => {
                    RemoteOutcome::NotTaken(job, Error::new(ErrorKind::Cancelled, reason).into())
                }
                _ => RemoteOutcome::RolledBack(job, rolled_back(reason)),
            };
        }
        let what = match asked {
            Asked::NoAnswer(why) if is_first => {
                let what = format!("{} did not answer: {why}; nothing was changed", self.place());
                return RemoteOutcome::NotTaken(job, Error::new(ErrorKind::Unavailable, what).into());
            }
            Asked::NoAnswer(why) => format!("{} held it, and did not answer: {why}", self.place()),
            Asked::NotSent if is_first => {
                return RemoteOutcome::NotTaken(job, forwarding::not_sent().into());
            }
            _ if is_first => return RemoteOutcome::NotTaken(job, no_server(&state.options)),
            _ => format!("{} held it, and cannot be reached", self.place()),
        };
        RemoteOutcome::RolledBack(job, rolled_back(&what))
    }

    /// Sends a request, and waits for its answer: in a thread, of which few do so at a time.
    async fn ask(&mut self, state: &State, token: &CancelToken, action: Action, body: Vec<u8>) -> Asked {
        let permit = tokio::select! {
            // What is cancelled asks for nothing more: the part before may not have been sent whole.
            biased;
            () = cancelled(token) => return Asked::NotSent,
            permit = tokio::time::timeout(self.time_max, state.remote_permits.acquire()) => permit,
        };
        let Ok(Ok(_permit)) = permit else { return Asked::NotSent };
        let mut headers = self.headers.clone();
        headers.insert(ACTION, HeaderValue::from_static(action.name()));
        // The other server begins with a graph that has it.
        let begins = matches!(action, Action::Begin | Action::Single);
        let shown = begins.then(|| state.database.newest_commit());
        let bytes = forwarding::message_bytes(FORWARDED_PATH, &headers, self.client, shown, &body);
        drop(body);
        let sending = Sending {
            server: self.server.clone(),
            // A further request goes where the first one has gone, or nowhere.
            wait: if self.server.is_some() { Duration::ZERO } else { self.wait },
            time_max: self.time_max,
            cancel: token.clone(),
        };
        let cluster = Arc::clone(&self.cluster);
        let sent = self.runtime.spawn_blocking(move || forwarding::forward(&cluster, &bytes, &sending)).await;
        match sent {
            Ok(Forwarded::NotSent) => Asked::NotSent,
            Ok(Forwarded::NoAnswer(error)) => Asked::NoAnswer(error.message().to_owned()),
            Ok(Forwarded::Answer { server, bytes }) => {
                self.server = Some(server);
                read_answer(&bytes).unwrap_or_else(|| Asked::NoAnswer("its answer is damaged".to_owned()))
            }
            Err(_) => Asked::NoAnswer("a thread that waited for it has ended".to_owned()),
        }
    }

    /// Waits until this server shows what was committed before, or the token is cancelled.
    async fn catch_up(&self, token: &CancelToken) {
        let cluster = Arc::clone(&self.cluster);
        let catching_up = self.runtime.spawn_blocking(move || cluster.catch_up(CATCH_UP_MAX));
        tokio::select! {
            // A server that does not vote, or reaches no majority, shows it a little later.
            _ = catching_up => {}
            () = cancelled(token) => {}
        }
    }

    async fn fail_unknown(self, job: Job, why: &str) -> RemoteOutcome {
        let what = format!("the outcome of this change is unknown: {} got it, and then {why}", self.place());
        let error = Error::new(ErrorKind::Unavailable, what)
            .with_hint("it may have taken effect: look before you repeat it");
        job.response.fail(error.into()).await;
        RemoteOutcome::Closed
    }

    fn place(&self) -> String {
        match &self.server {
            Some(server) => format!("server {server}"),
            None => "the server that takes changes".to_owned(),
        }
    }
}

fn rolled_back(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the transaction of this session was rolled back: {why}"))
        .with_hint(AGAIN)
}

impl Drop for RemoteTransaction {
    fn drop(&mut self) {
        if !self.is_begun {
            return;
        }
        let mut headers = std::mem::take(&mut self.headers);
        headers.insert(ACTION, HeaderValue::from_static(Action::Close.name()));
        let bytes = forwarding::message_bytes(FORWARDED_PATH, &headers, self.client, None, &[]);
        let bytes: Arc<[u8]> = bytes.into();
        let (cluster, server) = (Arc::clone(&self.cluster), self.server.take());
        // If it does not arrive, the idle time of the transaction ends it.
        let close = async move {
            let [mut interval, interval_max] = CLOSE_INTERVALS;
            for _ in 0..CLOSE_ATTEMPTS {
                let (cluster, bytes) = (Arc::clone(&cluster), Arc::clone(&bytes));
                let sending = Sending {
                    server: server.clone(),
                    wait: Duration::ZERO,
                    time_max: CLOSE_TIME,
                    cancel: CancelToken::new(),
                };
                let send = move || forwarding::forward(&cluster, &bytes, &sending);
                let sent = tokio::task::spawn_blocking(send).await;
                // Not of a server on the way, which has not reached it.
                let is_final = |asked| matches!(asked, Asked::Answered(_) | Asked::NotExecuted);
                if let Ok(Forwarded::Answer { bytes, .. }) = sent
                    && read_answer(&bytes).is_some_and(is_final)
                {
                    return;
                }
                tokio::time::sleep(interval).await;
                interval = interval.saturating_mul(2).min(interval_max);
            }
        };
        drop(self.runtime.spawn(close));
    }
}

/// `None`: damaged.
fn read_answer(bytes: &[u8]) -> Option<Asked> {
    let (status, headers, body) = forwarding::read_answer(bytes)?;
    let Some(progress) = Progress::of(headers.get(PROGRESS)) else {
        let delivery = headers.get(DELIVERY).and_then(|value| value.to_str().ok());
        return Some(match delivery {
            Some(NOT_DELIVERED) => Asked::NotSent,
            Some(NOT_ANSWERED) => Asked::NoAnswer(text(body)),
            _ => Asked::NotExecuted,
        });
    };
    let code = headers.get(CODE).and_then(|code| code.to_str().ok()?.parse().ok()).unwrap_or(SUCCESS);
    let mut answer = Answer { progress, code, messages: Vec::new(), refusal: None };
    match progress {
        Progress::Refused => {
            // Its login would not help: this server has checked it.
            let status = if status == StatusCode::UNAUTHORIZED { StatusCode::FORBIDDEN } else { status };
            answer.refusal = Some(Failure::new(status, text(body)));
        }
        _ => answer.messages = read_messages(body)?,
    }
    Some(Asked::Answered(answer))
}

/// The reason in the body of a failure.
fn text(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.trim_end().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &str, body: &str) -> Option<Asked> {
        read_answer(format!("HTTP/1.0 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())
    }

    /// What servers of earlier versions say, servers on the way, and damage.
    #[test]
    fn answers_say_what_has_become_of_a_request() {
        let not_found = asked("404 Not Found\r\ncontent-type: text/plain", "error: there is nothing here\n");
        assert!(matches!(not_found, Some(Asked::NotExecuted)));
        let refused = asked("403 Forbidden", "error: changes of this graph go to server b, which leads\n");
        assert!(matches!(refused, Some(Asked::NotExecuted)));
        let none = asked("503 Service Unavailable\r\nvervet-delivery: none", "error: it cannot be reached\n");
        assert!(matches!(none, Some(Asked::NotSent)));
        let lost = asked("503 Service Unavailable\r\nvervet-delivery: no-answer", "error: it is silent\n");
        assert!(matches!(lost, Some(Asked::NoAnswer(why)) if why == "it is silent"));
        let open = asked("200 OK\r\nvervet-progress: open\r\nvervet-code: 204", "\u{2}\0\0\0ab");
        assert!(matches!(open, Some(Asked::Answered(answer))
            if answer.progress == Progress::Open && answer.code == 204 && answer.messages == [b"ab"]));
        let refused = asked("401 Unauthorized\r\nvervet-progress: refused", "error: no\nhint: other\n");
        assert!(matches!(refused, Some(Asked::Answered(answer))
            if answer.refusal.as_ref().is_some_and(|refusal| refusal.text() == "no\nhint: other"
                && refusal.status == StatusCode::FORBIDDEN)));
        assert!(asked("200 OK\r\nvervet-progress: open", "\u{3}\0\0\0ab").is_none());
        assert!(read_answer(b"HTTP/1.0 200 OK\r\nvervet").is_none());
        assert!(read_answer(b"").is_none());
    }
}
