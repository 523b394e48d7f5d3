//! Comparable answers of an engine: rows as canonical texts.

use oxrdf::Term;
use oxrdf::vocab::xsd;

/// The comparable answer of an engine.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Boolean(bool),
    Rows(Vec<String>),
    Refused(String),
    NotSupported(String),
}

impl From<vervet::Error> for Outcome {
    fn from(error: vervet::Error) -> Self {
        match error.kind() {
            vervet::ErrorKind::Unsupported => Self::NotSupported(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

pub(crate) fn row<'a>(cells: impl Iterator<Item = (&'a str, Option<Term>)>) -> String {
    let mut cells: Vec<String> =
        cells.filter_map(|(name, term)| Some(format!("{name}={}", canonical(&term?)))).collect();
    cells.sort();
    cells.join(" ")
}

/// Computed numbers are compared by value: engines choose different canonical forms.
pub(crate) fn canonical(term: &Term) -> String {
    if let Term::Literal(literal) = term {
        let datatype = literal.datatype();
        if (datatype == xsd::DECIMAL || datatype == xsd::DOUBLE || datatype == xsd::FLOAT)
            && let Ok(value) = literal.value().parse::<f64>()
        {
            return format!("{value:.9e}^^{}", datatype.as_str());
        }
    }
    term.to_string()
}
