//! Syntax errors with their position in the text.

use std::fmt::Write as _;
use vervet_model::{Error, ErrorKind, Position};

/// Result type of the parser.
pub(super) type Result<T> = std::result::Result<T, Box<Fault>>;

/// The hint for lambdas of Groovy.
pub(super) const NO_LAMBDAS: &str =
    "lambdas are not part of gremlin-lang; say it in steps, such as filter(out()) or map(values(\"name\"))";

/// An error about bytes `start..end` of a text.
#[derive(Debug)]
pub(super) struct Fault {
    start: u32,
    end: u32,
    message: String,
    hint: Option<String>,
}

impl Fault {
    /// A fault; `message` is one lower-case line.
    #[cold]
    pub(super) fn new(start: u32, end: u32, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { start, end, message: message.into(), hint: None })
    }

    /// Adds a hint.
    pub(super) fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// Converts to an error that shows the position in the text.
    pub(super) fn show(self, text: &str) -> Error {
        let place = place(text, self.start as usize, self.end as usize);
        let before = text.get(..text.floor_char_boundary_at(self.start as usize)).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let position = Position {
            line: before.matches('\n').count() as u64 + 1,
            column: Some(before[line_start..].chars().count() as u64 + 1),
        };
        let error = Error::new(ErrorKind::Query, self.message + &place).at(position);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// ` (line 1, column 3)`, the line, and carets below `start..end`. Truncates long lines and replaces control
/// characters by blanks.
fn place(text: &str, start: usize, end: usize) -> String {
    const WIDTH: usize = 100;
    const BEFORE: usize = 60;
    let start = text.floor_char_boundary_at(start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line = text[..line_start].bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = text[line_start..start].chars().count();
    let end = text.floor_char_boundary_at(end.clamp(start, line_end));
    let skipped = if column > BEFORE + 10 { column - BEFORE } else { 0 };
    let rest = text[line_start..line_end].trim_end_matches('\r').chars().skip(skipped);
    let shown: String = rest.take(WIDTH).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let indent = column - skipped;
    let carets = text[start..end].chars().count().clamp(1, WIDTH.saturating_sub(indent).max(1));
    let number = line.to_string();
    let mut place = String::new();
    let _ = write!(
        place,
        " (line {line}, column {})\n{number} | {shown}\n{:margin$} | {:indent$}{}",
        column + 1,
        "",
        "",
        "^".repeat(carets),
        margin = number.len(),
    );
    place
}

trait Boundary {
    /// The nearest character boundary at or before `at`.
    fn floor_char_boundary_at(&self, at: usize) -> usize;
}

impl Boundary for str {
    fn floor_char_boundary_at(&self, at: usize) -> usize {
        let mut at = at.min(self.len());
        while !self.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn the_place_is_shown() {
        let text = "g.V()\n\t.größe()";
        let start = text.find("größe").expect("is there");
        assert_eq!(
            place(text, start, start + "größe".len()),
            " (line 2, column 3)\n2 |  .größe()\n  |   ^^^^^"
        );
    }

    #[test]
    fn any_place_of_any_text_can_be_shown() {
        let long = format!("{}ß{}", "x".repeat(300), "y".repeat(300));
        for text in ["", "\n", "a\r\nb", "日本", long.as_str()] {
            for start in 0..text.len() + 3 {
                for length in [0, 1, 500] {
                    assert_eq!(place(text, start, start + length).lines().count(), 3);
                }
            }
        }
    }
}
