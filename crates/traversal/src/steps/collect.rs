//! Side-effect steps: `group`, `groupCount`, `aggregate`, `cap`, `tree`, `subgraph`, `sack`.
//!
//! # Shape
//! A side effect is a named value. Steps with its name add to it and pass the traverser on; `cap` returns it.

use super::group::Grouped;
use super::make;
use super::transform::{operate, operate_times};
use crate::bulk::Bulk;
use crate::by::By;
use crate::collection_index::{CollectionIndex, TreeIndex};
use crate::compile::Compiler;
use crate::context::{Context, SideEffect};
use crate::error::query_error;
use crate::memory::{Reservation, TRAVERSER_BYTES};
use crate::modulated::Modulated;
use crate::semantic::{add_counts, map_error};
use crate::size;
use crate::step::Step;
use crate::traverser::Traverser;
use indexmap::IndexMap;
use std::sync::Arc;
use vervet_gremlin::semantics::number::counted;
use vervet_gremlin::semantics::operator::add_to_bag;
use vervet_gremlin::{Bulk as BulkSet, Hashing, Map, Operator, Scope, Subgraph, Token, Tree, Value, Vertex};
use vervet_model::Result;

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let name = step.texts().into_iter().next();
    if let Some(name) = &name {
        let empty = match step.name() {
            "group" | "groupCount" => Some(Value::map(Map::default())),
            "aggregate" | "store" => Some(BulkSet::default().into()),
            "tree" => Some(Tree::default().into()),
            "subgraph" => Some(Value::Subgraph(Arc::new(Subgraph::default()))),
            _ => None,
        };
        compiler.side_effects.extend(empty.map(|empty| (name.clone(), empty)));
    }
    Ok(match (step.name(), name) {
        ("group", name) => group(step, name, compiler)?,
        ("groupCount", name) => group_count(name, compiler.bys(step)?),
        ("aggregate" | "store", Some(name)) => {
            let lazy = step.name() == "store"
                || step.arguments().iter().any(|a| matches!(a, Value::Token(Token::Scope(Scope::Local))));
            aggregate(name, lazy, compiler.bys(step)?)
        }
        ("cap", Some(_)) => cap(step.texts()),
        ("tree", name) => tree(name, compiler.bys(step)?),
        ("subgraph", Some(name)) => subgraph(name),
        ("sack", _) => sack(step, compiler.bys(step)?),
        _ => {
            let message = format!("{}() does not take these arguments", step.name());
            return Err(query_error(message));
        }
    })
}

/// The side effect of this name, created if missing.
fn side_effect<'c>(
    context: &'c mut Context<'_>,
    name: &Arc<str>,
    first: impl FnOnce() -> Value,
) -> &'c mut SideEffect {
    context.side_effects.entry(name.clone()).or_insert_with(|| SideEffect { value: first(), operator: None })
}

fn aggregate(name: Arc<str>, lazy: bool, mut by: Vec<By>) -> Box<dyn Step> {
    let (mut by_all, put_to) = (by.clone(), name.clone());
    let mut add = move |traverser: &Traverser, context: &mut Context<'_>| -> Result<()> {
        let value = match by.first_mut() {
            None => Some(traverser.value.clone()),
            Some(by) => by.apply(traverser, context)?,
        };
        let Some(value) = value else { return Ok(()) };
        put_to_collection(&put_to, value, traverser.bulk, context)
    };
    if lazy {
        return make::with_each(move |traverser, context| {
            add(&traverser, context)?;
            Ok(Some(traverser))
        });
    }
    make::barrier(move |all, context| {
        let assigns = context.side_effects.get(&name).is_some_and(|found| {
            let is_collection = matches!(found.value, Value::List(_) | Value::Set(_) | Value::Bulk(_));
            is_collection && found.operator.is_some_and(|operator| operator != Operator::AddAll)
        });
        if assigns {
            // The operator receives all values together.
            let (mut values, mut held) = (Vec::new(), Reservation::default());
            for traverser in &all {
                let value = match by_all.first_mut() {
                    None => Some(traverser.value.clone()),
                    Some(by) => by.apply(traverser, context)?,
                };
                if let Some(value) = value {
                    context.expand(&value, traverser.bulk.get(), &mut values, &mut held)?;
                }
            }
            let found = side_effect(context, &name, || Value::Null);
            found.value =
                operate(found.operator.unwrap_or(Operator::Assign), &found.value, &Value::list(values))?;
            return Ok(all);
        }
        for traverser in &all {
            add(traverser, context)?;
        }
        Ok(all)
    })
}

/// Adds a value to a side effect, repeated by its bulk.
fn put_to_collection(name: &Arc<str>, value: Value, bulk: Bulk, context: &mut Context<'_>) -> Result<()> {
    let found = side_effect(context, name, || BulkSet::default().into());
    let operator = found.operator;
    // Takes the value out to own it exclusively.
    let mut all = std::mem::take(&mut found.value);
    let put = match (&mut all, operator) {
        (Value::Bulk(all), None | Some(Operator::AddAll)) => {
            let all = Arc::make_mut(all);
            let kept = if all.contains_key(&value) { Ok(()) } else { context.keep(&value) };
            kept.and_then(|()| map_error(add_to_bag(all, value, bulk.get())))
        }
        (Value::List(all), None | Some(Operator::AddAll)) => {
            let mut held = Reservation::default();
            let put = context.expand(&value, bulk.get(), Arc::make_mut(all), &mut held);
            // The value lives until the traversal ends.
            held.keep();
            put
        }
        (Value::Set(all), None | Some(Operator::AddAll)) => {
            let kept = if all.contains(&value) { Ok(()) } else { context.keep(&value) };
            Arc::make_mut(all).insert(value);
            kept
        }
        (before, operator) => {
            let before = std::mem::take(before);
            let operator = operator.unwrap_or(Operator::AddAll);
            operate_times(operator, before, &value, bulk, context).and_then(|after| {
                context.keep(&value)?;
                all = after;
                Ok(())
            })
        }
    };
    side_effect(context, name, || Value::Null).value = all;
    put
}

fn cap(names: Vec<Arc<str>>) -> Box<dyn Step> {
    make::reduce(
        |_: &mut (), _, _, _| Ok(()),
        move |(), context| {
            let mut found = Map::default();
            for name in &names {
                match context.side_effects.get(name) {
                    Some(side_effect) => {
                        found.insert(Value::String(name.clone()), side_effect.value.clone());
                    }
                    None if names.len() == 1 => {
                        // No traverser has arrived: an empty bag.
                        found.insert(Value::String(name.clone()), BulkSet::default().into());
                    }
                    None => {}
                }
            }
            Ok(Some(match (names.len(), found.pop()) {
                (1, Some((_, value))) => value,
                (_, last) => {
                    found.extend(last);
                    Value::map(found)
                }
            }))
        },
    )
}

fn group_count(name: Option<Arc<str>>, mut by: Vec<By>) -> Box<dyn Step> {
    let mut key_of = move |traverser: &Traverser, context: &mut Context<'_>| match by.first_mut() {
        None => Ok(Some(traverser.value.clone())),
        Some(by) => by.apply(traverser, context),
    };
    match name {
        None => make::reduce(
            move |counts: &mut IndexMap<Value, u128, Hashing>, traverser, held, context| {
                let Some(key) = key_of(&traverser, context)? else { return Ok(()) };
                if !counts.contains_key(&key) {
                    held.add(TRAVERSER_BYTES + size::bytes(&key, context.control)?, &context.memory)?;
                }
                *counts.entry(key).or_insert(0) += traverser.bulk.wide();
                Ok(())
            },
            |counts, _| {
                let counts = counts.into_iter().map(|(key, count)| (key, counted(count)));
                Ok(Some(Value::map(counts.collect())))
            },
        ),
        Some(name) => make::barrier(move |all, context| {
            for traverser in &all {
                if let Some(key) = key_of(traverser, context)? {
                    let Value::Map(map) = &side_effect(context, &name, || Value::map(Map::default())).value
                    else {
                        continue;
                    };
                    if !map.contains_key(&key) {
                        context.keep(&key)?;
                    }
                    if let Value::Map(map) = &mut side_effect(context, &name, || Value::Null).value {
                        let count = Arc::make_mut(map).entry(key).or_insert(Value::Long(0));
                        *count = add_counts(count, &counted(traverser.bulk.wide()))?;
                    }
                }
            }
            Ok(all)
        }),
    }
}

/// Whether a traversal depends only on numeric values and their multiplicities.
fn is_sum(value: &Value) -> bool {
    let Value::Traversal(traversal) = value else { return false };
    match traversal.steps.as_slice() {
        [step] => {
            matches!(&*step.name, "sum" | "count" | "min" | "max" | "mean") && step.arguments.is_empty()
        }
        _ => false,
    }
}

fn group(step: &Modulated<'_>, name: Option<Arc<str>>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let mut by = compiler.bys(step)?.into_iter();
    let mut key = by.next().unwrap_or(By::Identity);
    let mut each = match (by.next(), step.bys.get(1).and_then(|by| by.arguments.first())) {
        (
            Some(
                By::Traversal(members)
                | By::Values { otherwise: members, .. }
                | By::Selected { steps: members, .. },
            ),
            members_of,
        ) => {
            let counts = members_of.is_some_and(is_sum);
            return Ok(Box::new(Grouped::new(key, members, name, counts)));
        }
        (Some(by), _) => by,
        (None, _) => By::Identity,
    };
    let mut add = move |groups: &mut Map,
                        traverser: &Traverser,
                        held: &mut Reservation,
                        context: &mut Context<'_>|
          -> Result<()> {
        let Some(key) = key.apply(traverser, context)? else { return Ok(()) };
        let value = each.apply(traverser, context)?;
        if !groups.contains_key(&key) {
            held.add(TRAVERSER_BYTES + size::bytes(&key, context.control)?, &context.memory)?;
        }
        let group = groups.entry(key).or_insert_with(|| Value::list(Vec::new()));
        if let (Value::List(all), Some(value)) = (group, value) {
            context.expand(&value, traverser.bulk.get(), Arc::make_mut(all), held)?;
        }
        Ok(())
    };
    Ok(match name {
        None => make::reduce(
            move |groups: &mut Map, traverser, held, context| add(groups, &traverser, held, context),
            |groups, _| Ok(Some(Value::map(groups))),
        ),
        Some(name) => make::barrier(move |all, context| {
            let mut groups = match &mut side_effect(context, &name, || Value::map(Map::default())).value {
                Value::Map(map) => std::mem::take(Arc::make_mut(map)),
                _ => Map::default(),
            };
            let mut held = Reservation::default();
            let added = all.iter().try_for_each(|traverser| add(&mut groups, traverser, &mut held, context));
            // The values live until the traversal ends.
            held.keep();
            side_effect(context, &name, || Value::Null).value = Value::map(groups);
            added.map(|()| all)
        }),
    })
}

fn tree(name: Option<Arc<str>>, mut by: Vec<By>) -> Box<dyn Step> {
    let mut values_of = move |traverser: &Traverser, context: &mut Context<'_>| -> Result<Vec<Value>> {
        let objects = traverser.path().objects;
        context.control.work(objects.len())?;
        if by.is_empty() {
            return Ok(objects);
        }
        let (mut values, count) = (Vec::with_capacity(objects.len()), by.len());
        for (i, object) in objects.into_iter().enumerate() {
            values.extend(by[i % count].of(&object, traverser, context)?);
        }
        Ok(values)
    };
    match name {
        None => make::reduce(
            move |(tree, index): &mut (Tree, TreeIndex), traverser, held, context| {
                let values = values_of(&traverser, context)?;
                index.add(tree, values, held, &context.memory)
            },
            |(tree, _), _| Ok(Some(tree.into())),
        ),
        Some(name) => make::barrier(move |all, context| {
            let mut tree = match &mut side_effect(context, &name, || Tree::default().into()).value {
                Value::Tree(tree) => std::mem::take(Arc::make_mut(tree)),
                _ => Tree::default(),
            };
            let mut index = match context.collection_indexes.remove(&name) {
                Some(CollectionIndex::Tree(index)) => index,
                _ => TreeIndex::of_tree(&tree),
            };
            let mut held = Reservation::default();
            let added = all.iter().try_for_each(|traverser| {
                let values = values_of(traverser, context)?;
                index.add(&mut tree, values, &mut held, &context.memory)
            });
            // The values live until the traversal ends.
            held.keep();
            context.collection_indexes.insert(name.clone(), CollectionIndex::Tree(index));
            side_effect(context, &name, || Value::Null).value = tree.into();
            added.map(|()| all)
        }),
    }
}

fn subgraph(name: Arc<str>) -> Box<dyn Step> {
    make::barrier(move |all, context| {
        let empty = || Value::Subgraph(Arc::new(Subgraph::default()));
        let Value::Subgraph(graph) = &mut side_effect(context, &name, empty).value else { return Ok(all) };
        let mut graph = std::mem::take(Arc::make_mut(graph));
        let (mut vertices, mut edges) = match context.collection_indexes.remove(&name) {
            Some(CollectionIndex::Subgraph { vertices, edges }) => (vertices, edges),
            _ => (graph.vertices.iter().cloned().collect(), graph.edges.iter().cloned().collect()),
        };
        let mut added = Ok(());
        for traverser in &all {
            let Value::Edge(edge) = &traverser.value else { continue };
            for vertex in [edge.key.source, edge.key.target].map(Vertex::from_key) {
                if added.is_ok() && vertices.insert(vertex.clone()) {
                    added = context.keep(&Value::Null);
                    graph.vertices.push(vertex);
                }
            }
            if added.is_ok() && edges.insert(edge.clone()) {
                added = context.keep(&traverser.value);
                graph.edges.push(edge.clone());
            }
            added = added.and_then(|()| context.tick());
            if added.is_err() {
                break;
            }
        }
        context.collection_indexes.insert(name.clone(), CollectionIndex::Subgraph { vertices, edges });
        side_effect(context, &name, empty).value = Value::Subgraph(Arc::new(graph));
        added.map(|()| all)
    })
}

fn sack(step: &Modulated<'_>, mut by: Vec<By>) -> Box<dyn Step> {
    let operator = step.arguments().iter().find_map(|argument| match argument {
        Value::Token(Token::Operator(operator)) => Some(*operator),
        _ => None,
    });
    let Some(operator) = operator else {
        return make::map(|traverser, _| Ok(Some(traverser.sack.as_deref().cloned().unwrap_or_default())));
    };
    make::with_each(move |mut traverser, context| {
        let value = match by.first_mut() {
            None => Some(traverser.value.clone()),
            Some(by) => by.apply(&traverser, context)?,
        };
        let Some(value) = value else { return Ok(None) };
        let next = match (&traverser.sack, operator) {
            (None, _) => value,
            (Some(sack), operator) => operate(operator, sack, &value)?,
        };
        traverser.sack = Some(Box::new(next));
        Ok(Some(traverser))
    })
}
