//! Result formats, their names and media types.

use std::fmt;
use std::str::FromStr;
use vervet_model::{Error, ErrorKind};

/// A result format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// Aligned columns, for terminals.
    Table,
    /// Tab-separated values of SPARQL 1.1: terms in N-Triples form.
    Tsv,
    /// Comma-separated values of SPARQL 1.1: text without types.
    Csv,
    /// SPARQL 1.1 Query Results JSON Format.
    Json,
    /// SPARQL Query Results XML Format.
    Xml,
    /// Stream of Arrow IPC: typed columns, for data frames.
    Arrow,
    /// Graphs, one statement per line.
    NTriples,
    /// Graphs, with prefixes.
    Turtle,
    /// Graphs, one statement per line; all statements of a result are in the default graph.
    NQuads,
    /// Graphs, with prefixes; all statements of a result are in the default graph.
    TriG,
    /// Graphs, as XML.
    RdfXml,
    /// Graphs, as JSON.
    JsonLd,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 12] = [
        Self::Table,
        Self::Tsv,
        Self::Csv,
        Self::Json,
        Self::Xml,
        Self::Arrow,
        Self::NTriples,
        Self::Turtle,
        Self::NQuads,
        Self::TriG,
        Self::RdfXml,
        Self::JsonLd,
    ];

    /// The short name of the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Tsv => "tsv",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Arrow => "arrow",
            Self::NTriples => "nt",
            Self::Turtle => "turtle",
            Self::NQuads => "nq",
            Self::TriG => "trig",
            Self::RdfXml => "rdf",
            Self::JsonLd => "jsonld",
        }
    }

    /// The media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Table => "text/plain; charset=utf-8",
            Self::Tsv => "text/tab-separated-values; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/sparql-results+json",
            Self::Xml => "application/sparql-results+xml",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::NTriples => "application/n-triples",
            Self::Turtle => "text/turtle; charset=utf-8",
            Self::NQuads => "application/n-quads",
            Self::TriG => "application/trig",
            Self::RdfXml => "application/rdf+xml",
            Self::JsonLd => "application/ld+json",
        }
    }

    /// Whether the format is for graphs (`CONSTRUCT`, `DESCRIBE`) rather than rows.
    #[must_use]
    pub fn is_for_graphs(self) -> bool {
        matches!(
            self,
            Self::NTriples | Self::Turtle | Self::NQuads | Self::TriG | Self::RdfXml | Self::JsonLd
        )
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let hint = format!("the formats are {}", Self::ALL.map(Self::name).join(", "));
            Error::new(ErrorKind::Input, format!("there is no format {name}")).with_hint(hint)
        })
    }
}
