//! Scanner for the nesting of triple terms and reified triples in Turtle, TriG, N-Triples and N-Quads:
//! parsers represent them as nested boxes, whose drop is a recursion. Lists and blank nodes become flat
//! statements, so their nesting is not limited.

use super::{DEPTH_MAX, too_deep};

#[derive(Debug, Default)]
pub(crate) struct Turtle {
    depth: usize,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    #[default]
    Outside,
    /// After a backslash in a name.
    Escaped,
    Comment,
    /// After `<`.
    Less,
    Iri,
    /// After `>`.
    Greater,
    /// After the first quote.
    Quote(u8),
    /// After the second quote: an empty string, or the start of a long one.
    Quotes(u8),
    String {
        quote: u8,
        escaped: bool,
    },
    /// Number of quotes so far.
    Long {
        quote: u8,
        quotes: u8,
        escaped: bool,
    },
}

impl Turtle {
    pub(super) fn follow(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            // Fast skip over most of a document.
            let skipped = match self.place {
                Place::Iri => memchr::memchr(b'>', rest),
                Place::Comment => memchr::memchr2(b'\n', b'\r', rest),
                Place::String { quote, escaped: false }
                | Place::Long { quote, quotes: 0, escaped: false } => memchr::memchr2(quote, b'\\', rest),
                _ => {
                    self.place = self.step(byte)?;
                    rest = behind;
                    continue;
                }
            };
            let Some(skipped) = skipped else { break };
            self.place = self.step(rest[skipped])?;
            rest = &rest[skipped + 1..];
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<Place, String> {
        Ok(match (self.place, byte) {
            (Place::Less, b'<') => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(too_deep());
                }
                Place::Outside
            }
            (Place::Less, b'>') => Place::Outside,
            (Place::Less, _) => Place::Iri,
            (Place::Iri, b'>') => Place::Outside,
            (Place::Greater, b'>') => {
                self.depth = self.depth.saturating_sub(1);
                Place::Outside
            }
            (Place::Quote(quote), _) if byte == quote => Place::Quotes(quote),
            (Place::Quote(quote), _) => Place::String { quote, escaped: byte == b'\\' },
            (Place::Quotes(quote), _) if byte == quote => Place::Long { quote, quotes: 0, escaped: false },
            (Place::String { quote, escaped: true }, _) => Place::String { quote, escaped: false },
            (Place::String { quote, .. }, _) if byte == quote => Place::Outside,
            (Place::String { quote, .. }, _) => Place::String { quote, escaped: byte == b'\\' },
            (Place::Long { quote, escaped: true, .. }, _) => Place::Long { quote, quotes: 0, escaped: false },
            (Place::Long { quote, quotes: 2, .. }, _) if byte == quote => Place::Outside,
            (Place::Long { quote, quotes, .. }, _) if byte == quote => {
                Place::Long { quote, quotes: quotes + 1, escaped: false }
            }
            (Place::Long { quote, .. }, _) => Place::Long { quote, quotes: 0, escaped: byte == b'\\' },
            (Place::Escaped, _) | (Place::Comment, b'\n' | b'\r') => Place::Outside,
            (Place::Comment | Place::Iri, _) => self.place,
            (Place::Outside | Place::Greater | Place::Quotes(_), _) => match byte {
                b'<' => Place::Less,
                b'>' => Place::Greater,
                b'"' | b'\'' => Place::Quote(byte),
                b'#' => Place::Comment,
                b'\\' => Place::Escaped,
                _ => Place::Outside,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Syntax;
    use super::super::tests::followed;
    use super::*;

    #[test]
    fn open_triple_terms_count_outside_of_strings_iris_and_comments() {
        let deep = "<<( <a<> _:b ".repeat(DEPTH_MAX);
        let close = ")>>".repeat(DEPTH_MAX);
        for (text, fits) in [
            (deep.clone(), true),
            (format!("{deep}<<"), false),
            (format!("{deep}{close}{deep}"), true),
            (format!("{deep}{close}{deep} << "), false),
            (format!("{deep}\"<<\"'<<'\"\"\"<<\"\"<<\\\"\"\"\"'''<<\n'<<'''"), true),
            (format!("{deep}# <<\n"), true),
            (format!("{deep}# '\n<<"), false),
            (format!("{deep}<a#'> <<"), false),
            (format!("{deep}\"\\\\\"<<"), false),
            (format!("{deep}\"\\\"<<\""), true),
            (format!("{deep}\"\"<<"), false),
            (format!("{deep}''' ' '' \\''' '''<<"), false),
            (format!("{deep}e:a\\'<<"), false),
            (format!("{deep}<><<"), false),
            (format!("{deep}>>{}<<", "[ (".repeat(1000)), true),
        ] {
            assert_eq!(followed(Syntax::turtle, &text).is_ok(), fits, "{text}");
        }
    }
}
