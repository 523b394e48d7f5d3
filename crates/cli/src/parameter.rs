//! `--param NAME=TERM`: values of variables, in Turtle notation.

use oxrdf::{Literal, NamedNode, Term};
use std::str::FromStr;
use vervet_sparql::well_known_prefixes;

/// A variable (without `?`) and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub name: String,
    pub value: Term,
}

/// Parses `NAME=TERM`.
pub(crate) fn parameter(text: &str) -> Result<Parameter, String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=TERM")?;
    let name = name.trim();
    let name = name.strip_prefix(['?', '$']).unwrap_or(name);
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(format!("\"{name}\" is not the name of a variable"));
    }
    Ok(Parameter { name: name.to_owned(), value: term(value.trim())? })
}

/// Parses one term: N-Triples terms, numbers, booleans and prefixed names with a well-known prefix.
fn term(text: &str) -> Result<Term, String> {
    if let Some(iri) = prefixed(text) {
        return Ok(iri.into());
    }
    // A datatype may have a prefix too: "5"^^xsd:integer.
    if let Some((value, datatype)) = text.rsplit_once("\"^^")
        && let Some(datatype) = prefixed(datatype)
        && let Ok(literal) = Literal::from_str(&format!("{value}\""))
        && literal.language().is_none()
    {
        return Ok(Literal::new_typed_literal(literal.value(), datatype).into());
    }
    let parsed = if text.starts_with(['<', '_']) {
        Term::from_str(text)
    } else {
        Literal::from_str(text).map(Term::from)
    };
    match parsed {
        Ok(Term::BlankNode(_)) => Err("a blank node has no name outside its file".to_owned()),
        Ok(term) => Ok(term),
        Err(error) => Err(format!(
            "{text} is not a term ({error}); write <iri>, \"text\", \"text\"@en, \"1\"^^<datatype>, 5, 1.5 or true"
        )),
    }
}

fn prefixed(text: &str) -> Option<NamedNode> {
    let (prefix, name) = text.split_once(':')?;
    let (_, namespace) = well_known_prefixes().iter().find(|(known, _)| *known == prefix)?;
    NamedNode::new(format!("{namespace}{name}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::vocab::xsd;

    #[test]
    fn terms_are_read_as_turtle_writes_them() {
        let iri = |text: &str| Term::from(NamedNode::new_unchecked(text));
        let typed = |text: &str, datatype: oxrdf::NamedNodeRef<'_>| {
            Term::from(Literal::new_typed_literal(text, datatype))
        };
        for (text, value) in [
            ("<http://a/b>", iri("http://a/b")),
            ("vertex:3", iri("urn:vervet:vertex:3")),
            ("foaf:name", iri("http://xmlns.com/foaf/0.1/name")),
            ("\"text\"", Literal::from("text").into()),
            ("\"a \\\"b\\\" \\u00e9\"", Literal::from("a \"b\" é").into()),
            ("\"x=y\"", Literal::from("x=y").into()),
            ("\"text\"@en", Literal::new_language_tagged_literal_unchecked("text", "en").into()),
            ("\"1\"^^<http://www.w3.org/2001/XMLSchema#int>", typed("1", xsd::INT)),
            ("\"1\"^^xsd:int", typed("1", xsd::INT)),
            ("5", typed("5", xsd::INTEGER)),
            ("-5", typed("-5", xsd::INTEGER)),
            ("1.5", typed("1.5", xsd::DECIMAL)),
            ("1e3", typed("1e3", xsd::DOUBLE)),
            ("true", typed("true", xsd::BOOLEAN)),
        ] {
            assert_eq!(
                parameter(&format!("?x={text}")),
                Ok(Parameter { name: "x".to_owned(), value }),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_terms_are_errors() {
        for text in ["x", "=5", "x=", "x=text", "x=<a>", "x=\"open", "x=_:b", "x=5 6", "x y=5", "x=nope:name"]
        {
            assert!(parameter(text).is_err(), "{text}");
        }
    }
}
