//! The texts of answers: elements with text, each with the names of the elements around it.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Most elements within each other.
const DEPTH_MAX: usize = 16;

/// Calls `visit` at the end of each element, with its path, such as `ListBucketResult/Contents/Key`, and its
/// text.
///
/// # Errors
/// The text is not well-formed, or `visit` returns one.
pub(crate) fn elements(
    text: &str,
    visit: &mut dyn FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = Reader::from_str(text);
    // Of each open element the length of the path around it, and its text.
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut path = String::new();
    let mut has_root = false;
    loop {
        let add = |open: &mut Vec<(usize, String)>, text: &str| {
            if let Some((_, content)) = open.last_mut() {
                content.push_str(text);
            }
        };
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => {
                if open.len() == DEPTH_MAX {
                    return Err("its elements are nested too deeply".to_owned());
                }
                has_root = true;
                open.push((path.len(), String::new()));
                if !path.is_empty() {
                    path.push('/');
                }
                path.push_str(start.local_name().as_ref());
            }
            Event::End(_) => {
                let (outer, content) = open.pop().ok_or("an element ends that has not begun")?;
                visit(&path, &content)?;
                path.truncate(outer);
            }
            Event::Text(text) => add(&mut open, &text.xml10_content()),
            Event::CData(text) => add(&mut open, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                if let Some(character) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
                    add(&mut open, character.encode_utf8(&mut [0; 4]));
                } else {
                    let name = reference.xml10_content();
                    let text = quick_xml::escape::resolve_predefined_entity(&name);
                    add(&mut open, text.ok_or_else(|| "it has an unknown entity".to_owned())?);
                }
            }
            Event::Eof if open.is_empty() && has_root => return Ok(()),
            Event::Eof => return Err("it ends too early".to_owned()),
            Event::Empty(_) => has_root = true,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

/// The text of the first element with this path.
pub(crate) fn element(text: &str, wanted: &str) -> Option<String> {
    let mut found = None;
    let visited = elements(text, &mut |path, content| {
        if path == wanted && found.is_none() {
            found = Some(content.trim().to_owned());
        }
        Ok(())
    });
    visited.ok().and(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_paths() {
        let text =
            "<?xml version=\"1.0\"?>\n<a xmlns=\"x\"><b><c>1 &lt;&#65;</c><d/></b>\n<e><![CDATA[<]]></e></a>";
        assert_eq!(element(text, "a/b/c").as_deref(), Some("1 <A"));
        assert_eq!(element(text, "a/e").as_deref(), Some("<"));
        assert_eq!(element(text, "a/b/d"), None);
        let deep = "<a>".repeat(100_000);
        for wrong in ["", "x", "<a>", "<a></b>", "</a>", "<a>&unknown;</a>", "<a", &deep, "{\"a\": 1}"] {
            assert!(elements(wrong, &mut |_, _| Ok(())).is_err(), "{:.20}", wrong);
            assert_eq!(element(wrong, "a"), None);
        }
    }
}
