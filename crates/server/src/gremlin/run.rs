//! Runs a request on the calling thread, within the limits of a tier (`crate::admission`).

use super::answer::{NO_CONTENT, Reply, Results, Trouble};
use super::connection::{Connection, Job, Work};
use super::request::Ready;
use super::tier::{self, Ran};
use crate::admission::Tier;
use crate::state::State;
use vervet::CancelToken;
use vervet::gremlin::Each;

/// A request without a response.
pub(super) enum Left {
    /// A login may resolve its failure.
    Challenge(Job),
    /// It belongs to the heavy tier.
    TooMuch(Job),
}

/// Runs a request that is a transaction of its own, and sends the response.
pub(super) fn alone(connection: &Connection, mut job: Job, token: &CancelToken, tier: Tier) -> Option<Left> {
    let state = &connection.state;
    if let Err(trouble) = job.read(connection) {
        return refuse(job, &trouble);
    }
    if tier == Tier::Light && job.is_heavy(state) {
        return Some(Left::TooMuch(job));
    }
    let ran = job.run(state, tier, token);
    end(job, ran, state)
}

/// Runs a read-only request that was short the last time.
pub(super) fn here(state: &State, job: &mut Job) -> Option<Ran> {
    let Work::Run(ready) = &job.work else { return None };
    if ready.script.mutates() || !state.admission.is_short(ready.shape) {
        return None;
    }
    let ran = job.run(state, Tier::Here, &CancelToken::new());
    (!matches!(ran, Ran::TooMuch)).then_some(ran)
}

impl Job {
    fn run(&mut self, state: &State, tier: Tier, token: &CancelToken) -> Ran {
        let Work::Run(ready) = &mut self.work else { return Ran::Done(Vec::new(), NO_CONTENT) };
        ready.progress.clone_from(&self.progress);
        let holds = !ready.script.mutates();
        tier::run(state, (ready, &mut self.reply), tier, holds, token, &mut |ready, results| {
            tell(results, ready, |each| state.database.gremlin_each(&ready.script, &ready.options, each))?;
            results.warn(|| state.database.gremlin_warnings(&ready.script)).map(drop)
        })
    }
}

/// Sends the failure of a request, from a thread that may block.
pub(super) fn refuse(job: Job, trouble: &Trouble) -> Option<Left> {
    if trouble.is_challenge() {
        return Some(Left::Challenge(job));
    }
    job.reply.fail_here(trouble);
    None
}

/// Sends the response of a finished run, from a thread that may block.
pub(super) fn end(job: Job, ran: Ran, state: &State) -> Option<Left> {
    match ran {
        Ran::Done(messages, code) => job.reply.tell_here(messages, code),
        Ran::Failed(trouble) => job.reply.fail_here(&explain(trouble, state)),
        Ran::TooMuch => return Some(Left::TooMuch(job)),
    }
    None
}

/// Sends the response of a run that was not too much for its tier.
pub(super) async fn tell_ran(reply: Reply, ran: Ran, state: &State) {
    match ran {
        Ran::Done(messages, code) => reply.tell(messages, code).await,
        Ran::Failed(trouble) => reply.fail(explain(trouble, state)).await,
        // Unreachable; dropping the reply reports the defect.
        Ran::TooMuch => drop(reply),
    }
}

/// Passes the results of `run` on.
///
/// # Errors
/// Errors of `run`, or of writing the results.
pub(super) fn tell(
    results: &mut Results<'_>,
    ready: &Ready,
    run: impl FnOnce(&mut Each<'_>) -> vervet::Result<()>,
) -> Result<(), Trouble> {
    let done = run(&mut |value, count| {
        if let Some(progress) = &ready.progress {
            progress.add(count);
        }
        results.add(value, count)
    });
    done.map_err(|error| results.trouble(error, &ready.fails))
}

/// Adds a hint that fits a server.
pub(super) fn explain(trouble: Trouble, state: &State) -> Trouble {
    let limits = &state.options.limits;
    match trouble.failure.kind() {
        "deadline" => {
            let most = limits.timeout.as_secs_f64();
            trouble.hint(format!(
                "ask for less, or for more time (evaluationTimeout); the server allows {most} s"
            ))
        }
        "memory" => {
            trouble.hint(format!("ask for less; the server allows {} bytes (--memory)", limits.memory_bytes))
        }
        "conflict" => trouble.hint("roll back, and run the transaction again from its start"),
        "cancelled" => {
            trouble.hint("the server is ending, or the request was stopped by DELETE /api/queries")
        }
        _ => trouble,
    }
}
