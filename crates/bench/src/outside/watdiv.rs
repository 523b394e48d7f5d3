//! WatDiv: basic graph patterns over a shop; linear (L), star (S), snowflake (F) and complex (C) shapes,
//! chains of growing length (E), and shapes with a type bound by a variable (T).
//!
//! # Shape
//! A template has at most one `%Class%`, which a seeded draw replaces by an entity of that class, for each
//! instance another. Names are `L1.1`, `L1.2`, …; a template without a class has one instance.
//! # Source
//! Aluç, Hartig, Özsu, Daudjee, "Diversified Stress Testing of RDF Data Management Systems", ISWC 2014. The
//! texts are our own; E and T are in the manner of its extensions.

use super::data_set::{Benchmark, DataOptions, DataSet, OutsideQuery, generated, with_prefixes};
use crate::data::PlainFile;
use vervet_generate::{Random, WATDIV_PREFIXES, WatDivSizes, generate_watdiv};
use vervet_model::Result;

/// The scale of the generator for a million statements.
const UNIT: f64 = 10.0;

/// Instances of a template with a class.
const INSTANCES: u32 = 3;

/// Passes the data set to `each`.
///
/// # Errors
/// The data cannot be written; as `each`.
pub(super) fn data_sets(options: &DataOptions, each: &mut dyn FnMut(DataSet) -> Result<()>) -> Result<()> {
    let (file, scale) = data(options)?;
    let mut random = Random::for_part(options.seed, &[0x7764_7175]);
    let sizes = WatDivSizes::at(scale);
    let mut queries = Vec::new();
    for (name, template) in TEMPLATES {
        match template.split('%').nth(1) {
            None => queries.push(OutsideQuery::new(name, with_prefixes(WATDIV_PREFIXES, template))),
            Some(class) => {
                for instance in 1..=INSTANCES {
                    let number = random.below(count(class, &sizes));
                    let text = template.replace(&format!("%{class}%"), &format!("wsdbm:{class}{number}"));
                    let text = with_prefixes(WATDIV_PREFIXES, &text);
                    queries.push(OutsideQuery::new(format!("{name}.{instance}"), text));
                }
            }
        }
    }
    each(DataSet {
        benchmark: Benchmark::WatDiv,
        name: format!("scale {scale}"),
        file,
        queries,
        reference: None,
    })
}

/// The data, and its scale.
pub(super) fn data(options: &DataOptions) -> Result<(PlainFile, f64)> {
    let scale = options.scale * UNIT;
    Ok((generated(|out| generate_watdiv(scale, options.seed, out))?, scale))
}

/// The number of entities of which an instance draws one: the frequent half of skewed classes.
fn count(class: &str, sizes: &WatDivSizes) -> u32 {
    match class {
        "User" => sizes.users,
        "Website" => sizes.websites.div_ceil(2),
        "Retailer" => sizes.retailers,
        "City" => 240,
        "Topic" => 125,
        "SubGenre" => 70,
        "Country" => 12,
        "AgeGroup" => 9,
        _ => 5,
    }
}

/// Name and text of each template.
const TEMPLATES: [(&str, &str); 27] = [
    ("L1", "SELECT ?u ?p ?c { ?u wsdbm:subscribes %Website% ; wsdbm:likes ?p . ?p sorg:caption ?c }"),
    (
        "L2",
        "SELECT ?c ?u { %City% gn:parentCountry ?c . ?u wsdbm:likes wsdbm:Product0 ; sorg:nationality ?c }",
    ),
    ("L3", "SELECT ?u ?p { ?u wsdbm:likes ?p ; wsdbm:subscribes %Website% }"),
    ("L4", "SELECT ?p ?c { ?p og:tag %Topic% ; sorg:caption ?c }"),
    ("L5", "SELECT ?u ?job ?c { ?u sorg:jobTitle ?job ; sorg:nationality ?c . %City% gn:parentCountry ?c }"),
    (
        "S1",
        "SELECT * { ?o gr:includes ?p ; gr:price ?price ; gr:serialNumber ?serial ; gr:validFrom ?from ; \
         gr:validThrough ?through ; sorg:eligibleQuantity ?quantity ; sorg:eligibleRegion ?region ; \
         sorg:priceValidUntil ?until . %Retailer% gr:offers ?o }",
    ),
    (
        "S2",
        "SELECT ?u ?city ?g { ?u dc:Location ?city ; sorg:nationality %Country% ; wsdbm:gender ?g ; \
         a wsdbm:Role2 }",
    ),
    (
        "S3",
        "SELECT * { ?p a %ProductCategory% ; sorg:caption ?c ; wsdbm:hasGenre ?g ; sorg:publisher ?publisher }",
    ),
    (
        "S4",
        "SELECT ?u ?name ?p { ?u foaf:age %AgeGroup% ; foaf:familyName ?name ; sorg:nationality wsdbm:Country1 . \
         ?p mo:artist ?u }",
    ),
    (
        "S5",
        "SELECT ?p ?d ?k { ?p a %ProductCategory% ; sorg:description ?d ; sorg:keywords ?k ; \
         sorg:language wsdbm:Language0 }",
    ),
    ("S6", "SELECT ?p ?u ?t { ?p mo:conductor ?u ; a ?t ; wsdbm:hasGenre %SubGenre% }"),
    ("S7", "SELECT ?p ?t ?text { ?p a ?t ; sorg:text ?text . %User% wsdbm:likes ?p }"),
    (
        "F1",
        "SELECT * { ?g og:tag %Topic% ; a ?genre . ?p wsdbm:hasGenre ?g ; sorg:trailer ?t ; sorg:keywords ?k ; \
         a wsdbm:ProductCategory2 }",
    ),
    (
        "F2",
        "SELECT * { ?p foaf:homepage ?site ; og:title ?title ; a ?t ; sorg:caption ?c ; sorg:description ?d ; \
         wsdbm:hasGenre %SubGenre% . ?site sorg:url ?url ; wsdbm:hits ?hits }",
    ),
    (
        "F3",
        "SELECT * { ?p sorg:contentRating ?r ; sorg:contentSize ?s ; wsdbm:hasGenre %SubGenre% . \
         ?u wsdbm:makesPurchase ?buy . ?buy wsdbm:purchaseDate ?day ; wsdbm:purchaseFor ?p }",
    ),
    (
        "F4",
        "SELECT * { ?p foaf:homepage ?site ; og:tag %Topic% ; sorg:description ?d ; sorg:contentSize ?s . \
         ?o gr:includes ?p . ?site sorg:url ?url ; wsdbm:hits ?hits ; sorg:language wsdbm:Language0 . \
         ?u wsdbm:likes ?p }",
    ),
    (
        "F5",
        "SELECT * { %Retailer% gr:offers ?o . ?o gr:includes ?p ; gr:price ?price ; gr:validThrough ?through . \
         ?p og:title ?title ; a ?t }",
    ),
    (
        "C1",
        "SELECT * { ?p sorg:caption ?c ; sorg:text ?text ; sorg:contentRating ?rating ; rev:hasReview ?r . \
         ?r rev:title ?title ; rev:reviewer ?u . ?film sorg:actor ?u ; sorg:language ?l }",
    ),
    (
        "C2",
        "SELECT * { ?shop sorg:legalName ?name ; gr:offers ?o . ?o sorg:eligibleRegion wsdbm:Country5 ; \
         gr:includes ?p . ?u sorg:jobTitle ?job ; foaf:homepage ?site ; wsdbm:makesPurchase ?buy . \
         ?buy wsdbm:purchaseFor ?p . ?p rev:hasReview ?r . ?r rev:totalVotes ?votes }",
    ),
    (
        "C3",
        "SELECT ?u { ?u wsdbm:likes ?p ; wsdbm:friendOf ?v ; dc:Location ?city ; foaf:age ?age ; wsdbm:gender ?g ; \
         foaf:givenName ?name }",
    ),
    ("E1", "SELECT * { %User% wsdbm:follows ?a . ?a wsdbm:friendOf ?b }"),
    ("E2", "SELECT * { %User% wsdbm:follows ?a . ?a wsdbm:friendOf ?b . ?b wsdbm:likes ?p }"),
    (
        "E3",
        "SELECT * { %User% wsdbm:friendOf ?a . ?a wsdbm:likes ?p . ?p rev:hasReview ?r . ?r rev:reviewer ?v }",
    ),
    (
        "E4",
        "SELECT * { %Retailer% gr:offers ?o . ?o gr:includes ?p . ?p rev:hasReview ?r . ?r rev:reviewer ?u . \
         ?u wsdbm:likes ?q }",
    ),
    (
        "E5",
        "SELECT * { %Retailer% gr:offers ?o . ?o gr:includes ?p . ?u wsdbm:likes ?p ; wsdbm:follows ?v . \
         ?v dc:Location ?city . ?city gn:parentCountry ?c }",
    ),
    ("T1", "SELECT ?t (COUNT(*) AS ?n) { ?u wsdbm:likes ?p . ?p a ?t } GROUP BY ?t"),
    ("T2", "SELECT * { ?a a ?t . ?b a ?t . ?a wsdbm:friendOf ?b ; wsdbm:subscribes %Website% }"),
];
