//! Gremlin sessions: requests of a connection that share a transaction.
//!
//! # Shape
//! A task with a queue, so that requests run in order. Requests known to be short run in the task. For others
//! it uses a light thread and a permit while there is work; consecutive requests run as a batch on that
//! thread. A heavy request has a thread of its own (`crate::admission`).
//!
//! ```text
//!            first request              commit, rollback
//!   closed ────────────────────> open ────────────────────> closed
//!                                  │ idle for too long
//!                                  v       rollback; commit, which fails
//!                                ended ───────────────────> closed
//! ```
//! # At a server that sends changes on
//! A transaction that only reads stays here. With its first change it moves to the server that takes changes
//! (`remote`), and stays there until its end. Its commit validates what it has read, so what it has read here
//! is read again there: if a result differs, the transaction is a conflict, and the next ones of this session
//! begin there. Those with very many requests move before.
//! # Invariants
//! A transaction that was rolled back is not silently replaced by a new one, which would split the work of
//! one transaction into two halves.

use super::access::Access;
use super::error::GremlinError;
use super::exchange::{ForwardedMessage, REPEATED_BYTES_MAX, REPEATED_MAX};
use super::job::{Job, Operation, SessionHost};
use super::remote::{self, AGAIN, RemoteOutcome, RemoteTransaction};
use super::request::PreparedRequest;
use super::response::Results;
use super::run::{self, Rerouted, write_results};
use super::tier::{self, RunOutcome};
use crate::admission::Tier;
use crate::options::Role;
use crate::state::State;
use crate::worker_threads;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Bytes;
use vervet::gremlin::text::{self, Statement};
use vervet::gremlin::{Each, GremlinScript};
use vervet::{CancelToken, Transaction};
use vervet_model::{Error, ErrorKind};

/// The maximum number of requests in one turn on a thread, for fairness.
const BATCH_REQUESTS_MAX: usize = 256;

/// A transaction with so many requests moves to the server that takes changes, while they can still be run
/// again there.
const OWN_REQUESTS_MAX: usize = 64;

/// … or with so many bytes of requests.
const OWN_BYTES_MAX: usize = REPEATED_BYTES_MAX / 4;

/// Requests that have taken longer together are not run again.
const REPEATED_TIME_MAX: Duration = Duration::from_secs(10);

/// See the header of this file.
enum TransactionState {
    Closed,
    Open(Box<OwnTransaction>),
    /// Another server executes it.
    Remote(Box<RemoteTransaction>),
    /// It was rolled back, for this reason, and its client does not know it yet.
    Ended(Error),
}

/// A transaction of this server.
struct OwnTransaction {
    transaction: Transaction,
    /// Its requests, if another server can run them again.
    requests: Option<Vec<ForwardedMessage>>,
    request_bytes: usize,
    /// How long they have run.
    request_time: Duration,
    /// Whether it stays here until its first change, however long it is.
    stays: bool,
}

impl OwnTransaction {
    fn begin(state: &State) -> vervet::Result<Box<Self>> {
        let transaction = state.database.begin()?;
        Ok(Box::new(Self {
            transaction,
            requests: Some(Vec::new()),
            request_bytes: 0,
            request_time: Duration::ZERO,
            stays: false,
        }))
    }

    /// Notes a request that has run in it for this time.
    fn note(&mut self, job: &Job, has_succeeded: bool, time: Duration) {
        let message = job.forwarded().filter(|message| message.results.is_some());
        let length = message.as_ref().map_or(0, |message| message.bytes.len());
        self.request_bytes = self.request_bytes.saturating_add(length);
        self.request_time = self.request_time.saturating_add(time);
        match (&mut self.requests, message) {
            (Some(requests), Some(message))
                if has_succeeded
                    && !job.ends_transaction()
                    && requests.len() < REPEATED_MAX
                    && self.request_bytes <= REPEATED_BYTES_MAX
                    && self.request_time <= REPEATED_TIME_MAX =>
            {
                // Not the buffer that it shares with others.
                let bytes = Bytes::copy_from_slice(&message.bytes);
                requests.push(ForwardedMessage { bytes, ..message });
            }
            // What an error has told the client cannot be compared.
            _ => self.requests = None,
        }
    }

    /// Whether it moves before its first change.
    fn is_long(&self) -> bool {
        let is_long =
            |requests: &Vec<_>| requests.len() >= OWN_REQUESTS_MAX || self.request_bytes >= OWN_BYTES_MAX;
        !self.stays && self.requests.as_ref().is_some_and(is_long)
    }
}

/// The end of a turn.
enum BatchEnd {
    /// The queue is empty.
    Idle,
    /// This job does not belong on the thread.
    Next(Job),
    /// This job needs a login, or belongs to the heavy tier.
    Rerouted(Rerouted),
}

/// Runs the requests of a session until it is closed and has no state to keep.
pub(super) async fn run<H: SessionHost>(connection: Arc<H>, mut queue: UnboundedReceiver<Job>) {
    let state = Arc::clone(connection.state());
    let mut transaction = TransactionState::Closed;
    let mut permit = None;
    let mut next: Option<Job> = None;
    let (mut has_run, mut begins_elsewhere) = (false, false);
    loop {
        if next.is_none() && std::mem::take(&mut has_run) {
            connection.note_turn(matches!(transaction, TransactionState::Open(_)));
        }
        let mut job = match next.take() {
            Some(job) => job,
            None => match tokio::time::timeout(state.options.limits.session_timeout, queue.recv()).await {
                // The connection has ended.
                Ok(None) => return,
                Ok(Some(job)) => job,
                Err(_) => match transaction {
                    TransactionState::Closed => break,
                    _ if !connection.tells_of_idle_end() => break,
                    TransactionState::Open(_) | TransactionState::Remote(_) => {
                        transaction = TransactionState::Ended(expired_error(&state));
                        permit = None;
                        continue;
                    }
                    TransactionState::Ended(_) => continue,
                },
            },
        };
        has_run = true;
        if matches!(job.operation, Operation::CloseSession) {
            job.response.send_empty().await;
            break;
        }
        if permit.is_none() {
            match state.acquire_session_permit() {
                Some(taken) => permit = Some(taken),
                None => {
                    job.response.fail(too_many_sessions(&state)).await;
                    match transaction {
                        TransactionState::Closed => break,
                        _ => continue,
                    }
                }
            }
        }
        let prepared = if !job.needs_worker_to_parse() {
            job.prepare(&state, &connection.access())
        } else if job.message.is_some() {
            // Before it is decided where it runs.
            let worker_connection = Arc::clone(&connection);
            let parse = tokio::task::spawn_blocking(move || {
                let prepared = job.prepare(worker_connection.state(), &worker_connection.access());
                (job, prepared)
            });
            // After a panic, dropping its reply has sent the error.
            let Ok((parsed, prepared)) = parse.await else { return };
            job = parsed;
            prepared
        } else {
            Ok(())
        };
        let changes_elsewhere = match prepared {
            Ok(()) => false,
            Err(error) if error.is_elsewhere() && job.message.is_some() => true,
            Err(error) => {
                Arc::clone(&connection).refuse_boxed(job, error).await;
                continue;
            }
        };
        let access = connection.access();
        let moves = begins_elsewhere || matches!(&transaction, TransactionState::Open(own) if own.is_long());
        let is_elsewhere = matches!(transaction, TransactionState::Remote(_));
        if is_elsewhere || changes_elsewhere || moves && may_move(&state, &access, &transaction, &job) {
            let ran = run_elsewhere(&state, &access, transaction, job, changes_elsewhere).await;
            transaction = ran.transaction;
            match ran.job {
                Some(rest) => {
                    // No server has taken it: no further attempt before a conflict.
                    begins_elsewhere = false;
                    job = rest;
                }
                None => {
                    begins_elsewhere |= ran.is_conflict;
                    continue;
                }
            }
        }
        if let Some(outcome) = run_on_fast_path(&state, &mut transaction, &mut job) {
            run::send_outcome(job.response, outcome, &state).await;
            continue;
        }
        let running = match state.acquire_permit(job.describe(&connection.access())).await {
            Ok(running) => running,
            Err(failure) => {
                job.response.fail(failure.into()).await;
                continue;
            }
        };
        let mut guard = running.guard();
        job.progress = Some(running.entry.progress.clone());
        let worker_connection = Arc::clone(&connection);
        let batch = worker_threads::light(&state.threads, move |sender: oneshot::Sender<_>| {
            let (mut queue, mut transaction) = (queue, transaction);
            let batch_end = run_batch(&*worker_connection, &mut transaction, job, &mut queue, &running.token);
            let _ = sender.send((queue, transaction, batch_end, running));
        });
        let Ok((queue_after, transaction_after, batch_end, mut running)) = batch.await else {
            // A panic, which the reply of the request has reported; the transaction is lost with it.
            return;
        };
        (queue, transaction) = (queue_after, transaction_after);
        let rerouted = match batch_end {
            BatchEnd::Idle => None,
            BatchEnd::Next(job) => {
                next = Some(job);
                None
            }
            BatchEnd::Rerouted(rerouted) => Some(rerouted),
        };
        if let Some(Rerouted::TooHeavy(job)) = rerouted {
            if let Err(failure) = state.acquire_heavy_permit(&mut running).await {
                job.response.fail(failure.into()).await;
            } else {
                let worker_connection = Arc::clone(&connection);
                let work = move |sender: oneshot::Sender<_>| {
                    let mut transaction = transaction;
                    let rerouted =
                        run_request(&*worker_connection, &mut transaction, job, &running.token, Tier::Heavy);
                    drop(running);
                    let _ = sender.send((transaction, rerouted));
                };
                match worker_threads::heavy(&state.threads, work).await {
                    Ok((after, rerouted)) => {
                        transaction = after;
                        if let Some(Rerouted::Elsewhere(job)) = rerouted {
                            next = Some(job);
                        }
                    }
                    // No thread, or a panic: as above.
                    Err(_) => return,
                }
            }
            guard.disarm();
        } else {
            guard.disarm();
            drop(running);
            match rerouted {
                Some(Rerouted::Challenge(job)) => {
                    Arc::clone(&connection).queue_until_login_boxed(job).await;
                }
                Some(Rerouted::Elsewhere(job)) => next = Some(job),
                Some(Rerouted::TooHeavy(_)) | None => {}
            }
        }
    }
    // Jobs that arrived meanwhile belong to a new session of that name.
    queue.close();
    drop((transaction, permit));
    while let Some(job) = queue.recv().await {
        Arc::clone(&connection).dispatch_boxed(job).await;
    }
}

/// What has become of a job of a transaction that may be another server's.
struct RanElsewhere {
    transaction: TransactionState,
    /// The job, if it is to run here.
    job: Option<Job>,
    /// Whether the transaction was refused because of what it has read here.
    is_conflict: bool,
}

impl From<TransactionState> for RanElsewhere {
    fn from(transaction: TransactionState) -> Self {
        Self { transaction, job: None, is_conflict: false }
    }
}

/// Whether a transaction may move to the server that takes changes before its first change.
fn may_move(state: &State, access: &Access, transaction: &TransactionState, job: &Job) -> bool {
    (!matches!(transaction, TransactionState::Ended(_)) || job.begins_with_rollback())
        && job.message.is_some()
        && job.traverses()
        && state.options.forwards()
        && access.allow(Role::Write).is_ok()
}

/// Runs a job at the server that takes changes. `changes`: it cannot run here.
async fn run_elsewhere(
    state: &State,
    access: &Access,
    before: TransactionState,
    job: Job,
    changes: bool,
) -> RanElsewhere {
    let (ends, rolls_back) = (job.ends_transaction(), job.only_rolls_back());
    let (mut own, mut has_requests) = (None, false);
    let outcome = match before {
        TransactionState::Ended(error) if !job.begins_with_rollback() => {
            RemoteOutcome::RolledBack(job, error)
        }
        TransactionState::Ended(_) | TransactionState::Closed => {
            remote::begin(state, access, &[], job, changes).await
        }
        TransactionState::Remote(remote) => {
            has_requests = true;
            remote.run(state, access, job).await
        }
        TransactionState::Open(mut open) => {
            let outcome = match &open.requests {
                Some(requests) => {
                    has_requests = !requests.is_empty();
                    remote::begin(state, access, requests, job, changes).await
                }
                None => RemoteOutcome::RolledBack(job, unrepeatable()),
            };
            open.stays = true;
            if matches!(&outcome, RemoteOutcome::RolledBack(..)) {
                open.requests = None;
            }
            own = Some(open);
            outcome
        }
    };
    let stays =
        |own: Option<Box<OwnTransaction>>| own.map_or(TransactionState::Closed, TransactionState::Open);
    match outcome {
        RemoteOutcome::Open(remote) => TransactionState::Remote(Box::new(remote)).into(),
        RemoteOutcome::Closed if has_requests && !ends => {
            let what = "the transaction of this session was rolled back: a request of it has failed";
            let error = Error::new(ErrorKind::Unavailable, what).with_hint(AGAIN);
            TransactionState::Ended(error).into()
        }
        RemoteOutcome::Closed => TransactionState::Closed.into(),
        RemoteOutcome::NotTaken(job, error) if changes => {
            job.response.fail(error).await;
            stays(own).into()
        }
        RemoteOutcome::NotTaken(job, _) => {
            RanElsewhere { transaction: stays(own), job: Some(job), is_conflict: false }
        }
        RemoteOutcome::RolledBack(job, error) => {
            let is_conflict = error.kind() == ErrorKind::Conflict;
            if is_conflict && !changes && own.is_some() {
                // It goes on reading here.
                return RanElsewhere { transaction: stays(own), job: Some(job), is_conflict: false };
            }
            let transaction =
                if ends { TransactionState::Closed } else { TransactionState::Ended(error.clone()) };
            if rolls_back {
                job.response.send_empty().await;
            } else {
                job.response.fail(error.into()).await;
            }
            RanElsewhere { transaction, job: None, is_conflict }
        }
    }
}

fn unrepeatable() -> Error {
    let what = "this transaction has read here what the server that makes its changes cannot read again; nothing was \
                changed";
    Error::new(ErrorKind::Conflict, what).with_hint(AGAIN)
}

/// Why a session does not begin.
pub(super) fn too_many(state: &State) -> String {
    format!("there are {} sessions already", state.options.limits.sessions)
}

fn too_many_sessions(state: &State) -> GremlinError {
    Error::new(ErrorKind::Unavailable, too_many(state))
        .with_hint("close sessions that are not needed, or try again later")
        .into()
}

/// Runs a read-only request that was short the last time, on the thread of the session's task.
fn run_on_fast_path(state: &State, transaction: &mut TransactionState, job: &mut Job) -> Option<RunOutcome> {
    let Operation::Prepared(prepared) = &mut job.operation else { return None };
    let is_traversal = |statement: &Statement| matches!(statement, Statement::Traversal { .. });
    if job.is_managed
        || !state.admission.is_short(prepared.fingerprint)
        || !prepared.script.statements().iter().all(is_traversal)
    {
        return None;
    }
    let (token, begin) = (CancelToken::new(), Instant::now());
    let outcome = tier::run(
        state,
        (prepared, &mut job.response),
        Tier::FastPath,
        true,
        &token,
        &mut |prepared, results| {
            statements(state, transaction, prepared, results)?;
            warn(state, transaction, prepared, results)
        },
    );
    if matches!(outcome, RunOutcome::TooHeavy) {
        return None;
    }
    note_request(transaction, job, &outcome, begin);
    Some(outcome)
}

/// Notes a request that has run, for a server to which its transaction may move.
fn note_request(transaction: &mut TransactionState, job: &Job, outcome: &RunOutcome, begin: Instant) {
    if let TransactionState::Open(own) = transaction
        && !matches!(outcome, RunOutcome::TooHeavy)
    {
        own.note(job, matches!(outcome, RunOutcome::Done(..)), begin.elapsed());
    }
}

fn run_batch(
    connection: &impl SessionHost,
    transaction: &mut TransactionState,
    first: Job,
    queue: &mut UnboundedReceiver<Job>,
    token: &CancelToken,
) -> BatchEnd {
    let mut job = first;
    for _ in 0..BATCH_REQUESTS_MAX {
        if let Some(rerouted) = run_request(connection, transaction, job, token, Tier::Light) {
            return BatchEnd::Rerouted(rerouted);
        }
        match queue.try_recv() {
            Err(_) => return BatchEnd::Idle,
            Ok(next) if matches!(next.operation, Operation::CloseSession) => return BatchEnd::Next(next),
            Ok(next) => job = next,
        }
    }
    BatchEnd::Next(job)
}

/// Runs one request; returns it if it cannot run here, or not yet.
fn run_request(
    connection: &impl SessionHost,
    transaction: &mut TransactionState,
    mut job: Job,
    token: &CancelToken,
    tier: Tier,
) -> Option<Rerouted> {
    let state = connection.state();
    if let Err(error) = job.prepare(state, &connection.access()) {
        return run::refuse(job, &error);
    }
    if tier == Tier::Light && job.is_heavy(state) {
        return Some(Rerouted::TooHeavy(job));
    }
    let (is_managed, begin) = (job.is_managed, Instant::now());
    let Operation::Prepared(prepared) = &mut job.operation else { return None };
    prepared.progress.clone_from(&job.progress);
    let outcome =
        tier::run(state, (prepared, &mut job.response), tier, true, token, &mut |prepared, results| {
            let done = statements(state, transaction, prepared, results);
            let done = done.and_then(|()| warn(state, transaction, prepared, results));
            match &done {
                Ok(()) if is_managed => {
                    run_transaction_command(state, transaction, text::Transaction::Commit)?
                }
                // It is about to run again.
                Err(error) if error.is_deadline() && tier != Tier::Heavy => {}
                Err(_) if is_managed => {
                    run_transaction_command(state, transaction, text::Transaction::Rollback)?
                }
                _ => {}
            }
            done
        });
    note_request(transaction, &job, &outcome, begin);
    run::send_outcome_blocking(job, outcome, state)
}

/// Adds warnings if nothing was found. Names that the transaction has added count as existing.
fn warn(
    state: &State,
    transaction: &TransactionState,
    prepared: &PreparedRequest,
    results: &mut Results<'_>,
) -> Result<(), GremlinError> {
    let find = || match transaction {
        TransactionState::Open(own) => own.transaction.gremlin_warnings(&prepared.script),
        _ => state.database.gremlin_warnings(&prepared.script),
    };
    results.warn(find).map(drop)
}

/// Runs statements in order, and transaction commands between them.
fn statements(
    state: &State,
    transaction: &mut TransactionState,
    prepared: &mut PreparedRequest,
    results: &mut Results<'_>,
) -> Result<(), GremlinError> {
    let of_transaction = |statement: &Statement| matches!(statement, Statement::Transaction { .. });
    loop {
        let all = prepared.script.statements();
        let rest = all.get(prepared.done..).unwrap_or_default();
        let end = rest.iter().position(of_transaction).unwrap_or(rest.len());
        let (these, after) = rest.split_at(end);
        if after.is_empty() {
            // Usually this is the whole script.
            let part: GremlinScript;
            let script = if these.len() == all.len() {
                &prepared.script
            } else {
                part = these.to_vec().into();
                &part
            };
            return match these {
                [] => Ok(()),
                _ => write_results(results, prepared, |each| {
                    traverse(state, transaction, script, prepared, each)
                }),
            };
        }
        if !these.is_empty() {
            let script = these.to_vec().into();
            traverse(state, transaction, &script, prepared, &mut |_, _| Ok(()))
                .map_err(|error| GremlinError::of_script(error, &prepared.fails))?;
        }
        if let [Statement::Transaction { action, .. }, ..] = after {
            run_transaction_command(state, transaction, *action)?;
        }
        prepared.done += end + 1;
    }
}

fn traverse(
    state: &State,
    transaction: &mut TransactionState,
    script: &GremlinScript,
    prepared: &PreparedRequest,
    each: &mut Each<'_>,
) -> vervet::Result<()> {
    if state.options.never_changes() {
        return state.database.gremlin_each(script, &prepared.options, each);
    }
    // Also where another server takes changes, and whatever becomes of this one meanwhile: all reads of a
    // transaction are of one graph.
    if matches!(transaction, TransactionState::Closed) {
        *transaction = TransactionState::Open(OwnTransaction::begin(state)?);
    }
    match transaction {
        TransactionState::Open(own) => own.transaction.gremlin_each(script, &prepared.options, each),
        TransactionState::Ended(error) => Err(error.clone()),
        TransactionState::Closed | TransactionState::Remote(_) => {
            Err(Error::internal("a request of a transaction of another server ran here"))
        }
    }
}

/// Executes a `g.tx()` command.
fn run_transaction_command(
    state: &State,
    transaction: &mut TransactionState,
    action: text::Transaction,
) -> vervet::Result<()> {
    match (action, std::mem::replace(transaction, TransactionState::Closed)) {
        (text::Transaction::Rollback, TransactionState::Open(own)) => {
            own.transaction.roll_back();
            Ok(())
        }
        (text::Transaction::Commit, TransactionState::Open(own)) => own.transaction.commit().map(drop),
        (text::Transaction::Commit, TransactionState::Ended(error)) => Err(error),
        (text::Transaction::Commit | text::Transaction::Rollback, _) => Ok(()),
        (text::Transaction::Begin, TransactionState::Closed) if !state.options.never_changes() => {
            *transaction = TransactionState::Open(OwnTransaction::begin(state)?);
            Ok(())
        }
        (text::Transaction::Begin, before) => {
            *transaction = before;
            if let TransactionState::Ended(error) = transaction { Err(error.clone()) } else { Ok(()) }
        }
    }
}

fn expired_error(state: &State) -> Error {
    let seconds = state.options.limits.session_timeout.as_secs_f64();
    let message = format!("the session was idle for {seconds} s, so its transaction was rolled back");
    Error::new(ErrorKind::Unavailable, message).with_hint(AGAIN)
}
