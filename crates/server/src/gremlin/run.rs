//! Runs a request on the calling thread, within the limits of a tier (`crate::admission`).

use super::access::Access;
use super::error::{GremlinError, NO_CONTENT};
use super::job::{Job, Operation};
use super::request::PreparedRequest;
use super::response::{PendingResponse, Results};
use super::tier::{self, RunOutcome};
use crate::admission::Tier;
use crate::state::State;
use vervet::CancelToken;
use vervet::gremlin::Each;

/// A request without a response.
pub(super) enum Rerouted {
    /// A login may resolve its failure.
    Challenge(Job),
    /// It belongs to the heavy tier.
    TooHeavy(Job),
    /// It changes the graph, which another server of the cluster does.
    Elsewhere(Job),
}

/// Runs a request that is a transaction of its own, and sends the response.
pub(super) fn run_sessionless(
    (state, access): (&State, &Access),
    mut job: Job,
    token: &CancelToken,
    tier: Tier,
) -> Option<Rerouted> {
    if let Err(error) = job.prepare(state, access) {
        return refuse(job, &error);
    }
    if tier == Tier::Light && job.is_heavy(state) {
        return Some(Rerouted::TooHeavy(job));
    }
    let outcome = job.run(state, tier, token);
    send_outcome_blocking(job, outcome, state)
}

/// Runs a read-only request that was short the last time.
pub(super) fn run_on_fast_path(state: &State, job: &mut Job) -> Option<RunOutcome> {
    let Operation::Prepared(prepared) = &job.operation else { return None };
    if prepared.script.mutates() || !state.admission.is_short(prepared.fingerprint) {
        return None;
    }
    let outcome = job.run(state, Tier::FastPath, &CancelToken::new());
    (!matches!(outcome, RunOutcome::TooHeavy)).then_some(outcome)
}

impl Job {
    fn run(&mut self, state: &State, tier: Tier, token: &CancelToken) -> RunOutcome {
        let Operation::Prepared(prepared) = &mut self.operation else {
            return RunOutcome::Done(Vec::new(), NO_CONTENT);
        };
        prepared.progress.clone_from(&self.progress);
        let is_buffered = !prepared.script.mutates();
        tier::run(
            state,
            (prepared, &mut self.response),
            tier,
            is_buffered,
            token,
            &mut |prepared, results| {
                write_results(results, prepared, |each| {
                    state.database.gremlin_each(&prepared.script, &prepared.options, each)
                })?;
                results.warn(|| state.database.gremlin_warnings(&prepared.script)).map(drop)
            },
        )
    }
}

/// Sends the failure of a request, from a thread that may block.
pub(super) fn refuse(job: Job, error: &GremlinError) -> Option<Rerouted> {
    if error.is_challenge() {
        return Some(Rerouted::Challenge(job));
    }
    if error.is_elsewhere() && job.message.is_some() {
        return Some(Rerouted::Elsewhere(job));
    }
    job.response.fail_blocking(error);
    None
}

/// Sends the response of a finished run, from a thread that may block.
pub(super) fn send_outcome_blocking(job: Job, outcome: RunOutcome, state: &State) -> Option<Rerouted> {
    match outcome {
        RunOutcome::Done(messages, code) => job.response.send_blocking(messages, code),
        RunOutcome::Failed(error) => job.response.fail_blocking(&explain(error, state)),
        RunOutcome::TooHeavy => return Some(Rerouted::TooHeavy(job)),
    }
    None
}

/// Sends the response of a run that was not too much for its tier.
pub(super) async fn send_outcome(response: PendingResponse, outcome: RunOutcome, state: &State) {
    match outcome {
        RunOutcome::Done(messages, code) => response.send(messages, code).await,
        RunOutcome::Failed(error) => response.fail(explain(error, state)).await,
        // Unreachable; dropping the reply reports the defect.
        RunOutcome::TooHeavy => drop(response),
    }
}

/// Passes the results of `run` on.
///
/// # Errors
/// Errors of `run`, or of writing the results.
pub(super) fn write_results(
    results: &mut Results<'_>,
    prepared: &PreparedRequest,
    run: impl FnOnce(&mut Each<'_>) -> vervet::Result<()>,
) -> Result<(), GremlinError> {
    let done = run(&mut |value, count| {
        if let Some(progress) = &prepared.progress {
            progress.add(count);
        }
        results.add(value, count)
    });
    done.map_err(|error| results.map_error(error, &prepared.fails))
}

/// Adds a hint that fits a server.
pub(super) fn explain(error: GremlinError, state: &State) -> GremlinError {
    let limits = &state.options.limits;
    match error.failure.kind() {
        "deadline" => {
            let most = limits.timeout.as_secs_f64();
            error.hint(format!(
                "ask for less, or for more time (evaluationTimeout); the server allows {most} s"
            ))
        }
        "memory" => {
            error.hint(format!("ask for less; the server allows {} bytes (--memory)", limits.memory_bytes))
        }
        "conflict" => error.hint("roll back, and run the transaction again from its start"),
        "cancelled" => error.hint("the server is ending, or the request was stopped by DELETE /api/queries"),
        _ => error,
    }
}
