//! Runs a request on the thread that it is called on.

use super::access::Access;
use super::answer::{Reply, Results, Trouble};
use super::request::{Asked, Ready};
use crate::state::State;
use vervet::CancelToken;
use vervet::gremlin::Each;

/// What became of a request.
pub(super) enum Ran {
    /// It has been answered.
    Answered,
    /// The client may do it once it has said who it is.
    Challenge(Reply),
}

/// Runs a request that is a transaction of its own.
pub(super) fn alone(
    state: &State,
    asked: &Asked,
    access: &Access,
    token: &CancelToken,
    mut reply: Reply,
) -> Ran {
    let ready = match ready(state, asked, access, token) {
        Ok(ready) => ready,
        Err(trouble) if trouble.is_challenge() => return Ran::Challenge(reply),
        Err(trouble) => {
            reply.fail_here(&trouble);
            return Ran::Answered;
        }
    };
    let told = reply.results(ready.telling).and_then(|mut results| {
        tell(&mut results, &ready, |each| state.database.gremlin_each(&ready.script, &ready.options, each))?;
        Ok(results.finish(state))
    });
    match told {
        Ok(code) => reply.told(code),
        Err(trouble) => reply.fail_here(&explain(trouble, state)),
    }
    Ran::Answered
}

/// Reads a request, and makes sure that its client may ask it.
///
/// # Errors
/// A mistake in it; it takes another role.
pub(super) fn ready(
    state: &State,
    asked: &Asked,
    access: &Access,
    token: &CancelToken,
) -> Result<Ready, Trouble> {
    let ready = asked.ready(state, token)?;
    access.allow_script(&ready.script)?;
    Ok(ready)
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
    let done = run(&mut |value, count| results.add(value, count));
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
        "cancelled" => trouble.hint("the server is ending"),
        _ => trouble,
    }
}
