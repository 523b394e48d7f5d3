//! Runs a request: on the thread that it is called on, as far as a tier lets it (`crate::admission`).

use super::answer::{NO_CONTENT, Reply, Results, Trouble};
use super::connection::{Connection, Job, Work};
use super::request::Ready;
use super::tier::{self, Ran};
use crate::admission::Tier;
use crate::state::State;
use vervet::CancelToken;
use vervet::gremlin::Each;

/// A request that has not been answered.
pub(super) enum Left {
    /// The client may do it once it has said who it is.
    Challenge(Job),
    /// It is for the heavy ones.
    TooMuch(Job),
}

/// Runs a request that is a transaction of its own, and tells what came of it.
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

/// Runs a request that only reads, and was short when it came last.
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

/// A request that is refused, on a thread that may wait.
pub(super) fn refuse(job: Job, trouble: &Trouble) -> Option<Left> {
    if trouble.is_challenge() {
        return Some(Left::Challenge(job));
    }
    job.reply.fail_here(trouble);
    None
}

/// Tells what came of a request, on a thread that may wait.
pub(super) fn end(job: Job, ran: Ran, state: &State) -> Option<Left> {
    match ran {
        Ran::Done(messages, code) => job.reply.tell_here(messages, code),
        Ran::Failed(trouble) => job.reply.fail_here(&explain(trouble, state)),
        Ran::TooMuch => return Some(Left::TooMuch(job)),
    }
    None
}

/// Tells what came of a request that was not too much.
pub(super) async fn tell_ran(reply: Reply, ran: Ran, state: &State) {
    match ran {
        Ran::Done(messages, code) => reply.tell(messages, code).await,
        Ran::Failed(trouble) => reply.fail(explain(trouble, state)).await,
        // Dropped, it says that this was a defect.
        Ran::TooMuch => drop(reply),
    }
}

/// Hands the results of `run` on.
///
/// # Errors
/// Those of `run`, or what hindered the results.
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

/// The same trouble with a hint that fits a server.
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
