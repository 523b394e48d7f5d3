//! Writes N-Triples from prefixed names, and makes up words; for the generators of outside benchmarks.

use crate::Random;
use std::io::{self, Write};

/// Prefixes, without the colon, with their namespaces.
pub type Prefixes = &'static [(&'static str, &'static str)];

/// Buffer size, in bytes, from which the buffer is written out.
const FLUSH_BYTES: usize = 256 << 10;

/// Writes statements whose terms are prefixed names (`foaf:name`) or blank nodes (`_:b1`).
pub(crate) struct Statements<'w> {
    out: &'w mut dyn Write,
    buffer: String,
    prefixes: Prefixes,
    count: u64,
}

impl<'w> Statements<'w> {
    pub(crate) fn new(prefixes: Prefixes, out: &'w mut dyn Write) -> Self {
        Self { out, buffer: String::with_capacity(FLUSH_BYTES + 4096), prefixes, count: 0 }
    }

    /// The number of statements written.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// A statement between two resources.
    pub(crate) fn link(&mut self, subject: &str, predicate: &str, object: &str) -> io::Result<()> {
        self.begin(subject, predicate);
        self.term(object);
        self.end()
    }

    /// A statement with a plain text, which must not need escapes.
    pub(crate) fn text(&mut self, subject: &str, predicate: &str, text: &str) -> io::Result<()> {
        self.begin(subject, predicate);
        self.quoted(text);
        self.end()
    }

    /// A statement with a text in a language.
    pub(crate) fn tagged(&mut self, subject: &str, predicate: &str, text: &str, tag: &str) -> io::Result<()> {
        self.begin(subject, predicate);
        self.quoted(text);
        self.buffer.push('@');
        self.buffer.push_str(tag);
        self.end()
    }

    /// A statement with a literal of this datatype.
    pub(crate) fn typed(
        &mut self,
        subject: &str,
        predicate: &str,
        text: &str,
        datatype: &str,
    ) -> io::Result<()> {
        self.begin(subject, predicate);
        self.quoted(text);
        self.buffer.push_str("^^");
        self.term(datatype);
        self.end()
    }

    /// A statement with an `xsd:integer`.
    pub(crate) fn integer(&mut self, subject: &str, predicate: &str, number: u32) -> io::Result<()> {
        self.typed(subject, predicate, &number.to_string(), "xsd:integer")
    }

    /// Writes out what is buffered.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.out.write_all(self.buffer.as_bytes())?;
        self.buffer.clear();
        Ok(self.count)
    }

    fn begin(&mut self, subject: &str, predicate: &str) {
        self.term(subject);
        self.buffer.push(' ');
        self.term(predicate);
        self.buffer.push(' ');
    }

    fn end(&mut self) -> io::Result<()> {
        self.buffer.push_str(" .\n");
        self.count += 1;
        if self.buffer.len() >= FLUSH_BYTES {
            self.out.write_all(self.buffer.as_bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn quoted(&mut self, text: &str) {
        self.buffer.push('"');
        self.buffer.push_str(text);
        self.buffer.push('"');
    }

    fn term(&mut self, name: &str) {
        let parts = name.split_once(':');
        let namespace = parts
            .and_then(|(prefix, _)| self.prefixes.iter().find(|(known, _)| *known == prefix))
            .map(|(_, namespace)| *namespace);
        match (namespace, parts) {
            (Some(namespace), Some((_, local))) => {
                self.buffer.push('<');
                self.buffer.push_str(namespace);
                self.buffer.push_str(local);
                self.buffer.push('>');
            }
            _ => self.buffer.push_str(name),
        }
    }
}

/// The word with this number; different numbers below 9,261 give different words.
pub(crate) fn word(number: u32) -> String {
    const SYLLABLES: [&str; 21] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su", "ta",
        "ve", "wi", "xo", "yu", "ze",
    ];
    let mut word = String::new();
    let mut rest = number;
    for _ in 0..3 {
        word.push_str(SYLLABLES[rest as usize % SYLLABLES.len()]);
        rest /= 21;
    }
    word
}

/// A text of words, of which the first hundred are frequent.
pub(crate) fn words(random: &mut Random, count: u32) -> String {
    let mut text = String::new();
    for index in 0..count {
        if index > 0 {
            text.push(' ');
        }
        let number = if random.one_in(2) { random.below(100) } else { random.below(4_000) };
        text.push_str(&word(number));
    }
    text
}

/// A day of one of the years from `from` to `to`, as `2008-02-13`.
pub(crate) fn date(random: &mut Random, from: u32, to: u32) -> String {
    let (year, month, day) = (random.between(from..=to), random.between(1..=12), random.between(1..=28));
    format!("{year}-{month:02}-{day:02}")
}

/// An index below `count`, the smaller the more likely: the density falls as `index^(1 / power - 1)`.
pub(crate) fn skewed(random: &mut Random, count: u32, power: u32) -> u32 {
    let uniform = random.unit();
    // Not `powi`, whose rounding may differ between platforms.
    let part = (1..power).fold(uniform, |product, _| product * uniform);
    whole(part * f64::from(count)).min(count.saturating_sub(1))
}

/// A number rounded down; 0 if it is negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion from float saturates"
)]
pub(crate) fn whole(number: f64) -> u32 {
    number as u32
}

/// The part of a size that a scale needs, at least one.
pub(crate) fn scaled(size: u32, scale: f64) -> u32 {
    whole(f64::from(size) * scale).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_written_as_n_triples() {
        let mut text = Vec::new();
        let mut statements = Statements::new(&[("ex", "urn:ex#"), ("xsd", "urn:xsd#")], &mut text);
        statements.link("ex:a", "ex:p", "_:b").unwrap();
        statements.text("_:b", "ex:p", "x").unwrap();
        statements.tagged("_:b", "ex:p", "x", "en").unwrap();
        statements.integer("_:b", "ex:p", 7).unwrap();
        assert_eq!(statements.finish().unwrap(), 4);
        let expected = "<urn:ex#a> <urn:ex#p> _:b .\n_:b <urn:ex#p> \"x\" .\n_:b <urn:ex#p> \"x\"@en .\n\
                        _:b <urn:ex#p> \"7\"^^<urn:xsd#integer> .\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        let distinct: std::collections::HashSet<String> = (0..9_261).map(word).collect();
        assert_eq!(distinct.len(), 9_261);
    }
}
