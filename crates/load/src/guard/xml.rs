//! Scanner for the nesting of XML, the attributes of its elements, and the expansion of its entities.
//!
//! Tags, comments and document types end where `quick-xml` ends them: a document type ends after equally many
//! `<` and `>`, regardless of quotes and comments.

use super::limits::{
    ATTRIBUTES_MAX, DEPTH_MAX, DOCTYPE_BYTES_MAX, ENTITIES_BYTES_MIN, ENTITIES_TIMES_MAX, ENTITY_BYTES_MAX,
    too_deep,
};
use std::collections::HashMap;

/// Maximum length of an entity name that is looked up. The document type bounds the declared names:
/// `DOCTYPE_BYTES_MAX`.
const NAME_BYTES_MAX: usize = DOCTYPE_BYTES_MAX;

#[derive(Debug, Default)]
pub(crate) struct Xml {
    depth: usize,
    /// Whether an element has occurred.
    rooted: bool,
    state: XmlState,
    /// Number of attributes of the start tag.
    attributes: usize,
    /// The text of the document type, after `<!`.
    doctype: Vec<u8>,
    /// Expanded size of each entity, in bytes.
    entities: HashMap<Vec<u8>, u64>,
    /// The name of the open reference.
    reference: Option<Vec<u8>>,
    /// Bytes read, and total expanded size of references.
    read: u64,
    expanded: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum XmlState {
    #[default]
    Text,
    /// After `<`.
    Open,
    /// After `<!`.
    Bang,
    /// In a start tag: the open quote, and whether the last byte was a slash.
    Start { quote: Option<u8>, slash: bool },
    /// In an end tag.
    End,
    /// After `<?`: whether the last byte was a question mark.
    Instruction { mark: bool },
    /// After `<!-`: the number of dashes of `--` so far, after the first two.
    Comment { opened: bool, dashes: u8 },
    /// After `<![`: the number of brackets of `]]` so far.
    Cdata { brackets: u8 },
    /// After `<!D`: number of open `<`.
    Doctype { open: u64 },
}

impl Xml {
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut rest = bytes;
        self.read += bytes.len() as u64;
        while let Some((&byte, behind)) = rest.split_first() {
            if matches!(self.state, XmlState::Text) && self.reference.is_none() {
                // Fast skip over most of a document.
                let Some(at) = memchr::memchr2(b'<', b'&', rest) else { break };
                rest = &rest[at + 1..];
                match bytes[bytes.len() - rest.len() - 1] {
                    b'<' => self.state = XmlState::Open,
                    _ => self.begin_reference(),
                }
                continue;
            }
            self.state = self.step(byte)?;
            rest = behind;
        }
        Ok(())
    }

    /// An XML document requires an element.
    pub(super) fn end(&self) -> Result<(), String> {
        if self.rooted { Ok(()) } else { Err("the file has no element: it is not XML".to_owned()) }
    }

    fn step(&mut self, byte: u8) -> Result<XmlState, String> {
        Ok(match self.state {
            XmlState::Text => match byte {
                b'<' => {
                    self.reference = None;
                    XmlState::Open
                }
                _ => {
                    self.refer(byte)?;
                    XmlState::Text
                }
            },
            XmlState::Open => match byte {
                b'!' => XmlState::Bang,
                b'?' => XmlState::Instruction { mark: true },
                b'/' => {
                    self.depth = self.depth.saturating_sub(1);
                    XmlState::End
                }
                _ => {
                    self.rooted = true;
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        return Err(too_deep());
                    }
                    self.attributes = 0;
                    self.start(byte, None, false)?
                }
            },
            XmlState::Start { quote, slash } => self.start(byte, quote, slash)?,
            XmlState::End if byte == b'>' => XmlState::Text,
            XmlState::End => XmlState::End,
            XmlState::Instruction { mark: true } if byte == b'>' => XmlState::Text,
            XmlState::Instruction { .. } => XmlState::Instruction { mark: byte == b'?' },
            XmlState::Bang => match byte {
                b'-' => XmlState::Comment { opened: false, dashes: 0 },
                b'[' => XmlState::Cdata { brackets: 0 },
                b'D' | b'd' => {
                    self.doctype.clear();
                    XmlState::Doctype { open: 0 }
                }
                // Not XML: the parser stops here.
                _ => XmlState::Text,
            },
            XmlState::Comment { opened: false, .. } => XmlState::Comment { opened: true, dashes: 0 },
            XmlState::Comment { dashes: 2, .. } if byte == b'>' => XmlState::Text,
            XmlState::Comment { dashes, .. } => {
                let dashes = if byte == b'-' { (dashes + 1).min(2) } else { 0 };
                XmlState::Comment { opened: true, dashes }
            }
            XmlState::Cdata { brackets: 2 } if byte == b'>' => XmlState::Text,
            XmlState::Cdata { brackets } => {
                XmlState::Cdata { brackets: if byte == b']' { (brackets + 1).min(2) } else { 0 } }
            }
            XmlState::Doctype { open: 0 } if byte == b'>' => {
                self.declare()?;
                XmlState::Text
            }
            XmlState::Doctype { open } => {
                if self.doctype.len() >= DOCTYPE_BYTES_MAX {
                    return Err(format!(
                        "the document type is longer than {DOCTYPE_BYTES_MAX} bytes (DOCTYPE_BYTES_MAX)"
                    ));
                }
                self.doctype.push(byte);
                match byte {
                    b'<' => XmlState::Doctype { open: open + 1 },
                    b'>' => XmlState::Doctype { open: open - 1 },
                    _ => XmlState::Doctype { open },
                }
            }
        })
    }

    /// Processes a byte of a start tag.
    fn start(&mut self, byte: u8, quote: Option<u8>, slash: bool) -> Result<XmlState, String> {
        match byte {
            b'&' => self.begin_reference(),
            _ => self.refer(byte)?,
        }
        Ok(match (quote, byte) {
            (None, b'>') => {
                self.reference = None;
                if slash {
                    self.depth = self.depth.saturating_sub(1);
                }
                XmlState::Text
            }
            (None, b'=') => {
                self.attributes += 1;
                if self.attributes > ATTRIBUTES_MAX {
                    return Err(format!(
                        "an element has more than {ATTRIBUTES_MAX} attributes (ATTRIBUTES_MAX)"
                    ));
                }
                XmlState::Start { quote: None, slash: false }
            }
            (None, b'"' | b'\'') => XmlState::Start { quote: Some(byte), slash: false },
            (Some(open), _) if open == byte => XmlState::Start { quote: None, slash: false },
            _ => XmlState::Start { quote, slash: byte == b'/' },
        })
    }

    fn begin_reference(&mut self) {
        if !self.entities.is_empty() {
            self.reference = Some(Vec::new());
        }
    }

    /// Processes a byte that may belong to a reference.
    fn refer(&mut self, byte: u8) -> Result<(), String> {
        let Some(name) = &mut self.reference else { return Ok(()) };
        match byte {
            b';' => {
                self.expanded += self.entities.get(name.as_slice()).copied().unwrap_or(0);
                self.reference = None;
                if self.expanded > ENTITIES_BYTES_MIN + ENTITIES_TIMES_MAX * self.read {
                    return Err(format!(
                        "the entities of the document expand to more than {ENTITIES_BYTES_MIN} bytes plus \
                         {ENTITIES_TIMES_MAX} times its length (ENTITIES_BYTES_MIN)"
                    ));
                }
            }
            b'&' => name.clear(),
            _ if name.len() < NAME_BYTES_MAX => name.push(byte),
            // Longer than any declared name.
            _ => self.reference = None,
        }
        Ok(())
    }

    /// Collects the declared entities, with the parser's rules.
    fn declare(&mut self) -> Result<(), String> {
        let doctype = std::mem::take(&mut self.doctype);
        for declaration in doctype.split(|byte| *byte == b'<').skip(1) {
            let Some(rest) = declaration.strip_prefix(b"!ENTITY") else { continue };
            let rest = rest.trim_ascii_start();
            let rest = rest.strip_prefix(b"%").unwrap_or(rest).trim_ascii_start();
            let name_end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            let (name, rest) = rest.split_at(name_end);
            // A value with other quotes or none: the parser stops here.
            let Some(value) = rest.trim_ascii_start().strip_prefix(b"\"") else { continue };
            let value = value.split(|byte| *byte == b'"').next().unwrap_or_default();
            let length = self.length_of(value);
            if length > ENTITY_BYTES_MAX {
                return Err(format!(
                    "the entity {} expands to more than {ENTITY_BYTES_MAX} bytes (ENTITY_BYTES_MAX)",
                    String::from_utf8_lossy(name).chars().take(64).collect::<String>()
                ));
            }
            self.entities.insert(name.to_vec(), length);
        }
        Ok(())
    }

    /// The length of a value after replacement of its references.
    fn length_of(&self, value: &[u8]) -> u64 {
        let mut parts = value.split(|byte| *byte == b'&');
        let mut length = parts.next().unwrap_or_default().len() as u64;
        for part in parts {
            let name = part.split(|byte| *byte == b';').next().unwrap_or_default();
            length += part.len() as u64 + self.entities.get(name).copied().unwrap_or(0);
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::super::Syntax;
    use super::super::tests::scanned;
    use super::*;

    #[test]
    fn open_elements_count() {
        let deep = "<a b='>/' c=\"'>\">".repeat(DEPTH_MAX);
        let close = "</a>".repeat(DEPTH_MAX);
        for (text, fits) in [
            (deep.clone(), true),
            (format!("{deep}<b>"), false),
            (format!("{deep}{close}{deep}"), true),
            (format!("{deep}</a><b/><b c='/'></b><b c='d'/>"), true),
            (format!("{deep}<!-- <b> -- > <b> --><![CDATA[<b>]] ><b>]]><?x <b> > ?>"), true),
            (format!("{deep}<!----><b>"), false),
            (format!("{deep}<![CDATA[]]]]><b>"), false),
            (format!("{deep}<? ?><b>"), false),
            (format!("<!DOCTYPE a [ <!-- <b> --> <!ELEMENT a (b)> ]>{deep}"), true),
            // The parser recognizes no comments in a document type, and neither does the scanner.
            (format!("<!DOCTYPE a [ <!-- ]>{deep}{close}>{deep}<b>"), false),
            (format!("<!DOCTYPE a [ <!-- ]>>{deep}<b>"), false),
            (format!("</x></x>{deep}"), true),
            (format!("</x></x>{deep}<b>"), false),
        ] {
            assert_eq!(scanned(Syntax::xml, &text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn attributes_of_an_element_count() {
        let tag = |count: usize| format!("<a {}/>", "b='=='".repeat(count));
        assert_eq!(scanned(Syntax::xml, &tag(ATTRIBUTES_MAX).repeat(2)), Ok(()));
        assert!(scanned(Syntax::xml, &tag(ATTRIBUTES_MAX + 1)).is_err());
    }

    #[test]
    fn entities_stand_for_texts_of_some_length() {
        let namespaces =
            "<!DOCTYPE a [ <!ENTITY w \"http://www.w3.org/\" >\n<!ENTITY x \"&w;2001/&amp;\"> ]>";
        let uses = "<a b='&x;string'>&x;&lt;&nothing;</a>".repeat(100_000);
        assert_eq!(scanned(Syntax::xml, &format!("{namespaces}{uses}")), Ok(()));

        let mut laughs = "<!DOCTYPE a [ <!ENTITY a0 \"ha\">".to_owned();
        for n in 1..20 {
            let before = format!("&a{};", n - 1).repeat(10);
            laughs += &format!("<!-- <!ENTITY a{n} \"{before}\"> -->");
        }
        laughs += "]>";
        let error = scanned(Syntax::xml, &laughs).expect_err("too long");
        assert!(error.contains("entity a5") && error.contains("ENTITY_BYTES_MAX"), "{error}");
    }

    #[test]
    fn entities_stand_for_so_much_together() {
        let declared = format!("<!DOCTYPE a [ <!ENTITY a \"{}\"> ]>", "x".repeat(60_000));
        for uses in [format!("<a>{}", "&a;".repeat(300)), "<a b='&a;'>&a;</a>".repeat(150)] {
            let error = scanned(Syntax::xml, &format!("{declared}{uses}")).expect_err("too much");
            assert!(error.contains("ENTITIES_BYTES_MIN"), "{error}");
        }
        assert_eq!(scanned(Syntax::xml, &format!("{declared}{}", "<a>&a;</a>".repeat(200))), Ok(()));
    }

    #[test]
    fn a_document_type_has_a_length() {
        let error = scanned(Syntax::xml, &format!("<!DOCTYPE{}", " ".repeat(DOCTYPE_BYTES_MAX)));
        assert!(error.expect_err("too long").contains("DOCTYPE_BYTES_MAX"));
    }
}
