//! Vocabulary of Vervet: its IRIs, and the mapping of property graphs to RDF.
//!
//! | property graph | RDF |
//! | --- | --- |
//! | vertex with external id `X` | the IRI `urn:vervet:vertex:X` |
//! | label `L` of a vertex | `rdf:type` with the IRI `urn:vervet:label:L` |
//! | property key `K`, edge label `K` | the predicate `urn:vervet:key:K` |
//! | edge number `N` (a statement's own identity) | the IRI `urn:vervet:edge:N` |
//! | external id `X` of an edge | a statement of that edge with the predicate `urn:vervet:id` |
//!
//! Characters not allowed in an IRI are percent-encoded (UTF-8).

/// Namespace of the vertices of property graphs.
pub const VERTEX_NAMESPACE: &str = "urn:vervet:vertex:";
/// Namespace of the labels of property graphs.
pub const LABEL_NAMESPACE: &str = "urn:vervet:label:";
/// Namespace of the property keys and edge labels of property graphs.
pub const KEY_NAMESPACE: &str = "urn:vervet:key:";

/// Namespace of edges as terms; the name is the edge number in decimal digits.
pub const EDGE_NAMESPACE: &str = "urn:vervet:edge:";
/// Predicate from an edge to the external id that it was loaded with.
pub const EDGE_ID: &str = "urn:vervet:id";

/// Datatype of a UUID; the text has 36 characters.
pub const UUID_DATATYPE: &str = "urn:vervet:datatype:uuid";
/// Datatype of a single character.
pub const CHARACTER_DATATYPE: &str = "urn:vervet:datatype:character";
/// Datatype of lists, sets, maps and other values without an XSD type; the text is GraphSON 3.
pub const GRAPHSON_DATATYPE: &str = "urn:vervet:datatype:graphson";

/// Function of a text and a search: whether the text matches ([`crate::TextSearch`]).
pub const TEXT_MATCHES: &str = "urn:vervet:text:matches";
/// Function of a text and a search: the fraction of the words of the text that match.
pub const TEXT_SCORE: &str = "urn:vervet:text:score";

/// `rdf:type`.
pub const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
/// `rdf:reifies`: its subject is an edge, its object the triple term of that edge.
pub const RDF_REIFIES: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies";

/// Whether a name of a label or key is an IRI itself: it contains `://`, or begins with `urn:`.
#[must_use]
pub fn is_iri(name: &str) -> bool {
    name.contains("://") || name.starts_with("urn:")
}

/// The IRI of a `name` in a `namespace`, with characters not allowed in an IRI percent-encoded.
#[must_use]
pub fn name_iri(namespace: &str, name: &str) -> String {
    let mut iri = String::with_capacity(namespace.len() + name.len());
    iri.push_str(namespace);
    push_name(&mut iri, name);
    iri
}

/// Appends `name` to an IRI, with characters not allowed in an IRI percent-encoded.
pub fn push_name(iri: &mut String, name: &str) {
    if name.bytes().all(|byte| PLAIN[usize::from(byte)]) {
        iri.push_str(name);
        return;
    }
    for c in name.chars() {
        let is_plain = u8::try_from(c).is_ok_and(|byte| PLAIN[usize::from(byte)]);
        let is_letter = c as u32 >= 0xA0 && !('\u{E000}'..='\u{F8FF}').contains(&c) && (c as u32) < 0xF_0000;
        if is_plain || is_letter {
            iri.push(c);
            continue;
        }
        let mut utf8 = [0; 4];
        for byte in c.encode_utf8(&mut utf8).bytes() {
            iri.push('%');
            for nibble in [byte >> 4, byte & 15] {
                iri.push(char::from(b"0123456789ABCDEF"[usize::from(nibble)]));
            }
        }
    }
}

/// Bytes that are not encoded in the name of an IRI.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        plain[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~:@!$&()*+,;=/";
    let mut i = 0;
    while i < others.len() {
        plain[others[i] as usize] = true;
        i += 1;
    }
    plain
};

/// Whether a label is a valid blank node label in every format. N-Triples of RDF 1.1 also allowed a colon,
/// which Turtle and RDF 1.2 do not.
#[must_use]
pub fn is_blank_label(label: &str) -> bool {
    !label.contains(':') && oxrdf::BlankNode::new(label).is_ok()
}

/// The inverse of [`name_iri`]; `None` if `iri` is not in `namespace`, or if its name alone would mean
/// another term: an IRI ([`is_iri`]), a blank node (`_:x`), or a name that [`name_iri`] would encode
/// differently.
#[must_use]
pub fn iri_name(namespace: &str, iri: &str) -> Option<String> {
    let encoded = iri.strip_prefix(namespace)?.as_bytes();
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut at = 0;
    while at < encoded.len() {
        let hex = |i: usize| encoded.get(i).and_then(|&b| char::from(b).to_digit(16));
        match (encoded[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
            }
            (byte, ..) => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    let means_itself = !is_iri(&name) && !name.starts_with("_:");
    (means_itself && (!encoded.contains(&b'%') || name_iri(namespace, &name) == iri)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_as_iris() {
        for name in ["dist", "birth day", "größe", "100%", "a#b?c", "<x>", "", "日本"] {
            let iri = name_iri(KEY_NAMESPACE, name);
            assert!(oxrdf::NamedNode::new(&iri).is_ok(), "{iri}");
            assert_eq!(iri_name(KEY_NAMESPACE, &iri).as_deref(), Some(name));
        }
        assert_eq!(iri_name(KEY_NAMESPACE, "http://x/"), None);
        for name in ["http://x/", "urn:x", "_:x", "%41", "%zz", "%20", "%C3"] {
            assert_eq!(
                iri_name(KEY_NAMESPACE, &format!("{KEY_NAMESPACE}{name}")).as_deref(),
                (name == "%20").then_some(" "),
                "{name}"
            );
        }
    }
}
