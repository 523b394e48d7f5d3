//! Fingerprints of Gremlin scripts for admission control.

use crate::state::State;
use std::hash::{Hash, Hasher};
use vervet::gremlin::text::Statement;
use vervet::gremlin::{Bytecode, GremlinScript, Value};

/// The request fingerprint of a script: names of steps, keys, labels, numbers of loops. Scripts that differ
/// only in start elements and compared values have the same fingerprint.
pub(super) fn of_script(state: &State, script: &GremlinScript) -> u64 {
    state.admission.fingerprint(FingerprintInput(script))
}

struct FingerprintInput<'s>(&'s GremlinScript);

impl Hash for FingerprintInput<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for statement in self.0.statements() {
            std::mem::discriminant(statement).hash(state);
            if let Statement::Traversal { bytecode, terminal, .. } = statement {
                terminal.is_some().hash(state);
                hash_bytecode(bytecode, state);
            }
        }
    }
}

/// Steps whose arguments choose start elements or compared values.
const STEPS_WITH_VARYING_ARGUMENTS: [&str; 6] = ["V", "E", "hasId", "inject", "is", "constant"];

/// Texts and messages limit the nesting depth.
fn hash_bytecode<H: Hasher>(bytecode: &Bytecode, state: &mut H) {
    bytecode.steps.len().hash(state);
    for instruction in &bytecode.steps {
        instruction.name.hash(state);
        if !STEPS_WITH_VARYING_ARGUMENTS.contains(&&*instruction.name) {
            match instruction.arguments.first() {
                Some(Value::String(text)) => text.hash(state),
                Some(value) => value.as_integer().hash(state),
                None => {}
            }
        }
        for argument in &instruction.arguments {
            if let Value::Traversal(nested) = argument {
                hash_bytecode(nested, state);
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
    fn fingerprints_differ_by_steps_keys_and_numbers_of_loops() {
        let (admission, database) = (Admission::default(), Database::in_memory());
        let fingerprint = |text: &str| {
            let script = database.gremlin_script(text, &GremlinOptions::default()).expect("it is Gremlin");
            admission.fingerprint(FingerprintInput(&script))
        };
        let text = "g.V(1).has('name', 'a').repeat(out('knows')).times(2).values('age')";
        assert_eq!(fingerprint(text), fingerprint(text));
        assert_eq!(
            fingerprint(text),
            fingerprint(&text.replace("V(1)", "V('x', 'y')").replace("'a'", "'b'"))
        );
        for (part, other) in [
            ("'name'", "'other'"),
            ("times(2)", "times(3)"),
            ("'knows'", "'likes'"),
            (".values('age')", ""),
            ("out", "both"),
        ] {
            assert_ne!(fingerprint(text), fingerprint(&text.replace(part, other)), "{part}");
        }
    }
}
