//! Scanner for the nesting of triple terms and reified triples in Turtle, TriG, N-Triples and N-Quads:
//! parsers represent them as nested boxes, whose drop is a recursion. Lists and blank nodes become flat
//! statements, so their nesting is not limited.

use super::limits::{DEPTH_MAX, too_deep};

#[derive(Debug, Default)]
pub(crate) struct Turtle {
    depth: usize,
    state: TurtleState,
}

#[derive(Clone, Copy, Debug, Default)]
enum TurtleState {
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
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            // Fast skip over most of a document.
            let skipped = match self.state {
                TurtleState::Iri => memchr::memchr(b'>', rest),
                TurtleState::Comment => memchr::memchr2(b'\n', b'\r', rest),
                TurtleState::String { quote, escaped: false }
                | TurtleState::Long { quote, quotes: 0, escaped: false } => {
                    memchr::memchr2(quote, b'\\', rest)
                }
                _ => {
                    self.state = self.step(byte)?;
                    rest = behind;
                    continue;
                }
            };
            let Some(skipped) = skipped else { break };
            self.state = self.step(rest[skipped])?;
            rest = &rest[skipped + 1..];
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<TurtleState, String> {
        Ok(match (self.state, byte) {
            (TurtleState::Less, b'<') => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(too_deep());
                }
                TurtleState::Outside
            }
            (TurtleState::Less, b'>') => TurtleState::Outside,
            (TurtleState::Less, _) => TurtleState::Iri,
            (TurtleState::Iri, b'>') => TurtleState::Outside,
            (TurtleState::Greater, b'>') => {
                self.depth = self.depth.saturating_sub(1);
                TurtleState::Outside
            }
            (TurtleState::Quote(quote), _) if byte == quote => TurtleState::Quotes(quote),
            (TurtleState::Quote(quote), _) => TurtleState::String { quote, escaped: byte == b'\\' },
            (TurtleState::Quotes(quote), _) if byte == quote => {
                TurtleState::Long { quote, quotes: 0, escaped: false }
            }
            (TurtleState::String { quote, escaped: true }, _) => {
                TurtleState::String { quote, escaped: false }
            }
            (TurtleState::String { quote, .. }, _) if byte == quote => TurtleState::Outside,
            (TurtleState::String { quote, .. }, _) => TurtleState::String { quote, escaped: byte == b'\\' },
            (TurtleState::Long { quote, escaped: true, .. }, _) => {
                TurtleState::Long { quote, quotes: 0, escaped: false }
            }
            (TurtleState::Long { quote, quotes: 2, .. }, _) if byte == quote => TurtleState::Outside,
            (TurtleState::Long { quote, quotes, .. }, _) if byte == quote => {
                TurtleState::Long { quote, quotes: quotes + 1, escaped: false }
            }
            (TurtleState::Long { quote, .. }, _) => {
                TurtleState::Long { quote, quotes: 0, escaped: byte == b'\\' }
            }
            (TurtleState::Escaped, _) | (TurtleState::Comment, b'\n' | b'\r') => TurtleState::Outside,
            (TurtleState::Comment | TurtleState::Iri, _) => self.state,
            (TurtleState::Outside | TurtleState::Greater | TurtleState::Quotes(_), _) => match byte {
                b'<' => TurtleState::Less,
                b'>' => TurtleState::Greater,
                b'"' | b'\'' => TurtleState::Quote(byte),
                b'#' => TurtleState::Comment,
                b'\\' => TurtleState::Escaped,
                _ => TurtleState::Outside,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Syntax;
    use super::super::tests::scanned;
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
            assert_eq!(scanned(Syntax::turtle, &text).is_ok(), fits, "{text}");
        }
    }
}
