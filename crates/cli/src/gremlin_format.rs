//! Output formats of Gremlin results, and the names of all formats.

/// The names of formats, for messages.
pub(crate) const FORMATS: &str = "known are table, tsv, csv, json, xml, arrow; nt, turtle, nq, trig, rdf, jsonld for graphs; table, tsv, csv, graphson, json for gremlin";

/// Output format of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GremlinFormat {
    /// Aligned columns; maps with equal keys become columns.
    Table,
    /// Comma-separated values; maps become rows with a column for each of their keys.
    Csv,
    /// Tab-separated values, as [`GremlinFormat::Csv`]; `\t`, `\n`, `\r` and `\\` in texts are escaped.
    Tsv,
    /// GraphSON 3 with types, one value per line.
    GraphSon,
    /// GraphSON 3 without types, one value per line.
    Json,
}

impl GremlinFormat {
    /// The format with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "table" => Some(Self::Table),
            "csv" => Some(Self::Csv),
            "tsv" => Some(Self::Tsv),
            "graphson" => Some(Self::GraphSon),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}
