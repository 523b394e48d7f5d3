//! BSBM: twelve queries of a shopper (explore) and eight of an analyst (business intelligence) over products,
//! offers and reviews.
//!
//! # Shape
//! A `%Class%` in a template is replaced by a drawn entity of that class, the same in one instance;
//! `%Country%` by a country, `%x%`, `%y%` by a number. Names are `Q01.1`, `B1.1` and so on. Every `LIMIT`
//! follows a complete order.
//! # Source
//! Bizer, Schultz, "The Berlin SPARQL Benchmark", IJSWIS 5(2), 2009, and its business intelligence use case
//! of 2011. The texts are our own.

use super::data_set::{Benchmark, Compared, DataOptions, DataSet, OutsideQuery, generated, with_prefixes};
use crate::data::PlainFile;
use vervet_generate::{BSBM_PREFIXES, BsbmSizes, Random, generate_bsbm};
use vervet_model::Result;

/// Statements for each product, about.
const STATEMENTS_A_PRODUCT: f64 = 330.0;

/// Instances of a template.
const INSTANCES: u32 = 2;

/// Passes the data set to `each`.
///
/// # Errors
/// The data cannot be written; as `each`.
pub(super) fn data_sets(options: &DataOptions, each: &mut dyn FnMut(DataSet) -> Result<()>) -> Result<()> {
    let (file, sizes) = data(options)?;
    let mut random = Random::for_part(options.seed, &[0x6273_7175]);
    let mut queries = Vec::new();
    for (name, template) in EXPLORE.into_iter().chain(INTELLIGENCE) {
        for instance in 1..=INSTANCES {
            let text = with_prefixes(BSBM_PREFIXES, &substituted(template, &sizes, &mut random));
            let mut query = OutsideQuery::new(format!("{name}.{instance}"), text);
            if template.starts_with("DESCRIBE") {
                // The description of a resource is up to the engine.
                query.compare = Compared::Nothing;
            }
            queries.push(query);
        }
    }
    let name = format!("{} products", sizes.products);
    each(DataSet { benchmark: Benchmark::Bsbm, name, file, queries, reference: None })
}

/// The data and its sizes.
///
/// # Errors
/// The data cannot be written.
pub(super) fn data(options: &DataOptions) -> Result<(PlainFile, BsbmSizes)> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion from float saturates"
    )]
    let products = (options.statements() as f64 / STATEMENTS_A_PRODUCT) as u32;
    let file = generated(|out| generate_bsbm(products, options.seed, out))?;
    Ok((file, BsbmSizes::of(products)))
}

/// `template` with drawn entities and numbers.
fn substituted(template: &str, sizes: &BsbmSizes, random: &mut Random) -> String {
    let product = random.below(sizes.products);
    // A class of the second level: its features are common, its products many.
    let class = 1 + random.below(8.min(sizes.types.saturating_sub(1)).max(1));
    let features = class * 12;
    let replacements = [
        ("%Product%", format!("inst:Product{product}")),
        ("%ProductType%", format!("inst:ProductType{class}")),
        ("%Feature1%", format!("inst:ProductFeature{}", features + random.below(6))),
        ("%Feature2%", format!("inst:ProductFeature{}", features + 6 + random.below(6))),
        ("%Feature3%", format!("inst:ProductFeature{}", random.below(12))),
        ("%Producer%", format!("inst:Producer{}", random.below(sizes.producers))),
        ("%Vendor%", format!("inst:Vendor{}", random.below(sizes.vendors))),
        ("%Offer%", format!("inst:Offer{}", random.below(sizes.offers))),
        ("%Review%", format!("inst:Review{}", random.below(sizes.reviews))),
        ("%Country%", format!("country:{}", random.pick(&["US", "GB", "DE"]))),
        ("%Country2%", format!("country:{}", random.pick(&["JP", "FR", "CN"]))),
        ("%x%", random.between(100..=800).to_string()),
        ("%y%", random.between(900..=1_800).to_string()),
    ];
    replacements.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// The shopper's queries.
const EXPLORE: [(&str, &str); 12] = [
    (
        "Q01",
        "SELECT DISTINCT ?p ?label { ?p rdfs:label ?label ; a %ProductType% ; bsbm:productFeature %Feature1% , \
         %Feature2% ; bsbm:productPropertyNumeric1 ?v FILTER(?v > %x%) } ORDER BY ?label ?p LIMIT 10",
    ),
    (
        "Q02",
        "SELECT * { %Product% rdfs:label ?label ; rdfs:comment ?comment ; bsbm:producer ?p ; \
         bsbm:productFeature ?f ; bsbm:productPropertyTextual1 ?t1 ; bsbm:productPropertyTextual2 ?t2 ; \
         bsbm:productPropertyTextual3 ?t3 ; bsbm:productPropertyNumeric1 ?n1 ; bsbm:productPropertyNumeric2 ?n2 . \
         ?p rdfs:label ?maker . ?f rdfs:label ?feature OPTIONAL { %Product% bsbm:productPropertyTextual4 ?t4 } \
         OPTIONAL { %Product% bsbm:productPropertyTextual5 ?t5 } \
         OPTIONAL { %Product% bsbm:productPropertyNumeric4 ?n4 } }",
    ),
    (
        "Q03",
        "SELECT ?p ?label { ?p rdfs:label ?label ; a %ProductType% ; bsbm:productFeature %Feature1% ; \
         bsbm:productPropertyNumeric1 ?v1 ; bsbm:productPropertyNumeric3 ?v3 FILTER(?v1 > %x% && ?v3 < %y%) \
         OPTIONAL { ?p bsbm:productFeature %Feature2% ; rdfs:label ?without } FILTER(!BOUND(?without)) } \
         ORDER BY ?label ?p LIMIT 10",
    ),
    (
        "Q04",
        "SELECT DISTINCT ?p ?label ?t { { ?p rdfs:label ?label ; a %ProductType% ; \
         bsbm:productFeature %Feature1% , %Feature2% ; bsbm:productPropertyTextual1 ?t ; \
         bsbm:productPropertyNumeric1 ?v FILTER(?v > %x%) } UNION { ?p rdfs:label ?label ; a %ProductType% ; \
         bsbm:productFeature %Feature1% , %Feature3% ; bsbm:productPropertyTextual1 ?t ; \
         bsbm:productPropertyNumeric2 ?w FILTER(?w > %y%) } } ORDER BY ?label ?p OFFSET 5 LIMIT 10",
    ),
    (
        "Q05",
        "SELECT DISTINCT ?p ?label { %Product% bsbm:productFeature ?f ; bsbm:productPropertyNumeric1 ?a1 ; \
         bsbm:productPropertyNumeric2 ?a2 . ?p bsbm:productFeature ?f ; rdfs:label ?label ; \
         bsbm:productPropertyNumeric1 ?b1 ; bsbm:productPropertyNumeric2 ?b2 FILTER(%Product% != ?p) \
         FILTER(?b1 < ?a1 + 120 && ?b1 > ?a1 - 120) FILTER(?b2 < ?a2 + 170 && ?b2 > ?a2 - 170) } \
         ORDER BY ?label ?p LIMIT 5",
    ),
    (
        "Q06",
        "SELECT ?p ?label { ?p rdfs:label ?label ; a bsbm:Product FILTER REGEX(?label, \"dibaba|ceba\") }",
    ),
    (
        "Q07",
        "SELECT * { %Product% rdfs:label ?label OPTIONAL { ?o bsbm:product %Product% ; bsbm:price ?price ; \
         bsbm:vendor ?v ; bsbm:validTo ?to . ?v rdfs:label ?vendor ; bsbm:country %Country% \
         FILTER(?to > \"2008-06-20T00:00:00\"^^xsd:dateTime) } \
         OPTIONAL { ?r bsbm:reviewFor %Product% ; rev:reviewer ?u ; dc:title ?title . ?u foaf:name ?name \
         OPTIONAL { ?r bsbm:rating1 ?r1 } OPTIONAL { ?r bsbm:rating2 ?r2 } } }",
    ),
    (
        "Q08",
        "SELECT ?title ?text ?day ?u ?name ?r1 ?r2 ?r3 ?r4 { ?r bsbm:reviewFor %Product% ; dc:title ?title ; \
         rev:text ?text ; bsbm:reviewDate ?day ; rev:reviewer ?u . ?u foaf:name ?name \
         FILTER LANGMATCHES(LANG(?text), \"EN\") OPTIONAL { ?r bsbm:rating1 ?r1 } OPTIONAL { ?r bsbm:rating2 ?r2 } \
         OPTIONAL { ?r bsbm:rating3 ?r3 } OPTIONAL { ?r bsbm:rating4 ?r4 } } ORDER BY DESC(?day) ?r LIMIT 20",
    ),
    ("Q09", "DESCRIBE ?u { %Review% rev:reviewer ?u }"),
    (
        "Q10",
        "SELECT DISTINCT ?o ?price { ?o bsbm:product %Product% ; bsbm:vendor ?v ; bsbm:deliveryDays ?days ; \
         bsbm:price ?price ; bsbm:validTo ?to . ?v bsbm:country %Country% \
         FILTER(?days <= 3 && ?to > \"2008-03-20T00:00:00\"^^xsd:dateTime) } \
         ORDER BY xsd:double(STR(?price)) ?o LIMIT 10",
    ),
    ("Q11", "SELECT ?p ?o ?s { { %Offer% ?p ?o } UNION { ?s ?p %Offer% } }"),
    (
        "Q12",
        "CONSTRUCT { %Offer% bsbm:product ?p ; bsbm:vendor ?v ; bsbm:price ?price . ?p rdfs:label ?label . \
         ?v rdfs:label ?vendor } WHERE { %Offer% bsbm:product ?p ; bsbm:vendor ?v ; bsbm:price ?price . \
         ?p rdfs:label ?label . ?v rdfs:label ?vendor }",
    ),
];

/// The analyst's queries.
const INTELLIGENCE: [(&str, &str); 8] = [
    // Types whose products of one country are reviewed most from another.
    (
        "B1",
        "SELECT ?type (COUNT(?r) AS ?n) { ?type a bsbm:ProductType . ?p a ?type ; bsbm:producer ?maker . \
         ?maker bsbm:country %Country% . ?r bsbm:reviewFor ?p ; rev:reviewer ?u . ?u bsbm:country %Country2% } \
         GROUP BY ?type ORDER BY DESC(?n) ?type LIMIT 10",
    ),
    // Products that share most features with one.
    (
        "B2",
        "SELECT ?p ?same { { SELECT ?p (COUNT(?f) AS ?same) { ?p bsbm:productFeature ?f . \
         %Product% bsbm:productFeature ?f FILTER(?p != %Product%) } GROUP BY ?p } } \
         ORDER BY DESC(?same) ?p LIMIT 10",
    ),
    // Growth of the number of reviews from one month to the next.
    (
        "B3",
        "SELECT ?p (xsd:float(?late) / ?early AS ?ratio) { \
         { SELECT ?p (COUNT(?r) AS ?late) { ?r bsbm:reviewFor ?p ; bsbm:reviewDate ?d \
         FILTER(?d >= \"2008-01-01T00:00:00\"^^xsd:dateTime && ?d < \"2008-07-01T00:00:00\"^^xsd:dateTime) } \
         GROUP BY ?p } { SELECT ?p (COUNT(?r) AS ?early) { ?r bsbm:reviewFor ?p ; bsbm:reviewDate ?d \
         FILTER(?d >= \"2007-07-01T00:00:00\"^^xsd:dateTime && ?d < \"2008-01-01T00:00:00\"^^xsd:dateTime) } \
         GROUP BY ?p HAVING (COUNT(?r) > 0) } } ORDER BY DESC(?ratio) ?p LIMIT 10",
    ),
    // Features by the ratio of prices with and without them. In single precision the sums would depend on the
    // order of additions beyond the fifth digit.
    (
        "B4",
        "SELECT ?f ((?with * (?all - ?n)) / (?total - ?with) AS ?ratio) { \
         { SELECT (COUNT(?v) AS ?all) (SUM(xsd:double(STR(?v))) AS ?total) { ?p a %ProductType% . \
         ?o bsbm:product ?p ; bsbm:price ?v } } \
         { SELECT ?f (COUNT(?v) AS ?n) (SUM(xsd:double(STR(?v))) AS ?with) { ?p a %ProductType% ; \
         bsbm:productFeature ?f . ?o bsbm:product ?p ; bsbm:price ?v } GROUP BY ?f } FILTER(?n < ?all) }",
    ),
    // The most reviewed products of a type in each country.
    (
        "B5",
        "SELECT ?country ?p ?n { { SELECT ?country (MAX(?k) AS ?most) { { SELECT ?country ?q (COUNT(?r) AS ?k) { \
         ?q a %ProductType% . ?r bsbm:reviewFor ?q ; rev:reviewer ?u . ?u bsbm:country ?country } \
         GROUP BY ?country ?q } } GROUP BY ?country } \
         { SELECT ?country ?p (COUNT(?r) AS ?n) { ?p a %ProductType% . ?r bsbm:reviewFor ?p ; rev:reviewer ?u . \
         ?u bsbm:country ?country } GROUP BY ?country ?p } FILTER(?n = ?most) }",
    ),
    // Reviewers who rate one producer far above the mean.
    (
        "B6",
        "SELECT ?u (AVG(xsd:float(?score)) AS ?mean) { { SELECT (AVG(xsd:float(?s)) AS ?all) { \
         ?p bsbm:producer %Producer% . ?r bsbm:reviewFor ?p { ?r bsbm:rating1 ?s } UNION { ?r bsbm:rating2 ?s } \
         UNION { ?r bsbm:rating3 ?s } UNION { ?r bsbm:rating4 ?s } } } \
         ?p bsbm:producer %Producer% . ?r bsbm:reviewFor ?p ; rev:reviewer ?u \
         { ?r bsbm:rating1 ?score } UNION { ?r bsbm:rating2 ?score } UNION { ?r bsbm:rating3 ?score } \
         UNION { ?r bsbm:rating4 ?score } } GROUP BY ?u HAVING (AVG(xsd:float(?score)) > 1.5 * MIN(?all))",
    ),
    // Cheap products of a type that no vendor of a country offers.
    (
        "B7",
        "SELECT ?p (COUNT(?o) AS ?n) { ?p a %ProductType% . ?o bsbm:product ?p ; bsbm:deliveryDays ?days \
         FILTER(?days <= 7) FILTER NOT EXISTS { ?o2 bsbm:product ?p ; bsbm:vendor ?v . ?v bsbm:country %Country2% } } \
         GROUP BY ?p ORDER BY DESC(?n) ?p LIMIT 10",
    ),
    // Vendors by the share of their offers below the mean price of the product.
    (
        "B8",
        "SELECT ?v (xsd:float(?below) / ?n AS ?share) { { SELECT ?v (COUNT(?o) AS ?below) { \
         { SELECT ?p (AVG(xsd:double(STR(?w))) AS ?mean) { ?p a %ProductType% . ?o2 bsbm:product ?p ; bsbm:price ?w } \
         GROUP BY ?p } ?o bsbm:product ?p ; bsbm:vendor ?v ; bsbm:price ?price \
         FILTER(xsd:double(STR(?price)) < ?mean) } GROUP BY ?v } \
         { SELECT ?v (COUNT(?o) AS ?n) { ?p a %ProductType% . ?o bsbm:product ?p ; bsbm:vendor ?v } GROUP BY ?v } }",
    ),
];
