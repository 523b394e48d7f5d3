//! Shapes on which a review found Vervet slow or only level with its peers, on the data of WatDiv.
//!
//! # Shape
//! One query for each finding that no published benchmark has: equalities, inequalities and dates between
//! parts, products that are only counted, closures that are only counted, graphs as results, texts that
//! several expressions read, open patterns. A query over a whole relation reduces its rows by a count, so
//! that joins are measured rather than serialization.

use super::data_set::{Benchmark, Compared, DataOptions, DataSet, OutsideQuery, with_prefixes};
use super::watdiv;
use vervet_generate::WATDIV_PREFIXES;
use vervet_model::Result;

/// Passes the data set to `each`.
///
/// # Errors
/// The data cannot be written; as `each`.
pub(super) fn data_sets(options: &DataOptions, each: &mut dyn FnMut(DataSet) -> Result<()>) -> Result<()> {
    let (file, scale) = watdiv::data(options)?;
    let queries = QUERIES.iter().map(|&(name, text)| OutsideQuery {
        name: name.to_owned(),
        text: with_prefixes(WATDIV_PREFIXES, text),
        compare: compared(name),
    });
    each(DataSet {
        benchmark: Benchmark::Shapes,
        name: format!("WatDiv, scale {scale}"),
        file,
        queries: queries.collect(),
        reference: None,
    })
}

/// Descriptions are up to the engine; a peer writes decimals of a graph in another form.
fn compared(name: &str) -> Compared {
    match name {
        "construct-all" => Compared::Number,
        name if name.starts_with("describe") => Compared::Nothing,
        _ => Compared::Rows,
    }
}

/// Name and text of each query.
const QUERIES: &[(&str, &str)] = &[
    (
        "equal-texts",
        "SELECT (COUNT(*) AS ?n) { ?u foaf:givenName ?x ; wsdbm:gender wsdbm:Gender0 . \
         ?v foaf:givenName ?y ; foaf:age wsdbm:AgeGroup1 FILTER(?x = ?y) }",
    ),
    (
        "equal-terms",
        "SELECT (COUNT(*) AS ?n) { ?u wsdbm:likes ?x ; a wsdbm:Role2 . ?p rev:hasReview ?r FILTER(SAMETERM(?x, ?p)) }",
    ),
    ("equal-dates", "SELECT (COUNT(*) AS ?n) { ?o gr:validFrom ?x . ?q gr:validThrough ?y FILTER(?x = ?y) }"),
    ("equal-numbers", "SELECT (COUNT(*) AS ?n) { ?o gr:price ?x . ?p sorg:contentSize ?y FILTER(?x = ?y) }"),
    (
        "equal-optional",
        "SELECT (COUNT(*) AS ?n) { ?u wsdbm:likes ?p ; foaf:age wsdbm:AgeGroup1 \
         OPTIONAL { ?v wsdbm:likes ?q ; foaf:age wsdbm:AgeGroup2 FILTER(?p = ?q && ?v != ?u) } }",
    ),
    (
        "equal-exists",
        "SELECT (COUNT(*) AS ?n) { ?u foaf:givenName ?x \
         FILTER EXISTS { ?v foaf:givenName ?y ; foaf:age wsdbm:AgeGroup1 FILTER(?y = ?x) } }",
    ),
    (
        "equal-minus",
        "SELECT (COUNT(*) AS ?n) { ?u foaf:givenName ?x BIND(STR(?x) AS ?y) \
         MINUS { ?v foaf:familyName ?z BIND(STR(?z) AS ?y) } }",
    ),
    (
        "less-dates",
        "SELECT (COUNT(*) AS ?n) { ?r gr:offers ?o . ?o gr:validFrom ?x . ?r gr:offers ?q . ?q gr:validThrough ?y \
         FILTER(?y < ?x) }",
    ),
    ("less-parts", "SELECT (COUNT(*) AS ?n) { ?o gr:price ?x . ?p sorg:contentSize ?y FILTER(?x < ?y) }"),
    (
        "less-band",
        "SELECT (COUNT(*) AS ?n) { ?o gr:price ?x . ?p sorg:contentSize ?y FILTER(?x - 2 < ?y && ?y < ?x + 2) }",
    ),
    (
        "less-texts",
        "SELECT (COUNT(*) AS ?n) { ?u foaf:givenName ?x ; foaf:age wsdbm:AgeGroup1 . ?v foaf:familyName ?y FILTER(?y < ?x) }",
    ),
    (
        "less-rows",
        "SELECT (COUNT(?y) AS ?n) (MIN(?y) AS ?m) { ?p sorg:contentSize ?x \
         OPTIONAL { ?q sorg:contentSize ?y FILTER(?x < ?y && ?y < ?x + 3 && ?p != ?q) } }",
    ),
    (
        "less-distinct",
        "SELECT (COUNT(DISTINCT ?x) AS ?n) { ?o gr:price ?x . ?p sorg:contentSize ?y FILTER(?x < ?y) }",
    ),
    (
        "less-optional",
        "SELECT (COUNT(*) AS ?n) { ?r gr:offers ?o . ?o gr:price ?x \
         OPTIONAL { ?r gr:offers ?q . ?q gr:price ?y FILTER(?y < ?x) } FILTER(!BOUND(?y)) }",
    ),
    (
        "less-exists",
        "SELECT (COUNT(*) AS ?n) { ?r gr:offers ?o . ?o gr:price ?x \
         FILTER NOT EXISTS { ?r gr:offers ?q . ?q gr:price ?y FILTER(?y > ?x) } }",
    ),
    ("product-counted", "SELECT (COUNT(*) AS ?n) { ?a wsdbm:likes ?b . ?c wsdbm:follows ?d }"),
    (
        "product-three",
        "SELECT (COUNT(*) AS ?n) { ?a wsdbm:likes ?b . ?c wsdbm:subscribes ?d . ?e rev:reviewer ?f }",
    ),
    (
        "product-tested",
        "SELECT (COUNT(DISTINCT ?a) AS ?n) { ?a wsdbm:likes ?b . ?c wsdbm:follows ?d . ?e rev:reviewer ?f }",
    ),
    (
        "closures-by-start",
        "SELECT ?x (COUNT(?y) AS ?n) { ?x a wsdbm:Role2 ; foaf:age wsdbm:AgeGroup1 . ?x wsdbm:follows+ ?y } GROUP BY ?x",
    ),
    ("closures-counted", "SELECT (COUNT(*) AS ?n) { ?x wsdbm:friendOf+ ?y . ?x foaf:age wsdbm:AgeGroup3 }"),
    ("closure-backwards", "SELECT ?l { ?l wsdbm:follows* ?e . ?e wsdbm:subscribes wsdbm:Website3 }"),
    ("closure-small", "SELECT (COUNT(*) AS ?n) { ?x gn:parentCountry* ?y }"),
    ("negated-set", "SELECT (COUNT(*) AS ?n) { wsdbm:User3 !(wsdbm:likes|wsdbm:follows) ?y }"),
    ("construct-all", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"),
    (
        "construct-two",
        "CONSTRUCT { ?u wsdbm:knows ?v . ?v wsdbm:knows ?u } WHERE { ?u wsdbm:friendOf ?v . ?u a wsdbm:Role2 }",
    ),
    ("describe-many", "DESCRIBE ?u { ?u a wsdbm:Role2 ; foaf:age wsdbm:AgeGroup1 }"),
    ("describe-one", "DESCRIBE wsdbm:User3"),
    (
        "replace-twice",
        "SELECT (COUNT(?y) AS ?n) { ?p sorg:description ?t \
         BIND(REPLACE(REPLACE(?t, \"a\", \"b\"), \"[aeiou]+$\", \"\") AS ?y) }",
    ),
    (
        "six-functions",
        "SELECT (SUM(?a + ?b) AS ?n) (MAX(?f) AS ?m) { ?p sorg:description ?t \
         BIND(STRLEN(?t) AS ?a) BIND(STRLEN(UCASE(?t)) AS ?b) BIND(SUBSTR(?t, 2, 5) AS ?c) \
         BIND(CONCAT(?c, \"-\", LCASE(?t)) AS ?d) BIND(STRBEFORE(?d, \"-\") AS ?e) BIND(STRAFTER(?t, \" \") AS ?f) }",
    ),
    ("language", "SELECT (COUNT(*) AS ?n) { ?p sorg:description ?t FILTER(LANG(?t) = \"\") }"),
    ("contains", "SELECT (COUNT(*) AS ?n) { ?p sorg:description ?t FILTER(CONTAINS(?t, \"er\")) }"),
    ("regex", "SELECT (COUNT(*) AS ?n) { ?p sorg:description ?t FILTER(REGEX(?t, \"[a-f]{4}\")) }"),
    ("smallest-text", "SELECT (MIN(?t) AS ?least) (MAX(?t) AS ?most) { ?p sorg:description ?t }"),
    ("first-texts", "SELECT ?p ?t { ?p sorg:description ?t } ORDER BY ?t ?p LIMIT 60"),
    (
        "texts-joined",
        "SELECT ?g (STRLEN(GROUP_CONCAT(?t)) AS ?n) { ?p wsdbm:hasGenre ?g ; sorg:description ?t } GROUP BY ?g",
    ),
    ("open-pairs", "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?s ?o { ?s ?p ?o } }"),
    ("open-predicates", "SELECT DISTINCT ?p { ?u a wsdbm:Role2 . ?x ?p ?u }"),
    (
        "open-constants",
        "SELECT (COUNT(*) AS ?n) { ?x ?p ?m FILTER(?m IN (1, 10.0, 1e1, \"m\", wsdbm:Role2)) }",
    ),
    ("open-literals", "SELECT (COUNT(*) AS ?n) { ?x ?p ?m FILTER(ISLITERAL(?m) && !ISBLANK(?x)) }"),
];
