//! Table of the SPARQL functions: names, number of arguments, constructors.

use oxrdf::NamedNode;
use vervet_algebra::Function;
use vervet_model::vocab::{TEXT_MATCHES, TEXT_SCORE};

/// Name, minimum and maximum number of arguments, and constructor of a function.
type Entry = (&'static str, usize, usize, fn() -> Function);

/// The function with this name (case-insensitive), and its minimum and maximum number of arguments.
pub(crate) fn builtin(name: &str) -> Option<(Function, usize, usize)> {
    let (_, least, greatest, make) =
        FUNCTIONS.iter().find(|(known, ..)| known.len() == name.len() && known.eq_ignore_ascii_case(name))?;
    Some((make(), *least, *greatest))
}

/// Whether the word can start a function call.
pub(crate) fn is_function(name: &str) -> bool {
    names().any(|known| known.eq_ignore_ascii_case(name))
}

pub(crate) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// All names that can precede a parenthesis.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, ..)| *name).chain(AGGREGATES).chain(SPECIAL).chain(PATTERNS)
}

/// Keywords that start a pattern in an expression.
pub(crate) const PATTERNS: [&str; 2] = ["EXISTS", "NOT"];

const AGGREGATES: [&str; 7] = ["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"];

/// Functional forms: not ordinary functions, because they depend on errors, variables or terms.
const SPECIAL: [&str; 4] = ["BOUND", "IF", "COALESCE", "sameTerm"];

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Local names of the datatypes that are also constructor functions.
const CASTS: [&str; 23] = [
    "string",
    "boolean",
    "decimal",
    "integer",
    "double",
    "float",
    "dateTime",
    "date",
    "time",
    "duration",
    "dayTimeDuration",
    "yearMonthDuration",
    "int",
    "long",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedLong",
    "unsignedInt",
    "anyURI",
];

/// The constructor function with this IRI.
pub(crate) fn cast(iri: &NamedNode) -> Option<Function> {
    let local = iri.as_str().strip_prefix(XSD)?;
    CASTS.contains(&local).then(|| Function::Cast(iri.clone()))
}

/// The full-text function with this IRI; its arguments are a text and a search.
pub(crate) fn text_function(iri: &NamedNode) -> Option<Function> {
    match iri.as_str() {
        TEXT_MATCHES => Some(Function::TextMatches),
        TEXT_SCORE => Some(Function::TextScore),
        _ => None,
    }
}

/// The full-text function whose IRI resembles `iri`.
pub(crate) fn nearest_text_function(iri: &NamedNode) -> Option<&'static str> {
    let local = iri.as_str().strip_prefix("urn:vervet:text:")?;
    let all = [TEXT_MATCHES, TEXT_SCORE];
    let of = |iri: &'static str| iri.rsplit(':').next().unwrap_or(iri);
    let near = vervet_model::nearest(local, all.map(of))?;
    all.into_iter().find(|iri| of(iri) == near)
}

/// The nearest constructor function to `iri`, as `xsd:name`.
pub(crate) fn nearest_cast(iri: &NamedNode) -> Option<String> {
    let local = iri.as_str().strip_prefix(XSD)?;
    vervet_model::nearest(local, CASTS).map(|name| format!("xsd:{name}"))
}

const MANY: usize = usize::MAX;

static FUNCTIONS: [Entry; 57] = [
    ("STR", 1, 1, || Function::Str),
    ("LANG", 1, 1, || Function::Lang),
    ("LANGMATCHES", 2, 2, || Function::LangMatches),
    ("DATATYPE", 1, 1, || Function::Datatype),
    ("IRI", 1, 1, || Function::Iri { base: None }),
    ("URI", 1, 1, || Function::Iri { base: None }),
    ("BNODE", 0, 1, || Function::BNode),
    ("RAND", 0, 0, || Function::Rand),
    ("ABS", 1, 1, || Function::Abs),
    ("CEIL", 1, 1, || Function::Ceil),
    ("FLOOR", 1, 1, || Function::Floor),
    ("ROUND", 1, 1, || Function::Round),
    ("CONCAT", 0, MANY, || Function::Concat),
    ("SUBSTR", 2, 3, || Function::SubStr),
    ("STRLEN", 1, 1, || Function::StrLen),
    ("REPLACE", 3, 4, || Function::Replace),
    ("UCASE", 1, 1, || Function::UCase),
    ("LCASE", 1, 1, || Function::LCase),
    ("ENCODE_FOR_URI", 1, 1, || Function::EncodeForUri),
    ("CONTAINS", 2, 2, || Function::Contains),
    ("STRSTARTS", 2, 2, || Function::StrStarts),
    ("STRENDS", 2, 2, || Function::StrEnds),
    ("STRBEFORE", 2, 2, || Function::StrBefore),
    ("STRAFTER", 2, 2, || Function::StrAfter),
    ("YEAR", 1, 1, || Function::Year),
    ("MONTH", 1, 1, || Function::Month),
    ("DAY", 1, 1, || Function::Day),
    ("HOURS", 1, 1, || Function::Hours),
    ("MINUTES", 1, 1, || Function::Minutes),
    ("SECONDS", 1, 1, || Function::Seconds),
    ("TIMEZONE", 1, 1, || Function::Timezone),
    ("TZ", 1, 1, || Function::Tz),
    ("NOW", 0, 0, || Function::Now),
    ("UUID", 0, 0, || Function::Uuid),
    ("STRUUID", 0, 0, || Function::StrUuid),
    ("MD5", 1, 1, || Function::Md5),
    ("SHA1", 1, 1, || Function::Sha1),
    ("SHA256", 1, 1, || Function::Sha256),
    ("SHA384", 1, 1, || Function::Sha384),
    ("SHA512", 1, 1, || Function::Sha512),
    ("STRLANG", 2, 2, || Function::StrLang),
    ("STRDT", 2, 2, || Function::StrDt),
    ("LANGDIR", 1, 1, || Function::LangDir),
    ("hasLANG", 1, 1, || Function::HasLang),
    ("hasLANGDIR", 1, 1, || Function::HasLangDir),
    ("STRLANGDIR", 3, 3, || Function::StrLangDir),
    ("isTRIPLE", 1, 1, || Function::IsTriple),
    ("TRIPLE", 3, 3, || Function::Triple),
    ("SUBJECT", 1, 1, || Function::Subject),
    ("PREDICATE", 1, 1, || Function::Predicate),
    ("OBJECT", 1, 1, || Function::Object),
    ("isIRI", 1, 1, || Function::IsIri),
    ("isURI", 1, 1, || Function::IsIri),
    ("isBLANK", 1, 1, || Function::IsBlank),
    ("isLITERAL", 1, 1, || Function::IsLiteral),
    ("isNUMERIC", 1, 1, || Function::IsNumeric),
    ("REGEX", 2, 3, || Function::Regex),
];
