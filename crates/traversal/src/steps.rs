//! Builders of the steps, one file per step family.

pub(crate) mod algorithm;
pub(crate) mod branch;
mod call;
pub(crate) mod collect;
mod entries;
pub(crate) mod filter;
pub(crate) mod fused;
pub(crate) mod group;
pub(crate) mod has;
mod io;
pub(crate) mod make;
pub(crate) mod numbers;
pub(crate) mod order;
pub(crate) mod pattern;
pub(crate) mod property;
pub(crate) mod query;
pub(crate) mod range;
pub(crate) mod repeat;
mod scalar;
pub(crate) mod select;
pub(crate) mod start;
mod subquery;
pub(crate) mod transform;
pub(crate) mod walk;
pub(crate) mod write;

use crate::analysis::is_write;
use crate::compile::Compiler;
use crate::error::query_error;
use crate::modulated::Modulated;
use crate::step::Node;
use vervet_gremlin::{Instruction, Value};
use vervet_model::Result;

/// Appends the nodes of a step to `nodes`.
pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler, nodes: &mut Vec<Node>) -> Result<()> {
    let built = match step.name() {
        "V" | "E" | "inject" => start::build(step, nodes.is_empty(), compiler)?,
        "out" | "in" | "both" | "outE" | "inE" | "bothE" | "outV" | "inV" | "bothV" | "otherV" | "to"
        | "toE" | "toV" => walk::build(step, compiler)?,
        "has" | "hasLabel" | "hasId" | "hasKey" | "hasValue" | "hasNot" => {
            return has::build(step, compiler, nodes);
        }
        "values" | "properties" | "propertyMap" | "valueMap" | "elementMap" | "id" | "label" | "key"
        | "value" | "element" => property::build(step, compiler)?,
        "filter" | "where" | "is" | "not" | "and" | "or" | "coin" | "simplePath" | "cyclicPath"
        | "discard" | "none" | "all" | "any" | "timeLimit" => filter::build(step, compiler)?,
        "range" | "limit" | "skip" | "tail" => range::build(step, compiler)?,
        "select" | "path" | "project" | "loops" => select::build(step, compiler)?,
        "identity" | "constant" | "map" | "flatMap" | "local" | "unfold" | "fold" | "sideEffect"
        | "index" => transform::build(step, compiler)?,
        "count" if numbers::replace_by_count(step, nodes, compiler) => return Ok(()),
        "count" | "sum" | "min" | "max" | "mean" => numbers::build(step)?,
        "union" | "coalesce" | "optional" | "choose" | "branch" => branch::build(step, compiler)?,
        "order" | "dedup" | "sample" | "barrier" => order::build(step, compiler)?,
        "group" | "groupCount" | "aggregate" | "store" | "cap" | "tree" | "subgraph" | "sack" => {
            collect::build(step, compiler)?
        }
        "length" | "toUpper" | "toLower" | "trim" | "lTrim" | "rTrim" | "replace" | "split" | "substring"
        | "asString" | "asBool" | "asNumber" | "asDate" | "dateAdd" | "dateDiff" | "concat" | "format"
        | "math" | "reverse" | "conjoin" | "combine" | "difference" | "disjunct" | "intersect" | "merge"
        | "product" => scalar::build(step, compiler)?,
        name if is_write(name) => return write::build(step, compiler, nodes),
        "match" => pattern::build(step, compiler)?,
        "call" | "fail" => call::build(step, compiler)?,
        "repeat" => repeat::build(step, compiler)?,
        "pageRank" | "peerPressure" | "connectedComponent" | "shortestPath" => {
            algorithm::build(step, compiler)?
        }
        "io" => io::build(step, nodes.is_empty(), compiler)?,
        name => return Err(query_error(format!("the step {name}() is not supported"))),
    };
    compiler.strategies.check_walk(step)?;
    nodes.push(compiler.node(built));
    compiler.fuse_last(nodes);
    match compiler.strategies.partition.clone() {
        Some(partition) if finds_elements(step) => {
            let test =
                Instruction::new("has", vec![Value::String(partition.key.clone()), partition.read().into()]);
            has::build(&Modulated::new(&test), compiler, nodes)
        }
        _ => Ok(()),
    }
}

/// Whether a step outputs vertices or edges of the graph, which `PartitionStrategy` filters.
fn finds_elements(step: &Modulated<'_>) -> bool {
    matches!(
        step.name(),
        "V" | "E"
            | "out"
            | "in"
            | "both"
            | "outE"
            | "inE"
            | "bothE"
            | "outV"
            | "inV"
            | "bothV"
            | "otherV"
            | "to"
            | "toE"
            | "toV"
    )
}
