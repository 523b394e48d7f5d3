//! Runs a traversal in a tier of [`crate::admission`], and again in the heavy tier if it exceeds the limits.
//!
//! The limits: no query that the planner expects to be heavy (checked before it begins); the time of the
//! tier; a result of at most [`BUFFERED_BYTES_MAX`](super::response::BUFFERED_BYTES_MAX).
//! # Invariants
//! 1. A stopped traversal has sent nothing and changed nothing: results are held until the end, a transaction
//!    of its own is dropped, a transaction of a session is rolled back to the state before. Committed results
//!    are never discarded.
//! 2. CPU time counts, not wall time: under contention, a light traversal gets more time in its tier.
//! # Cost
//! A traversal that exceeds its tier runs twice the first time: 2 ms, or up to twice its limit.

use super::error::GremlinError;
use super::request::PreparedRequest;
use super::response::{BufferedMessages, PendingResponse, Results};
use crate::admission::{FAST_PATH_TIME_MAX, LIGHT_CPU, LIGHT_WALL, Tier};
use crate::state::State;
use std::time::{Duration, Instant};
use vervet::CancelToken;
use vervet_env::cpu_time_of_thread;

/// The outcome of a run.
#[derive(Debug)]
pub(super) enum RunOutcome {
    /// Success: the messages still to send, and the status of the last message.
    Done(Vec<Vec<u8>>, i32),
    Failed(GremlinError),
    /// The run exceeded its tier.
    TooHeavy,
}

impl RunOutcome {
    /// The outcome of a run; `may_rerun`: it may be retried in the heavy tier.
    pub(super) fn of(done: Result<i32, GremlinError>, may_rerun: bool) -> Self {
        match done {
            Ok(code) => Self::Done(Vec::new(), code),
            Err(error) if may_rerun && error.is_deadline() => Self::TooHeavy,
            Err(error) => Self::Failed(error),
        }
    }
}

/// Runs a WebSocket request in a tier with `run`. `holds`: the effects can be rolled back until the end, so
/// the results are held.
pub(super) fn run(
    state: &State,
    (prepared, response): (&mut PreparedRequest, &mut PendingResponse),
    tier: Tier,
    is_buffered: bool,
    token: &CancelToken,
    run: &mut dyn FnMut(&mut PreparedRequest, &mut Results<'_>) -> Result<(), GremlinError>,
) -> RunOutcome {
    run_with_retries(state, prepared, tier, token, &mut |prepared| {
        let result_options = prepared.result_options.clone();
        let mut buffer = BufferedMessages::default();
        let mut may_rerun = tier != Tier::Heavy;
        let results = if is_buffered && tier != Tier::Heavy {
            response.buffered_results(&mut buffer, result_options)
        } else {
            response.results(result_options)
        };
        let done = results.and_then(|mut results| {
            let done = run(prepared, &mut results);
            // Results that are not held are sent after the commit.
            may_rerun &= is_buffered || !results.has_sent_messages();
            done.map(|()| results.finish(state))
        });
        match RunOutcome::of(done, may_rerun) {
            RunOutcome::Done(_, code) => RunOutcome::Done(buffer.messages, code),
            outcome => outcome,
        }
    })
}

/// Runs a request in a tier with `attempt`, and records its time.
pub(super) fn run_with_retries(
    state: &State,
    prepared: &mut PreparedRequest,
    tier: Tier,
    token: &CancelToken,
    attempt: &mut dyn FnMut(&mut PreparedRequest) -> RunOutcome,
) -> RunOutcome {
    let mut wall = if tier == Tier::FastPath { FAST_PATH_TIME_MAX } else { LIGHT_WALL };
    loop {
        let begin = Instant::now();
        // A system call, only for the tier that measures CPU time.
        let cpu = if tier == Tier::Light { cpu_time_of_thread() } else { Duration::ZERO };
        prepared.begin(state, tier, wall, token);
        let outcome = attempt(prepared);
        let time = begin.elapsed();
        match &outcome {
            RunOutcome::Done(..) => state.admission.record_success(prepared.fingerprint, tier, time),
            RunOutcome::Failed(_) if tier == Tier::FastPath => {
                state.admission.record_success(prepared.fingerprint, tier, time)
            }
            RunOutcome::Failed(_) => {}
            RunOutcome::TooHeavy => {
                // Below its time limit: the estimate or the length of the response made it too heavy.
                let used = cpu_time_of_thread().saturating_sub(cpu);
                if tier == Tier::Light && time >= wall && used < LIGHT_CPU && !token.is_cancelled() {
                    wall = wall.saturating_mul(2);
                    continue;
                }
                state.admission.record_rejection(prepared.fingerprint, tier);
            }
        }
        return outcome;
    }
}
