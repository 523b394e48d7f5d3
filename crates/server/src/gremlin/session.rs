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
//!                               expired ──────────────────> closed
//! ```
//! # Invariants
//! An expired transaction is not silently replaced by a new one, which would split the work of one
//! transaction into two halves.

use super::error::GremlinError;
use super::job::{Job, Operation, SessionHost};
use super::request::PreparedRequest;
use super::response::Results;
use super::run::{self, Rerouted, write_results};
use super::tier::{self, RunOutcome};
use crate::admission::Tier;
use crate::state::State;
use crate::worker_threads;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use vervet::gremlin::text::{self, Statement};
use vervet::gremlin::{Each, GremlinScript};
use vervet::{CancelToken, Transaction};
use vervet_model::{Error, ErrorKind};

/// The maximum number of requests in one turn on a thread, for fairness.
const BATCH_REQUESTS_MAX: usize = 256;

/// See the header of this file.
enum TransactionState {
    Closed,
    Open(Box<Transaction>),
    Expired,
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
    loop {
        let mut job = match next.take() {
            Some(job) => job,
            None => match tokio::time::timeout(state.options.limits.session_timeout, queue.recv()).await {
                // The connection has ended.
                Ok(None) => return,
                Ok(Some(job)) => job,
                Err(_) => match transaction {
                    TransactionState::Closed => break,
                    TransactionState::Open(_) => {
                        transaction = TransactionState::Expired;
                        permit = None;
                        continue;
                    }
                    TransactionState::Expired => continue,
                },
            },
        };
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
        if !job.needs_worker_to_parse()
            && let Err(error) = job.prepare(&state, &connection.access())
        {
            Arc::clone(&connection).refuse_boxed(job, error).await;
            continue;
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
                let work = move |sender: oneshot::Sender<TransactionState>| {
                    let mut transaction = transaction;
                    let _ =
                        run_request(&*worker_connection, &mut transaction, job, &running.token, Tier::Heavy);
                    drop(running);
                    let _ = sender.send(transaction);
                };
                match worker_threads::heavy(&state.threads, work).await {
                    Ok(after) => transaction = after,
                    // No thread, or a panic: as above.
                    Err(_) => return,
                }
            }
            guard.disarm();
        } else {
            guard.disarm();
            drop(running);
            if let Some(Rerouted::Challenge(job)) = rerouted {
                Arc::clone(&connection).queue_until_login_boxed(job).await;
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

fn too_many_sessions(state: &State) -> GremlinError {
    let most = state.options.limits.sessions;
    Error::new(ErrorKind::Unavailable, format!("there are {most} sessions already"))
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
    let token = CancelToken::new();
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
    (!matches!(outcome, RunOutcome::TooHeavy)).then_some(outcome)
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
    let is_managed = job.is_managed;
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
        TransactionState::Open(transaction) => transaction.gremlin_warnings(&prepared.script),
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
        *transaction = TransactionState::Open(Box::new(state.database.begin()?));
    }
    match transaction {
        TransactionState::Open(transaction) => transaction.gremlin_each(script, &prepared.options, each),
        _ => Err(expired_error(state)),
    }
}

/// Executes a `g.tx()` command.
fn run_transaction_command(
    state: &State,
    transaction: &mut TransactionState,
    action: text::Transaction,
) -> vervet::Result<()> {
    match (action, std::mem::replace(transaction, TransactionState::Closed)) {
        (text::Transaction::Rollback, TransactionState::Open(transaction)) => {
            transaction.roll_back();
            Ok(())
        }
        (text::Transaction::Commit, TransactionState::Open(transaction)) => transaction.commit().map(drop),
        (text::Transaction::Commit, TransactionState::Expired) => Err(expired_error(state)),
        (text::Transaction::Commit, TransactionState::Closed) | (text::Transaction::Rollback, _) => Ok(()),
        (text::Transaction::Begin, TransactionState::Closed) if !state.options.never_changes() => {
            *transaction = TransactionState::Open(Box::new(state.database.begin()?));
            Ok(())
        }
        (text::Transaction::Begin, before) => {
            *transaction = before;
            if matches!(transaction, TransactionState::Expired) { Err(expired_error(state)) } else { Ok(()) }
        }
    }
}

fn expired_error(state: &State) -> Error {
    let seconds = state.options.limits.session_timeout.as_secs_f64();
    let message = format!("the session was idle for {seconds} s, so its transaction was rolled back");
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("roll back, and run the transaction again from its start")
}
