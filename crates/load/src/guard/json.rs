//! The nesting of JSON: open brackets outside of strings.

use super::{DEPTH_MAX, too_deep};

#[derive(Debug, Default)]
pub(crate) struct Json {
    depth: usize,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    #[default]
    Outside,
    String,
    /// Behind a backslash.
    Escaped,
}

impl Json {
    pub(super) fn follow(&mut self, bytes: &[u8]) -> Result<(), String> {
        for byte in bytes {
            self.place = match (self.place, byte) {
                (Place::Outside, b'"') => Place::String,
                (Place::Outside, b'{' | b'[') => {
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        return Err(too_deep());
                    }
                    Place::Outside
                }
                (Place::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    Place::Outside
                }
                (Place::String, b'"') => Place::Outside,
                (Place::String, b'\\') => Place::Escaped,
                (Place::Escaped, _) => Place::String,
                (place, _) => place,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Syntax;
    use super::super::tests::followed;
    use super::*;

    #[test]
    fn open_brackets_count_outside_of_strings() {
        let deep = "[{\"a\":".repeat(DEPTH_MAX / 2);
        let close = "}]".repeat(DEPTH_MAX / 2);
        for (text, fits) in [
            (deep.clone(), true),
            (format!("{deep}["), false),
            (format!("{deep}{close}{deep}"), true),
            (format!("{deep}{close}{deep}{{"), false),
            (format!("{deep}\"[\""), true),
            (format!("{deep}\"\\\"[\""), true),
            (format!("{deep}\"\\\\\"["), false),
            (format!("]]]]]{deep}"), true),
            (format!("]]]]]{deep}["), false),
        ] {
            assert_eq!(followed(Syntax::json, &text).is_ok(), fits, "{text}");
        }
    }
}
