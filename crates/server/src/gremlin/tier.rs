//! Runs a traversal in a tier of [`crate::admission`], and again in the heavy one if that was too much.
//!
//! Too much are: a query in it that the planner expects to be heavy, before it has begun; more time than the
//! tier allows; a result longer than [`HELD_BYTES`].
//! # Invariants
//! 1. A traversal that was stopped has sent nothing and changed nothing: results are held until the end, a
//!    transaction of its own is dropped, one of a session goes back to where it was before. Results of what
//!    has been committed are never given up.
//! 2. The processor counts, not the clock: where others have it, a light traversal gets more time where it
//!    is.
//! # Cost
//! What is too much is done twice the first time: 2 ms, or up to twice as much as it had.

use super::answer::{Held, Reply, Results, Trouble};
use super::request::Ready;
use crate::admission::{HERE, LIGHT_CPU, LIGHT_WALL, Tier, thread_cpu};
use crate::state::State;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};
use vervet::CancelToken;
use vervet::gremlin::text::Statement;
use vervet::gremlin::{Bytecode, GremlinScript, Value};

/// Bytes of an answer that is held until its end is known.
pub(super) const HELD_BYTES: usize = 256 << 10;

/// What a script has in common with those that differ only in the elements that they start from and the
/// values that they compare with: names of steps, keys, labels, numbers of loops.
pub(super) fn shape(state: &State, script: &GremlinScript) -> u64 {
    state.admission.fingerprint(Shape(script))
}

/// What came of a run.
#[derive(Debug)]
pub(super) enum Ran {
    /// All went well: what is still to be told, and the status of the last message.
    Done(Vec<Vec<u8>>, i32),
    Failed(Trouble),
    /// It was too much for its tier.
    TooMuch,
}

impl Ran {
    /// What came of a run, which could be given up or not.
    pub(super) fn of(done: Result<i32, Trouble>, can_be_given_up: bool) -> Self {
        match done {
            Ok(code) => Self::Done(Vec::new(), code),
            Err(trouble) if can_be_given_up && trouble.is_deadline() => Self::TooMuch,
            Err(trouble) => Self::Failed(trouble),
        }
    }
}

/// Has `run` run a request of a WebSocket in a tier. `holds`: what it does can be undone until it has ended,
/// so its results are held.
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
            // What is not held is told once it is committed.
            can_be_given_up &= holds || !results.have_begun();
            done.map(|()| results.finish(state))
        });
        match Ran::of(done, can_be_given_up) {
            Ran::Done(_, code) => Ran::Done(held.messages, code),
            ran => ran,
        }
    })
}

/// Has `attempt` try to run a request in a tier, and remembers what it took.
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
        // A call of the system, for the only tier that counts it.
        let cpu = if tier == Tier::Light { thread_cpu() } else { Duration::ZERO };
        ready.begin(state, tier, wall, token);
        let ran = attempt(ready);
        let time = begin.elapsed();
        match &ran {
            Ran::Done(..) => state.admission.ended(ready.shape, tier, time),
            Ran::Failed(_) if tier == Tier::Here => state.admission.ended(ready.shape, tier, time),
            Ran::Failed(_) => {}
            Ran::TooMuch => {
                // Less time than it had: the estimate said so, or the length of the answer.
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

/// Steps whose arguments say whom a traversal is about.
const WHOM: [&str; 6] = ["V", "E", "hasId", "inject", "is", "constant"];

/// The depth of what is inside of what has a limit in texts and in messages.
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
