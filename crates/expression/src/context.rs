//! Evaluation context of one batch: current row, caches, buffers, decoding of operands.

use crate::evaluator::Evaluator;
use crate::pattern::Pattern;
use crate::value::Value;
use std::borrow::Cow;
use vervet_model::{Error, Id, Inline, Result, Tag, Words};

/// Number of text buffers kept for reuse.
const POOL_TEXTS: usize = 8;

/// A constant of an expression, looked up and decoded once.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    pub(crate) id: Id,
    pub(crate) value: Value<'static>,
}

/// An operand of an expression, decoded lazily.
#[derive(Clone, Debug)]
pub(crate) enum Operand<'e> {
    /// A term of a column; never unbound.
    Id(Id),
    Constant(&'e Constant),
    /// A computed value.
    Value(Value<'e>),
}

impl Operand<'_> {
    /// The id, if it is already known.
    #[inline]
    pub(crate) fn known_id(&self) -> Option<Id> {
        match self {
            Self::Id(id) => Some(*id),
            Self::Constant(constant) => Some(constant.id),
            Self::Value(_) => None,
        }
    }
}

/// A text and its language tag.
pub(crate) type Text<'e> = (Cow<'e, str>, Option<Cow<'e, str>>);

/// The batch, the current row, caches and buffers.
pub(crate) struct Context<'c> {
    pub(crate) evaluator: &'c Evaluator<'c>,
    pub(crate) columns: &'c [Vec<Id>],
    pub(crate) row: usize,
    pub(crate) scratch: String,
    pool: Vec<String>,
    /// The last non-constant pattern, with its flags.
    last_pattern: Option<(String, String, Option<Pattern>)>,
    /// The words of the text searched last.
    pub(crate) words: Words,
}

impl<'c> Context<'c> {
    pub(crate) fn new(evaluator: &'c Evaluator<'c>, columns: &'c [Vec<Id>]) -> Self {
        Self {
            evaluator,
            columns,
            row: 0,
            scratch: String::new(),
            pool: Vec::new(),
            last_pattern: None,
            words: Words::default(),
        }
    }

    /// The id of a variable in the current row.
    #[inline]
    pub(crate) fn id(&self, variable: usize) -> Id {
        self.columns.get(variable).and_then(|column| column.get(self.row)).copied().unwrap_or(Id::UNBOUND)
    }

    /// The value of a term.
    pub(crate) fn decode_id(&mut self, id: Id) -> Result<Value<'static>> {
        let mut buffer = self.pool.pop().unwrap_or_default();
        if let Some(value) = Value::from_inline(id, &mut buffer) {
            return Ok(value);
        }
        let mut value = None;
        self.evaluator.read_term(id, &mut self.scratch, &mut |parts| {
            value = Some(Value::from_parts(parts, std::mem::take(&mut buffer)));
        })?;
        value.ok_or_else(|| Error::internal(format!("the term of {id:?} could not be read")))
    }

    /// The value of an operand.
    pub(crate) fn decode<'e>(&mut self, operand: Operand<'e>) -> Result<Value<'e>> {
        match operand {
            Operand::Id(id) => self.decode_id(id),
            Operand::Constant(constant) => Ok(constant.value.borrow()),
            Operand::Value(value) => Ok(value),
        }
    }

    /// The text of a string or language-tagged string; `None` for everything else.
    pub(crate) fn text<'e>(&mut self, operand: Operand<'e>) -> Result<Option<Text<'e>>> {
        Ok(match self.decode(operand)? {
            Value::String(text) => Some((text, None)),
            Value::Language(text, tag) => Some((text, Some(tag))),
            _ => None,
        })
    }

    /// The text of an `xsd:string`; `None` for everything else.
    pub(crate) fn simple<'e>(&mut self, operand: Operand<'e>) -> Result<Option<Cow<'e, str>>> {
        Ok(match self.decode(operand)? {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    /// The effective boolean value; `None` is a type error.
    pub(crate) fn effective_boolean(&mut self, operand: Operand<'_>) -> Result<Option<bool>> {
        if let Operand::Id(id) = operand {
            match id.tag() {
                Tag::Boolean => return Ok(Some(id.payload() == 1)),
                Tag::Vertex | Tag::Edge | Tag::DateTime | Tag::Date => return Ok(None),
                Tag::Integer | Tag::Int | Tag::Long => {
                    return Ok(Some(!matches!(
                        Inline::from_id(id),
                        Some(Inline::Integer(0) | Inline::Int(0) | Inline::Long(0))
                    )));
                }
                _ => {}
            }
        }
        let value = self.decode(operand)?;
        let truth = value.effective_boolean();
        self.recycle_value(value);
        Ok(truth)
    }

    /// The id of an operand as a term.
    pub(crate) fn intern(&mut self, operand: Operand<'_>) -> Result<Id> {
        match operand {
            Operand::Id(id) => Ok(id),
            Operand::Constant(constant) => Ok(constant.id),
            Operand::Value(value) => {
                let id = value.intern(self.evaluator, &mut self.scratch)?;
                self.recycle_value(value);
                Ok(id)
            }
        }
    }

    /// An empty text, possibly with the capacity of a recycled one.
    pub(crate) fn buffer(&mut self) -> String {
        let mut buffer = self.pool.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Returns a text buffer for reuse.
    pub(crate) fn recycle(&mut self, text: Cow<'_, str>) {
        if let Cow::Owned(text) = text
            && self.pool.len() < POOL_TEXTS
        {
            self.pool.push(text);
        }
    }

    pub(crate) fn recycle_value(&mut self, value: Value<'_>) {
        match value {
            Value::Iri(text)
            | Value::Blank(text)
            | Value::String(text)
            | Value::Language(text, _)
            | Value::Typed(text, _)
            | Value::Triple(text) => self.recycle(text),
            _ => {}
        }
    }

    /// The compiled pattern, cached for the last text and flags.
    pub(crate) fn pattern(&mut self, pattern: &str, flags: &str) -> Option<Pattern> {
        match &self.last_pattern {
            Some((last, last_flags, compiled)) if last == pattern && last_flags == flags => compiled.clone(),
            _ => {
                let compiled = Pattern::new(pattern, flags);
                self.last_pattern = Some((pattern.to_owned(), flags.to_owned(), compiled.clone()));
                compiled
            }
        }
    }
}
