//! Filter steps: `filter`, `where`, `is`, `not`, `and`, `or`, and other tests of one traverser.

use super::make;
use super::subquery::SubqueryFilter;
use crate::bulk::Bulk;
use crate::by::By;
use crate::compile::Compiler;
use crate::context::{Context, Random};
use crate::error::query_error;
use crate::fusion::{Connective, FusedStep, Test, TestClone};
use crate::modulated::Modulated;
use crate::scope::scoped;
use crate::semantic::{passes, predicate};
use crate::step::{Input, Pipeline, Step};
use crate::traverser::Traverser;
use rustc_hash::FxHashSet;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use vervet_gremlin::{Bytecode, Instruction, P, Pop, Value, Vertex};
use vervet_model::{Error, ErrorKind, Result};

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let arguments = step.arguments();
    let wrong = || query_error(format!("{}() does not take these arguments", step.name()));
    Ok(match (step.name(), arguments) {
        ("discard", []) | ("none", []) => make::filter(|_, _| Ok(false)),
        ("is", [argument]) => {
            let test = predicate(argument);
            make::filter(move |traverser, context| passes(&test, &traverser.value, context.control))
        }
        ("filter", [Value::P(test)]) => {
            let test = test.clone();
            make::filter(move |traverser, context| passes(&test, &traverser.value, context.control))
        }
        ("filter" | "where", [Value::Traversal(traversal)]) => {
            let named = step.name() == "where";
            let steps = if named { named_ends(traversal, compiler)? } else { compiler.nested(traversal)? };
            let subqueries = vec![SubqueryFilter::of_traversal(traversal, steps, compiler)];
            make::test(ExistenceFilter { subqueries, connective: Connective::All })
        }
        ("where", [Value::P(test)]) => {
            make::test(ScopePredicate::new(None, test, compiler.bys(step)?, compiler))
        }
        ("where", [Value::String(start), Value::P(test)]) => {
            make::test(ScopePredicate::new(Some(start.clone()), test, compiler.bys(step)?, compiler))
        }
        ("not", [_]) => make::test(ExistenceFilter {
            subqueries: SubqueryFilter::of_all(step, compiler)?,
            connective: Connective::None,
        }),
        ("and", _) => make::test(ExistenceFilter {
            subqueries: SubqueryFilter::of_all(step, compiler)?,
            connective: Connective::All,
        }),
        ("or", _) => make::test(ExistenceFilter {
            subqueries: SubqueryFilter::of_all(step, compiler)?,
            connective: Connective::Any,
        }),
        ("all" | "any" | "none", [Value::P(test)]) => {
            let (test, name) = (test.clone(), step.name().to_owned());
            make::filter(move |traverser, context| {
                let Some(values) = crate::semantic::items(&traverser.value) else { return Ok(false) };
                let mut found = false;
                for (value, _) in &values {
                    let passes = passes(&test, value, context.control)?;
                    match &*name {
                        "all" if !passes => return Ok(false),
                        "any" | "none" if passes => found = true,
                        _ => {}
                    }
                }
                Ok(match &*name {
                    "all" => true,
                    "any" => found,
                    _ => !found,
                })
            })
        }
        ("coin", [share]) => {
            let share = crate::semantic::to_f64(share).ok_or_else(&wrong)?;
            let mut random = None;
            make::with_each(move |mut traverser, context| {
                let random = random.get_or_insert_with(|| Random::new(context.seed));
                Ok(Bulk::new(random.binomial(traverser.bulk.get(), share)).map(|kept| {
                    traverser.bulk = kept;
                    traverser
                }))
            })
        }
        ("timeLimit", [milliseconds]) => {
            let limit = milliseconds.as_integer().and_then(|ms| u64::try_from(ms).ok());
            let limit = Duration::from_millis(limit.ok_or_else(&wrong)?);
            Box::new(TimeLimit { limit, end: None })
        }
        ("simplePath" | "cyclicPath", []) => {
            let simple = step.name() == "simplePath";
            let (from, to) = (label_of(step.from), label_of(step.to));
            let mut by = compiler.bys(step)?;
            make::filter(move |traverser, context| {
                let objects = part_of_path(traverser, from.as_deref(), to.as_deref());
                context.control.work(objects.len())?;
                let mut seen = vervet_gremlin::Set::default();
                for (i, object) in objects.into_iter().enumerate() {
                    let object = match by.len() {
                        0 => object,
                        count => match by[i % count].of(&object, traverser, context)? {
                            Some(value) => value,
                            None => return Ok(false),
                        },
                    };
                    if !seen.insert(object) {
                        return Ok(!simple);
                    }
                }
                Ok(simple)
            })
        }
        _ => return Err(wrong()),
    })
}

/// The label of `from("a")` or `to("a")`.
pub(crate) fn label_of(instruction: Option<&Instruction>) -> Option<Arc<str>> {
    instruction.and_then(|instruction| match instruction.arguments.first() {
        Some(Value::String(label)) => Some(label.clone()),
        _ => None,
    })
}

/// The objects of a path between two labels, inclusive.
pub(crate) fn part_of_path(traverser: &Traverser, from: Option<&str>, to: Option<&str>) -> Vec<Value> {
    let path = traverser.path();
    let place = |label: &str| path.labels.iter().rposition(|labels| labels.iter().any(|l| **l == *label));
    let start = from.and_then(place).unwrap_or(0);
    let end = to.and_then(place).map_or(path.objects.len(), |end| end + 1);
    path.objects.get(start..end).map(<[Value]>::to_vec).unwrap_or_default()
}

/// Existence tests of nested traversals: `filter`, `where`, `not`, `and`, `or`.
#[derive(Clone)]
struct ExistenceFilter {
    subqueries: Vec<SubqueryFilter>,
    connective: Connective,
}

impl Test for ExistenceFilter {
    fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        let all = self.connective == Connective::All;
        for subquery in &mut self.subqueries {
            if subquery.test(traverser, context)? != all {
                return Ok(self.connective == Connective::Any);
            }
        }
        Ok(self.connective != Connective::Any)
    }

    fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        let branches = self.subqueries.iter().map(SubqueryFilter::fused_steps).collect::<Option<Vec<_>>>()?;
        let connective = self.connective;
        (!branches.is_empty()).then(|| vec![FusedStep::Exists { branches, connective }])
    }
}

/// `where(P)`: the predicate contains names, which are replaced by their values.
#[derive(Clone)]
struct ScopePredicate {
    start: Option<Arc<str>>,
    test: Arc<P>,
    by: Vec<By>,
    lists: Lists,
    /// Whether the values of the names are the same for all results of one traverser.
    is_invariant: bool,
}

impl ScopePredicate {
    fn new(start: Option<Arc<str>>, test: &Arc<P>, by: Vec<By>, compiler: &Compiler) -> Self {
        let is_invariant = by.is_empty()
            && !start.iter().any(|name| compiler.writes_side_effect(name))
            && is_invariant_test(test, compiler);
        Self { start, test: test.clone(), by, lists: Lists::default(), is_invariant }
    }
}

/// Whether no later step writes to the side effects that the predicate names.
fn is_invariant_test(test: &P, compiler: &Compiler) -> bool {
    let one = |value: &Value| !matches!(value, Value::String(name) if compiler.writes_side_effect(name));
    match test {
        P::Compare(_, value) | P::Text(_, value) | P::TypeOf(value) => one(value),
        P::Inside(low, high) | P::Outside(low, high) | P::Between(low, high) => one(low) && one(high),
        P::Within(values) | P::Without(values) => values.iter().all(one),
        P::Not(inner) => is_invariant_test(inner, compiler),
        P::And(parts) | P::Or(parts) => parts.iter().all(|part| is_invariant_test(part, compiler)),
    }
}

impl Test for ScopePredicate {
    fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        let Self { start, test, by, lists, .. } = self;
        let value = match start {
            Some(start) => scoped(traverser, start, Pop::Last, context).ok_or_else(|| no_value(start))?,
            None => traverser.value.clone(),
        };
        let mut place = 0;
        if by.is_empty()
            && let Some(is_in) = is_in_collection(test, &value, lists, traverser, context)
        {
            return Ok(is_in);
        }
        let Some(value) = in_turn(by, &mut place, &value, traverser, context)? else { return Ok(false) };
        let Some(test) = with_values(test, by, &mut place, traverser, context)? else {
            return Ok(false);
        };
        passes(&test, &value, context.control)
    }

    fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        self.is_invariant.then(|| vec![FusedStep::Test(self.boxed())])
    }
}

/// Fast path of `within` and `without` of one name for a vertex: a hash look-up in the collection of that
/// name. `None`: another kind of test.
fn is_in_collection(
    test: &P,
    value: &Value,
    lists: &mut Lists,
    traverser: &Traverser,
    context: &Context<'_>,
) -> Option<bool> {
    let (P::Within(names) | P::Without(names)) = test else { return None };
    let [Value::String(name)] = names.as_slice() else { return None };
    // A vertex equals only vertices.
    let Value::Vertex(Vertex { key: key @ 1.., .. }) = value else { return None };
    let is_in = match scoped(traverser, name, Pop::Last, context)? {
        Value::Bulk(values) => values.contains_key(value),
        Value::Set(values) => values.contains(value),
        Value::List(values) => lists.contains(&values, value, *key),
        _ => return None,
    };
    Some(is_in == matches!(test, P::Within(_)))
}

/// Vertex set of the last tested list, built on its second use. The allocation identifies the list: the weak
/// reference moves a changed list to a new allocation.
#[derive(Clone, Default)]
struct Lists {
    last: Weak<Vec<Value>>,
    vertices: Option<Rc<FxHashSet<u64>>>,
}

impl Lists {
    /// Maximum length of lists for which a linear scan is as fast.
    const SHORT: usize = 16;

    /// Whether a list contains the vertex with this key.
    fn contains(&mut self, list: &Arc<Vec<Value>>, vertex: &Value, key: u64) -> bool {
        if list.len() <= Self::SHORT {
            return list.contains(vertex);
        }
        if !std::ptr::eq(self.last.as_ptr(), Arc::as_ptr(list)) {
            *self = Self { last: Arc::downgrade(list), vertices: None };
            return list.contains(vertex);
        }
        let vertices = self.vertices.get_or_insert_with(|| {
            let keys = list.iter().filter_map(|value| match value {
                Value::Vertex(vertex) => Some(vertex.key),
                _ => None,
            });
            Rc::new(keys.collect())
        });
        // A vertex without a key is compared by its id.
        vertices.contains(&key) || vertices.contains(&0) && list.contains(vertex)
    }
}

fn no_value(name: &str) -> Error {
    let message = format!("Neither the map, sideEffects, nor path has a {name}-key: no step is labelled so");
    Error::new(ErrorKind::Query, message)
}

/// Applies the next `by` to a value.
fn in_turn(
    by: &mut [By],
    place: &mut usize,
    value: &Value,
    traverser: &Traverser,
    context: &mut Context<'_>,
) -> Result<Option<Value>> {
    if by.is_empty() {
        return Ok(Some(value.clone()));
    }
    let at = *place % by.len();
    *place += 1;
    by[at].of(value, traverser, context)
}

/// The predicate with names replaced by values; `None`: a `by` is unproductive.
fn with_values(
    test: &P,
    by: &mut [By],
    place: &mut usize,
    traverser: &Traverser,
    context: &mut Context<'_>,
) -> Result<Option<P>> {
    let mut one = |value: &Value, context: &mut Context<'_>| -> Result<Option<Value>> {
        let Value::String(name) = value else { return Ok(Some(value.clone())) };
        let value = scoped(traverser, name, Pop::Last, context).ok_or_else(|| no_value(name))?;
        in_turn(by, place, &value, traverser, context)
    };
    macro_rules! of {
        ($value:expr) => {
            match one($value, context)? {
                Some(value) => value,
                None => return Ok(None),
            }
        };
    }
    Ok(Some(match test {
        P::Compare(comparison, value) => P::Compare(*comparison, of!(value)),
        P::Inside(low, high) => P::Inside(of!(low), of!(high)),
        P::Outside(low, high) => P::Outside(of!(low), of!(high)),
        P::Between(low, high) => P::Between(of!(low), of!(high)),
        P::Within(values) | P::Without(values) => {
            let mut all = Vec::new();
            for value in values {
                // The name of a collection expands to its items.
                match of!(value) {
                    collection @ (Value::List(_) | Value::Set(_) | Value::Bulk(_)) => {
                        let items = crate::semantic::items(&collection).unwrap_or_default();
                        context.control.work(items.len())?;
                        all.extend(items.into_iter().map(|(value, _)| value));
                    }
                    value => all.push(value),
                }
            }
            if matches!(test, P::Within(_)) { P::Within(all) } else { P::Without(all) }
        }
        P::Text(kind, value) => P::Text(*kind, of!(value)),
        P::TypeOf(value) => P::TypeOf(value.clone()),
        P::Not(inner) => match with_values(inner, by, place, traverser, context)? {
            Some(inner) => P::Not(Box::new(inner)),
            None => return Ok(None),
        },
        P::And(parts) | P::Or(parts) => {
            let mut all = Vec::new();
            for part in parts {
                match with_values(part, by, place, traverser, context)? {
                    Some(part) => all.push(part),
                    None => return Ok(None),
                }
            }
            if matches!(test, P::And(_)) { P::And(all) } else { P::Or(all) }
        }
    }))
}

/// The traversal of a `where`: a label at its start names its input, a label at its end the required result.
pub(crate) fn named_ends(traversal: &Bytecode, compiler: &mut Compiler) -> Result<Pipeline> {
    let steps = &*compiler.connected(&traversal.steps, false);
    // Nested connectives: each operand has its own ends.
    if let [only] = steps
        && matches!(&*only.name, "and" | "or" | "not" | "where" | "filter")
        && only.arguments.iter().all(|argument| matches!(argument, Value::Traversal(_)))
    {
        let mut parts = Vec::new();
        for argument in &only.arguments {
            if let Value::Traversal(part) = argument {
                parts.push(named_ends(part, compiler)?);
            }
        }
        let name = only.name.to_string();
        let test = make::filter(move |traverser, context| {
            for part in &mut parts {
                let passes = part.test(traverser, context)?;
                match &*name {
                    "and" | "where" | "filter" if !passes => return Ok(false),
                    "or" if passes => return Ok(true),
                    "not" => return Ok(!passes),
                    _ => {}
                }
            }
            Ok(name != "or")
        });
        return Ok(Pipeline::new(vec![compiler.node(test)]));
    }
    let label = |instruction: Option<&Instruction>| match instruction {
        Some(instruction) if &*instruction.name == "as" => match instruction.arguments.first() {
            Some(Value::String(label)) => Some(label.clone()),
            _ => None,
        },
        _ => None,
    };
    let (start, end) = (label(steps.first()), label(steps.last()));
    let middle = &steps[usize::from(start.is_some())..];
    let end = end.filter(|_| !middle.is_empty());
    let middle = &middle[..middle.len() - usize::from(end.is_some())];
    let mut pipeline = compiler.pipeline(middle)?;
    if let Some(start) = start {
        let step = make::map(move |traverser, context| {
            Ok(Some(scoped(traverser, &start, Pop::Last, context).ok_or_else(|| no_value(&start))?))
        });
        pipeline.nodes.insert(0, compiler.node(step));
    }
    if let Some(end) = end {
        let step = make::filter(move |traverser, context| {
            let expected = match &traverser.value {
                // A map that the traversal has reached does not scope its end.
                Value::Map(_) => traverser.select(&end, Pop::Last),
                _ => scoped(traverser, &end, Pop::Last, context),
            };
            let expected = expected.ok_or_else(|| no_value(&end))?;
            Ok(expected == traverser.value)
        });
        pipeline.nodes.push(compiler.node(step));
    }
    Ok(pipeline)
}

/// Passes everything until a duration has elapsed since the first traverser.
#[derive(Clone)]
struct TimeLimit {
    limit: Duration,
    end: Option<Instant>,
}

impl Step for TimeLimit {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        let end = *self.end.get_or_insert_with(|| Instant::now() + self.limit);
        if Instant::now() >= end { Ok(None) } else { input.next(context) }
    }

    fn reset(&mut self) {
        self.end = None;
    }

    fn moves(&self) -> bool {
        false
    }
}
