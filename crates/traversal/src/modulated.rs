//! Steps with their modulators.
//!
//! The modulators `as`, `by`, `from`, `to`, `with`, `option`, `times`, `until`, `emit`, `read`, `write` and
//! the `property` steps after `addV` and `addE` are gathered at the step that they modify.

use crate::analysis::writes;
use crate::error::query_error;
use crate::property_write::Write;
use std::sync::Arc;
use vervet_gremlin::{Instruction, Token, Value};
use vervet_model::Result;

/// A step with its modulators.
pub(crate) struct Modulated<'b> {
    pub(crate) instruction: &'b Instruction,
    pub(crate) labels: Vec<Arc<str>>,
    pub(crate) bys: Vec<&'b Instruction>,
    pub(crate) from: Option<&'b Instruction>,
    pub(crate) to: Option<&'b Instruction>,
    pub(crate) options: Vec<&'b Instruction>,
    pub(crate) withs: Vec<&'b Instruction>,
    /// The property writes of `property`, and of `addV` and `addE` followed by `property`.
    pub(crate) writes: Vec<Write<'b>>,
    /// The modulators before and after `repeat`.
    pub(crate) before: Vec<&'b Instruction>,
    pub(crate) after: Vec<&'b Instruction>,
}

impl<'b> Modulated<'b> {
    pub(crate) fn new(instruction: &'b Instruction) -> Self {
        Self {
            instruction,
            labels: Vec::new(),
            bys: Vec::new(),
            from: None,
            to: None,
            options: Vec::new(),
            withs: Vec::new(),
            writes: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Whether the step or a nested traversal changes the graph.
    pub(crate) fn contains_write(&self) -> bool {
        self.nested_instructions().any(writes)
    }

    /// The instruction and its modulators that may contain traversals.
    pub(crate) fn nested_instructions(&self) -> impl Iterator<Item = &'b Instruction> {
        let around = [&self.bys, &self.options, &self.before, &self.after];
        let around = around.into_iter().flatten().copied();
        std::iter::once(self.instruction).chain(around).chain(self.from).chain(self.to)
    }

    /// Whether a loop already has a modulator of this kind (end condition or emit condition).
    fn has_modulator(&self, modulator: &Instruction) -> bool {
        let is_emit = |instruction: &Instruction| &*instruction.name == "emit";
        self.before.iter().chain(&self.after).any(|own| is_emit(own) == is_emit(modulator))
    }

    pub(crate) fn name(&self) -> &str {
        &self.instruction.name
    }

    pub(crate) fn arguments(&self) -> &'b [Value] {
        &self.instruction.arguments
    }

    /// The arguments that are strings; nulls are skipped.
    pub(crate) fn texts(&self) -> Vec<Arc<str>> {
        let mut all = Vec::new();
        gather_texts(self.arguments(), &mut all);
        all
    }
}

fn gather_texts(values: &[Value], all: &mut Vec<Arc<str>>) {
    for value in values {
        match value {
            Value::String(text) => all.push(text.clone()),
            Value::List(values) => gather_texts(values, all),
            _ => {}
        }
    }
}

/// Groups instructions into steps with modulators.
pub(crate) fn modulated<'b>(instructions: &'b [Instruction]) -> Result<Vec<Modulated<'b>>> {
    let mut all: Vec<Modulated<'b>> = Vec::new();
    let mut ahead: Vec<&'b Instruction> = Vec::new();
    for instruction in instructions {
        let misplaced = || query_error(format!("{}() modulates nothing", instruction.name));
        match &*instruction.name {
            "as" => {
                let labels = instruction.arguments.iter().filter_map(Value::as_text).map(Arc::from);
                match all.last_mut() {
                    Some(step) => step.labels.extend(labels),
                    None => {
                        let mut step = Modulated::new(instruction);
                        step.labels.extend(labels);
                        all.push(step);
                    }
                }
            }
            "by" => {
                let step = all.last_mut().ok_or_else(misplaced)?;
                if !takes_by(&step.instruction.name) {
                    return Err(query_error(format!("{}() does not take by()", step.instruction.name)));
                }
                step.bys.push(instruction);
            }
            "from" => all.last_mut().ok_or_else(misplaced)?.from = Some(instruction),
            "to" if !matches!(instruction.arguments.first(), Some(Value::Token(Token::Direction(_)))) => {
                all.last_mut().ok_or_else(misplaced)?.to = Some(instruction);
            }
            "with" | "read" | "write" => all.last_mut().ok_or_else(misplaced)?.withs.push(instruction),
            "property" => {
                // `property` modifies the step that adds an element, across other `property` steps.
                let adds = all.iter().rposition(|step| step.name() != "property");
                let mut rest = Modulated::new(instruction);
                for write in Write::all(instruction)? {
                    match adds.and_then(|place| all.get_mut(place)) {
                        Some(step) if write.belongs_to(step.name())? => step.writes.push(write),
                        _ => rest.writes.push(write),
                    }
                }
                if !rest.writes.is_empty() {
                    all.push(rest);
                }
            }
            "option" => all.last_mut().ok_or_else(misplaced)?.options.push(instruction),
            "times" | "until" | "emit" => match all.last_mut() {
                // A second `until` or `emit` after a loop starts the next loop.
                Some(step)
                    if step.name() == "repeat" && ahead.is_empty() && !step.has_modulator(instruction) =>
                {
                    step.after.push(instruction);
                }
                _ => ahead.push(instruction),
            },
            name => {
                let mut step = Modulated::new(instruction);
                if name == "repeat" {
                    step.before = std::mem::take(&mut ahead);
                } else if let Some(first) = ahead.first() {
                    return Err(query_error(format!(
                        "The repeat()-traversal was not defined: {}() has no repeat()",
                        first.name
                    )));
                }
                all.push(step);
            }
        }
    }
    match ahead.first() {
        Some(first) => Err(query_error(format!(
            "The repeat()-traversal was not defined: {}() has no repeat()",
            first.name
        ))),
        None => Ok(all),
    }
}

/// Whether a step accepts `by()`.
fn takes_by(name: &str) -> bool {
    matches!(
        name,
        "aggregate"
            | "store"
            | "group"
            | "groupCount"
            | "order"
            | "path"
            | "project"
            | "select"
            | "tree"
            | "dedup"
            | "where"
            | "sack"
            | "sample"
            | "math"
            | "propertyMap"
            | "valueMap"
            | "cyclicPath"
            | "simplePath"
            | "format"
            | "concat"
            | "map"
            | "cap"
            | "dateDiff"
            | "elementMap"
            | "with"
            | "subgraph"
    )
}
