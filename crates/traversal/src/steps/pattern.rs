//! `match`: enumerates all bindings of the names that satisfy every pattern.
//!
//! # Shape
//! Patterns are solved in turn, the most bound first; each solution of a pattern is the input of the next.
//! Bindings are labelled objects of the traverser's path. The result is a map of the names.
//! # Not here
//! Join ordering: for a compiled traversal the planner joins the patterns that are walks.

use super::filter::named_ends;
use super::make;
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::modulated::Modulated;
use crate::queue::Queue;
use crate::step::{Pipeline, Step};
use crate::traverser::{Labels, Traverser};
use std::sync::Arc;
use vervet_gremlin::{Bytecode, Instruction, Map, P, Pop, Value};
use vervet_model::{Error, ErrorKind, Result};

#[derive(Clone)]
enum Pattern {
    /// A walk from the value of a name to the value of another; without an end it is a filter.
    Walk { start: Arc<str>, end: Option<Arc<str>>, walk: Pipeline },
    /// Conjunction.
    And(Vec<Pattern>),
    /// Disjunction.
    Or(Vec<Pattern>),
    /// Negation: the pattern has no solution.
    Not(Box<Pattern>),
    /// A filter that needs these names.
    Test { needs: Vec<Arc<str>>, test: Pipeline },
}

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let mut patterns = Vec::new();
    for argument in step.arguments() {
        match argument {
            Value::Traversal(traversal) => patterns.push(pattern(traversal, compiler)?),
            _ => return Err(query_error("match() takes traversals")),
        }
    }
    let mut names = Vec::new();
    patterns.iter().for_each(|pattern| pattern.names(&mut names));
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    patterns.iter().for_each(|pattern| pattern.ends(&mut starts, &mut ends));
    // The name of the incoming object: a start that is no end.
    let first = starts.iter().find(|start| !ends.contains(start)).or(starts.first()).cloned();
    let Some(first) = first else {
        return Err(query_error("match() needs a pattern that begins with as()"));
    };
    Ok(make::flat_map_traversers(move |mut traverser, context, out| {
        if !names.iter().any(|name| traverser.has_label(name)) {
            let label: Labels = vec![first.clone()].into();
            traverser.extend_path(&label, &context.memory)?;
        }
        let all: Vec<usize> = (0..patterns.len()).collect();
        solve(&mut patterns, &all, traverser, context, &mut |mut traverser, context| {
            let mut map = Map::default();
            for name in &names {
                if let Some(value) = traverser.select(name, Pop::Last) {
                    map.insert(Value::String(name.clone()), value);
                }
            }
            traverser.value = Value::map(map);
            out.push(traverser, &context.memory)
        })
    }))
}

fn label(instruction: Option<&Instruction>) -> Option<Arc<str>> {
    match instruction {
        Some(instruction) if &*instruction.name == "as" => {
            instruction.arguments.first().and_then(Value::as_text).map(Arc::from)
        }
        _ => None,
    }
}

fn pattern(traversal: &Bytecode, compiler: &mut Compiler) -> Result<Pattern> {
    let steps = &*compiler.connected(&traversal.steps, false);
    if let [only] = steps {
        let parts = |compiler: &mut Compiler| -> Result<Vec<Pattern>> {
            let mut all = Vec::new();
            for argument in &only.arguments {
                if let Value::Traversal(part) = argument {
                    all.push(pattern(part, compiler)?);
                }
            }
            Ok(all)
        };
        match (&*only.name, only.arguments.as_slice()) {
            ("and" | "match", _) => return Ok(Pattern::And(parts(compiler)?)),
            ("or", _) => return Ok(Pattern::Or(parts(compiler)?)),
            ("not", [Value::Traversal(inner)]) => {
                return Ok(Pattern::Not(Box::new(pattern(inner, compiler)?)));
            }
            _ => {}
        }
    }
    let Some(start) = label(steps.first()) else {
        // A filter such as where("a", neq("b")).
        let mut needs = Vec::new();
        names_of_tests(traversal, &mut needs);
        return Ok(Pattern::Test { needs, test: named_ends(traversal, compiler)? });
    };
    let end = label(steps.last()).filter(|_| steps.len() > 1);
    let middle = &steps[1..steps.len() - usize::from(end.is_some())];
    let walk = compiler.pipeline(middle)?;
    Ok(Pattern::Walk { start, end, walk })
}

/// The names that filters use.
fn names_of_tests(traversal: &Bytecode, names: &mut Vec<Arc<str>>) {
    fn of_p(test: &P, names: &mut Vec<Arc<str>>) {
        let mut one = |value: &Value| {
            if let Value::String(name) = value {
                names.push(name.clone());
            }
        };
        match test {
            P::Compare(_, value) | P::Text(_, value) => one(value),
            P::Inside(a, b) | P::Outside(a, b) | P::Between(a, b) => {
                one(a);
                one(b);
            }
            P::Within(values) | P::Without(values) => values.iter().for_each(one),
            P::TypeOf(_) => {}
            P::Not(inner) => of_p(inner, names),
            P::And(parts) | P::Or(parts) => parts.iter().for_each(|part| of_p(part, names)),
        }
    }
    for step in &traversal.steps {
        match (&*step.name, step.arguments.as_slice()) {
            ("where", [Value::P(test)]) => of_p(test, names),
            ("where", [Value::String(name), Value::P(test)]) => {
                names.push(name.clone());
                of_p(test, names);
            }
            ("where" | "and" | "or" | "not" | "filter", arguments) => {
                for argument in arguments {
                    if let Value::Traversal(inner) = argument {
                        names.extend(label(inner.steps.first()));
                        names_of_tests(inner, names);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Pattern {
    /// All names in textual order.
    fn names(&self, all: &mut Vec<Arc<str>>) {
        let mut add = |name: &Arc<str>| {
            if !all.contains(name) {
                all.push(name.clone());
            }
        };
        match self {
            Self::Walk { start, end, .. } => {
                add(start);
                if let Some(end) = end {
                    add(end);
                }
            }
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.names(all)),
            // A negated pattern binds no names.
            Self::Not(_) | Self::Test { .. } => {}
        }
    }

    /// The start names and the end names of walks.
    fn ends(&self, starts: &mut Vec<Arc<str>>, ends: &mut Vec<Arc<str>>) {
        match self {
            Self::Walk { start, end, .. } => {
                starts.push(start.clone());
                ends.extend(end.clone().filter(|end| end != start));
            }
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.ends(starts, ends)),
            Self::Not(_) | Self::Test { .. } => {}
        }
    }

    /// Priority of the pattern under the current bindings: 0 is unsolvable, higher is better.
    fn readiness(&self, traverser: &Traverser) -> u8 {
        let bound = |name: &Arc<str>| traverser.has_label(name);
        match self {
            Self::Walk { start, .. } if !bound(start) => 0,
            Self::Walk { end: None, .. } => 4,
            Self::Walk { end: Some(end), .. } => {
                if bound(end) {
                    3
                } else {
                    2
                }
            }
            Self::Test { needs, .. } => {
                if needs.iter().all(bound) {
                    5
                } else {
                    0
                }
            }
            Self::Not(inner) => {
                if inner.readiness(traverser) > 0 {
                    1
                } else {
                    0
                }
            }
            Self::And(parts) => parts.iter().map(|part| part.readiness(traverser)).max().unwrap_or(0).min(2),
            Self::Or(parts) => parts.iter().map(|part| part.readiness(traverser)).min().unwrap_or(0).min(2),
        }
    }
}

/// Continuation for each solution of all patterns.
type Continuation<'f> = &'f mut dyn FnMut(Traverser, &mut Context<'_>) -> Result<()>;

/// Solves the patterns with these indexes.
fn solve(
    patterns: &mut [Pattern],
    places: &[usize],
    traverser: Traverser,
    context: &mut Context<'_>,
    found: Continuation<'_>,
) -> Result<()> {
    context.tick()?;
    if places.is_empty() {
        return found(traverser, context);
    }
    let best = places
        .iter()
        .enumerate()
        .map(|(i, place)| (patterns[*place].readiness(&traverser), std::cmp::Reverse(i)))
        .max();
    let Some((1.., std::cmp::Reverse(at))) = best else {
        let message = "The provided match pattern is unsolvable: no pattern starts from a known name";
        return Err(Error::new(ErrorKind::Query, message));
    };
    let mut rest = places.to_vec();
    let place = rest.remove(at);
    // The solutions of this pattern, then the other patterns for each.
    let mut solutions = Queue::default();
    solve_pattern(&mut patterns[place], traverser, context, &mut |solution, context| {
        solutions.push(solution, &context.memory)
    })?;
    while let Some(solution) = solutions.pop() {
        solve(patterns, &rest, solution, context, found)?;
    }
    Ok(())
}

fn solve_pattern(
    pattern: &mut Pattern,
    traverser: Traverser,
    context: &mut Context<'_>,
    found: Continuation<'_>,
) -> Result<()> {
    match pattern {
        Pattern::Walk { start, end, walk } => {
            let Some(from) = traverser.select(start, Pop::Last) else { return Ok(()) };
            let Some(end) = end else {
                return match walk.test(&traverser.at(from), context)? {
                    true => found(traverser, context),
                    false => Ok(()),
                };
            };
            let wanted = traverser.select(end, Pop::Last);
            walk.reset();
            walk.start(traverser.at(from).single(), context)?;
            let label: Labels = vec![end.clone()].into();
            let traversal_path = traverser.path.clone();
            let mut solutions = Queue::default();
            while let Some(mut next) = walk.next(context)? {
                next.bulk = next.bulk.times(traverser.bulk)?;
                match &wanted {
                    Some(wanted) if *wanted != next.value => continue,
                    Some(_) => {
                        let mut solution = traverser.clone();
                        solution.bulk = next.bulk;
                        solutions.push(solution, &context.memory)?;
                    }
                    None => {
                        if next.path.is_none() {
                            // Aggregating steps drop the path.
                            next.path.clone_from(&traversal_path);
                        }
                        next.extend_path(&label, &context.memory)?;
                        solutions.push(next, &context.memory)?;
                    }
                }
            }
            while let Some(solution) = solutions.pop() {
                found(solution, context)?;
            }
            Ok(())
        }
        Pattern::And(parts) => {
            let all: Vec<usize> = (0..parts.len()).collect();
            solve(parts, &all, traverser, context, found)
        }
        Pattern::Or(parts) => {
            for part in parts {
                solve_pattern(part, traverser.clone(), context, found)?;
            }
            Ok(())
        }
        Pattern::Not(inner) => {
            let mut any = false;
            solve_pattern(inner, traverser.clone(), context, &mut |_, _| {
                any = true;
                Ok(())
            })?;
            if any { Ok(()) } else { found(traverser, context) }
        }
        Pattern::Test { test, .. } => match test.test(&traverser, context)? {
            true => found(traverser, context),
            false => Ok(()),
        },
    }
}
