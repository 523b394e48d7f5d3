//! Translation of loops with a fixed number of rounds: unrolled, or as one path if they emit.

use super::{Builder, CurrentObject, distinct, iri};
use crate::modulated::Modulated;
use vervet_algebra::{GraphSlot, Node, Path, PathPattern, Slot};
use vervet_gremlin::{Instruction, Value};
use vervet_model::vocab::KEY_NAMESPACE;

/// Maximum number of rounds of an unrolled loop.
const ROUNDS_MAX: i64 = 8;
/// Maximum number of rounds of an emitting loop: each round adds states to the path automaton.
const EMITTED_ROUNDS_MAX: i64 = 8;

impl Builder {
    /// `repeat(…).times(n)`, unrolled, or with `emit`.
    pub(super) fn repeat(&mut self, step: &Modulated<'_>) -> Option<()> {
        let modulators: Vec<_> = step.before.iter().chain(&step.after).collect();
        if let [first, second] = modulators.as_slice()
            && step.before.is_empty()
        {
            return match (&*first.name, &*second.name) {
                ("emit", "times") => self.emitted(step, first, second),
                ("times", "emit") => self.emitted(step, second, first),
                _ => None,
            };
        }
        let [times] = modulators.as_slice() else { return None };
        let ("times", [Value::Traversal(body)]) = (&*times.name, step.arguments()) else { return None };
        let rounds = times.arguments.first()?.as_integer()?;
        if !(1..=ROUNDS_MAX).contains(&rounds) || !step.labels.is_empty() {
            return None;
        }
        for _ in 0..rounds {
            for instruction in &body.steps {
                // Filters and walks only; aggregates would span all rounds.
                if !matches!(
                    &*instruction.name,
                    "out" | "in" | "both" | "has" | "hasLabel" | "where" | "not" | "identity"
                ) {
                    return None;
                }
                self.instruction(instruction)?;
                if matches!(&*instruction.name, "out" | "in" | "both") {
                    self.path.push((self.current()?, Vec::new()));
                }
            }
        }
        Some(())
    }

    /// `repeat(both("knows").dedup()).emit().times(3)`: the distinct vertices within that many edges.
    fn emitted(&mut self, step: &Modulated<'_>, emit: &Instruction, times: &Instruction) -> Option<()> {
        let ([], [rounds], [Value::Traversal(body)]) =
            (emit.arguments.as_slice(), times.arguments.as_slice(), step.arguments())
        else {
            return None;
        };
        let [walk, dedup] = body.steps.as_slice() else { return None };
        let ("both" | "out" | "in", [Value::String(label)]) = (&*walk.name, walk.arguments.as_slice()) else {
            return None;
        };
        let rounds = rounds.as_integer()?;
        if &*dedup.name != "dedup"
            || !dedup.arguments.is_empty()
            || !(1..=EMITTED_ROUNDS_MAX).contains(&rounds)
            || !step.labels.is_empty()
            || !self.needs_no_path()
            || !self.filters.is_empty() && !self.is_bound()
        {
            return None;
        }
        let CurrentObject::Vertex(from) = self.object else { return None };
        self.requirements.edge_keys.push(label.clone());
        let to = self.fresh()?;
        let edge = Path::Predicate(iri(KEY_NAMESPACE, label));
        let walk = match &*walk.name {
            "out" => edge,
            "in" => Path::Inverse(Box::new(edge)),
            _ => Path::Alternative(vec![edge.clone(), Path::Inverse(Box::new(edge))]),
        };
        // One walk, followed by an optional rest.
        let path = (1..rounds).fold(walk.clone(), |rest, _| {
            Path::Sequence(vec![walk.clone(), Path::ZeroOrOne(Box::new(rest))])
        });
        let path = Node::Path(PathPattern {
            subject: Slot::Variable(from),
            path,
            object: Slot::Variable(to),
            graphs: vec![GraphSlot::Any],
        });
        self.rebase(distinct(Node::Join(vec![self.node(), path]), to), to);
        self.walks += 2;
        Some(())
    }
}
