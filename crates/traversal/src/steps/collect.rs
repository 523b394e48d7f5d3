//! `group`, `groupCount`, `aggregate`, `cap`, `tree`, `subgraph`, `sack`: values gathered on the way.
//!
//! # Shape
//! A side effect is a value under a name. Steps with a name put to it and let the traverser through; `cap` gives it.

use super::group::Grouped;
use super::make;
use super::transform::operate;
use crate::by::By;
use crate::compile::{Compiler, Modulated};
use crate::context::{Context, SideEffect};
use crate::step::Step;
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Bulk, Instruction, Map, Operator, Scope, Subgraph, Token, Tree, Value, Vertex};
use vervet_model::Result;

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let name = step.texts().into_iter().next();
    if let Some(name) = &name {
        let empty = match step.name() {
            "group" | "groupCount" => Some(Value::map(Map::default())),
            "aggregate" | "store" => Some(Bulk::default().into()),
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
            return Err(compiler.error(step.instruction, message));
        }
    })
}

/// Appends the names that a step puts to, or a traversal in it.
pub(crate) fn puts_of(step: &Instruction, names: &mut Vec<Arc<str>>) {
    let puts = matches!(&*step.name, "aggregate" | "store" | "group" | "groupCount" | "tree" | "subgraph");
    for argument in &step.arguments {
        match argument {
            Value::String(name) if puts => names.push(name.clone()),
            Value::Traversal(traversal) => traversal.steps.iter().for_each(|step| puts_of(step, names)),
            _ => {}
        }
    }
}

/// The side effect of this name, made if it is not there.
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
        context.hold(1)?;
        let bulk = traverser.bulk;
        let side_effect = side_effect(context, &put_to, || Bulk::default().into());
        match (&mut side_effect.value, side_effect.operator) {
            (Value::Bulk(all), None | Some(Operator::AddAll)) => {
                *Arc::make_mut(all).entry(value).or_insert(0) += bulk;
            }
            (Value::List(all), None | Some(Operator::AddAll)) => {
                let all = Arc::make_mut(all);
                all.extend((0..bulk).map(|_| value.clone()));
            }
            (Value::Set(all), None | Some(Operator::AddAll)) => {
                Arc::make_mut(all).insert(value);
            }
            (all, operator) => {
                for _ in 0..bulk {
                    *all = operate(operator.unwrap_or(Operator::AddAll), all, &value)?;
                }
            }
        }
        Ok(())
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
            // The operator gets all values at once.
            let mut values = Vec::new();
            for traverser in &all {
                let value = match by_all.first_mut() {
                    None => Some(traverser.value.clone()),
                    Some(by) => by.apply(traverser, context)?,
                };
                context.hold(1)?;
                values.extend(
                    value.into_iter().flat_map(|value| (0..traverser.bulk).map(move |_| value.clone())),
                );
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

fn cap(names: Vec<Arc<str>>) -> Box<dyn Step> {
    make::reduce(
        |_: &mut (), _, _| Ok(()),
        move |(), context| {
            let mut found = Map::default();
            for name in &names {
                match context.side_effects.get(name) {
                    Some(side_effect) => {
                        found.insert(Value::String(name.clone()), side_effect.value.clone());
                    }
                    None if names.len() == 1 => {
                        // Nothing has come by: an empty bag.
                        found.insert(Value::String(name.clone()), Bulk::default().into());
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
    let count = |map: &mut Map, key: Value, bulk: u64| {
        let long = i64::try_from(bulk).unwrap_or(i64::MAX);
        match map.entry(key).or_insert(Value::Long(0)) {
            Value::Long(count) => *count = count.saturating_add(long),
            other => *other = Value::Long(other.as_integer().unwrap_or(0).saturating_add(long)),
        }
    };
    match name {
        None => make::reduce(
            move |map: &mut Map, traverser, context| {
                if let Some(key) = key_of(&traverser, context)? {
                    context.hold(1)?;
                    count(map, key, traverser.bulk);
                }
                Ok(())
            },
            |map, _| Ok(Some(Value::map(map))),
        ),
        Some(name) => make::barrier(move |all, context| {
            for traverser in &all {
                if let Some(key) = key_of(traverser, context)? {
                    context.hold(1)?;
                    let bulk = traverser.bulk;
                    let side_effect = side_effect(context, &name, || Value::map(Map::default()));
                    if let Value::Map(map) = &mut side_effect.value {
                        count(Arc::make_mut(map), key, bulk);
                    }
                }
            }
            Ok(all)
        }),
    }
}

/// Whether a traversal asks traversers for nothing but numbers, and how often each is there.
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
    let mut add = move |groups: &mut Map, traverser: &Traverser, context: &mut Context<'_>| -> Result<()> {
        let Some(key) = key.apply(traverser, context)? else { return Ok(()) };
        let value = each.apply(traverser, context)?;
        context.hold(1)?;
        let group = groups.entry(key).or_insert_with(|| Value::list(Vec::new()));
        if let (Value::List(all), Some(value)) = (group, value) {
            let all = Arc::make_mut(all);
            all.extend((0..traverser.bulk).map(|_| value.clone()));
        }
        Ok(())
    };
    Ok(match name {
        None => make::reduce(
            move |groups: &mut Map, traverser, context| add(groups, &traverser, context),
            |groups, _| Ok(Some(Value::map(groups))),
        ),
        Some(name) => make::barrier(move |all, context| {
            let mut groups = match &mut side_effect(context, &name, || Value::map(Map::default())).value {
                Value::Map(map) => std::mem::take(Arc::make_mut(map)),
                _ => Map::default(),
            };
            for traverser in &all {
                add(&mut groups, traverser, context)?;
            }
            side_effect(context, &name, || Value::Null).value = Value::map(groups);
            Ok(all)
        }),
    })
}

fn tree(name: Option<Arc<str>>, mut by: Vec<By>) -> Box<dyn Step> {
    let mut add = move |tree: &mut Tree, traverser: &Traverser, context: &mut Context<'_>| -> Result<()> {
        let mut at = tree;
        for (i, object) in traverser.path().objects.into_iter().enumerate() {
            let object = match by.len() {
                0 => object,
                count => match by[i % count].of(&object, traverser, context)? {
                    Some(value) => value,
                    None => continue,
                },
            };
            let place = match at.children.iter().position(|(value, _)| *value == object) {
                Some(place) => place,
                None => {
                    context.hold(1)?;
                    at.children.push((object, Tree::default()));
                    at.children.len() - 1
                }
            };
            at = &mut at.children[place].1;
        }
        Ok(())
    };
    match name {
        None => make::reduce(
            move |tree: &mut Tree, traverser, context| add(tree, &traverser, context),
            |tree, _| Ok(Some(tree.into())),
        ),
        Some(name) => make::barrier(move |all, context| {
            let mut tree = match &mut side_effect(context, &name, || Tree::default().into()).value {
                Value::Tree(tree) => std::mem::take(Arc::make_mut(tree)),
                _ => Tree::default(),
            };
            for traverser in &all {
                add(&mut tree, traverser, context)?;
            }
            side_effect(context, &name, || Value::Null).value = tree.into();
            Ok(all)
        }),
    }
}

fn subgraph(name: Arc<str>) -> Box<dyn Step> {
    make::barrier(move |all, context| {
        let empty = || Value::Subgraph(Arc::new(Subgraph::default()));
        let side_effect = side_effect(context, &name, empty);
        for traverser in &all {
            if let (Value::Subgraph(graph), Value::Edge(edge)) = (&mut side_effect.value, &traverser.value) {
                let graph = Arc::make_mut(graph);
                for key in [edge.key.source, edge.key.target] {
                    let vertex = Vertex::from_key(key);
                    if !graph.vertices.contains(&vertex) {
                        graph.vertices.push(vertex);
                    }
                }
                if !graph.edges.contains(edge) {
                    graph.edges.push(edge.clone());
                }
            }
        }
        Ok(all)
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
