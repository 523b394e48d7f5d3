//! Scanner for the nesting of JSON and the size of JSON-LD contexts.
//!
//! Each key in a context may be a term whose definition depends on the next one, which is a recursion in the
//! parser, and each may have a nested context, which starts as a copy of the enclosing one.

use super::limits::{CONTEXT_KEYS_MAX, DEPTH_MAX, too_deep};

/// Maximum length of `@context` as written: each letter as `\u0040`.
const KEY_BYTES_MAX: usize = 48;

#[derive(Debug, Default)]
pub(crate) struct Json {
    depth: usize,
    state: JsonState,
    /// The last string as written; empty if it is longer than any key of interest.
    string: Vec<u8>,
    context: Option<Context>,
}

/// The value of `@context`.
#[derive(Clone, Copy, Debug)]
struct Context {
    /// The depth of its key.
    depth: usize,
    keys: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum JsonState {
    #[default]
    Outside,
    String,
    /// After a backslash.
    Escaped,
}

impl Json {
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Result<(), String> {
        bytes.iter().try_for_each(|byte| self.step(*byte))
    }

    fn step(&mut self, byte: u8) -> Result<(), String> {
        self.state = match (self.state, byte) {
            (JsonState::Outside, _) => return self.outside(byte),
            (JsonState::String, b'"') => JsonState::Outside,
            (JsonState::String, b'\\') => JsonState::Escaped,
            (JsonState::String | JsonState::Escaped, _) => JsonState::String,
        };
        if !matches!(self.state, JsonState::Outside) && self.string.len() <= KEY_BYTES_MAX {
            self.string.push(byte);
        }
        Ok(())
    }

    fn outside(&mut self, byte: u8) -> Result<(), String> {
        match byte {
            b'"' => {
                self.string.clear();
                self.state = JsonState::String;
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(too_deep());
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.context = self.context.filter(|context| context.depth <= self.depth);
            }
            b',' => self.context = self.context.filter(|context| context.depth < self.depth),
            b':' => match &mut self.context {
                Some(context) => {
                    context.keys += 1;
                    if context.keys > CONTEXT_KEYS_MAX {
                        return Err(format!(
                            "a context has more than {CONTEXT_KEYS_MAX} keys (CONTEXT_KEYS_MAX)"
                        ));
                    }
                }
                None if is_context(&self.string) => {
                    self.context = Some(Context { depth: self.depth, keys: 0 });
                }
                None => {}
            },
            _ => {}
        }
        Ok(())
    }
}

/// Whether a string as written is `@context`.
fn is_context(written: &[u8]) -> bool {
    let mut rest = written;
    for letter in b"@context" {
        let (said, behind) = match rest {
            [b'\\', b'u', digits @ ..] if digits.len() >= 4 => {
                let code = std::str::from_utf8(&digits[..4]).ok();
                (code.and_then(|code| u8::from_str_radix(code, 16).ok()), &digits[4..])
            }
            [byte, behind @ ..] => (Some(*byte), behind),
            [] => return false,
        };
        if said != Some(*letter) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::Syntax;
    use super::super::tests::scanned;
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
            assert_eq!(scanned(Syntax::json, &text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn keys_count_in_contexts() {
        let keys = |count: usize| vec!["\"a\":\"\""; count].join(",");
        let (fit, much) = (keys(CONTEXT_KEYS_MAX), keys(CONTEXT_KEYS_MAX + 1));
        for (text, fits) in [
            (format!("{{{much}}}"), true),
            (format!("{{\"@context\":{{{fit}}},{much}}}"), true),
            (format!("{{\"@context\":{{{much}}}}}"), false),
            (format!("{{ \"\\u0040con\\u0074ext\" : [{{}},{{{much}}}]}}"), false),
            (format!("{{\"@context\":[{{{fit}}},{{\"b\":{{\"@context\":{{\"c\":\"d\"}}}}}}]}}"), false),
            (format!("[{{\"@context\":\"x\",\"b\":{{{much}}}}}]"), true),
            (format!("[{{\"@context\":null}},{{{much}}}]"), true),
            (format!("[{{\"@contexts\":{{{much}}},\"@context \":{{{much}}}}}]"), true),
        ] {
            assert_eq!(scanned(Syntax::json, &text).is_ok(), fits, "{}", &text[..60]);
        }
    }
}
