//! How deep a document is nested, for the formats whose parsers need time that grows with the square of it, and look
//! at no clock meanwhile: JSON-LD and RDF/XML.
//!
//! One pass over the bytes, before a parser sees them. What is malformed may count wrongly; the parser refuses it.

/// The deepest nesting of JSON-LD and RDF/XML. Documents for people and programs have less than a tenth of it.
pub(crate) const DEPTH_MAX: usize = 256;

/// The most brackets of JSON that are open at once.
pub(crate) fn of_json(bytes: &[u8]) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = rest.next() {
                    match byte {
                        b'\\' => drop(rest.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    most
}

/// The most elements of XML that are open at once.
pub(crate) fn of_xml(bytes: &[u8]) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at + 1..];
        let skip = |end: &[u8]| memchr::memmem::find(rest, end).map_or(rest.len(), |at| at + end.len());
        if rest.starts_with(b"!--") {
            rest = &rest[skip(b"-->")..];
        } else if rest.starts_with(b"![CDATA[") {
            rest = &rest[skip(b"]]>")..];
        } else if rest.starts_with(b"?") || rest.starts_with(b"!") {
            rest = &rest[skip(b">")..];
        } else if rest.starts_with(b"/") {
            depth = depth.saturating_sub(1);
        } else {
            let end = tag_end(rest);
            if !rest[..end].ends_with(b"/") {
                depth += 1;
                most = most.max(depth);
            }
            rest = &rest[end..];
        }
    }
    most
}

/// Where the tag ends: the next `>` outside of quotes.
fn tag_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next) = memchr::memchr3(b'>', b'"', b'\'', &bytes[at..]) {
        at += next;
        if bytes[at] == b'>' {
            return at;
        }
        match memchr::memchr(bytes[at], &bytes[at + 1..]) {
            Some(length) => at += length + 2,
            None => break,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_brackets_are_counted() {
        for (text, depth) in [
            ("", 0),
            ("1", 0),
            ("{}", 1),
            (r#"[{"a": [1, [2]]}, []]"#, 4),
            (r#"{"[[[\"[[": "{{"}"#, 1),
            ("\"", 0),
            ("\"\\", 0),
            ("]]]][", 1),
        ] {
            assert_eq!(of_json(text.as_bytes()), depth, "{text}");
        }
    }

    #[test]
    fn open_elements_are_counted() {
        for (text, depth) in [
            ("", 0),
            ("<a/>", 0),
            ("<?xml version='1.0'?><!DOCTYPE a><a><b c='>' d=\"/>\"><e/></b><b></b></a>", 2),
            ("<a><!-- <b><c> --><![CDATA[<d><e>]]></a>", 1),
            ("<a b='", 1),
            ("<", 1),
            ("<!--", 0),
        ] {
            assert_eq!(of_xml(text.as_bytes()), depth, "{text}");
        }
    }
}
