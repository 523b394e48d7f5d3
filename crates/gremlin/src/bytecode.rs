//! `Bytecode`: a traversal as a list of instructions, the common form of text and wire formats.

use crate::Value;
use std::sync::Arc;

/// Source position: bytes `start..end` of the text; both 0 without a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A traversal: source instructions (`withStrategies`, `with`), then the steps, the start step first.
///
/// An anonymous traversal (`__.out()`) has no source instructions. Names and arguments are not validated.
/// `tx().commit()` is the source instruction `tx` with the argument `"commit"`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bytecode {
    /// `g.withSideEffect(…)`, `g.with(…)`, …
    pub source: Vec<Instruction>,
    /// `V()`, `out("knows")`, …
    pub steps: Vec<Instruction>,
}

/// A step or a source instruction, with its arguments.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The name in gremlin-lang: `addV`, `in` (never `in_`).
    pub name: Arc<str>,
    /// The arguments; nested traversals are [`Value::Traversal`].
    pub arguments: Vec<Value>,
    /// The source position.
    pub at: Span,
}

impl Instruction {
    /// An instruction without a source position. Names of the language are shared, not copied.
    #[must_use]
    pub fn new(name: &str, arguments: Vec<Value>) -> Self {
        Self { name: crate::text::shared_name(name), arguments, at: Span::default() }
    }
}

/// Ignores the source position.
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
/// `withoutStrategies` uses only the name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Strategy {
    /// `SubgraphStrategy`; bytecode of drivers may have a Java class name with this suffix.
    pub name: Arc<str>,
    /// Named arguments.
    pub options: Vec<(Arc<str>, Value)>,
}

/// A lambda in a programming language. Vervet decodes it only to reject it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lambda {
    /// `gremlin-groovy`.
    pub language: Arc<str>,
    /// The source code.
    pub script: Arc<str>,
    /// Number of arguments; -1: unknown.
    pub arity: i32,
}
