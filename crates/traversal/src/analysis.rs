//! Analysis of bytecode, without knowledge of the graph: which steps write, gather their input, name side
//! effects, and need paths.

use crate::context::Settings;
use std::sync::Arc;
use vervet_gremlin::{Bytecode, Instruction, Token, Value};

/// Whether running the traversal may change the graph.
#[must_use]
pub fn mutates(bytecode: &Bytecode) -> bool {
    bytecode.source.iter().chain(&bytecode.steps).any(writes)
}

/// Whether a step or a nested traversal may change the graph.
pub(crate) fn writes(instruction: &Instruction) -> bool {
    // `read` belongs to `io`.
    is_write(&instruction.name)
        || &*instruction.name == "read"
        || instruction.arguments.iter().any(value_writes)
}

/// Whether the step itself changes the graph.
pub(crate) fn is_write(name: &str) -> bool {
    matches!(name, "addV" | "addE" | "property" | "drop" | "mergeV" | "mergeE")
}

fn value_writes(value: &Value) -> bool {
    match value {
        Value::Traversal(traversal) => mutates(traversal),
        Value::List(values) => values.iter().any(value_writes),
        Value::Map(map) => map.iter().any(|(key, value)| value_writes(key) || value_writes(value)),
        Value::Strategy(strategy) => strategy.options.iter().any(|(_, value)| value_writes(value)),
        _ => false,
    }
}

/// Whether the graph may be read after the step has produced its first output. Barriers complete all reads
/// before their first output.
pub(crate) fn reads_after_first_output(name: &str, before: bool) -> bool {
    match name {
        "inject" | "identity" | "constant" | "unfold" | "select" | "as" | "index" => before,
        "fold" | "count" | "sum" | "min" | "max" | "mean" | "order" | "barrier" | "cap" => false,
        name => before || !is_write(name),
    }
}

/// Appends the names of side effects that a step or a nested traversal writes to.
pub(crate) fn side_effects_written_by(step: &Instruction, names: &mut Vec<Arc<str>>) {
    let puts = matches!(&*step.name, "aggregate" | "store" | "group" | "groupCount" | "tree" | "subgraph");
    for argument in &step.arguments {
        match argument {
            Value::String(name) if puts => names.push(name.clone()),
            Value::Traversal(traversal) => {
                traversal.steps.iter().for_each(|step| side_effects_written_by(step, names))
            }
            _ => {}
        }
    }
}

/// Whether a traversal consumes all of its input before its first output.
pub(crate) fn gathers(value: &Value) -> bool {
    let Value::Traversal(traversal) = value else { return false };
    gathers_steps(traversal)
}

fn gathers_steps(traversal: &Bytecode) -> bool {
    traversal.steps.iter().any(|step| {
        let local =
            step.arguments.iter().any(|a| matches!(a, Value::Token(Token::Scope(s)) if s.name() == "local"));
        match &*step.name {
            "count" | "sum" | "min" | "max" | "mean" | "order" | "dedup" | "tail" | "sample" => !local,
            "fold" | "group" | "groupCount" | "tree" | "barrier" | "aggregate" | "cap" | "limit"
            | "range" => !local,
            "union" | "choose" | "branch" | "option" | "repeat" | "optional" | "local" => {
                step.arguments.iter().any(gathers)
            }
            _ => false,
        }
    })
}

/// Whether traversers are still at the source vertices after this step, so that they need no counting.
pub(crate) fn stays_at_source(name: &str) -> bool {
    matches!(name, "V" | "E" | "as" | "pageRank" | "peerPressure" | "connectedComponent")
}

/// Determines whether the steps need whole paths or labelled objects.
pub(crate) fn path_needs(bytecode: &Bytecode, settings: &mut Settings) {
    for instruction in bytecode.source.iter().chain(&bytecode.steps) {
        match &*instruction.name {
            "path" | "simplePath" | "cyclicPath" | "tree" | "otherV" | "withPath" => {
                settings.paths = true;
            }
            "as" | "match" => settings.labels = true,
            _ => {}
        }
        instruction.arguments.iter().for_each(|argument| argument_needs(argument, settings));
    }
}

fn argument_needs(value: &Value, settings: &mut Settings) {
    match value {
        Value::Traversal(traversal) => path_needs(traversal, settings),
        Value::Strategy(strategy) => {
            strategy.options.iter().for_each(|(_, value)| argument_needs(value, settings));
        }
        Value::List(values) => values.iter().for_each(|value| argument_needs(value, settings)),
        Value::Map(map) => map.values().for_each(|value| argument_needs(value, settings)),
        _ => {}
    }
}
