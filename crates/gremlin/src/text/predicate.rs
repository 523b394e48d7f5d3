//! Parser of predicates: `gt(1)`, `P.within(1, 2).negate()`, `TextP.regex("^a").or(eq("b"))`.

use super::error::Result;
use super::forms::PREDICATES;
use super::lex::{Kind, Token};
use super::parse::Parser;
use super::suggest::nearest;
use crate::{Comparison, P, TextTest, Value};
use std::sync::Arc;

/// Whether a name before a parenthesis is a predicate. `not` may also be a step.
pub(super) fn is_predicate(name: &str) -> bool {
    PREDICATES.find(name).is_some_and(|callable| &*callable.name == name)
}

impl Parser<'_> {
    /// Parses a predicate, whose name is already consumed, with its connectives.
    pub(super) fn predicate(&mut self, name: Token) -> Result<P> {
        let outer = self.measure();
        let first = self.one_predicate(name)?;
        let predicate = self.chained(first)?;
        self.deepest = self.deepest.max(outer);
        Ok(predicate)
    }

    /// Parses the connectives after `not(p)`, whose parentheses are already consumed; `outer` is the depth
    /// before it.
    pub(super) fn negated(&mut self, inner: P, outer: usize) -> Result<P> {
        let predicate = self.chained(P::Not(Box::new(inner)))?;
        self.deepest = self.deepest.max(outer);
        Ok(predicate)
    }

    fn one_predicate(&mut self, name: Token) -> Result<P> {
        let text = self.text(name);
        let Some(callable) = PREDICATES.find(text) else {
            let fault = self.fault(name, format!("there is no predicate {}", self.shown(name)));
            return Err(match nearest(text, PREDICATES.names()) {
                Some(near) => fault.hint(format!("did you mean {near}()?")),
                None => fault,
            });
        };
        self.expect(Kind::Open, "( after the name of a predicate")?;
        let mut arguments = self.arguments(Kind::Close, false)?;
        let close = self.bump()?;
        if text == "typeOf" {
            arguments.iter_mut().for_each(super::words::as_type);
        }
        if !callable.takes(&arguments) {
            return Err(self.wrong_arguments(name, close, callable, &arguments));
        }
        Ok(make(text, arguments))
    }

    /// Parses `.and(q)`, `.or(q)` and `.negate()` after a predicate.
    fn chained(&mut self, mut predicate: P) -> Result<P> {
        while self.token.kind == Kind::Dot {
            self.bump()?;
            let name = self.expect(Kind::Name, "and(), or() or negate()")?;
            let text = self.text(name);
            self.expect(Kind::Open, "(")?;
            let grows = match (text, &predicate) {
                ("and", P::And(_)) | ("or", P::Or(_)) => false,
                ("and" | "or" | "negate", _) => true,
                _ => {
                    let message = format!("a predicate has no {}()", self.shown(name));
                    return Err(self.fault(name, message).hint("it has and(), or() and negate()"));
                }
            };
            let left = self.measure();
            if text == "negate" {
                predicate = P::Not(Box::new(predicate));
            } else {
                let other = match self.argument()? {
                    Value::P(other) => Arc::unwrap_or_clone(other),
                    other => {
                        let message = format!("{text}() of a predicate does not take {}", other.type_name());
                        return Err(self.fault(name, message).hint("it takes a predicate"));
                    }
                };
                predicate = joined(text == "and", predicate, other);
            }
            self.expect(Kind::Close, ")")?;
            self.reach(left + usize::from(grows))?;
        }
        Ok(predicate)
    }
}

/// Conjunction or disjunction; flattens operands of the same kind.
fn joined(and: bool, first: P, second: P) -> P {
    let mut all = Vec::with_capacity(2);
    for one in [first, second] {
        match one {
            P::And(inner) if and => extend(&mut all, inner),
            P::Or(inner) if !and => extend(&mut all, inner),
            other => all.push(other),
        }
    }
    if and { P::And(all) } else { P::Or(all) }
}

/// Linear for long chains: reuses the first list.
fn extend(all: &mut Vec<P>, inner: Vec<P>) {
    if all.is_empty() { *all = inner } else { all.extend(inner) }
}

fn make(name: &str, arguments: Vec<Value>) -> P {
    let mut values = arguments.into_iter();
    let mut next = || values.next().unwrap_or_default();
    let compare = |comparison, value| P::Compare(comparison, value);
    let text = |test, value| P::Text(test, value);
    match name {
        "eq" => compare(Comparison::Eq, next()),
        "neq" => compare(Comparison::Neq, next()),
        "lt" => compare(Comparison::Lt, next()),
        "lte" => compare(Comparison::Lte, next()),
        "gt" => compare(Comparison::Gt, next()),
        "gte" => compare(Comparison::Gte, next()),
        "inside" => P::Inside(next(), next()),
        "outside" => P::Outside(next(), next()),
        "between" => P::Between(next(), next()),
        "startingWith" => text(TextTest::StartingWith, next()),
        "notStartingWith" => text(TextTest::NotStartingWith, next()),
        "endingWith" => text(TextTest::EndingWith, next()),
        "notEndingWith" => text(TextTest::NotEndingWith, next()),
        "containing" => text(TextTest::Containing, next()),
        "notContaining" => text(TextTest::NotContaining, next()),
        "regex" => text(TextTest::Regex, next()),
        "notRegex" => text(TextTest::NotRegex, next()),
        "typeOf" => P::TypeOf(next()),
        "within" => P::Within(members(values.collect())),
        "without" => P::Without(members(values.collect())),
        _ => match next() {
            Value::P(inner) => P::Not(Box::new(Arc::unwrap_or_clone(inner))),
            other => P::Compare(Comparison::Neq, other),
        },
    }
}

/// Expands a single collection argument to its items.
fn members(mut arguments: Vec<Value>) -> Vec<Value> {
    match arguments.as_mut_slice() {
        [Value::List(values)] => std::mem::take(Arc::make_mut(values)),
        [Value::Set(values)] => values.iter().cloned().collect(),
        _ => arguments,
    }
}
