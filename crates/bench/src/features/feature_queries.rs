//! The queries of the feature benchmark: each uses one feature of SPARQL, in one way.
//!
//! # Shape
//! Two sets, one for each kind of data: LUBM universities, and graphs of `<urn:e>`. [`super::run`]
//! substitutes IRIs for `$HUB` and `$OTHER`. Results over a whole power-law graph explode, so most queries
//! there start at a vertex.

/// The compared aspect of two results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compare {
    /// The rows, in any order.
    Rows,
    /// The rows in order: the query orders them completely.
    Order,
    /// The number of rows: the rest is up to the engine.
    Number,
}

/// One query.
#[derive(Clone, Copy, Debug)]
pub struct FeatureQuery {
    /// Its name in tables and options.
    pub name: &'static str,
    /// SPARQL text, without prefixes.
    pub text: &'static str,
    /// The compared aspect.
    pub compare: Compare,
}

const fn rows(name: &'static str, text: &'static str) -> FeatureQuery {
    FeatureQuery { name, text, compare: Compare::Rows }
}

const fn ordered(name: &'static str, text: &'static str) -> FeatureQuery {
    FeatureQuery { name, text, compare: Compare::Order }
}

const fn number(name: &'static str, text: &'static str) -> FeatureQuery {
    FeatureQuery { name, text, compare: Compare::Number }
}

/// All statements, as a table.
pub(super) const EXPORT: &str = "export";

/// The number of vertices reachable from one vertex.
pub(super) const REACH: &str = "path-plus-count";

/// Prefixes of each query.
pub(super) const PREFIXES: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> \
                            PREFIX d0: <http://www.Department0.University0.edu/> ";

/// Queries on universities. Department 0 of university 0 is in every file of LUBM.
pub const UNIVERSITIES: &[FeatureQuery] = &[
    rows("count", "SELECT (COUNT(*) AS ?n) { ?x ub:takesCourse ?c }"),
    rows("count-join", "SELECT (COUNT(*) AS ?n) { ?x ub:takesCourse ?c . ?y ub:takesCourse ?c }"),
    rows(
        "count-chain",
        "SELECT (COUNT(*) AS ?n) { ?s ub:advisor ?p . ?p ub:worksFor ?d . ?d ub:subOrganizationOf ?u . ?u ub:name ?m }",
    ),
    rows("chain", "SELECT ?s ?p ?d ?u { ?s ub:advisor ?p . ?p ub:worksFor ?d . ?d ub:subOrganizationOf ?u }"),
    rows(
        "chain-5",
        "SELECT ?b ?s ?c { ?b ub:publicationAuthor ?p . ?p ub:headOf ?d . ?s ub:advisor ?p . ?s ub:takesCourse ?c . \
         ?c a ub:GraduateCourse }",
    ),
    rows(
        "star",
        "SELECT ?x ?n ?m ?t ?d { ?x a ub:UndergraduateStudent ; ub:name ?n ; ub:emailAddress ?m ; ub:telephone ?t ; \
         ub:memberOf ?d }",
    ),
    rows(
        "count-star",
        "SELECT (COUNT(*) AS ?k) { ?x a ub:UndergraduateStudent ; ub:name ?n ; ub:emailAddress ?m ; ub:telephone ?t ; \
         ub:memberOf ?d ; ub:takesCourse ?c }",
    ),
    rows(
        "snowflake",
        "SELECT ?p ?n ?c ?s ?m { ?p ub:headOf ?d ; ub:name ?n ; ub:teacherOf ?c . ?s ub:takesCourse ?c ; \
         ub:emailAddress ?m . ?d ub:subOrganizationOf ?u . ?u ub:name ?o }",
    ),
    rows("cycle", "SELECT ?x ?p ?c { ?x ub:advisor ?p . ?p ub:teacherOf ?c . ?x ub:takesCourse ?c }"),
    rows("product", "SELECT ?a ?b { ?a a ub:Department . ?b a ub:Department }"),
    rows("lookup", "SELECT ?p ?o { d0:FullProfessor0 ?p ?o }"),
    rows("optional", "SELECT ?x ?c { ?x a ub:GraduateStudent OPTIONAL { ?x ub:teachingAssistantOf ?c } }"),
    rows(
        "optional-3",
        "SELECT ?x ?a ?c ?u { ?x ub:memberOf ?d OPTIONAL { ?x ub:advisor ?a } \
         OPTIONAL { ?x ub:teachingAssistantOf ?c } OPTIONAL { ?x ub:undergraduateDegreeFrom ?u } }",
    ),
    rows(
        "optional-nested",
        "SELECT ?x ?p ?d { ?x a ub:GraduateStudent OPTIONAL { ?x ub:advisor ?p OPTIONAL { ?p ub:headOf ?d } } }",
    ),
    rows(
        "optional-chain",
        "SELECT ?x ?o { ?x a ub:GraduateStudent OPTIONAL { ?x ub:undergraduateDegreeFrom ?u . \
         ?d ub:subOrganizationOf ?u . ?h ub:headOf ?d . ?h ub:name ?o } }",
    ),
    rows(
        "optional-filter",
        "SELECT ?x ?n { ?x a ub:GraduateStudent OPTIONAL { ?x ub:advisor ?p . ?p ub:name ?n \
         FILTER(STRSTARTS(?n, \"Full\")) } }",
    ),
    rows("minus", "SELECT ?x { ?x a ub:GraduateStudent MINUS { ?x ub:teachingAssistantOf ?c } }"),
    rows("minus-chain", "SELECT ?x { ?x a ub:GraduateStudent MINUS { ?x ub:advisor ?p . ?p ub:headOf ?d } }"),
    rows("exists", "SELECT ?x { ?x a ub:GraduateStudent FILTER EXISTS { ?x ub:teachingAssistantOf ?c } }"),
    rows(
        "not-exists",
        "SELECT ?x { ?x a ub:GraduateStudent FILTER NOT EXISTS { ?x ub:teachingAssistantOf ?c } }",
    ),
    rows(
        "exists-2",
        "SELECT ?x { ?x a ub:GraduateStudent FILTER EXISTS { ?x ub:advisor ?p . ?p ub:headOf ?d } }",
    ),
    rows(
        "exists-3",
        "SELECT ?x { ?x a ub:UndergraduateStudent FILTER EXISTS { ?x ub:takesCourse ?c . ?p ub:teacherOf ?c . \
         ?p ub:headOf ?d } }",
    ),
    rows(
        "not-exists-3",
        "SELECT ?x ?p { ?x ub:advisor ?p FILTER NOT EXISTS { ?p ub:teacherOf ?c . ?x ub:takesCourse ?c . \
         ?c a ub:GraduateCourse } }",
    ),
    rows(
        "exists-filter",
        "SELECT ?x { ?x ub:memberOf ?d . ?d ub:subOrganizationOf ?v \
         FILTER EXISTS { ?x ub:undergraduateDegreeFrom ?u FILTER(?u = ?v) } }",
    ),
    rows(
        "exists-or",
        "SELECT ?x { ?x a ub:GraduateStudent FILTER(EXISTS { ?x ub:teachingAssistantOf ?c } \
         || EXISTS { ?x ub:advisor ?p . ?p ub:headOf ?d }) }",
    ),
    rows(
        "union",
        "SELECT ?x ?n { { ?x a ub:Course } UNION { ?x a ub:GraduateCourse } UNION { ?x a ub:Lecturer } \
         ?x ub:name ?n }",
    ),
    rows(
        "union-join",
        "SELECT ?x ?d { { ?x ub:headOf ?d } UNION { ?x ub:worksFor ?d . ?x a ub:Lecturer } \
         ?d ub:subOrganizationOf <http://www.University0.edu> }",
    ),
    rows("regex", "SELECT ?x ?n { ?x ub:name ?n FILTER regex(?n, \"Student4[0-9]*7$\") }"),
    rows("regex-case", "SELECT ?x ?n { ?x ub:name ?n FILTER regex(?n, \"^full.*[13]$\", \"i\") }"),
    rows("prefix", "SELECT ?x ?n { ?x ub:name ?n FILTER STRSTARTS(?n, \"UndergraduateStudent41\") }"),
    rows("contains", "SELECT ?x ?n { ?x ub:name ?n FILTER CONTAINS(?n, \"Student44\") }"),
    rows(
        "iri-prefix",
        "SELECT (COUNT(*) AS ?n) { ?x ub:takesCourse ?c \
         FILTER STRSTARTS(STR(?x), \"http://www.Department1.University0.edu/Undergraduate\") }",
    ),
    rows(
        "string-range",
        "SELECT ?x ?n { ?x ub:name ?n FILTER(?n >= \"Publication15\" && ?n < \"Publication17\") }",
    ),
    rows("literal", "SELECT ?x { ?x ub:name \"GraduateStudent44\" }"),
    rows("in", "SELECT ?x ?n { ?x ub:name ?n FILTER(?n IN (\"Lecturer0\", \"Lecturer3\", \"Course17\")) }"),
    rows(
        "string-functions",
        "SELECT ?x (CONCAT(UCASE(SUBSTR(?n, 1, 4)), \"-\", STRAFTER(?m, \"@\")) AS ?t) (STRLEN(?m) AS ?l) \
         { ?x a ub:GraduateStudent ; ub:name ?n ; ub:emailAddress ?m }",
    ),
    rows("bind", "SELECT ?l (COUNT(*) AS ?k) { ?x ub:name ?n BIND(STRLEN(?n) AS ?l) } GROUP BY ?l"),
    rows("group-few", "SELECT ?t (COUNT(*) AS ?n) { ?x a ?t } GROUP BY ?t"),
    rows("group-many", "SELECT ?x (COUNT(?c) AS ?n) { ?x ub:takesCourse ?c } GROUP BY ?x"),
    rows(
        "group-join",
        "SELECT ?u (COUNT(?x) AS ?n) { ?x ub:memberOf ?d . ?d ub:subOrganizationOf ?u } GROUP BY ?u",
    ),
    rows("having", "SELECT ?c { ?x ub:takesCourse ?c } GROUP BY ?c HAVING (COUNT(?x) > 25)"),
    rows("count-distinct", "SELECT (COUNT(DISTINCT ?c) AS ?n) { ?x ub:takesCourse ?c }"),
    rows(
        "group-distinct",
        "SELECT ?d (COUNT(DISTINCT ?c) AS ?n) { ?x ub:memberOf ?d . ?x ub:takesCourse ?c } GROUP BY ?d",
    ),
    rows(
        "min-max",
        "SELECT ?d (MIN(?n) AS ?least) (MAX(?n) AS ?most) { ?x ub:memberOf ?d . ?x ub:name ?n } GROUP BY ?d",
    ),
    number(
        "group-concat",
        "SELECT ?p (GROUP_CONCAT(?n; SEPARATOR=\", \") AS ?names) { ?s ub:advisor ?p . ?s ub:name ?n } GROUP BY ?p",
    ),
    rows(
        "group-concat-length",
        "SELECT ?p (STRLEN(GROUP_CONCAT(?n; SEPARATOR=\", \")) AS ?l) { ?s ub:advisor ?p . ?s ub:name ?n } GROUP BY ?p",
    ),
    rows("distinct", "SELECT DISTINCT ?d ?c { ?x ub:memberOf ?d . ?x ub:takesCourse ?c }"),
    ordered("order", "SELECT ?x ?n { ?x a ub:Publication ; ub:name ?n } ORDER BY ?n ?x"),
    ordered("top-k", "SELECT ?x ?n { ?x a ub:Publication ; ub:name ?n } ORDER BY DESC(?n) ?x LIMIT 10"),
    ordered(
        "top-groups",
        "SELECT ?c (COUNT(*) AS ?n) { ?x ub:takesCourse ?c } GROUP BY ?c ORDER BY DESC(?n) ?c LIMIT 10",
    ),
    number("limit", "SELECT ?x ?n { ?x a ub:Publication ; ub:name ?n } LIMIT 1000"),
    rows(
        "sub-query",
        "SELECT ?p ?n { { SELECT ?p (COUNT(*) AS ?n) { ?s ub:advisor ?p } GROUP BY ?p } ?p a ub:FullProfessor \
         FILTER(?n > 8) }",
    ),
    rows(
        "values",
        "SELECT ?x ?n { VALUES ?d { <http://www.Department0.University0.edu> <http://www.Department3.University0.edu> \
         <http://www.Department5.University0.edu> } ?x ub:memberOf ?d . ?x ub:name ?n }",
    ),
    rows("path-sequence", "SELECT ?x ?u { ?x ub:advisor/ub:worksFor/ub:subOrganizationOf ?u }"),
    rows("path-alternative", "SELECT ?x ?d { ?x ub:worksFor|ub:memberOf ?d }"),
    rows("path-inverse", "SELECT ?x { <http://www.Department0.University0.edu> ^ub:memberOf/ub:advisor ?x }"),
    rows("path-optional", "SELECT ?x ?y { ?x a ub:FullProfessor . ?x ub:headOf? ?y }"),
    rows("path-plus-from", "SELECT ?y { d0:ResearchGroup0 ub:subOrganizationOf+ ?y }"),
    rows("path-plus-to", "SELECT ?x { ?x ub:subOrganizationOf+ <http://www.University0.edu> }"),
    rows("path-star-to", "SELECT ?x { ?x ub:subOrganizationOf* <http://www.University0.edu> }"),
    rows(
        "path-both-bound",
        "SELECT (COUNT(*) AS ?n) { d0:ResearchGroup0 ub:subOrganizationOf+ <http://www.University0.edu> }",
    ),
    rows("path-plus-unbound", "SELECT ?x ?y { ?x ub:subOrganizationOf+ ?y }"),
    rows(
        "path-alternative-plus",
        "SELECT ?x { ?x (ub:memberOf|ub:subOrganizationOf)+ <http://www.University0.edu> }",
    ),
    rows(
        "path-sequence-plus",
        "SELECT ?x { d0:FullProfessor0 (^ub:publicationAuthor/ub:publicationAuthor)+ ?x }",
    ),
    rows(
        "path-negated",
        "SELECT ?x { ?x !(a|ub:memberOf|ub:name) <http://www.Department0.University0.edu> }",
    ),
    rows(
        "path-join",
        "SELECT ?x ?p ?u { ?x a ub:GraduateStudent ; ub:advisor ?p . ?p ub:worksFor ?d . ?d ub:subOrganizationOf+ ?u }",
    ),
    rows(EXPORT, "SELECT ?s ?p ?o { ?s ?p ?o }"),
];

/// Queries on a graph of `<urn:e>`; `$HUB` is the vertex with the highest out-degree, `$OTHER` has a medium
/// one.
pub const GRAPH: &[FeatureQuery] = &[
    rows("count", "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b }"),
    rows("count-paths-2", "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b . ?b <urn:e> ?c }"),
    rows("hops-1", "SELECT ?b { $HUB <urn:e> ?b }"),
    rows("hops-2", "SELECT ?b ?c { $HUB <urn:e> ?b . ?b <urn:e> ?c }"),
    rows("hops-2-distinct", "SELECT DISTINCT ?c { $HUB <urn:e> ?b . ?b <urn:e> ?c }"),
    rows("count-hops-3", "SELECT (COUNT(*) AS ?n) { $OTHER <urn:e> ?b . ?b <urn:e> ?c . ?c <urn:e> ?d }"),
    rows("count-hops-4", "SELECT (COUNT(*) AS ?n) { $OTHER <urn:e>/<urn:e>/<urn:e>/<urn:e> ?d }"),
    rows("triangles-at", "SELECT ?b ?c { $HUB <urn:e> ?b . ?b <urn:e> ?c . $HUB <urn:e> ?c }"),
    rows("count-triangles", "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b . ?b <urn:e> ?c . ?a <urn:e> ?c }"),
    rows("mutual", "SELECT ?a ?b { ?a <urn:e> ?b . ?b <urn:e> ?a }"),
    rows("star-in", "SELECT ?a { ?a <urn:e> $HUB . ?a <urn:e> $OTHER }"),
    rows("count-star", "SELECT (COUNT(*) AS ?n) { $OTHER <urn:e> ?a . ?a <urn:e> ?b . ?a <urn:e> ?c }"),
    rows("optional", "SELECT ?a ?b { $HUB <urn:e> ?a OPTIONAL { ?a <urn:e> ?b . ?b <urn:e> $HUB } }"),
    rows("optional-all", "SELECT ?a ?b { ?a <urn:e> ?b OPTIONAL { ?b <urn:e> ?a . ?a <urn:e> $OTHER } }"),
    rows(
        "optional-nested",
        "SELECT ?a ?b ?c { $HUB <urn:e> ?a OPTIONAL { ?a <urn:e> ?b . ?b <urn:e> $HUB \
         OPTIONAL { ?b <urn:e> ?c . ?c <urn:e> $OTHER } } }",
    ),
    rows("minus", "SELECT ?a { ?a <urn:e> $HUB MINUS { $HUB <urn:e> ?a } }"),
    rows("minus-all", "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b MINUS { ?b <urn:e> ?a } }"),
    rows("exists-all", "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b FILTER EXISTS { ?b <urn:e> ?a } }"),
    rows("not-exists-all", "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b FILTER NOT EXISTS { ?b <urn:e> ?a } }"),
    rows("not-exists-sinks", "SELECT DISTINCT ?b { ?a <urn:e> ?b FILTER NOT EXISTS { ?b <urn:e> ?c } }"),
    rows("exists-2", "SELECT ?a { $HUB <urn:e> ?a FILTER EXISTS { ?a <urn:e> ?b . ?b <urn:e> $HUB } }"),
    rows(
        "exists-3",
        "SELECT ?a { $HUB <urn:e> ?a FILTER EXISTS { ?a <urn:e> ?b . ?b <urn:e> ?c . ?c <urn:e> $OTHER } }",
    ),
    rows(
        "not-exists-2",
        "SELECT ?a { ?a <urn:e> $HUB FILTER NOT EXISTS { ?a <urn:e> ?b . $HUB <urn:e> ?b } }",
    ),
    rows(
        "exists-filter",
        "SELECT ?a { $HUB <urn:e> ?a FILTER EXISTS { ?a <urn:e> ?b FILTER(STR(?b) < STR(?a)) } }",
    ),
    rows(
        "exists-or",
        "SELECT ?a { $HUB <urn:e> ?a FILTER(EXISTS { ?a <urn:e> $HUB } || EXISTS { ?a <urn:e> $OTHER }) }",
    ),
    rows("union", "SELECT ?a { { ?a <urn:e> $HUB } UNION { $HUB <urn:e> ?a } }"),
    rows(
        "union-join",
        "SELECT (COUNT(*) AS ?n) { { ?a <urn:e> $OTHER } UNION { $OTHER <urn:e> ?a } ?a <urn:e> ?b }",
    ),
    rows("regex", "SELECT ?b { $HUB <urn:e> ?b FILTER regex(STR(?b), \"1[0-9]*7$\") }"),
    rows("prefix", "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b FILTER STRSTARTS(STR(?b), \"urn:v123\") }"),
    rows(
        "string-functions",
        "SELECT (CONCAT(SUBSTR(STR(?b), 6), \"-\", UCASE(STR(?b))) AS ?t) { $HUB <urn:e> ?b }",
    ),
    rows("group-many", "SELECT ?a (COUNT(*) AS ?n) { ?a <urn:e> ?b } GROUP BY ?a"),
    rows(
        "group-few",
        "SELECT ?l (COUNT(*) AS ?n) { $HUB <urn:e> ?b . ?b <urn:e> ?c BIND(STRLEN(STR(?c)) AS ?l) } GROUP BY ?l",
    ),
    rows("group-paths", "SELECT ?c (COUNT(*) AS ?n) { $HUB <urn:e> ?b . ?b <urn:e> ?c } GROUP BY ?c"),
    rows("having", "SELECT ?b { ?a <urn:e> ?b } GROUP BY ?b HAVING (COUNT(*) > 100)"),
    rows("count-distinct", "SELECT (COUNT(DISTINCT ?a) AS ?n) { ?a <urn:e> ?b }"),
    rows(
        "sub-query",
        "SELECT ?n (COUNT(*) AS ?k) { { SELECT ?a (COUNT(*) AS ?n) { ?a <urn:e> ?b } GROUP BY ?a } } GROUP BY ?n",
    ),
    ordered("order", "SELECT ?b ?c { $OTHER <urn:e> ?b . ?b <urn:e> ?c } ORDER BY ?c ?b"),
    ordered("top-k", "SELECT ?a ?b { ?a <urn:e> ?b } ORDER BY DESC(?b) ?a LIMIT 10"),
    ordered(
        "top-groups",
        "SELECT ?a (COUNT(*) AS ?n) { ?a <urn:e> ?b } GROUP BY ?a ORDER BY DESC(?n) ?a LIMIT 10",
    ),
    number("limit", "SELECT ?a ?c { ?a <urn:e> ?b . ?b <urn:e> ?c } LIMIT 1000"),
    rows("values", "SELECT ?a ?b { VALUES ?a { $HUB $OTHER } ?a <urn:e> ?b }"),
    rows(REACH, "SELECT (COUNT(*) AS ?n) { $HUB <urn:e>+ ?x }"),
    rows("path-plus-from", "SELECT ?x { $HUB <urn:e>+ ?x }"),
    rows("path-star-from", "SELECT ?x { $OTHER <urn:e>* ?x }"),
    rows("path-plus-to", "SELECT ?x { ?x <urn:e>+ $OTHER }"),
    rows("path-both-bound", "SELECT (COUNT(*) AS ?n) { $OTHER <urn:e>+ $HUB }"),
    rows("path-alternative-plus", "SELECT (COUNT(*) AS ?n) { $OTHER (<urn:e>|^<urn:e>)+ ?x }"),
    rows("path-sequence-plus", "SELECT (COUNT(*) AS ?n) { $OTHER (<urn:e>/<urn:e>)+ ?x }"),
    rows("path-negated", "SELECT ?x { $HUB !<urn:f> ?x }"),
    rows("path-inverse", "SELECT ?x { $HUB ^<urn:e> ?x }"),
    rows("path-join", "SELECT (COUNT(*) AS ?n) { ?a <urn:e> $HUB . ?a <urn:e> $OTHER . ?a <urn:e>+ ?x }"),
    rows("path-bound-join", "SELECT ?a ?b { ?a <urn:e> $OTHER . $OTHER <urn:e> ?b . ?a <urn:e>+ ?b }"),
    rows(EXPORT, "SELECT ?s ?p ?o { ?s ?p ?o }"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn feature_queries_are_many_and_have_unique_names() {
        for set in [UNIVERSITIES, GRAPH] {
            let names: BTreeSet<_> = set.iter().map(|query| query.name).collect();
            assert!(set.len() >= 40);
            assert_eq!(names.len(), set.len());
            assert!(names.contains(EXPORT));
            for query in set {
                let order = query.text.contains("ORDER BY");
                assert_eq!(query.compare == Compare::Order, order, "{}", query.name);
            }
        }
    }
}
