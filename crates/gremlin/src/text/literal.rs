//! Parser of arguments: literals, members of enumerations, collections, strategies, variables.

use super::error::{NO_LAMBDAS, Result};
use super::forms::{PREDICATES, STEPS, is_any};
use super::lex::{Kind, Token};
use super::parse::Parser;
use super::predicate::is_predicate;
use super::statement::RANGE_VALUES_MAX;
use super::suggest::nearest;
use super::{datetime, number, strings, words};
use crate::{Cardinality, Instruction, Map, Set, Span, Strategy, Token as Member, Value};
use std::sync::Arc;
use uuid::Uuid;

impl Parser<'_> {
    /// Parses any argument.
    pub(super) fn argument(&mut self) -> Result<Value> {
        self.enter()?;
        let value = match self.token.kind {
            Kind::Name => {
                let name = self.bump()?;
                self.word(name)?
            }
            Kind::Text | Kind::Number => self.literal()?,
            Kind::OpenBracket => self.brackets()?,
            Kind::OpenBrace => self.braces()?,
            _ => return Err(self.unexpected("an argument")),
        };
        self.leave();
        Ok(value)
    }

    /// Parses an element of a collection.
    fn element(&mut self) -> Result<Value> {
        let first = self.token;
        let value = self.argument()?;
        self.check_element(first, value)
    }

    fn check_element(&self, first: Token, value: Value) -> Result<Value> {
        if is_any(&value) {
            return Ok(value);
        }
        Err(self.fault(first, format!("{} is not a value by itself", value.type_name())))
    }

    /// Parses a number, a string, or a range of these.
    fn literal(&mut self) -> Result<Value> {
        let first = self.bump()?;
        let value = self.simple(first)?;
        if self.token.kind != Kind::Dot {
            return Ok(value);
        }
        self.bump()?;
        self.expect(Kind::Dot, ".. (a range)")?;
        let last = if self.token.kind == first.kind {
            self.bump()?
        } else {
            return Err(self.unexpected("the end of the range"));
        };
        let end = self.simple(last)?;
        let range = Token { end: last.end, ..first };
        match (value, end) {
            (Value::Int(start), Value::Int(end)) => {
                self.take_range(range, start.abs_diff(end) as usize)?;
                let values: Vec<Value> = if start <= end {
                    (start..=end).map(Value::Int).collect()
                } else {
                    (end..=start).rev().map(Value::Int).collect()
                };
                Ok(Value::list(values))
            }
            (Value::String(start), Value::String(end)) => self.text_range(range, &start, &end),
            _ => Err(self.fault(range, "the ends of a range must be two ints or two strings")),
        }
    }

    fn take_range(&mut self, range: Token, values: usize) -> Result<()> {
        self.range_values = self.range_values.saturating_add(values).saturating_add(1);
        if self.range_values <= RANGE_VALUES_MAX {
            return Ok(());
        }
        Err(self.fault(range, format!("ranges have more than {RANGE_VALUES_MAX} values together")))
    }

    /// `"aa".."ad"`: the ends differ only in their last character.
    fn text_range(&mut self, range: Token, start: &str, end: &str) -> Result<Value> {
        let split = |text: &str| text.char_indices().next_back().map(|(at, c)| (text[..at].to_owned(), c));
        let (Some((prefix, first)), Some((other, last))) = (split(start), split(end)) else {
            if start.is_empty() && end.is_empty() {
                return Ok(Value::list(Vec::new()));
            }
            return Err(self.fault(range, "the ends of a range of strings must have the same length"));
        };
        if prefix != other {
            return Err(
                self.fault(range, "the ends of a range of strings may differ in their last character only")
            );
        }
        self.take_range(
            range,
            (first as usize).abs_diff(last as usize).saturating_mul(prefix.len() / 64 + 1),
        )?;
        let made = |c: char| Value::String(format!("{prefix}{c}").into());
        Ok(Value::list(if first <= last {
            (first..=last).map(made).collect()
        } else {
            (last..=first).rev().map(made).collect()
        }))
    }

    fn simple(&self, token: Token) -> Result<Value> {
        let text = self.text(token);
        match token.kind {
            Kind::Text => Ok(Value::String(self.string(token)?)),
            _ => number::value(text).map_err(|message| self.fault(token, message)),
        }
    }

    fn string(&self, token: Token) -> Result<Arc<str>> {
        let text = self.text(token);
        let inside = text.get(1..text.len() - 1).unwrap_or_default();
        if !inside.contains('\\') {
            return Ok(inside.into());
        }
        strings::unescape(inside).map(Into::into).map_err(|(at, message)| {
            let start = token.start.saturating_add(1).saturating_add(u32::try_from(at).unwrap_or_default());
            self.fault(Token { start, end: (start + 2).min(token.end), ..token }, message)
        })
    }

    /// Parses the value of a name that is already consumed, with its arguments.
    fn word(&mut self, name: Token) -> Result<Value> {
        let text = self.text(name);
        match (text, self.token.kind) {
            ("datetime" | "DateTime", Kind::Open) => return self.datetime(),
            ("UUID", Kind::Open) => return self.uuid(),
            ("single" | "set" | "list", Kind::Open) => return self.with_cardinality(text),
            ("not", Kind::Open) => return self.not(name),
            (_, Kind::Open) if is_predicate(text) => return Ok(self.predicate(name)?.into()),
            (_, Kind::Open) => return self.unknown_or_anonymous(name),
            ("P" | "TextP", Kind::Dot) => {
                self.bump()?;
                let name = self.expect(Kind::Name, "the name of a predicate")?;
                return Ok(self.predicate(name)?.into());
            }
            ("__", Kind::Dot) => {
                self.bump()?;
                let name = self.expect(Kind::Name, "the name of a step")?;
                return Ok(self.anonymous(name)?.into());
            }
            (_, Kind::Dot) if self.source(text).is_some() => return Ok(self.terminated(name)?.into()),
            ("VertexProperty", Kind::Dot) => {
                self.bump()?;
                let name = self.expect(Kind::Name, "Cardinality")?;
                return if self.text(name) == "Cardinality" {
                    self.member(name)
                } else {
                    Err(self.unknown(name))
                };
            }
            (_, Kind::Dot) if words::is_class(text) => return self.member(name),
            _ => {}
        }
        Ok(match text {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            "null" => Value::Null,
            "NaN" => Value::Double(f64::NAN),
            "Infinity" => Value::Double(f64::INFINITY),
            _ => self.member_or_variable(name)?,
        })
    }

    /// A bare word. Variables shadow type names: a parameter named `path` is more likely than the type.
    fn member_or_variable(&self, name: Token) -> Result<Value> {
        let text = self.text(name);
        let bound = || self.options.bindings.get(text);
        match words::member(text) {
            Some(Member::GType(found)) => Ok(bound().cloned().unwrap_or(Value::Token(Member::GType(found)))),
            Some(member) => Ok(Value::Token(member)),
            None => bound().cloned().ok_or_else(|| self.unknown(name)),
        }
    }

    #[cold]
    fn unknown(&self, name: Token) -> Box<super::error::Fault> {
        let text = self.text(name);
        if self.source(text).is_some() {
            return self
                .fault(name, format!("{text} is not a value"))
                .hint("begin an anonymous traversal with __");
        }
        let fault = self.fault(name, format!("the variable {} has no value", self.shown(name)));
        if STEPS.find(text).is_some() || PREDICATES.find(text).is_some() {
            return fault.hint(format!("a step needs its parentheses: {text}()"));
        }
        if text == "new" {
            return fault.hint("create objects with datetime(…), UUID(…) or literals");
        }
        if text == "it" {
            return fault.hint(NO_LAMBDAS);
        }
        if let Some(hint) = super::mistakes::of_value(text) {
            return fault.hint(hint);
        }
        let mut known: Vec<&str> = self.options.bindings.keys().map(String::as_str).collect();
        known.sort_unstable();
        words::classes().for_each(|class| known.push(class));
        match nearest(text, known) {
            Some(near) => fault.hint(format!("did you mean {near}?")),
            None => fault.hint("bind it as a parameter of the query, or put quotes around a string"),
        }
    }

    #[inline(never)]
    fn unknown_or_anonymous(&mut self, name: Token) -> Result<Value> {
        let text = self.text(name);
        if STEPS.find(text).is_none()
            && nearest(text, STEPS.names()).is_none()
            && let Some(near) = nearest(text, PREDICATES.names())
        {
            let message = format!("there is neither a step nor a predicate {}", self.shown(name));
            return Err(self.fault(name, message).hint(format!("did you mean {near}()?")));
        }
        Ok(self.anonymous(name)?.into())
    }

    /// `T.id`, `Cardinality.single("x")`, `WithOptions.tokens`; the class name is already consumed.
    fn member(&mut self, class: Token) -> Result<Value> {
        self.bump()?;
        let name = self.expect(Kind::Name, "a member")?;
        let (class, text) = (self.text(class), self.text(name));
        if class == "Cardinality" && self.token.kind == Kind::Open && Cardinality::from_name(text).is_some() {
            return self.with_cardinality(text);
        }
        words::constant(class, text).map_err(|hint| {
            let fault = self.fault(name, format!("{class} has no member {}", self.shown(name)));
            match hint {
                Some(hint) => fault.hint(hint),
                None => fault,
            }
        })
    }

    fn with_cardinality(&mut self, name: &str) -> Result<Value> {
        let cardinality = Cardinality::from_name(name).unwrap_or(Cardinality::Single);
        self.expect(Kind::Open, "(")?;
        let value = self.element()?;
        self.expect(Kind::Close, ")")?;
        Ok(Value::WithCardinality(Arc::new((cardinality, value))))
    }

    /// The step `not(traversal)` or the predicate `not(predicate)`; the argument decides.
    fn not(&mut self, name: Token) -> Result<Value> {
        let outer = self.measure();
        self.expect(Kind::Open, "(")?;
        let argument = self.argument()?;
        let close = self.expect(Kind::Close, ")")?;
        if let Value::P(inner) = argument {
            return Ok(self.negated(Arc::unwrap_or_clone(inner), outer)?.into());
        }
        self.deepest = self.deepest.max(outer);
        let arguments = vec![argument];
        match STEPS.find("not") {
            Some(step) if step.takes(&arguments) => {
                let at = Span { start: name.start, end: close.end };
                let first = Instruction { name: step.name.clone(), arguments, at };
                Ok(self.anonymous_from(first)?.into())
            }
            _ => {
                let message = format!("not() does not take {}", arguments[0].type_name());
                Err(self.fault(name, message).hint("not() takes not(traversal) or not(predicate)"))
            }
        }
    }

    /// The optional string argument of a call.
    fn optional_text(&mut self) -> Result<(Token, Option<Arc<str>>)> {
        self.expect(Kind::Open, "(")?;
        let token = self.token;
        let text = match token.kind {
            Kind::Text => {
                self.bump()?;
                Some(self.string(token)?)
            }
            _ => None,
        };
        self.expect(Kind::Close, "a string or )")?;
        Ok((token, text))
    }

    fn datetime(&mut self) -> Result<Value> {
        let (token, text) = self.optional_text()?;
        let at = match text {
            None => self.options.now,
            Some(text) => datetime::parse(&text).ok_or_else(|| {
                let fault = self.fault(token, "this is not a time for datetime()");
                fault.hint("write it as in datetime(\"2023-08-02T10:30:00Z\") or datetime(\"2023-08-02\")")
            })?,
        };
        Ok(at.into())
    }

    fn uuid(&mut self) -> Result<Value> {
        let (token, text) = self.optional_text()?;
        let Some(text) = text else {
            self.uuids += 1;
            return Ok(uuid::Builder::from_random_bytes(splitmix_bytes(self.options.seed, self.uuids))
                .into_uuid()
                .into());
        };
        let parsed = Uuid::try_parse(&text).map_err(|_| {
            let fault = self.fault(token, "this is not a UUID");
            fault.hint("write it as in UUID(\"f47af10b-58cc-4372-a567-0f02b2f3d479\")")
        })?;
        Ok(parsed.into())
    }

    /// `[1, 2]`, `[a: 1]` or `[:]`.
    fn brackets(&mut self) -> Result<Value> {
        self.bump()?;
        match self.token.kind {
            Kind::CloseBracket => {
                self.bump()?;
                return Ok(Value::list(Vec::new()));
            }
            Kind::Colon => {
                self.bump()?;
                self.expect(Kind::CloseBracket, "]")?;
                return Ok(Value::map(Map::default()));
            }
            _ => {}
        }
        let (first, kind) = self.key_or_element()?;
        if self.token.kind == Kind::Colon {
            self.check_key(&first, kind)?;
            return self.map(first);
        }
        if !matches!(kind, Key::Literal(_)) {
            return Err(self.unexpected(": after the key of a map"));
        }
        let mut values = vec![first];
        while self.token.kind == Kind::Comma {
            self.bump()?;
            values.push(self.element()?);
        }
        self.expect(Kind::CloseBracket, ", or ]")?;
        Ok(Value::list(values))
    }

    /// Parses the rest of a map; the next token is a colon.
    fn map(&mut self, first: Value) -> Result<Value> {
        let mut map = Map::default();
        let mut key = first;
        loop {
            self.expect(Kind::Colon, ": after the key of a map")?;
            let value = self.element()?;
            map.insert(key, value);
            if self.token.kind == Kind::CloseBracket {
                self.bump()?;
                return Ok(Value::map(map));
            }
            self.expect(Kind::Comma, ", or ]")?;
            let (next, kind) = self.key_or_element()?;
            self.check_key(&next, kind)?;
            key = next;
        }
    }

    /// The first item in brackets: a map key in any form, or a list element.
    fn key_or_element(&mut self) -> Result<(Value, Key)> {
        let first = self.token;
        match first.kind {
            Kind::Open => {
                self.bump()?;
                let value = self.element()?;
                self.expect(Kind::Close, ")")?;
                Ok((value, Key::Sure))
            }
            Kind::Name => {
                self.bump()?;
                let text = self.text(first);
                if self.token.kind == Kind::Colon && !matches!(text, "NaN" | "Infinity") {
                    return Ok((Value::text(text), Key::Sure));
                }
                self.enter()?;
                let value = self.word(first)?;
                self.leave();
                Ok((self.check_element(first, value)?, Key::Literal(first)))
            }
            _ => Ok((self.element()?, Key::Literal(first))),
        }
    }

    /// Checks a key without parentheses, which not every value can be.
    fn check_key(&self, key: &Value, kind: Key) -> Result<()> {
        let Key::Literal(first) = kind else { return Ok(()) };
        let plain = match key {
            Value::String(_) | Value::List(_) | Value::Set(_) | Value::Map(_) => true,
            Value::Token(Member::T(_) | Member::Direction(_)) => true,
            other => other.is_number(),
        };
        if plain {
            return Ok(());
        }
        let fault = self.fault(first, format!("{} cannot be the key of a map like this", key.type_name()));
        Err(fault.hint("put parentheses around the key"))
    }

    fn braces(&mut self) -> Result<Value> {
        self.bump()?;
        let mut values = Set::default();
        if self.token.kind != Kind::CloseBrace {
            loop {
                values.insert(self.element()?);
                if self.token.kind != Kind::Comma {
                    break;
                }
                self.bump()?;
            }
        }
        self.expect(Kind::CloseBrace, ", or }")?;
        Ok(Value::Set(Arc::new(values)))
    }

    /// `new SubgraphStrategy(vertices: …)`, `ReadOnlyStrategy`.
    pub(super) fn strategy(&mut self) -> Result<Value> {
        let mut name = self.expect(Kind::Name, "the name of a strategy")?;
        if self.text(name) == "new" {
            name = self.expect(Kind::Name, "the name of a strategy")?;
        }
        let mut strategy = Strategy { name: self.text(name).into(), options: Vec::new() };
        if self.token.kind == Kind::Open {
            self.bump()?;
            self.enter()?;
            while self.token.kind != Kind::Close {
                let key = self.expect(Kind::Name, "the name of an option, as in name: value")?;
                self.expect(Kind::Colon, ": after the name of an option")?;
                let value = self.element()?;
                strategy.options.push((self.text(key).into(), value));
                if self.token.kind != Kind::Comma {
                    break;
                }
                self.bump()?;
            }
            self.leave();
            self.expect(Kind::Close, ", or )")?;
        }
        Ok(strategy.into())
    }
}

/// Whether the parsed item can only be a key (in parentheses or as a bare word), or is a literal at this
/// token.
#[derive(Clone, Copy)]
enum Key {
    Sure,
    Literal(Token),
}

/// Pseudo-random bytes (two rounds of splitmix64 for each half).
fn splitmix_bytes(seed: u128, count: u128) -> [u8; 16] {
    let mix = |state: u64| {
        let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let state =
        seed.wrapping_add(count.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)).to_le_bytes();
    let half = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&state[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let low = mix(half(0) ^ mix(half(8)));
    let high = mix(half(8).wrapping_add(low));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    bytes
}
