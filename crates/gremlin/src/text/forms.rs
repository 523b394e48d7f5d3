//! Signature check: matches calls against the table in `steps`, and describes valid signatures in messages.
//!
//! # Shape
//! Each value has one *kind*, represented as a bit. A word of the table is a set of kinds; a form is a
//! sequence of sets. The compiled tables are built on first use.

use super::steps::{self, Entry, OLD};
use crate::{Token, Value};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// A set of argument kinds.
type Kinds = u32;

const NULL: Kinds = 1;
const BOOLEAN: Kinds = 1 << 1;
const INTEGER: Kinds = 1 << 2;
const DECIMAL: Kinds = 1 << 3;
const TEXT: Kinds = 1 << 4;
const DATE: Kinds = 1 << 5;
const MAP: Kinds = 1 << 6;
const TOKEN: Kinds = 1 << 7;
const ORDER: Kinds = 1 << 8;
const SCOPE: Kinds = 1 << 9;
const COLUMN: Kinds = 1 << 10;
const POP: Kinds = 1 << 11;
const OPERATOR: Kinds = 1 << 12;
const BARRIER: Kinds = 1 << 13;
const MERGE: Kinds = 1 << 14;
const CARDINALITY: Kinds = 1 << 15;
const DIRECTION: Kinds = 1 << 16;
const PICK: Kinds = 1 << 17;
const UNIT: Kinds = 1 << 18;
const TYPE: Kinds = 1 << 19;
const PREDICATE: Kinds = 1 << 20;
const TRAVERSAL: Kinds = 1 << 21;
const STRATEGY: Kinds = 1 << 22;
const VERTEX: Kinds = 1 << 23;
const OTHER: Kinds = 1 << 24;
const ANY: Kinds =
    !(ORDER | SCOPE | COLUMN | POP | OPERATOR | BARRIER | PREDICATE | STRATEGY) & ((1 << 25) - 1);

/// The kinds of the words in the table.
const WORDS: &[(&str, Kinds)] = &[
    ("any", ANY),
    ("barrier", BARRIER),
    ("boolean", BOOLEAN),
    ("cardinality", CARDINALITY),
    ("column", COLUMN),
    ("date", DATE),
    ("direction", DIRECTION),
    ("integer", INTEGER),
    ("map", MAP),
    ("merge", MERGE),
    ("number", INTEGER | DECIMAL),
    ("operator", OPERATOR),
    ("order", ORDER),
    ("pop", POP),
    ("predicate", PREDICATE),
    ("scope", SCOPE),
    ("strategy", STRATEGY),
    ("text", TEXT),
    ("token", TOKEN),
    ("traversal", TRAVERSAL),
    ("type", TYPE),
    ("unit", UNIT),
    ("vertex", VERTEX),
];

fn kind(value: &Value) -> Kinds {
    match value {
        Value::Null => NULL,
        Value::Boolean(_) => BOOLEAN,
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) | Value::BigInteger(_) => INTEGER,
        Value::Float(_) | Value::Double(_) | Value::BigDecimal(_) => DECIMAL,
        Value::String(_) => TEXT,
        Value::DateTime(_) => DATE,
        Value::Map(_) => MAP,
        Value::P(_) => PREDICATE,
        Value::Traversal(traversal) => {
            let ends = traversal.steps.last().is_some_and(|last| is_terminal(&last.name));
            if ends { OTHER } else { TRAVERSAL }
        }
        Value::Strategy(_) => STRATEGY,
        Value::Vertex(_) => VERTEX,
        Value::Token(token) => match token {
            Token::T(_) => TOKEN,
            Token::Direction(_) => DIRECTION,
            Token::Order(_) => ORDER,
            Token::Scope(_) => SCOPE,
            Token::Pop(_) => POP,
            Token::Pick(_) => PICK,
            Token::Column(_) => COLUMN,
            Token::Cardinality(_) => CARDINALITY,
            Token::Operator(_) => OPERATOR,
            Token::Barrier(_) => BARRIER,
            Token::Merge(_) => MERGE,
            Token::TimeUnit(_) => UNIT,
            Token::GType(_) => TYPE,
        },
        _ => OTHER,
    }
}

/// Whether a value may be in a collection, or an argument of any type.
pub(super) fn is_any(value: &Value) -> bool {
    kind(value) & ANY != 0
}

/// A signature: the kinds of the fixed arguments, then of the variadic ones (0: not variadic).
#[derive(Debug)]
struct Form {
    arguments: Vec<Kinds>,
    rest: Kinds,
}

/// A callable name with its signatures.
#[derive(Debug)]
pub(super) struct Callable {
    /// Its name, allocated once.
    pub(super) name: Arc<str>,
    forms: Vec<Form>,
    described: &'static [&'static str],
}

impl Callable {
    fn new(&(name, described): &Entry) -> Self {
        let forms = described.iter().filter(|form| **form != OLD).map(|form| Form::new(form)).collect();
        Self { name: steps::shared_name(name), forms, described }
    }

    /// Whether a signature accepts these arguments.
    pub(super) fn takes(&self, arguments: &[Value]) -> bool {
        self.forms.iter().any(|form| form.takes(arguments))
    }

    /// `limit() takes limit(integer) or limit(scope, integer)`.
    pub(super) fn describe(&self) -> String {
        let forms: Vec<_> = self.described.iter().take_while(|form| **form != OLD).collect();
        let mut text = format!("{}() takes ", self.name);
        for (at, form) in forms.iter().enumerate() {
            let between = match at {
                0 => "",
                _ if at + 1 == forms.len() => " or ",
                _ => ", ",
            };
            let _ = write!(text, "{between}{}({form})", self.name);
        }
        if forms.is_empty() {
            text = format!("{}() is from an older version of Gremlin", self.name);
        }
        text
    }
}

impl Form {
    fn new(text: &str) -> Self {
        let mut form = Self { arguments: Vec::new(), rest: 0 };
        for argument in text.split(", ").filter(|argument| !argument.is_empty()) {
            match argument.strip_suffix("...") {
                Some(rest) => form.rest = kinds(rest),
                None => form.arguments.push(kinds(argument)),
            }
        }
        form
    }

    fn takes(&self, arguments: &[Value]) -> bool {
        if arguments.len() < self.arguments.len() {
            return false;
        }
        let (first, rest) = arguments.split_at(self.arguments.len());
        let fits = |(value, kinds): (&Value, &Kinds)| kind(value) & kinds != 0;
        first.iter().zip(&self.arguments).all(fits) && rest.iter().all(|value| kind(value) & self.rest != 0)
    }
}

/// `text? | token`
fn kinds(words: &str) -> Kinds {
    let one = |word: &str| {
        let (name, null) = word.strip_suffix('?').map_or((word, 0), |name| (name, NULL));
        let known = WORDS.iter().find(|(known, _)| *known == name);
        known.map_or(0, |(_, kinds)| kinds | null)
    };
    words.split(" | ").map(one).fold(0, |all, kinds| all | kinds)
}

/// Callables by name.
#[derive(Debug)]
pub(super) struct Table {
    callables: FxHashMap<&'static str, Callable>,
    entries: &'static [Entry],
}

impl Table {
    fn new(entries: &'static [Entry]) -> Self {
        let callables = entries.iter().map(|entry| (entry.0, Callable::new(entry))).collect();
        Self { callables, entries }
    }

    /// Looks up a name, including variants for languages in which the name is reserved (`in_`).
    pub(super) fn find(&self, name: &str) -> Option<&Callable> {
        self.callables.get(name).or_else(|| self.callables.get(name.strip_suffix('_')?))
    }

    /// All names, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.entries.iter().map(|entry| entry.0)
    }
}

/// Source instructions.
pub(super) static SOURCE: LazyLock<Table> = LazyLock::new(|| Table::new(steps::SOURCE));
/// Start steps.
pub(super) static SPAWN: LazyLock<Table> = LazyLock::new(|| Table::new(steps::SPAWN));
/// Steps.
pub(super) static STEPS: LazyLock<Table> = LazyLock::new(|| Table::new(steps::STEPS));
/// Predicates.
pub(super) static PREDICATES: LazyLock<Table> = LazyLock::new(|| Table::new(steps::PREDICATES));
/// Terminal methods.
pub(super) static TERMINALS: LazyLock<Table> = LazyLock::new(|| Table::new(steps::TERMINALS));

/// Whether this is a terminal method.
pub(super) fn is_terminal(name: &str) -> bool {
    steps::TERMINALS.iter().any(|entry| entry.0 == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_table_is_known() {
        for (name, forms) in
            [steps::SOURCE, steps::SPAWN, steps::STEPS, steps::PREDICATES, steps::TERMINALS].concat()
        {
            for form in forms.iter().filter(|form| **form != OLD) {
                let mut arguments = form.split(", ").filter(|argument| !argument.is_empty());
                let words =
                    arguments.clone().flat_map(|argument| argument.trim_end_matches("...").split(" | "));
                for word in words {
                    assert_ne!(kinds(word), 0, "{name}({form}): {word}");
                }
                assert!(arguments.all(|argument| kinds(argument.trim_end_matches("...")) != 0));
            }
        }
    }

    #[test]
    fn forms_are_described() {
        let describe = |name| STEPS.find(name).map(Callable::describe);
        assert_eq!(
            describe("limit").as_deref(),
            Some("limit() takes limit(integer) or limit(scope, integer)")
        );
        assert_eq!(describe("in_").as_deref(), Some("in() takes in(text?...)"));
        assert_eq!(describe("store").as_deref(), Some("store() is from an older version of Gremlin"));
    }
}
