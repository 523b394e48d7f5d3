//! The operations: IS1 to IS7 and IC1 to IC14, lookups and hops, the templates of Grasper and of G-Tran.

use super::network::input;
use super::substitution::SubstitutionParameters;
use vervet_conformance::ldbc::{Parameters, QUERIES, Query, Sparql};
use vervet_model::Result;

/// The table of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Group {
    Network,
    Hops,
    Grasper,
    GTran,
}

/// An operation with its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(super) group: Group,
    pub(crate) gremlin: String,
    pub(super) sparql: Option<String>,
    pub(crate) parameters: Vec<Parameters>,
}

impl Operation {
    /// An operation with only a Gremlin text.
    pub(crate) fn plain(name: &str, gremlin: &str, parameters: Vec<Parameters>) -> Self {
        let (name, gremlin) = (name.to_owned(), gremlin.to_owned());
        Self { name, group: Group::Hops, gremlin, sparql: None, parameters }
    }

    /// Whether it is one of IS1 to IC14.
    pub(super) fn is_network_query(&self) -> bool {
        self.group == Group::Network
    }

    /// Its SPARQL text for a set of parameters; `None`: there is none.
    pub(crate) fn sparql_text(&self, parameters: &Parameters) -> Option<String> {
        self.sparql.as_deref().map(|text| parameters.fill_in(text))
    }
}

/// Lookups and hops from a person: name, Gremlin, SPARQL.
const HOPS: [(&str, &str, &str); 8] = [
    ("point look-up", "g.V(person).values('firstName')", "SELECT ?name { $person :firstName ?name }"),
    (
        "1 hop",
        "g.V(person).both('knows').dedup().count()",
        "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?a { $person :knows|^:knows ?a } }",
    ),
    (
        "2 hops",
        "g.V(person).both('knows').both('knows').dedup().count()",
        "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?b { $person :knows|^:knows ?a . ?a :knows|^:knows ?b } }",
    ),
    (
        "3 hops",
        "g.V(person).both('knows').both('knows').both('knows').dedup().count()",
        "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?c { $person :knows|^:knows ?a . ?a :knows|^:knows ?b . ?b :knows|^:knows ?c } }",
    ),
    (
        "3 hops walks",
        "g.V(person).both('knows').both('knows').both('knows').count()",
        "SELECT (COUNT(*) AS ?n) { $person :knows|^:knows ?a . ?a :knows|^:knows ?b . ?b :knows|^:knows ?c }",
    ),
    ("1 hop any edge walks", "g.V(person).both().count()", ""),
    ("2 hops any edge walks", "g.V(person).both().both().count()", ""),
    ("2 hops any edge", "g.V(person).both().both().dedup().count()", ""),
];

/// Grasper's Q1 to Q8 (SoCC 2019, Table 4), with labels and keys of the network.
const GRASPER: [&str; 8] = [
    "g.V().has('firstName', firstName).properties('lastName').value()",
    "g.V().has('gender').hasLabel('Person').has('firstName', firstName)",
    "g.V().has('name', tagName).in('hasTag').values('length').max()",
    "g.E().has('workFrom', year).outV().dedup().has('gender', 'male').count()",
    "g.E().has('workFrom', gte(year)).not(outV().has('gender', 'male')).groupCount().by('workFrom')",
    "g.V().has('firstName', firstName).and(out('knows').values('birthday').min().is(gt(0)), in('knows').count().is(gt(3))).values('lastName')",
    "g.V().has('firstName', firstName).as('a').union(out('knows'), out('workAt').in('workAt')).in('knows').where(neq('a')).has('gender', 'male').order().by('creationDate').by('id').limit(10).values('id')",
    "g.V().has('firstName', firstName).aggregate('a').in('knows').out('knows').has('gender', 'male').where(without('a')).values('id')",
];

/// G-Tran's templates (arXiv 2105.04449, Table 5) in current Gremlin: a single start vertex is found by its
/// id, and `between` excludes its upper bound.
const GTRAN: [(&str, &str); 8] = [
    (
        "IS1",
        "g.V(person).union(values('firstName', 'lastName', 'birthday', 'locationIP', 'browserUsed'), out('isLocatedIn').values('name'))",
    ),
    (
        "IS2",
        "g.V(person).in('hasCreator').order().by('creationDate', desc).by('id', desc).limit(10).as('msg').union(hasLabel('Post').out('hasCreator').values('firstName'), hasLabel('Comment').out('replyOf').out('hasCreator').values('firstName')).as('author').select('msg', 'author').by('id').by()",
    ),
    (
        "IS3",
        "g.V(person).union(outE('knows').as('e').inV().as('f').select('e').values('creationDate').as('d').select('f', 'd').by('id').by(), inE('knows').as('e').outV().as('f').select('e').values('creationDate').as('d').select('f', 'd').by('id').by())",
    ),
    (
        "IS4",
        "g.V(message).union(hasLabel('Comment').values('content', 'creationDate'), hasLabel('Post').values('imageFile', 'creationDate'))",
    ),
    (
        "IC1",
        "g.V(person).as('a').both('knows').as('b').both('knows').where(neq('a')).as('c').both('knows').where(neq('a')).as('d').union(select('b'), select('c'), select('d')).has('firstName', firstName).as('p').union(out('isLocatedIn').values('name'), out('studyAt').out('isLocatedIn').values('name'), out('workAt').out('isLocatedIn').values('name')).as('place').select('p', 'place').by('id').by()",
    ),
    (
        "IC2",
        "g.V(person).both('knows').in('hasCreator').has('creationDate', lte(maxDate)).order().by('creationDate', desc).by('id').limit(1).values('id')",
    ),
    (
        "IC3",
        "g.V(person).as('a').union(both('knows'), both('knows').both('knows')).where(neq('a')).dedup().not(out('isLocatedIn').out('isPartOf').or(has('name', countryX), has('name', countryY))).as('p').in('hasCreator').has('creationDate', between(startDate, endDate)).or(out('isLocatedIn').has('name', countryX), out('isLocatedIn').has('name', countryY)).select('p').groupCount().by('id')",
    ),
    (
        "IC4",
        "g.V(person).both('knows').in('hasCreator').hasLabel('Post').has('creationDate', between(startDate, endDate)).out('hasTag').not(__.in('hasTag').hasLabel('Post').has('creationDate', lt(startDate))).groupCount().by('name')",
    ),
];

/// Operations with these names, or all.
///
/// # Errors
/// An unknown name.
pub(crate) fn operations(substitution: &SubstitutionParameters, only: &[String]) -> Result<Vec<Operation>> {
    let mut all = Vec::new();
    for query in &QUERIES {
        all.push(Operation {
            name: query.name.to_owned(),
            group: Group::Network,
            gremlin: query.gremlin.to_owned(),
            sparql: match query.sparql {
                Sparql::Text(text) => Some(text.to_owned()),
                Sparql::Inexpressible(_) => None,
            },
            parameters: (0..substitution.count).map(|i| parameters(query, substitution, i)).collect(),
        });
    }
    // The parameters of all queries together.
    let any = |i: usize| {
        QUERIES
            .iter()
            .map(|query| parameters(query, substitution, i))
            .fold(Parameters::default(), Parameters::with)
    };
    for (name, gremlin, sparql) in HOPS {
        all.push(Operation {
            name: name.to_owned(),
            group: Group::Hops,
            gremlin: gremlin.to_owned(),
            sparql: (!sparql.is_empty()).then(|| format!("PREFIX : <urn:vervet:key:> {sparql}")),
            parameters: (0..substitution.count).map(any).collect(),
        });
    }
    for (i, gremlin) in GRASPER.into_iter().enumerate() {
        all.push(Operation {
            name: format!("Grasper Q{}", i + 1),
            group: Group::Grasper,
            gremlin: gremlin.to_owned(),
            sparql: None,
            parameters: (0..substitution.names.len().min(substitution.count)).map(any).collect(),
        });
    }
    for (name, gremlin) in GTRAN {
        let dates = |i| match name {
            "IC3" => parameters(&QUERIES[9], substitution, i),
            "IC4" => parameters(&QUERIES[10], substitution, i),
            _ => Parameters::default(),
        };
        all.push(Operation {
            name: format!("G-Tran {name}"),
            group: Group::GTran,
            gremlin: gremlin.to_owned(),
            sparql: None,
            parameters: (0..substitution.count).map(|i| any(i).with(dates(i))).collect(),
        });
    }
    if let Some(name) = only.iter().find(|name| !all.iter().any(|operation| operation.name == **name)) {
        let names: Vec<&str> = all.iter().map(|operation| operation.name.as_str()).collect();
        return Err(input(format!("there is no operation {name:?}"))
            .with_hint(format!("operations: {}", names.join(", "))));
    }
    all.retain(|operation| only.is_empty() || only.contains(&operation.name));
    Ok(all)
}

/// The `i`-th parameters of a query.
fn parameters(query: &Query, substitution: &SubstitutionParameters, i: usize) -> Parameters {
    let person =
        Parameters::default().person("person", *SubstitutionParameters::of(&substitution.persons, i));
    let message = Parameters::default().message(*SubstitutionParameters::of(&substitution.messages, i));
    let name = |list: &[String]| SubstitutionParameters::of(list, i).clone();
    let month = i64::try_from(i % 12).unwrap_or(0) + 1;
    match query.name {
        "IS4" | "IS5" | "IS6" | "IS7" => message,
        "IC1" => person.text("firstName", name(&substitution.names)),
        "IC2" | "IC9" => person.number("maxDate", substitution.until),
        "IC3" => person
            .text("countryX", SubstitutionParameters::of(&substitution.countries, 0).as_str())
            .text("countryY", SubstitutionParameters::of(&substitution.countries, 1).as_str())
            .days(substitution.long.0, substitution.long.1),
        "IC4" => person.days(substitution.short.0, substitution.short.1),
        "IC5" => person.number("minDate", substitution.short.0),
        "IC6" => person.text("tagName", name(&substitution.tags)),
        "IC10" => person.month(month),
        "IC11" => person.text("country", name(&substitution.work_countries)).number("year", 2010),
        "IC12" => person.text("tagClass", name(&substitution.tag_classes)),
        "IC13" | "IC14" => Parameters::default()
            .person("person1", *SubstitutionParameters::of(&substitution.persons, i))
            .person("person2", *SubstitutionParameters::of(&substitution.persons, i + 1)),
        _ => person,
    }
}
