//! Gremlin sessions: requests of a connection that share a transaction.
//!
//! # Shape
//! A task with a queue, so that requests run in order. Requests known to be short run in the task. For others
//! it uses a light thread and a permit while there is work; a batch of requests takes one turn on that
//! thread. A heavy request has a thread of its own (`crate::admission`).
//!
//! ```text
//!            first request              commit, rollback
//!   closed ────────────────────> open ────────────────────> closed
//!                                  │ idle for too long
//!                                  v       rollback; commit, which fails
//!                                 lost ────────────────────> closed
//! ```
//! # Invariants
//! A lost transaction is not silently replaced by a new one, which would split the work of one transaction
//! into two halves.

use super::answer::{Results, Trouble};
use super::connection::{Connection, Job, Work};
use super::request::Ready;
use super::run::{self, Left, tell};
use super::tier::{self, Ran};
use crate::admission::Tier;
use crate::state::State;
use crate::threads;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use vervet::gremlin::text::{self, Statement};
use vervet::gremlin::{Each, GremlinScript};
use vervet::{CancelToken, Transaction};
use vervet_model::{Error, ErrorKind};

/// The maximum number of requests in one turn on a thread, for fairness.
const TURN_MAX: usize = 256;

/// See the header of this file.
enum Stage {
    Closed,
    Open(Box<Transaction>),
    Lost,
}

/// The end of a turn.
enum Turned {
    /// The queue is empty.
    Idle,
    /// This job does not belong on the thread.
    Next(Job),
    /// This job needs a login, or belongs to the heavy tier.
    Left(Left),
}

/// Runs the requests of a session until it is closed and has no state to keep.
pub(super) async fn run(connection: Arc<Connection>, mut queue: UnboundedReceiver<Job>) {
    let state = Arc::clone(&connection.state);
    let mut open = Stage::Closed;
    let mut place = None;
    let mut next: Option<Job> = None;
    loop {
        let mut job = match next.take() {
            Some(job) => job,
            None => match tokio::time::timeout(state.options.limits.session_timeout, queue.recv()).await {
                // The connection has ended.
                Ok(None) => return,
                Ok(Some(job)) => job,
                Err(_) => match open {
                    Stage::Closed => break,
                    Stage::Open(_) => {
                        open = Stage::Lost;
                        place = None;
                        continue;
                    }
                    Stage::Lost => continue,
                },
            },
        };
        if matches!(job.work, Work::Close) {
            job.reply.done().await;
            break;
        }
        if place.is_none() {
            match state.session_place() {
                Some(taken) => place = Some(taken),
                None => {
                    job.reply.fail(too_many(&state)).await;
                    match open {
                        Stage::Closed => break,
                        _ => continue,
                    }
                }
            }
        }
        if !job.is_long()
            && let Err(trouble) = job.read(&connection)
        {
            connection.refuse(job, trouble).await;
            continue;
        }
        if let Some(ran) = here(&state, &mut open, &mut job) {
            run::tell_ran(job.reply, ran, &state).await;
            continue;
        }
        let running = match state.place(job.describe(&connection)).await {
            Ok(running) => running,
            Err(failure) => {
                job.reply.fail(failure.into()).await;
                continue;
            }
        };
        let mut guard = running.guard();
        job.progress = Some(running.entry.progress.clone());
        let on_thread = Arc::clone(&connection);
        let turn = threads::light(&state, move |sender: oneshot::Sender<_>| {
            let (mut queue, mut open) = (queue, open);
            let turned = turn(&on_thread, &mut open, job, &mut queue, &running.token);
            let _ = sender.send((queue, open, turned, running));
        });
        let Ok((queue_after, open_after, turned, mut running)) = turn.await else {
            // A panic, which the reply of the request has reported; the transaction is lost with it.
            return;
        };
        (queue, open) = (queue_after, open_after);
        let left = match turned {
            Turned::Idle => None,
            Turned::Next(job) => {
                next = Some(job);
                None
            }
            Turned::Left(left) => Some(left),
        };
        if let Some(Left::TooMuch(job)) = left {
            if let Err(failure) = state.heavy_place(&mut running).await {
                job.reply.fail(failure.into()).await;
            } else {
                let on_thread = Arc::clone(&connection);
                let work = move |sender: oneshot::Sender<Stage>| {
                    let mut open = open;
                    let _ = one(&on_thread, &mut open, job, &running.token, Tier::Heavy);
                    drop(running);
                    let _ = sender.send(open);
                };
                match threads::heavy(&state, work).await {
                    Ok(after) => open = after,
                    // No thread, or a panic: as above.
                    Err(_) => return,
                }
            }
            guard.disarm();
        } else {
            guard.disarm();
            drop(running);
            if let Some(Left::Challenge(job)) = left {
                connection.hold(job).await;
            }
        }
    }
    // Jobs that arrived meanwhile belong to a new session of that name.
    queue.close();
    drop((open, place));
    while let Some(job) = queue.recv().await {
        connection.dispatch(job).await;
    }
}

fn too_many(state: &State) -> Trouble {
    let most = state.options.limits.sessions;
    Error::new(ErrorKind::Unavailable, format!("there are {most} sessions already"))
        .with_hint("close sessions that are not needed, or try again later")
        .into()
}

/// Runs a read-only request that was short the last time, on the thread of the session's task.
fn here(state: &State, open: &mut Stage, job: &mut Job) -> Option<Ran> {
    let Work::Run(ready) = &mut job.work else { return None };
    let is_traversal = |statement: &Statement| matches!(statement, Statement::Traversal { .. });
    if job.manages
        || !state.admission.is_short(ready.shape)
        || !ready.script.statements().iter().all(is_traversal)
    {
        return None;
    }
    let token = CancelToken::new();
    let ran = tier::run(state, (ready, &mut job.reply), Tier::Here, true, &token, &mut |ready, results| {
        statements(state, open, ready, results)?;
        warn(state, open, ready, results)
    });
    (!matches!(ran, Ran::TooMuch)).then_some(ran)
}

fn turn(
    connection: &Connection,
    open: &mut Stage,
    first: Job,
    queue: &mut UnboundedReceiver<Job>,
    token: &CancelToken,
) -> Turned {
    let mut job = first;
    for _ in 0..TURN_MAX {
        if let Some(left) = one(connection, open, job, token, Tier::Light) {
            return Turned::Left(left);
        }
        match queue.try_recv() {
            Err(_) => return Turned::Idle,
            Ok(next) if matches!(next.work, Work::Close) => return Turned::Next(next),
            Ok(next) => job = next,
        }
    }
    Turned::Next(job)
}

/// Runs one request; returns it if it cannot run here, or not yet.
fn one(
    connection: &Connection,
    open: &mut Stage,
    mut job: Job,
    token: &CancelToken,
    tier: Tier,
) -> Option<Left> {
    let state = &connection.state;
    if let Err(trouble) = job.read(connection) {
        return run::refuse(job, &trouble);
    }
    if tier == Tier::Light && job.is_heavy(state) {
        return Some(Left::TooMuch(job));
    }
    let manages = job.manages;
    let Work::Run(ready) = &mut job.work else { return None };
    ready.progress.clone_from(&job.progress);
    let ran = tier::run(state, (ready, &mut job.reply), tier, true, token, &mut |ready, results| {
        let done = statements(state, open, ready, results);
        let done = done.and_then(|()| warn(state, open, ready, results));
        match &done {
            Ok(()) if manages => act(state, open, text::Transaction::Commit)?,
            // It is about to run again.
            Err(trouble) if trouble.is_deadline() && tier != Tier::Heavy => {}
            Err(_) if manages => act(state, open, text::Transaction::Rollback)?,
            _ => {}
        }
        done
    });
    run::end(job, ran, state)
}

/// Adds warnings if nothing was found. Names that the transaction has added count as existing.
fn warn(state: &State, open: &Stage, ready: &Ready, results: &mut Results<'_>) -> Result<(), Trouble> {
    let find = || match open {
        Stage::Open(transaction) => transaction.gremlin_warnings(&ready.script),
        _ => state.database.gremlin_warnings(&ready.script),
    };
    results.warn(find).map(drop)
}

/// Runs statements in order, and transaction commands between them.
fn statements(
    state: &State,
    open: &mut Stage,
    ready: &mut Ready,
    results: &mut Results<'_>,
) -> Result<(), Trouble> {
    let of_transaction = |statement: &Statement| matches!(statement, Statement::Transaction { .. });
    loop {
        let all = ready.script.statements();
        let rest = all.get(ready.done..).unwrap_or_default();
        let end = rest.iter().position(of_transaction).unwrap_or(rest.len());
        let (these, after) = rest.split_at(end);
        if after.is_empty() {
            // Usually this is the whole script.
            let part: GremlinScript;
            let script = if these.len() == all.len() {
                &ready.script
            } else {
                part = these.to_vec().into();
                &part
            };
            return match these {
                [] => Ok(()),
                _ => tell(results, ready, |each| traverse(state, open, script, ready, each)),
            };
        }
        if !these.is_empty() {
            let script = these.to_vec().into();
            traverse(state, open, &script, ready, &mut |_, _| Ok(()))
                .map_err(|error| Trouble::of_script(error, &ready.fails))?;
        }
        if let [Statement::Transaction { action, .. }, ..] = after {
            act(state, open, *action)?;
        }
        ready.done += end + 1;
    }
}

fn traverse(
    state: &State,
    open: &mut Stage,
    script: &GremlinScript,
    ready: &Ready,
    each: &mut Each<'_>,
) -> vervet::Result<()> {
    if state.options.read_only {
        return state.database.gremlin_each(script, &ready.options, each);
    }
    if matches!(open, Stage::Closed) {
        *open = Stage::Open(Box::new(state.database.begin()?));
    }
    match open {
        Stage::Open(transaction) => transaction.gremlin_each(script, &ready.options, each),
        _ => Err(lost(state)),
    }
}

/// Executes a `g.tx()` command.
fn act(state: &State, open: &mut Stage, action: text::Transaction) -> vervet::Result<()> {
    match (action, std::mem::replace(open, Stage::Closed)) {
        (text::Transaction::Rollback, Stage::Open(transaction)) => {
            transaction.roll_back();
            Ok(())
        }
        (text::Transaction::Commit, Stage::Open(transaction)) => transaction.commit().map(drop),
        (text::Transaction::Commit, Stage::Lost) => Err(lost(state)),
        (text::Transaction::Commit, Stage::Closed) | (text::Transaction::Rollback, _) => Ok(()),
        (text::Transaction::Begin, Stage::Closed) if !state.options.read_only => {
            *open = Stage::Open(Box::new(state.database.begin()?));
            Ok(())
        }
        (text::Transaction::Begin, before) => {
            *open = before;
            if matches!(open, Stage::Lost) { Err(lost(state)) } else { Ok(()) }
        }
    }
}

fn lost(state: &State) -> Error {
    let seconds = state.options.limits.session_timeout.as_secs_f64();
    let message = format!("the session was idle for {seconds} s, so its transaction was rolled back");
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("roll back, and run the transaction again from its start")
}
