//! `mergeE`: the edges that match a map, or a new edge.

use super::argument::{WriteArgument, legal_key};
use super::element::{find_vertex, put_on_owner};
use super::merge::{ElementFinder, ID, IN, LABEL, MergeKind, Merging, OUT, split};
use super::writing::writing;
use crate::compile::Compiler;
use crate::condition::Condition;
use crate::context::Context;
use crate::error::query_error;
use crate::graph::between::edges_between;
use crate::graph::read::{edge_value, vertex_value};
use crate::host::Owner;
use crate::modulated::Modulated;
use crate::semantic::error_text;
use crate::step::Step;
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Cardinality, Comparison, EdgeKey, Instruction, Map, Merge, P, Token, Value};
use vervet_model::Result;

const EDGE_LABEL: &str = "edge";

pub(super) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let mut merging = Merging::build(MergeKind::Edge, step, compiler)?;
    Ok(writing(move |traverser, context, out| {
        let said = merging.search(traverser, context)?;
        let mut search = said.clone();
        resolve(&mut merging, &mut search, traverser, context)?;
        let found = edges_like(&search, merging.finder, context)?;
        for edge in &found {
            let mut owner = Owner::Edge(*edge);
            // onMatch is evaluated on the matched element.
            for (key, value) in merging.matched(&traverser.at(edge_value(*edge)), context)? {
                let (value, _) = split(value, Cardinality::Single);
                owner = put_on_owner(owner, &key, &value, context)?;
            }
            if let Owner::Edge(edge) = owner {
                out.push_back(edge_value(edge));
            }
        }
        if !found.is_empty() {
            return Ok(());
        }
        let mut map = match merging.create(&said, traverser, context)? {
            Some(mut map) => {
                map.extend(search);
                resolve(&mut merging, &mut map, traverser, context)?;
                map
            }
            None => search,
        };
        let mut end = |key: &Value, name: &str, context: &mut Context<'_>| {
            let Some(vertex) = map.shift_remove(key) else {
                let message = format!("{name} Vertex not specified in onCreate - edge cannot be created");
                return Err(query_error(message));
            };
            find_vertex(&vertex, context)?.ok_or_else(|| {
                let vertex = error_text(&vertex);
                query_error(format!("Vertex id could not be resolved from mergeE: {vertex}"))
            })
        };
        let (source, target) = (end(&OUT, "Out", context)?, end(&IN, "In", context)?);
        let id = map.shift_remove(&ID);
        let label: Arc<str> = match map.shift_remove(&LABEL) {
            Some(Value::String(label)) => label,
            _ => EDGE_LABEL.into(),
        };
        let edge = context.host.add_edge(source, &label, target, id.as_ref())?;
        for (key, value) in map {
            let (value, _) = split(value, Cardinality::Single);
            put_on_owner(Owner::Edge(edge), &legal_key(key)?, &value, context)?;
        }
        out.push_back(edge_value(edge));
        Ok(())
    }))
}

/// Replaces the option names in a map by vertices.
fn resolve(
    merging: &mut Merging,
    map: &mut Map,
    traverser: &Traverser,
    context: &mut Context<'_>,
) -> Result<()> {
    for (key, token, direction) in [(OUT, Merge::OutV, "OUT"), (IN, Merge::InV, "IN")] {
        if map.get(&key) != Some(&Value::Token(Token::Merge(token))) {
            continue;
        }
        let finder = merging.finder;
        let given = match token {
            Merge::OutV => merging.out_vertex.as_mut(),
            _ => merging.in_vertex.as_mut(),
        };
        let Some(given) = given else {
            return Err(query_error(format!(
                "option({}) must be specified if it is used for {direction}",
                token.name()
            )));
        };
        let vertex = vertex_of(given, token, finder, traverser, context)?;
        map.insert(key, vertex);
    }
    Ok(())
}

/// The vertex of `option(outV, …)`: a vertex, or the first match of a map.
fn vertex_of(
    given: &mut WriteArgument,
    token: Merge,
    finder: ElementFinder,
    traverser: &Traverser,
    context: &mut Context<'_>,
) -> Result<Value> {
    match given.get(traverser, context)? {
        vertex @ Value::Vertex(_) => Ok(vertex),
        Value::Map(map) => finder
            .vertices_like(&map, context)?
            .into_iter()
            .next()
            .ok_or_else(|| query_error(format!("Could not resolve vertex for option({})", token.name()))),
        other => {
            let other = error_text(&other);
            Err(query_error(format!("Vertex could not be resolved from mergeE: {other}")))
        }
    }
}

/// The edges that match a map.
fn edges_like(map: &Map, finder: ElementFinder, context: &mut Context<'_>) -> Result<Vec<EdgeKey>> {
    let mut ends = [None; 2];
    for (end, key) in ends.iter_mut().zip([&OUT, &IN]) {
        if let Some(vertex) = map.get(key) {
            match find_vertex(vertex, context)? {
                Some(vertex) => *end = Some(vertex),
                // A missing vertex has no edges.
                None => return Ok(Vec::new()),
            }
        }
    }
    let labels: Vec<Value> = map.get(&LABEL).cloned().into_iter().collect();
    if let (None, [Some(source), Some(target)]) = (map.get(&ID), ends) {
        return between(source, target, map, context);
    }
    let edges = |name: &str| Instruction::new(name, labels.clone());
    let start = |vertex: u64| Instruction::new("V", vec![vertex_value(vertex)]);
    let steps = match (map.get(&ID), ends) {
        (Some(id), _) => {
            let mut steps = vec![Instruction::new("E", vec![id.clone()])];
            if !labels.is_empty() {
                steps.push(edges("hasLabel"));
            }
            steps
        }
        (None, [Some(source), _]) => vec![start(source), edges("outE")],
        (None, [None, Some(target)]) => vec![start(target), edges("inE")],
        (None, [None, None]) => {
            let mut steps = vec![Instruction::new("E", Vec::new())];
            if !labels.is_empty() {
                steps.push(edges("hasLabel"));
            }
            steps
        }
    };
    let found = finder.by_steps(steps, map, context)?.into_iter().filter_map(|value| match value {
        Value::Edge(edge) => Some(edge.key),
        _ => None,
    });
    let [source, target] = ends;
    Ok(found
        .filter(|edge| {
            source.is_none_or(|key| key == edge.source) && target.is_none_or(|key| key == edge.target)
        })
        .collect())
}

/// The matching edges between two known vertices.
fn between(source: u64, target: u64, map: &Map, context: &mut Context<'_>) -> Result<Vec<EdgeKey>> {
    let labels: Vec<Arc<str>> = match map.get(&LABEL) {
        Some(Value::String(label)) => vec![label.clone()],
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    context.read(|snapshot, names| {
        found.clear();
        edges_between(snapshot, names, [source, target], &labels, &mut found)
    })?;
    for (key, value) in map {
        let Value::String(key) = key else { continue };
        let (value, _) = split(value.clone(), Cardinality::Single);
        let test = match value {
            Value::P(test) => test.as_ref().clone(),
            value => P::Compare(Comparison::Eq, value),
        };
        let mut condition = Condition::Property(key.clone(), test);
        let mut kept = Vec::with_capacity(found.len());
        for edge in found {
            if condition.test(&Traverser::new(edge_value(edge)), context)? {
                kept.push(edge);
            }
        }
        found = kept;
    }
    Ok(found)
}
