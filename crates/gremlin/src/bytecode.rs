//! A traversal as the list of its steps, as text and wire formats both give it.

use crate::Value;
use std::sync::Arc;

/// Where something stands in a text: bytes `start..end`; both 0 if it came without a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

/// A traversal: what is said of the source (`withStrategies`, `with`), then the steps, the one that starts it
/// first.
///
/// An anonymous traversal (`__.out()`) has no source instructions. Not checked: names and arguments may be
/// anything. `tx().commit()` is the source instruction `tx` with the argument `"commit"`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bytecode {
    /// `g.withSideEffect(…)`, `g.with(…)`, …
    pub source: Vec<Instruction>,
    /// `V()`, `out("knows")`, …
    pub steps: Vec<Instruction>,
}

/// A step, or a word about the source, with its arguments.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Its name as the language has it: `addV`, `in` (never `in_`).
    pub name: Arc<str>,
    /// What stands between the parentheses; nested traversals are [`Value::Traversal`].
    pub arguments: Vec<Value>,
    /// Where it stands in the text.
    pub at: Span,
}

impl Instruction {
    /// An instruction that stands in no text. Names of the language are shared, not copied.
    #[must_use]
    pub fn new(name: &str, arguments: Vec<Value>) -> Self {
        Self { name: crate::text::shared_name(name), arguments, at: Span::default() }
    }
}

/// Where it stands does not count.
impl PartialEq for Instruction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments == other.arguments
    }
}

impl Eq for Instruction {}

impl std::hash::Hash for Instruction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.arguments.hash(state);
    }
}

/// A strategy by its simple name, with options: `new SubgraphStrategy(vertices: __.hasLabel("person"))`.
///
/// In `withoutStrategies` only the name counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Strategy {
    /// `SubgraphStrategy`; in bytecode of drivers also a Java class name, which ends in that.
    pub name: Arc<str>,
    /// Named arguments.
    pub options: Vec<(Arc<str>, Value)>,
}

/// A function in a programming language. Vervet reads it from the wire to say that it does not run it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lambda {
    /// `gremlin-groovy`.
    pub language: Arc<str>,
    /// Its text.
    pub script: Arc<str>,
    /// How many arguments it takes; -1: unknown.
    pub arity: i32,
}
