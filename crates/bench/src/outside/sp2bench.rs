//! SP2Bench: 17 queries over publications, by the shapes of q1 to q12c.
//!
//! # Source
//! Schmidt, Hornung, Lausen, Pinkel, "SP2Bench: A SPARQL Performance Benchmark", ICDE 2009. The texts are our
//! own.

use super::data_set::{Benchmark, DataOptions, DataSet, OutsideQuery, generated, with_prefixes};
use vervet_generate::{SP2BENCH_PREFIXES, generate_sp2bench};
use vervet_model::Result;

/// Passes the data set to `each`.
///
/// # Errors
/// The data cannot be written; as `each`.
pub(super) fn data_sets(options: &DataOptions, each: &mut dyn FnMut(DataSet) -> Result<()>) -> Result<()> {
    let statements = options.statements();
    let file = generated(|out| generate_sp2bench(statements, options.seed, out))?;
    let query =
        |&(name, text): &(&str, &str)| OutsideQuery::new(name, with_prefixes(SP2BENCH_PREFIXES, text));
    each(DataSet {
        benchmark: Benchmark::Sp2Bench,
        name: format!("{statements} statements"),
        file,
        queries: QUERIES.iter().map(query).collect(),
        reference: None,
    })
}

/// Authors of an article who also wrote a paper, by equality of names.
macro_rules! by_names {
    ($head:literal) => {
        concat!(
            $head,
            " { ?article a bench:Article ; dc:creator ?author . ?author foaf:name ?name . \
             ?paper a bench:Inproceedings ; dc:creator ?other . ?other foaf:name ?same FILTER(?name = ?same) }"
        )
    };
}

/// Names at distance one and two from Paul Erdoes.
macro_rules! near_erdoes {
    ($head:literal) => {
        concat!(
            $head,
            " { ?erdoes a foaf:Person ; foaf:name \"Paul Erdoes\" . \
             { ?doc dc:creator ?erdoes . ?doc dc:creator ?author . ?doc2 dc:creator ?author . ?doc2 dc:creator ?far . \
               ?far foaf:name ?name \
               FILTER(?author != ?erdoes && ?doc2 != ?doc && ?far != ?erdoes && ?far != ?author) } \
             UNION { ?doc dc:creator ?erdoes . ?doc dc:creator ?author . ?author foaf:name ?name \
               FILTER(?author != ?erdoes) } }"
        )
    };
}

/// Name and text of each query.
const QUERIES: [(&str, &str); 17] = [
    // One journal by its title.
    ("q01", "SELECT ?year { ?j a bench:Journal ; dc:title \"Journal 1 (1940)\" ; dcterms:issued ?year }"),
    // A star of nine properties, one of them optional.
    (
        "q02",
        "SELECT ?paper ?author ?book ?title ?venue ?see ?pages ?home ?year ?abstract { \
         ?paper a bench:Inproceedings ; dc:creator ?author ; bench:booktitle ?book ; dc:title ?title ; \
         dcterms:partOf ?venue ; rdfs:seeAlso ?see ; swrc:pages ?pages ; foaf:homepage ?home ; \
         dcterms:issued ?year OPTIONAL { ?paper bench:abstract ?abstract } } ORDER BY ?year",
    ),
    // A predicate by a filter: frequent, rare, absent.
    ("q03a", "SELECT ?a { ?a a bench:Article . ?a ?p ?v FILTER(?p = swrc:pages) }"),
    ("q03b", "SELECT ?a { ?a a bench:Article . ?a ?p ?v FILTER(?p = swrc:month) }"),
    ("q03c", "SELECT ?a { ?a a bench:Article . ?a ?p ?v FILTER(?p = swrc:isbn) }"),
    // Pairs of authors of one journal.
    (
        "q04",
        "SELECT DISTINCT ?n1 ?n2 { ?a1 a bench:Article ; dc:creator ?p1 ; swrc:journal ?j . ?p1 foaf:name ?n1 . \
         ?a2 a bench:Article ; dc:creator ?p2 ; swrc:journal ?j . ?p2 foaf:name ?n2 FILTER(?n1 < ?n2) }",
    ),
    // The same authors by an equality of names, and by a shared variable.
    ("q05a", by_names!("SELECT DISTINCT ?author ?name")),
    (
        "q05b",
        "SELECT DISTINCT ?author ?name { ?article a bench:Article ; dc:creator ?author . \
         ?paper a bench:Inproceedings ; dc:creator ?author . ?author foaf:name ?name }",
    ),
    // First publications: no earlier one by the same author.
    (
        "q06",
        "SELECT ?year ?name ?doc { ?class rdfs:subClassOf foaf:Document . ?doc a ?class ; dcterms:issued ?year ; \
         dc:creator ?author . ?author foaf:name ?name \
         OPTIONAL { ?class2 rdfs:subClassOf foaf:Document . ?doc2 a ?class2 ; dcterms:issued ?year2 ; \
         dc:creator ?author2 FILTER(?author = ?author2 && ?year2 < ?year) } FILTER(!BOUND(?author2)) }",
    ),
    // Documents whose citing documents are all cited.
    (
        "q07",
        "SELECT DISTINCT ?title { ?class rdfs:subClassOf foaf:Document . ?doc a ?class ; dc:title ?title . \
         ?bag2 ?member2 ?doc . ?doc2 dcterms:references ?bag2 \
         OPTIONAL { ?class3 rdfs:subClassOf foaf:Document . ?doc3 a ?class3 ; dcterms:references ?bag3 . \
         ?bag3 ?member3 ?doc \
         OPTIONAL { ?class4 rdfs:subClassOf foaf:Document . ?doc4 a ?class4 ; dcterms:references ?bag4 . \
         ?bag4 ?member4 ?doc3 } FILTER(!BOUND(?doc4)) } FILTER(!BOUND(?doc3)) }",
    ),
    ("q08", near_erdoes!("SELECT DISTINCT ?name")),
    // Predicates of persons in either direction.
    (
        "q09",
        "SELECT DISTINCT ?p { { ?person a foaf:Person . ?s ?p ?person } UNION { ?person a foaf:Person . \
         ?person ?p ?o } }",
    ),
    // Everything that points to one person.
    ("q10", "SELECT ?s ?p { ?s ?p person:Paul_Erdoes }"),
    // Ten texts from the middle of an order.
    ("q11", "SELECT ?see { ?doc rdfs:seeAlso ?see } ORDER BY ?see LIMIT 10 OFFSET 50"),
    ("q12a", by_names!("ASK")),
    ("q12b", near_erdoes!("ASK")),
    ("q12c", "ASK { person:John_Q_Public a foaf:Person }"),
];
