//! Well-known prefixes.

use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, VERTEX_NAMESPACE};

/// Well-known prefixes (without the colon) and their IRIs; the last three are those of property graphs.
///
/// [`crate::parse`] does not declare them implicitly, so that the meaning of a query depends only on its
/// text. An interactive caller may pass them as [`crate::ParseOptions::prefixes`].
#[must_use]
pub fn well_known_prefixes() -> &'static [(&'static str, &'static str)] {
    &PREFIXES
}

static PREFIXES: [(&str, &str); 17] = [
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("schema", "http://schema.org/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("geo", "http://www.opengis.net/ont/geosparql#"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("void", "http://rdfs.org/ns/void#"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("vertex", VERTEX_NAMESPACE),
    ("label", LABEL_NAMESPACE),
    ("key", KEY_NAMESPACE),
];
