//! Evaluation context of one batch: current row, caches, buffers, decoding of operands.

use crate::evaluator::Evaluator;
use crate::pattern::Pattern;
use crate::text_cache::TextCache;
use crate::value::Value;
use crate::work::{UNITS_PER_CHECK, of_text};
use std::borrow::Cow;
use std::cmp::Ordering;
use vervet_model::{Error, Id, Inline, Result, Tag, Words};

/// Number of text buffers kept for reuse.
const POOL_TEXTS: usize = 8;

/// Maximum capacity of a text buffer that is kept for reuse, in bytes.
const POOL_TEXT_BYTES: usize = 1 << 20;

/// Minimum size of an unfinished text that counts against the memory cap, in bytes.
const HELD_BYTES_MIN: usize = 1 << 16;

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
    /// The cache of texts, once a text has been compared.
    texts: Option<Box<TextCache>>,
    /// Units of work since the last check.
    units: usize,
    /// Bytes of large unfinished texts.
    held_bytes: usize,
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
            texts: None,
            units: 0,
            held_bytes: 0,
        }
    }

    /// Counts units of work, and checks the limits of the query after a fixed number.
    ///
    /// # Errors
    /// As [`crate::Interrupt::check`].
    #[inline]
    pub(crate) fn work(&mut self, units: usize) -> Result<()> {
        self.units = self.units.saturating_add(units);
        if self.units < UNITS_PER_CHECK { Ok(()) } else { self.check() }
    }

    #[cold]
    fn check(&mut self) -> Result<()> {
        self.units = 0;
        self.evaluator.check()
    }

    /// Counts an unfinished text, while further values are computed for it, that has grown from `before` to
    /// `after` bytes; small texts are not counted.
    ///
    /// # Errors
    /// As [`crate::Interrupt::check_room`].
    #[inline]
    pub(crate) fn hold(&mut self, before: usize, after: usize) -> Result<()> {
        if after < HELD_BYTES_MIN {
            return Ok(());
        }
        self.held_bytes += after - if before < HELD_BYTES_MIN { 0 } else { before };
        self.evaluator.check_room(self.held_bytes)
    }

    /// Ends [`Context::hold`] of a text of `bytes` bytes.
    #[inline]
    pub(crate) fn release(&mut self, bytes: usize) {
        if bytes >= HELD_BYTES_MIN {
            self.held_bytes -= bytes;
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
        self.work(value.as_ref().map_or(0, Value::work))?;
        value.ok_or_else(|| Error::internal(format!("the term of {id:?} could not be read")))
    }

    /// The order of two terms, if both are of type `xsd:string` and cached texts decide it.
    pub(crate) fn order_of_texts(&mut self, a: Id, b: Id) -> Result<Option<Ordering>> {
        if a.tag() != Tag::Literal && b.tag() != Tag::Literal {
            return Ok(None);
        }
        let evaluator = self.evaluator;
        if let Some(order) = evaluator.order_of_ranks(a, b)? {
            return Ok(Some(order));
        }
        let texts = self.texts.get_or_insert_with(|| evaluator.take_texts());
        match texts.order(a, b, evaluator.snapshot(), &mut self.scratch)? {
            Some((order, bytes)) => {
                self.work(of_text(bytes))?;
                Ok(Some(order))
            }
            None => Ok(None),
        }
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
        let value = self.decode(operand)?;
        self.work(value.work())?;
        Ok(match value {
            Value::String(text) => Some((text, None)),
            Value::Language(text, tag) => Some((text, Some(tag))),
            _ => None,
        })
    }

    /// The text of an `xsd:string`; `None` for everything else.
    pub(crate) fn simple<'e>(&mut self, operand: Operand<'e>) -> Result<Option<Cow<'e, str>>> {
        let value = self.decode(operand)?;
        self.work(value.work())?;
        Ok(match value {
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
                if !matches!(value, Value::Integer(_)) {
                    self.work(value.work())?;
                }
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
            && text.capacity() <= POOL_TEXT_BYTES
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

    /// The compiled pattern, cached for the last text and flags, and for some of the query.
    pub(crate) fn pattern(&mut self, pattern: &str, flags: &str) -> Result<Option<Pattern>> {
        if let Some((last, last_flags, compiled)) = &self.last_pattern
            && last == pattern
            && last_flags == flags
        {
            return Ok(compiled.clone());
        }
        let evaluator = self.evaluator;
        let compile = || Pattern::new(pattern, flags, &mut |units| self.work(units));
        let compiled = evaluator.patterns().find(pattern, flags, compile)?;
        self.last_pattern = Some((pattern.to_owned(), flags.to_owned(), compiled.clone()));
        Ok(compiled)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        if let Some(texts) = self.texts.take() {
            self.evaluator.keep_texts(texts);
        }
    }
}
