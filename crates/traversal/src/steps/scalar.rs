//! Scalar functions: strings, numbers, dates and collections, implemented by `vervet_gremlin::semantics`.

use super::make;
use crate::by::By;
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::graph::read::values;
use crate::memory::Reservation;
use crate::modulated::Modulated;
use crate::scope::scoped;
use crate::semantic::{map_error, with_ids};
use crate::size::{VALUE_BYTES, VALUES_MAX};
use crate::step::{Pipeline, Step};
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::semantics::list::{self, Origin};
use vervet_gremlin::semantics::text::{self, Template, TextFunction};
use vervet_gremlin::semantics::{NoDetails, date, math, number, string};
use vervet_gremlin::{Pop, Scope, Token, Value};
use vervet_model::{Error, ErrorKind, Result};

/// A constant, or a traversal that computes the value.
#[derive(Clone)]
enum ScalarArgument {
    Value(Value),
    Traversal(Pipeline),
}

impl ScalarArgument {
    fn new(value: &Value, compiler: &mut Compiler) -> Result<Self> {
        Ok(match value {
            Value::Traversal(traversal) => Self::Traversal(compiler.nested(traversal)?),
            value => Self::Value(value.clone()),
        })
    }

    fn origin(&self) -> Origin {
        match self {
            Self::Value(_) => Origin::Argument,
            Self::Traversal(_) => Origin::Traversal,
        }
    }

    /// The value; null if the traversal has no result.
    fn value(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<Value> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Traversal(traversal) => Ok(traversal.first(traverser, context)?.unwrap_or_default()),
        }
    }
}

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let mut scope = Scope::Global;
    let mut arguments: Vec<&Value> = Vec::new();
    for argument in step.arguments() {
        match argument {
            Value::Token(Token::Scope(given)) => scope = *given,
            argument => arguments.push(argument),
        }
    }
    if let Some(function) = text_function(step, &arguments)? {
        return Ok(make::map(move |traverser, context| match scope {
            Scope::Global => map_error(function.apply(&traverser.value, scope)).map(Some),
            Scope::Local => {
                each(&traverser.value, context, |value| map_error(function.apply(value, scope))).map(Some)
            }
        }));
    }
    match step.name() {
        "reverse" | "conjoin" | "combine" | "difference" | "disjunct" | "intersect" | "merge" | "product" => {
            collection_function(step, &arguments, compiler)
        }
        _ => conversion(step, scope, &arguments, compiler),
    }
}

fn wrong_arguments(step: &Modulated<'_>) -> Error {
    query_error(format!("{}() does not take these arguments", step.name()))
}

/// The function of a text step; `None`: another step.
fn text_function(step: &Modulated<'_>, arguments: &[&Value]) -> Result<Option<TextFunction>> {
    let text = |value: &Value| -> Result<Option<Arc<str>>> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(wrong_arguments(step)),
        }
    };
    Ok(match (step.name(), arguments) {
        ("length", []) => Some(TextFunction::Length),
        ("toUpper", []) => Some(TextFunction::ToUpper),
        ("toLower", []) => Some(TextFunction::ToLower),
        ("trim", []) => Some(TextFunction::Trim),
        ("lTrim", []) => Some(TextFunction::LTrim),
        ("rTrim", []) => Some(TextFunction::RTrim),
        ("replace", [old, new]) => Some(TextFunction::Replace { old: text(old)?, new: text(new)? }),
        ("split", [separator]) => Some(TextFunction::Split(text(separator)?)),
        ("substring", [start, end @ ..]) if end.len() < 2 => Some(TextFunction::Substring {
            start: start.as_integer().ok_or_else(|| wrong_arguments(step))?,
            end: match end {
                [end] => Some(end.as_integer().ok_or_else(|| wrong_arguments(step))?),
                _ => None,
            },
        }),
        _ => None,
    })
}

/// Conversions, dates, templates and expressions.
fn conversion(
    step: &Modulated<'_>,
    scope: Scope,
    arguments: &[&Value],
    compiler: &mut Compiler,
) -> Result<Box<dyn Step>> {
    Ok(match (step.name(), arguments) {
        ("asString", []) => make::map(move |traverser, context| {
            let value = with_ids(traverser.value.clone(), context)?;
            match scope {
                Scope::Global => map_error(string::as_string(&value, &NoDetails)),
                Scope::Local => {
                    each(&value, context, |value| map_error(string::as_string_local(value, &NoDetails)))
                }
            }
            .map(Some)
        }),
        ("asBool", []) => make::map(|traverser, _| map_error(text::as_bool(&traverser.value)).map(Some)),
        ("asNumber", []) => {
            make::map(|traverser, _| map_error(number::as_number(&traverser.value, None)).map(Some))
        }
        ("asNumber", [Value::Token(Token::GType(kind))]) => {
            let kind = *kind;
            make::map(move |traverser, _| {
                map_error(number::as_number(&traverser.value, Some(kind))).map(Some)
            })
        }
        ("asDate", []) => make::map(|traverser, _| map_error(date::as_date(&traverser.value)).map(Some)),
        ("dateAdd", [Value::Token(Token::TimeUnit(unit)), count]) => {
            let (unit, count) = (*unit, count.as_integer().ok_or_else(|| wrong_arguments(step))?);
            make::map(move |traverser, _| map_error(date::date_add(&traverser.value, unit, count)).map(Some))
        }
        ("dateDiff", [other]) => {
            let mut other = ScalarArgument::new(other, compiler)?;
            make::map(move |traverser, context| {
                let other = other.value(traverser, context)?;
                map_error(date::date_diff(&traverser.value, &other)).map(Some)
            })
        }
        ("concat", _) => {
            let mut parts = Vec::new();
            for argument in arguments {
                parts.push(ScalarArgument::new(argument, compiler)?);
            }
            make::map(move |traverser, context| {
                let mut values = Vec::with_capacity(parts.len());
                for part in &mut parts {
                    values.push(part.value(traverser, context)?);
                }
                map_error(text::concat(&traverser.value, &values)).map(Some)
            })
        }
        ("format", [Value::String(template)]) => format(Template::parse(template), compiler.bys(step)?),
        ("math", [Value::String(expression)]) => {
            let expression = map_error(math::Expression::parse(expression))?;
            calculate(expression, compiler.bys(step)?)
        }
        _ => return Err(wrong_arguments(step)),
    })
}

/// Functions of collections.
fn collection_function(
    step: &Modulated<'_>,
    arguments: &[&Value],
    compiler: &mut Compiler,
) -> Result<Box<dyn Step>> {
    Ok(match (step.name(), arguments) {
        ("reverse", []) => make::map(|traverser, context| {
            let _reservation = reserve_collections(1, [&traverser.value, &Value::Null], context)?;
            map_error(list::reverse(&traverser.value)).map(Some)
        }),
        ("conjoin", [Value::String(delimiter)]) => {
            let delimiter = delimiter.clone();
            make::map(move |traverser, context| {
                let value = with_ids(traverser.value.clone(), context)?;
                map_error(list::conjoin(&value, &delimiter, &NoDetails)).map(Some)
            })
        }
        (name @ ("combine" | "difference" | "disjunct" | "intersect" | "merge" | "product"), [other]) => {
            let function = match name {
                "combine" => list::combine,
                "difference" => list::difference,
                "disjunct" => list::disjunct,
                "intersect" => list::intersect,
                "merge" => list::merge,
                _ => list::product,
            };
            let is_product = name == "product";
            let mut other = ScalarArgument::new(other, compiler)?;
            make::map(move |traverser, context| {
                let origin = other.origin();
                let other = other.value(traverser, context)?;
                // A product has a list of two for each pair.
                let times = if is_product { 3 * count(&other) } else { 1 };
                let _reservation = reserve_collections(times, [&traverser.value, &other], context)?;
                map_error(function(&traverser.value, &other, origin)).map(Some)
            })
        }
        _ => return Err(wrong_arguments(step)),
    })
}

/// Maps a function over a collection. Each result is counted before the next one is computed, since many
/// results may come from one long shared string. `function` itself accepts or rejects values that are not
/// collections.
fn each(value: &Value, context: &Context<'_>, function: impl Fn(&Value) -> Result<Value>) -> Result<Value> {
    let Some(items) = list::items(value) else { return function(value) };
    let (mut all, mut held) = (Vec::new(), Reservation::default());
    for (item, count) in items {
        context.control.work(1)?;
        let Value::List(made) = function(&Value::list(vec![item.clone()]))? else { continue };
        for value in made.iter() {
            context.expand(value, count, &mut all, &mut held)?;
        }
    }
    Ok(Value::list(all))
}

/// The number of values in a collection, with multiplicities, up to [`VALUES_MAX`].
fn count(value: &Value) -> u64 {
    let Some(items) = list::items(value) else { return 0 };
    let mut total: u64 = 0;
    for (_, count) in items {
        total = total.saturating_add(count);
        if total >= VALUES_MAX {
            return VALUES_MAX;
        }
    }
    total
}

/// Reserves memory for a result before it is computed: `times` for each value of both collections.
fn reserve_collections(times: u64, collections: [&Value; 2], context: &Context<'_>) -> Result<Reservation> {
    let values = collections.map(count).iter().sum::<u64>();
    context.control.work(usize::try_from(values).unwrap_or(usize::MAX))?;
    let mut held = Reservation::default();
    held.add(values.saturating_mul(times).min(3 * VALUES_MAX) * VALUE_BYTES, &context.memory)?;
    Ok(held)
}

/// The property of an element with this name, or the scoped value of the name.
fn named(name: &Arc<str>, traverser: &Traverser, context: &mut Context<'_>) -> Result<Option<Value>> {
    if matches!(traverser.value, Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_)) {
        let keys = [name.clone()];
        let found = context.read(|snapshot, names| {
            let mut first = None;
            values(snapshot, names, &traverser.value, &keys, &mut |value| {
                first.get_or_insert(value);
            })?;
            Ok(first)
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(scoped(traverser, name, Pop::Last, context))
}

fn format(template: Template, mut by: Vec<By>) -> Box<dyn Step> {
    make::map(move |traverser, context| {
        let mut place = 0;
        let mut in_turn = |value: Value, context: &mut Context<'_>| match by.len() {
            0 => Ok(Some(value)),
            count => {
                let at = place % count;
                place += 1;
                by[at].of(&value, traverser, context)
            }
        };
        let mut failed = None;
        let rendered = template.render(&NoDetails, |name| {
            let found = match name {
                "_" => in_turn(traverser.value.clone(), context),
                name => match named(&name.into(), traverser, context) {
                    Ok(Some(value)) if !matches!(traverser.value, Value::Vertex(_) | Value::Edge(_)) => {
                        in_turn(value, context)
                    }
                    other => other,
                },
            };
            match found.and_then(|value| value.map(|value| with_ids(value, context)).transpose()) {
                Ok(value) => Ok(value),
                Err(error) => {
                    failed = Some(error);
                    Ok::<_, vervet_gremlin::semantics::Error>(None)
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => map_error(rendered),
        }
    })
}

fn calculate(expression: math::Expression, mut by: Vec<By>) -> Box<dyn Step> {
    make::map(move |traverser, context| {
        let mut numbers = Vec::with_capacity(expression.variables().len());
        for (i, name) in expression.variables().iter().enumerate() {
            let value = match &**name {
                "_" => Some(traverser.value.clone()),
                name => scoped(traverser, name, Pop::Last, context),
            };
            let Some(value) = value else {
                let Some(constant) = math::constant(name) else {
                    let message = format!("math() does not know the variable {name}");
                    return Err(Error::new(ErrorKind::Query, message));
                };
                numbers.push(constant);
                continue;
            };
            let value = match by.len() {
                0 => Some(value),
                count => by[i % count].of(&value, traverser, context)?,
            };
            let Some(value) = value else { return Ok(None) };
            let Some(number) = number::to_double(&value) else {
                let message = format!(
                    "The variable {name} for math() step must resolve to a Number - it is instead of type {}",
                    value.type_name()
                );
                return Err(Error::new(ErrorKind::Query, message));
            };
            numbers.push(number);
        }
        map_error(expression.evaluate(&numbers)).map(|result| Some(Value::Double(result)))
    })
}
