//! Graph algorithm steps: `pageRank`, `peerPressure`, `connectedComponent`, `shortestPath`.
//!
//! # Shape
//! * this file: the first three algorithms, which compute a property of each vertex for the rest
//!   of the traversal.
//! * `edges`: the edges of an algorithm; edges by label are read from segments in bulk, other edges by a
//!   traversal per vertex.
//! * `options`: the options of the steps.
//! * `paths`: `shortestPath`, whose output traversers are paths.
//! # Source
//! Behaviour and messages are those of Apache TinkerPop 3.8.1. There a traversal with these steps needs
//! `withComputer()`; here that has no effect.

mod edges;
mod options;
mod paths;

use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::graph::ids::vertex_id;
use crate::modulated::Modulated;
use crate::semantic::text_of;
use crate::step::Step;
use crate::steps::make;
use crate::traverser::Traverser;
use edges::limits;
use options::Options;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vervet_graph::algorithm::{
    Follow, Network, PageRank, PeerPressure, components, name_order, page_rank, peer_pressure,
};
use vervet_gremlin::Value;
use vervet_model::{Id, Result};

/// Accounted size of a computed value, in bytes.
const COMPUTED_BYTES: u64 = 64;

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    if compiler.is_nested() {
        let message = format!("{}() cannot be nested in another step", step.name());
        return Err(query_error(message).with_hint("move it to the root traversal"));
    }
    match step.name() {
        "pageRank" => rank(step, compiler),
        "peerPressure" => pressure(step, compiler),
        "connectedComponent" => component(step, compiler),
        _ => paths::build(step, compiler),
    }
}

/// The number of traversers at each vertex.
fn counts(all: &[Traverser], network: &Network) -> Vec<f64> {
    let mut counts = vec![0.0; network.len()];
    for traverser in all {
        if let Value::Vertex(vertex) = &traverser.value
            && let Some(place) = network.index(Id::from_bits(vertex.key))
        {
            counts[place] += traverser.bulk.get() as f64;
        }
    }
    counts
}

/// Sets the computed property `key` of each vertex.
fn put(
    key: &Arc<str>,
    network: &Network,
    values: impl Iterator<Item = Value>,
    context: &mut Context<'_>,
) -> Result<()> {
    context.control.grow(COMPUTED_BYTES * network.len() as u64)?;
    let values: FxHashMap<u64, Value> =
        network.vertices().iter().map(|vertex| vertex.bits()).zip(values).collect();
    context.names.computed.put(key, values);
    Ok(())
}

fn rank(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let options = Options::of(step, "PageRank", &["times", "edges", "propertyName"])?;
    let key = options.property("gremlin.pageRankVertexProgram.pageRank")?;
    let mut how = PageRank::default();
    how.times = options.times(how.times)?;
    if let Some(alpha) = step.arguments().first() {
        how.alpha = crate::semantic::to_f64(alpha)
            .ok_or_else(|| query_error("the alpha of pageRank() must be a number"))?;
    }
    let mut arcs = options.arcs(Follow::Out, compiler)?;
    let counted = compiler.walked;
    Ok(make::barrier(move |all, context| {
        let network = arcs.network(context)?;
        let first = counted.then(|| counts(&all, &network));
        let ranks = page_rank(&network, &how, first.as_deref(), &limits(context))?;
        put(&key, &network, ranks.into_iter().map(Value::Double), context)?;
        Ok(all)
    }))
}

fn pressure(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let options = Options::of(step, "PeerPressure", &["times", "edges", "propertyName"])?;
    let key = options.property("gremlin.peerPressureVertexProgram.cluster")?;
    let mut how = PeerPressure::default();
    how.times = options.times(how.times)?;
    let mut arcs = options.arcs(Follow::Out, compiler)?;
    let counted = compiler.walked;
    Ok(make::barrier(move |all, context| {
        let network = arcs.network(context)?;
        let strengths = counted.then(|| counts(&all, &network));
        let (ids, order) = named(&network, context)?;
        let clusters = peer_pressure(&network, &how, strengths.as_deref(), &order, &limits(context))?;
        put(&key, &network, clusters.into_iter().map(|vertex| ids[vertex as usize].clone()), context)?;
        Ok(all)
    }))
}

fn component(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let options = Options::of(step, "ConnectedComponent", &["edges", "propertyName"])?;
    let key = options.property("gremlin.connectedComponentVertexProgram.component")?;
    let mut arcs = options.arcs(Follow::Both, compiler)?;
    Ok(make::barrier(move |all, context| {
        let network = arcs.network(context)?;
        let (ids, order) = named(&network, context)?;
        let found = components(&network, &order, &limits(context))?;
        let name = |vertex: u32| Value::text(text_of(&ids[vertex as usize]));
        put(&key, &network, found.into_iter().map(name), context)?;
        Ok(all)
    }))
}

/// The ids of all vertices, and their rank in text order.
fn named(network: &Network, context: &mut Context<'_>) -> Result<(Vec<Value>, Vec<u32>)> {
    let limits = limits(context);
    limits.control.grow(COMPUTED_BYTES * network.len() as u64)?;
    let mut ids = Vec::with_capacity(network.len());
    let order = context.read(|snapshot, _| {
        ids.clear();
        let name = &mut |vertex| {
            let id = vertex_id(snapshot, vertex)?;
            let text = text_of(&id);
            ids.push(id);
            Ok(text)
        };
        name_order(network.vertices(), name, &limits)
    })?;
    Ok((ids, order))
}
