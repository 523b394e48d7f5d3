//! Templates of `format()`: `Hello %{name}`, where `%{_}` is the result of the next `by()`.

use crate::Value;
use crate::semantics::string::Writer;
use crate::semantics::{Details, Result};
use std::sync::Arc;

/// A parsed template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template(Vec<TemplatePart>);

/// A piece of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TemplatePart {
    /// Literal text.
    Text(Arc<str>),
    /// The value of the variable with this name; `_`: of the next `by()`.
    Variable(Arc<str>),
}

impl Template {
    /// Parses `text`. Everything else is literal text, including `%%{name}` and a name with a line break.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut literal = 0;
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| rest.find("%{")) {
            let start = at + found;
            let name = text.get(start + 2..).unwrap_or_default();
            let escaped = text.get(..start).is_some_and(|before| before.ends_with('%'));
            match name.find(['}', '\n', '\r']) {
                Some(length) if !escaped && name.as_bytes().get(length) == Some(&b'}') => {
                    parts.extend(
                        text.get(literal..start)
                            .filter(|text| !text.is_empty())
                            .map(|t| TemplatePart::Text(t.into())),
                    );
                    parts.push(TemplatePart::Variable(name.get(..length).unwrap_or_default().into()));
                    literal = start + 2 + length + 1;
                    at = literal;
                }
                _ => at = start + 2,
            }
        }
        parts.extend(
            text.get(literal..).filter(|text| !text.is_empty()).map(|text| TemplatePart::Text(text.into())),
        );
        Self(parts)
    }

    /// The pieces in order.
    #[must_use]
    pub fn parts(&self) -> &[TemplatePart] {
        &self.0
    }

    /// Renders the template. `find` returns the value of each variable from left to right. `None` if a
    /// variable has no value or is null.
    ///
    /// # Errors
    /// `find` fails, or the text is too long.
    pub fn render<E: From<crate::semantics::Error>>(
        &self,
        details: &dyn Details,
        mut find: impl FnMut(&str) -> std::result::Result<Option<Value>, E>,
    ) -> std::result::Result<Option<Value>, E> {
        let mut out = Writer::new(details);
        for part in &self.0 {
            let written: Result<()> = match part {
                TemplatePart::Text(text) => out.push(text),
                TemplatePart::Variable(name) => match find(name)? {
                    None | Some(Value::Null) => return Ok(None),
                    Some(value) => out.value(&value),
                },
            };
            written?;
        }
        Ok(Some(Value::from(out.finish())))
    }
}
