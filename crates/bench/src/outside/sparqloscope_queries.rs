//! The queries of [`super::sparqloscope`].

use super::data_set::Compared;

/// Name, text and compared aspect.
pub(super) type Feature = (&'static str, &'static str, Compared);

/// A query whose rows are compared.
const fn rows(name: &'static str, text: &'static str) -> Feature {
    (name, text, Compared::Rows)
}

/// The queries by family.
pub(super) const QUERIES: &[Feature] = &[
    rows("number-of-triples", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"),
    rows("number-of-subjects", "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o }"),
    rows("number-of-predicates", "SELECT (COUNT(DISTINCT ?p) AS ?n) { ?s ?p ?o }"),
    rows("number-of-objects", "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o }"),
    rows("number-of-bound-subjects", "SELECT (COUNT(?s) AS ?n) { ?s ?p ?o }"),
    rows("number-of-blank-nodes", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER ISBLANK(?s) }"),
    rows("number-of-literals", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER ISLITERAL(?o) }"),
    rows("number-of-iris", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER ISIRI(?o) }"),
    rows(
        "predicates-by-frequency",
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(?n) ?p",
    ),
    rows(
        "classes-by-frequency",
        "SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c ORDER BY DESC(?n) ?c LIMIT 20",
    ),
    rows("join-2-large-large", "SELECT (COUNT(*) AS ?n) { ?o bsbm:product ?p ; bsbm:vendor ?v }"),
    rows("join-2-large-small", "SELECT (COUNT(*) AS ?n) { ?o bsbm:vendor ?v . ?v bsbm:country country:US }"),
    rows("join-2-small-small", "SELECT (COUNT(*) AS ?n) { ?p bsbm:producer ?m . ?m bsbm:country ?c }"),
    rows(
        "join-2-large-result",
        "SELECT (COUNT(*) AS ?n) { ?p bsbm:productFeature ?f . ?q bsbm:productFeature ?f }",
    ),
    rows("join-2-object-object", "SELECT (COUNT(*) AS ?n) { ?r bsbm:rating1 ?x . ?s bsbm:rating2 ?x }"),
    rows(
        "join-3-chain",
        "SELECT (COUNT(*) AS ?n) { ?r bsbm:reviewFor ?p . ?p bsbm:producer ?m . ?m bsbm:country ?c }",
    ),
    rows(
        "join-4-chain",
        "SELECT (COUNT(*) AS ?n) { ?u bsbm:country ?c . ?r rev:reviewer ?u . ?r bsbm:reviewFor ?p . ?p \
         bsbm:producer ?m }",
    ),
    rows(
        "join-5-star",
        "SELECT (COUNT(*) AS ?n) { ?p rdfs:label ?l ; bsbm:producer ?m ; bsbm:productPropertyNumeric1 ?a \
         ; bsbm:productPropertyNumeric2 ?b ; bsbm:productPropertyNumeric3 ?c }",
    ),
    rows(
        "join-star-of-offers",
        "SELECT (COUNT(*) AS ?n) { ?o bsbm:product ?p ; bsbm:vendor ?v ; bsbm:price ?x ; \
         bsbm:deliveryDays ?d ; bsbm:validTo ?t }",
    ),
    rows(
        "join-cycle",
        "SELECT (COUNT(*) AS ?n) { ?o bsbm:product ?p ; bsbm:vendor ?v . ?v bsbm:country ?c . ?p \
         bsbm:producer ?m . ?m bsbm:country ?c }",
    ),
    rows("join-cross-product", "SELECT (COUNT(*) AS ?n) { ?v a bsbm:Vendor . ?m a bsbm:Producer }"),
    rows(
        "join-by-filter",
        "SELECT (COUNT(*) AS ?n) { ?v bsbm:country ?c . ?v a bsbm:Vendor . ?m bsbm:country ?d . ?m a \
         bsbm:Producer FILTER(?c = ?d) }",
    ),
    rows("join-variable-predicate", "SELECT (COUNT(*) AS ?n) { ?r a rev:Review ; ?p ?o }"),
    rows(
        "optional-large-large",
        "SELECT (COUNT(*) AS ?n) { ?o bsbm:product ?p OPTIONAL { ?o bsbm:price ?x } }",
    ),
    rows(
        "optional-large-small",
        "SELECT (COUNT(*) AS ?n) { ?r a rev:Review OPTIONAL { ?r bsbm:rating1 ?x } }",
    ),
    rows(
        "optional-unbound",
        "SELECT (COUNT(*) AS ?n) { ?r a rev:Review OPTIONAL { ?r bsbm:rating4 ?x } FILTER(!BOUND(?x)) }",
    ),
    rows(
        "optional-nested",
        "SELECT (COUNT(*) AS ?n) { ?p a bsbm:Product OPTIONAL { ?r bsbm:reviewFor ?p OPTIONAL { ?r \
         bsbm:rating2 ?x } } }",
    ),
    rows(
        "optional-two",
        "SELECT (COUNT(*) AS ?n) { ?r a rev:Review OPTIONAL { ?r bsbm:rating1 ?x } OPTIONAL { ?r \
         bsbm:rating2 ?y } }",
    ),
    rows(
        "optional-filter",
        "SELECT (COUNT(*) AS ?n) { ?r a rev:Review OPTIONAL { ?r bsbm:rating1 ?x FILTER(?x > 5) } }",
    ),
    rows(
        "minus-large-large",
        "SELECT (COUNT(*) AS ?n) { ?o a bsbm:Offer MINUS { ?o bsbm:deliveryDays ?d FILTER(?d > 3) } }",
    ),
    rows("minus-large-small", "SELECT (COUNT(*) AS ?n) { ?r a rev:Review MINUS { ?r bsbm:rating3 ?x } }"),
    rows(
        "minus-chain",
        "SELECT (COUNT(*) AS ?n) { ?p a bsbm:Product MINUS { ?p bsbm:producer ?m . ?m bsbm:country \
         country:US } }",
    ),
    rows(
        "exists-large-large",
        "SELECT (COUNT(*) AS ?n) { ?o a bsbm:Offer FILTER EXISTS { ?o bsbm:product ?p . ?p \
         bsbm:productPropertyNumeric4 ?x } }",
    ),
    rows(
        "exists-small",
        "SELECT (COUNT(*) AS ?n) { ?p a bsbm:Product FILTER EXISTS { ?r bsbm:reviewFor ?p ; bsbm:rating1 \
         10 } }",
    ),
    rows(
        "not-exists",
        "SELECT (COUNT(*) AS ?n) { ?u a foaf:Person FILTER NOT EXISTS { ?r rev:reviewer ?u ; bsbm:rating1 \
         ?x } }",
    ),
    rows(
        "union-large-large",
        "SELECT (COUNT(*) AS ?n) { { ?x bsbm:product ?p } UNION { ?x bsbm:reviewFor ?p } }",
    ),
    rows(
        "union-small-small",
        "SELECT (COUNT(*) AS ?n) { { ?x a bsbm:Vendor } UNION { ?x a bsbm:Producer } }",
    ),
    rows(
        "union-join",
        "SELECT (COUNT(*) AS ?n) { { ?x bsbm:product ?p } UNION { ?x bsbm:reviewFor ?p } ?p bsbm:producer \
         ?m }",
    ),
    rows(
        "union-distinct",
        "SELECT (COUNT(DISTINCT ?p) AS ?n) { { ?x bsbm:product ?p } UNION { ?x bsbm:reviewFor ?p } }",
    ),
    rows(
        "group-by-integer-count",
        "SELECT ?d (COUNT(?x) AS ?a) { ?r bsbm:rating1 ?d ; bsbm:rating2 ?x } GROUP BY ?d",
    ),
    rows(
        "group-by-integer-sum",
        "SELECT ?d (SUM(?x) AS ?a) { ?r bsbm:rating1 ?d ; bsbm:rating2 ?x } GROUP BY ?d",
    ),
    rows(
        "group-by-integer-avg",
        "SELECT ?d (AVG(?x) AS ?a) { ?r bsbm:rating1 ?d ; bsbm:rating2 ?x } GROUP BY ?d",
    ),
    rows(
        "group-by-integer-min",
        "SELECT ?d (MIN(?x) AS ?a) { ?r bsbm:rating1 ?d ; bsbm:rating2 ?x } GROUP BY ?d",
    ),
    rows(
        "group-by-integer-max",
        "SELECT ?d (MAX(?x) AS ?a) { ?r bsbm:rating1 ?d ; bsbm:rating2 ?x } GROUP BY ?d",
    ),
    (
        "group-by-integer-sample",
        "SELECT ?d (SAMPLE(?x) AS ?a) { ?r bsbm:rating1 ?d ; bsbm:rating2 ?x } GROUP BY ?d",
        Compared::Number,
    ),
    rows("group-by-iri-count", "SELECT ?p (COUNT(*) AS ?n) { ?o bsbm:product ?p } GROUP BY ?p"),
    rows(
        "group-by-iri-count-distinct",
        "SELECT ?p (COUNT(DISTINCT ?v) AS ?n) { ?o bsbm:product ?p ; bsbm:vendor ?v } GROUP BY ?p",
    ),
    rows("group-by-string-count", "SELECT ?l (COUNT(*) AS ?n) { ?x rdfs:label ?l } GROUP BY ?l"),
    rows(
        "group-by-string-min",
        "SELECT ?p (MIN(?t) AS ?least) { ?r bsbm:reviewFor ?p ; dc:title ?t } GROUP BY ?p",
    ),
    rows(
        "group-by-string-max",
        "SELECT ?p (MAX(?t) AS ?most) { ?r bsbm:reviewFor ?p ; dc:title ?t } GROUP BY ?p",
    ),
    rows(
        "group-by-string-groupconcat",
        "SELECT ?p (STRLEN(GROUP_CONCAT(?t; SEPARATOR=\", \")) AS ?l) { ?r bsbm:reviewFor ?p ; dc:title \
         ?t } GROUP BY ?p",
    ),
    rows(
        "group-by-implicit-numeric",
        "SELECT (SUM(?x) AS ?s) (AVG(?x) AS ?a) (MIN(?x) AS ?least) (MAX(?x) AS ?most) { ?p \
         bsbm:productPropertyNumeric1 ?x }",
    ),
    rows("group-by-implicit-string-min", "SELECT (MIN(?t) AS ?least) (MAX(?t) AS ?most) { ?r dc:title ?t }"),
    rows(
        "group-by-two-keys",
        "SELECT ?v ?d (COUNT(*) AS ?n) { ?o bsbm:vendor ?v ; bsbm:deliveryDays ?d } GROUP BY ?v ?d",
    ),
    rows(
        "group-by-expression",
        "SELECT ?y (COUNT(*) AS ?n) { ?r bsbm:reviewDate ?d } GROUP BY (YEAR(?d) AS ?y)",
    ),
    rows("having", "SELECT ?p { ?r bsbm:reviewFor ?p } GROUP BY ?p HAVING (COUNT(?r) > 12)"),
    rows(
        "subquery-of-groups",
        "SELECT (MAX(?n) AS ?most) { { SELECT ?v (COUNT(*) AS ?n) { ?o bsbm:vendor ?v } GROUP BY ?v } }",
    ),
    rows("distinct-integers", "SELECT DISTINCT ?x { ?r bsbm:rating1 ?x }"),
    rows("distinct-iris", "SELECT (COUNT(*) AS ?n) { { SELECT DISTINCT ?v { ?o bsbm:vendor ?v } } }"),
    rows("distinct-strings", "SELECT (COUNT(DISTINCT ?l) AS ?n) { ?x rdfs:label ?l }"),
    rows(
        "distinct-pairs",
        "SELECT (COUNT(*) AS ?n) { { SELECT DISTINCT ?m ?f { ?p bsbm:producer ?m ; bsbm:productFeature ?f \
         } } }",
    ),
    rows("distinct-languages", "SELECT DISTINCT ?l { ?r rev:text ?t BIND(LANG(?t) AS ?l) }"),
    rows("order-by-integer", "SELECT ?r ?x { ?r bsbm:rating1 ?x } ORDER BY ?x ?r LIMIT 10"),
    rows("order-by-string", "SELECT ?l { ?x rdfs:label ?l } ORDER BY ?l LIMIT 50"),
    rows("order-by-string-desc", "SELECT ?r ?t { ?r dc:title ?t } ORDER BY DESC(?t) ?r LIMIT 10"),
    rows("order-by-date", "SELECT ?r ?d { ?r bsbm:reviewDate ?d } ORDER BY ?d ?r LIMIT 10 OFFSET 100"),
    rows(
        "order-by-expression",
        "SELECT ?p { ?p bsbm:productPropertyNumeric1 ?a ; bsbm:productPropertyNumeric2 ?b } ORDER BY (?a \
         * ?b) ?p LIMIT 10",
    ),
    rows("order-by-all", "SELECT ?p ?a { ?p bsbm:productPropertyNumeric1 ?a } ORDER BY ?a ?p"),
    ("limit", "SELECT ?r ?t { ?r rev:text ?t } LIMIT 100", Compared::Number),
    ("limit-offset", "SELECT ?r ?x { ?r bsbm:rating1 ?x } OFFSET 1000 LIMIT 100", Compared::Number),
    rows("filter-integer-equal", "SELECT (COUNT(*) AS ?n) { ?r bsbm:rating1 ?x FILTER(?x = 7) }"),
    rows(
        "filter-integer-range",
        "SELECT (COUNT(*) AS ?n) { ?p bsbm:productPropertyNumeric1 ?x FILTER(?x > 100 && ?x <= 500) }",
    ),
    rows("filter-string-equal", "SELECT (COUNT(*) AS ?n) { ?x rdfs:label ?l FILTER(?l = \"diceba\") }"),
    rows(
        "filter-string-range",
        "SELECT (COUNT(*) AS ?n) { ?x rdfs:label ?l FILTER(?l >= \"c\" && ?l < \"f\") }",
    ),
    rows("filter-language", "SELECT (COUNT(*) AS ?n) { ?r rev:text ?t FILTER(LANG(?t) = \"en\") }"),
    rows(
        "filter-langmatches",
        "SELECT (COUNT(*) AS ?n) { ?r rev:text ?t FILTER LANGMATCHES(LANG(?t), \"de\") }",
    ),
    rows("filter-datatype", "SELECT (COUNT(*) AS ?n) { ?o bsbm:price ?x FILTER(DATATYPE(?x) = bsbm:USD) }"),
    rows("filter-in", "SELECT (COUNT(*) AS ?n) { ?r bsbm:rating1 ?x FILTER(?x IN (1, 3, 5)) }"),
    rows("filter-not-in", "SELECT (COUNT(*) AS ?n) { ?r bsbm:rating1 ?x FILTER(?x NOT IN (1, 3, 5)) }"),
    rows(
        "filter-or",
        "SELECT (COUNT(*) AS ?n) { ?r bsbm:rating1 ?x ; bsbm:rating2 ?y FILTER(?x = 1 || ?y = 10) }",
    ),
    rows(
        "filter-between-variables",
        "SELECT (COUNT(*) AS ?n) { ?r bsbm:rating1 ?x ; bsbm:rating2 ?y FILTER(?x < ?y) }",
    ),
    rows(
        "filter-date",
        "SELECT (COUNT(*) AS ?n) { ?r bsbm:reviewDate ?d FILTER(?d < \
         \"2007-06-01T00:00:00\"^^xsd:dateTime) }",
    ),
    rows("filter-not-equal-iri", "SELECT (COUNT(*) AS ?n) { ?o bsbm:vendor ?v FILTER(?v != inst:Vendor0) }"),
    rows(
        "values-iris",
        "SELECT (COUNT(*) AS ?n) { VALUES ?v { inst:Vendor0 inst:Vendor1 } ?o bsbm:vendor ?v }",
    ),
    rows("values-integers", "SELECT (COUNT(*) AS ?n) { VALUES ?x { 1 2 3 } ?r bsbm:rating1 ?x }"),
    rows("regex-prefix", "SELECT (COUNT(*) AS ?n) { ?r dc:title ?t FILTER REGEX(?t, \"^di\") }"),
    rows("regex-contains", "SELECT (COUNT(*) AS ?n) { ?r dc:title ?t FILTER REGEX(?t, \"ceba\") }"),
    rows("regex-case", "SELECT (COUNT(*) AS ?n) { ?r dc:title ?t FILTER REGEX(?t, \"CEBA\", \"i\") }"),
    rows(
        "regex-class",
        "SELECT (COUNT(*) AS ?n) { ?r dc:title ?t FILTER REGEX(?t, \"[aeiou]b[aeiou] [k-m]\") }",
    ),
    rows(
        "regex-iri",
        "SELECT (COUNT(*) AS ?n) { ?o bsbm:product ?p FILTER REGEX(STR(?p), \"Product1[0-9]$\") }",
    ),
    rows("contains", "SELECT (COUNT(*) AS ?n) { ?r rev:text ?t FILTER CONTAINS(?t, \"ceba\") }"),
    rows("strstarts", "SELECT (COUNT(*) AS ?n) { ?r dc:title ?t FILTER STRSTARTS(?t, \"ba\") }"),
    rows("strends", "SELECT (COUNT(*) AS ?n) { ?r dc:title ?t FILTER STRENDS(?t, \"ba\") }"),
    rows("strlen", "SELECT (SUM(STRLEN(?t)) AS ?n) { ?r rev:text ?t }"),
    rows("substr", "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?r dc:title ?t BIND(SUBSTR(?t, 1, 5) AS ?s) }"),
    rows(
        "ucase-lcase",
        "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?x rdfs:label ?t BIND(LCASE(UCASE(?t)) AS ?s) }",
    ),
    rows(
        "strbefore",
        "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?r dc:title ?t BIND(STRBEFORE(?t, \" \") AS ?s) }",
    ),
    rows("strafter", "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?r dc:title ?t BIND(STRAFTER(?t, \" \") AS ?s) }"),
    rows(
        "replace",
        "SELECT (SUM(STRLEN(?s)) AS ?n) { ?r dc:title ?t BIND(REPLACE(?t, \"ba\", \"\") AS ?s) }",
    ),
    rows("concat", "SELECT (SUM(STRLEN(?s)) AS ?n) { ?u foaf:name ?t BIND(CONCAT(?t, \"-\", ?t) AS ?s) }"),
    rows(
        "encode-for-uri",
        "SELECT (SUM(STRLEN(?s)) AS ?n) { ?r dc:title ?t BIND(ENCODE_FOR_URI(?t) AS ?s) }",
    ),
    rows("md5", "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?u foaf:name ?t BIND(MD5(?t) AS ?s) }"),
    rows("str-of-iri", "SELECT (SUM(STRLEN(STR(?p))) AS ?n) { ?o bsbm:product ?p }"),
    rows(
        "arithmetic",
        "SELECT (SUM((?a + ?b) * 2 - ?c) AS ?n) { ?p bsbm:productPropertyNumeric1 ?a ; \
         bsbm:productPropertyNumeric2 ?b ; bsbm:productPropertyNumeric3 ?c }",
    ),
    rows(
        "division",
        "SELECT (AVG(?a / ?b) AS ?n) { ?p bsbm:productPropertyNumeric1 ?a ; bsbm:productPropertyNumeric2 \
         ?b }",
    ),
    rows(
        "abs-ceil-floor-round",
        "SELECT (SUM(ABS(?a - ?b) + CEIL(?a / 3) + FLOOR(?b / 3) + ROUND(?b / 7)) AS ?n) { ?p \
         bsbm:productPropertyNumeric1 ?a ; bsbm:productPropertyNumeric2 ?b }",
    ),
    rows("cast-to-double", "SELECT (SUM(xsd:double(STR(?x))) AS ?n) { ?o bsbm:price ?x }"),
    rows(
        "cast-to-string",
        "SELECT (SUM(STRLEN(xsd:string(?x))) AS ?n) { ?p bsbm:productPropertyNumeric1 ?x }",
    ),
    rows("year", "SELECT ?y (COUNT(*) AS ?n) { ?r bsbm:reviewDate ?d BIND(YEAR(?d) AS ?y) } GROUP BY ?y"),
    rows("month", "SELECT ?m (COUNT(*) AS ?n) { ?r bsbm:reviewDate ?d BIND(MONTH(?d) AS ?m) } GROUP BY ?m"),
    rows("day", "SELECT ?m (COUNT(*) AS ?n) { ?r bsbm:reviewDate ?d BIND(DAY(?d) AS ?m) } GROUP BY ?m"),
    rows(
        "bind-if",
        "SELECT ?k (COUNT(*) AS ?n) { ?r bsbm:rating1 ?x BIND(IF(?x > 5, \"high\", \"low\") AS ?k) } \
         GROUP BY ?k",
    ),
    rows(
        "coalesce",
        "SELECT (SUM(COALESCE(?x, 0)) AS ?n) { ?r a rev:Review OPTIONAL { ?r bsbm:rating1 ?x } }",
    ),
    rows("path-sequence", "SELECT (COUNT(*) AS ?n) { ?r bsbm:reviewFor/bsbm:producer/bsbm:country ?c }"),
    rows("path-inverse", "SELECT (COUNT(*) AS ?n) { ?p ^bsbm:reviewFor/rev:reviewer ?u }"),
    rows("path-alternative", "SELECT (COUNT(*) AS ?n) { ?x (bsbm:product|bsbm:reviewFor) ?p }"),
    rows("path-plus", "SELECT (COUNT(*) AS ?n) { ?t rdfs:subClassOf+ ?s }"),
    rows("path-star", "SELECT (COUNT(*) AS ?n) { ?p a/rdfs:subClassOf* inst:ProductType0 }"),
    rows("path-optional", "SELECT (COUNT(*) AS ?n) { ?t rdfs:subClassOf? ?s }"),
    rows("path-negated", "SELECT (COUNT(*) AS ?n) { ?r a rev:Review ; !(rdf:type|rev:text) ?o }"),
    rows("path-star-from-one", "SELECT ?x { inst:Product0 (bsbm:producer|^bsbm:producer)* ?x }"),
    rows("export-large", "SELECT ?o ?p ?v { ?o bsbm:product ?p ; bsbm:vendor ?v }"),
    rows("export-strings", "SELECT ?r ?t { ?r dc:title ?t }"),
    rows("ask", "ASK { ?p bsbm:productFeature inst:ProductFeature0 }"),
    rows("construct", "CONSTRUCT { ?p rdfs:seeAlso ?r } WHERE { ?r bsbm:reviewFor ?p }"),
    ("describe", "DESCRIBE inst:Product0", Compared::Nothing),
];
