//! History steps: `select`, `path`, `project`, `loops`.

use super::filter::label_of;
use super::make;
use crate::by::{By, column_of};
use crate::compile::Compiler;
use crate::modulated::Modulated;
use crate::scope::scoped;
use crate::step::Step;
use std::sync::Arc;
use vervet_gremlin::{Map, Pop, Token, Value};
use vervet_model::Result;

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    Ok(match step.name() {
        "select" => select(step, compiler)?,
        "path" => path(step, compiler)?,
        "project" => project(step, compiler)?,
        _ => {
            let name = step.texts().into_iter().next();
            make::map(move |traverser, _| {
                let count = traverser.loops(name.as_deref()).unwrap_or(0);
                Ok(Some(Value::Int(i32::try_from(count).unwrap_or(i32::MAX))))
            })
        }
    })
}

fn select(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let mut pop = Pop::Last;
    let mut keys: Vec<Value> = Vec::new();
    let mut by = compiler.bys(step)?;
    let mut key_traversal = None;
    for argument in step.arguments() {
        match argument {
            Value::Token(Token::Pop(given)) => pop = *given,
            Value::Token(Token::Column(column)) => {
                let column = *column;
                return Ok(make::map(move |traverser, _| column_of(&traverser.value, column).map(Some)));
            }
            Value::Traversal(traversal) => key_traversal = Some(compiler.nested(traversal)?),
            Value::List(values) => keys.extend(values.iter().cloned()),
            value => keys.push(value.clone()),
        }
    }
    if let Some(mut traversal) = key_traversal {
        return Ok(make::map(move |traverser, context| {
            let Some(key) = traversal.first(traverser, context)? else { return Ok(None) };
            let found = match (&traverser.value, &key) {
                (Value::Map(map), key) if map.contains_key(key) => map.get(key).cloned(),
                (_, Value::String(key)) => scoped(traverser, key, pop, context),
                _ => None,
            };
            match (found, by.first_mut()) {
                (Some(found), Some(by)) => by.of(&found, traverser, context),
                (found, _) => Ok(found),
            }
        }));
    }
    let single = keys.len() == 1;
    Ok(make::map(move |traverser, context| {
        let mut map = Map::default();
        for (i, key) in keys.iter().enumerate() {
            let found = match (&traverser.value, key) {
                (Value::Map(map), key) if map.contains_key(key) => map.get(key).cloned(),
                (_, Value::String(key)) => scoped(traverser, key, pop, context),
                _ => None,
            };
            let Some(found) = found else { return Ok(None) };
            let found = match by.len() {
                0 => found,
                count => match by[i % count].of(&found, traverser, context)? {
                    Some(value) => value,
                    None => return Ok(None),
                },
            };
            if single {
                return Ok(Some(found));
            }
            map.insert(key.clone(), found);
        }
        Ok(Some(Value::map(map)))
    }))
}

fn path(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let (from, to) = (label_of(step.from), label_of(step.to));
    let mut by: Vec<By> = compiler.bys(step)?;
    Ok(make::map(move |traverser, context| {
        let mut path = traverser.path();
        context.control.work(path.objects.len())?;
        let place = |label: &Arc<str>| path.labels.iter().rposition(|labels| labels.contains(label));
        let start = from.as_ref().and_then(place).unwrap_or(0);
        let end = to.as_ref().and_then(place).map_or(path.objects.len(), |end| end + 1);
        path.objects = path.objects.get(start..end).map(<[Value]>::to_vec).unwrap_or_default();
        path.labels = path.labels.get(start..end).map(<[_]>::to_vec).unwrap_or_default();
        if !by.is_empty() {
            for (i, object) in path.objects.iter_mut().enumerate() {
                let place = i % by.len();
                match by[place].of(object, traverser, context)? {
                    Some(value) => *object = value,
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(path.into()))
    }))
}

fn project(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let keys = step.texts();
    let mut by = compiler.bys(step)?;
    Ok(make::map(move |traverser, context| {
        let mut map = Map::default();
        for (i, key) in keys.iter().enumerate() {
            let value = match by.len() {
                0 => Some(traverser.value.clone()),
                count => by[i % count].apply(traverser, context)?,
            };
            // An unproductive `by` omits the key.
            if let Some(value) = value {
                map.insert(Value::String(key.clone()), value);
            }
        }
        Ok(Some(Value::map(map)))
    }))
}
