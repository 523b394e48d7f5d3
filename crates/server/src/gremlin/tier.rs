//! Runs a traversal in a tier of [`crate::admission`], and again in the heavy tier if it exceeds the limits.
//!
//! The limits: no query that the planner expects to be heavy (checked before it begins); the time of the
//! tier; a result of at most [`HELD_BYTES`].
//! # Invariants
//! 1. A stopped traversal has sent nothing and changed nothing: results are held until the end, a transaction
//!    of its own is dropped, a transaction of a session is rolled back to the state before. Committed results
//!    are never discarded.
//! 2. CPU time counts, not wall time: under contention, a light traversal gets more time in its tier.
//! # Cost
//! A traversal that exceeds its tier runs twice the first time: 2 ms, or up to twice its limit.

use super::answer::{Held, Reply, Results, Trouble};
use super::request::Ready;
use crate::admission::{HERE, LIGHT_CPU, LIGHT_WALL, Tier, thread_cpu};
use crate::state::State;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};
use vervet::CancelToken;
use vervet::gremlin::text::Statement;
use vervet::gremlin::{Bytecode, GremlinScript, Value};

/// The maximum bytes of a response that is held until its end.
pub(super) const HELD_BYTES: usize = 256 << 10;

/// The request fingerprint of a script: names of steps, keys, labels, numbers of loops. Scripts that differ
/// only in start elements and compared values have the same fingerprint.
pub(super) fn shape(state: &State, script: &GremlinScript) -> u64 {
    state.admission.fingerprint(Shape(script))
}

/// The outcome of a run.
#[derive(Debug)]
pub(super) enum Ran {
    /// Success: the messages still to send, and the status of the last message.
    Done(Vec<Vec<u8>>, i32),
    Failed(Trouble),
    /// The run exceeded its tier.
    TooMuch,
}

impl Ran {
    /// The outcome of a run; `can_be_given_up`: it may be retried in the heavy tier.
    pub(super) fn of(done: Result<i32, Trouble>, can_be_given_up: bool) -> Self {
        match done {
            Ok(code) => Self::Done(Vec::new(), code),
            Err(trouble) if can_be_given_up && trouble.is_deadline() => Self::TooMuch,
            Err(trouble) => Self::Failed(trouble),
        }
    }
}

/// Runs a WebSocket request in a tier with `run`. `holds`: the effects can be rolled back until the end, so
/// the results are held.
pub(super) fn run(
    state: &State,
    (ready, reply): (&mut Ready, &mut Reply),
    tier: Tier,
    holds: bool,
    token: &CancelToken,
    run: &mut dyn FnMut(&mut Ready, &mut Results<'_>) -> Result<(), Trouble>,
) -> Ran {
    attempts(state, ready, tier, token, &mut |ready| {
        let telling = ready.telling.clone();
        let mut held = Held::default();
        let mut can_be_given_up = tier != Tier::Heavy;
        let results = if holds && tier != Tier::Heavy {
            reply.held_results(&mut held, telling)
        } else {
            reply.results(telling)
        };
        let done = results.and_then(|mut results| {
            let done = run(ready, &mut results);
            // Results that are not held are sent after the commit.
            can_be_given_up &= holds || !results.have_begun();
            done.map(|()| results.finish(state))
        });
        match Ran::of(done, can_be_given_up) {
            Ran::Done(_, code) => Ran::Done(held.messages, code),
            ran => ran,
        }
    })
}

/// Runs a request in a tier with `attempt`, and records its time.
pub(super) fn attempts(
    state: &State,
    ready: &mut Ready,
    tier: Tier,
    token: &CancelToken,
    attempt: &mut dyn FnMut(&mut Ready) -> Ran,
) -> Ran {
    let mut wall = if tier == Tier::Here { HERE } else { LIGHT_WALL };
    loop {
        let begin = Instant::now();
        // A system call, only for the tier that measures CPU time.
        let cpu = if tier == Tier::Light { thread_cpu() } else { Duration::ZERO };
        ready.begin(state, tier, wall, token);
        let ran = attempt(ready);
        let time = begin.elapsed();
        match &ran {
            Ran::Done(..) => state.admission.ended(ready.shape, tier, time),
            Ran::Failed(_) if tier == Tier::Here => state.admission.ended(ready.shape, tier, time),
            Ran::Failed(_) => {}
            Ran::TooMuch => {
                // Below its time limit: the estimate or the length of the response made it too heavy.
                let used = thread_cpu().saturating_sub(cpu);
                if tier == Tier::Light && time >= wall && used < LIGHT_CPU && !token.is_cancelled() {
                    wall = wall.saturating_mul(2);
                    continue;
                }
                state.admission.too_much(ready.shape, tier);
            }
        }
        return ran;
    }
}

struct Shape<'s>(&'s GremlinScript);

impl Hash for Shape<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for statement in self.0.statements() {
            std::mem::discriminant(statement).hash(state);
            if let Statement::Traversal { bytecode, terminal, .. } = statement {
                terminal.is_some().hash(state);
                of_bytecode(bytecode, state);
            }
        }
    }
}

/// Steps whose arguments choose start elements or compared values.
const WHOM: [&str; 6] = ["V", "E", "hasId", "inject", "is", "constant"];

/// Texts and messages limit the nesting depth.
fn of_bytecode<H: Hasher>(bytecode: &Bytecode, state: &mut H) {
    bytecode.steps.len().hash(state);
    for instruction in &bytecode.steps {
        instruction.name.hash(state);
        if !WHOM.contains(&&*instruction.name) {
            match instruction.arguments.first() {
                Some(Value::String(text)) => text.hash(state),
                Some(value) => value.as_integer().hash(state),
                None => {}
            }
        }
        for argument in &instruction.arguments {
            if let Value::Traversal(nested) = argument {
                of_bytecode(nested, state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Admission;
    use vervet::Database;
    use vervet::gremlin::GremlinOptions;

    #[test]
    fn shapes_are_told_apart_by_steps_keys_and_numbers_of_loops() {
        let (admission, database) = (Admission::default(), Database::in_memory());
        let shape = |text: &str| {
            let script = database.gremlin_script(text, &GremlinOptions::default()).expect("it is Gremlin");
            admission.fingerprint(Shape(&script))
        };
        let text = "g.V(1).has('name', 'a').repeat(out('knows')).times(2).values('age')";
        assert_eq!(shape(text), shape(text));
        assert_eq!(shape(text), shape(&text.replace("V(1)", "V('x', 'y')").replace("'a'", "'b'")));
        for (part, other) in [
            ("'name'", "'other'"),
            ("times(2)", "times(3)"),
            ("'knows'", "'likes'"),
            (".values('age')", ""),
            ("out", "both"),
        ] {
            assert_ne!(shape(text), shape(&text.replace(part, other)), "{part}");
        }
    }
}
