//! `GROUP_CONCAT`: the text of one group.
//!
//! # Shape
//! Texts of terms are read into the text of the group, without a copy in between. The text of a first value
//! that is a string of the snapshot is read when there is a second value, so a group of one string is that
//! term: it is neither read nor looked up.

use crate::MAX_TEXT_BYTES;
use crate::computed::text_too_long;
use crate::context::{Context, Operand};
use crate::evaluate::{lexical_form, write_lexical_form};
use crate::operands::is_plain_text;
use crate::value::Value;
use crate::work::of_text;
use vervet_model::{Id, Multiplicity, Result};

#[derive(Clone, Default)]
pub(super) enum Concat {
    #[default]
    Empty,
    Failed,
    /// A single value, which is a string.
    One(Id),
    /// The text so far.
    Text(String),
}

impl Concat {
    /// Adds `times` times the operand.
    pub(super) fn add(
        &mut self,
        separator: &str,
        operand: Operand<'_>,
        times: Multiplicity,
        context: &mut Context<'_>,
        heap_bytes: &mut usize,
    ) -> Result<()> {
        let first = match self {
            Self::Failed => return Ok(()),
            Self::Empty => {
                if let (Some(id), Multiplicity::ONE) = (operand.known_id(), times)
                    && is_plain_text(id, context)?
                {
                    *self = Self::One(id);
                    return Ok(());
                }
                true
            }
            Self::One(_) => {
                self.read_one(context, heap_bytes)?;
                false
            }
            Self::Text(_) => false,
        };
        let mut text = match std::mem::replace(self, Self::Failed) {
            Self::Text(text) => text,
            _ => String::new(),
        };
        let before = text.len();
        text.push_str(if first { "" } else { separator });
        let start = text.len();
        let is_text = match operand.known_id() {
            Some(id) => write_lexical_form(id, &mut text, context)?,
            None => match lexical_form(operand, context)? {
                Some(Value::String(value)) => {
                    text.push_str(&value);
                    context.recycle(value);
                    true
                }
                _ => false,
            },
        };
        if !is_text {
            *heap_bytes = heap_bytes.saturating_sub(before);
            return Ok(());
        }
        if times != Multiplicity::ONE {
            repeat(&mut text, start, separator, times.get() - 1, context)?;
        }
        context.work(1 + of_text(text.len() - before))?;
        if text.len() > MAX_TEXT_BYTES {
            return Err(text_too_long());
        }
        *heap_bytes += text.len() - before;
        *self = Self::Text(text);
        Ok(())
    }

    /// Reads the text of a single value.
    fn read_one(&mut self, context: &mut Context<'_>, heap_bytes: &mut usize) -> Result<()> {
        if let Self::One(id) = *self {
            let mut text = String::new();
            write_lexical_form(id, &mut text, context)?;
            *heap_bytes += text.len();
            *self = Self::Text(text);
        }
        Ok(())
    }

    /// Adds the values of a group that another thread has aggregated.
    pub(super) fn append(
        &mut self,
        separator: &str,
        other: Self,
        context: &mut Context<'_>,
        heap_bytes: &mut usize,
    ) -> Result<()> {
        match (&mut *self, other) {
            (Self::Failed, _) | (_, Self::Empty) => {}
            (_, Self::Failed) => *self = Self::Failed,
            (Self::Empty, Self::Text(text)) => {
                *heap_bytes += text.len();
                *self = Self::Text(text);
            }
            (_, Self::One(id)) => {
                self.add(separator, Operand::Id(id), Multiplicity::ONE, context, heap_bytes)?;
            }
            (_, Self::Text(text)) => {
                self.read_one(context, heap_bytes)?;
                if let Self::Text(all) = self {
                    if all.len() + separator.len() + text.len() > MAX_TEXT_BYTES {
                        return Err(text_too_long());
                    }
                    *heap_bytes += separator.len() + text.len();
                    all.push_str(separator);
                    all.push_str(&text);
                }
            }
        }
        Ok(())
    }
}

/// Appends the text from `start` on `times` times, after a separator each.
fn repeat(
    text: &mut String,
    start: usize,
    separator: &str,
    times: u128,
    context: &mut Context<'_>,
) -> Result<()> {
    let value = text[start..].to_owned();
    let length = separator.len() + value.len();
    for _ in 0..if length == 0 { 0 } else { times } {
        if text.len() + length > MAX_TEXT_BYTES {
            return Err(text_too_long());
        }
        context.work(1 + of_text(length))?;
        text.push_str(separator);
        text.push_str(&value);
    }
    Ok(())
}
