//! Checks of hostile input: one check per entry point, shared by fuzzers (`fuzz/`) and by the regression test
//! over their findings (`cases/`).
//!
//! # Shape
//! [`EntryPoint`] is an entry point; [`EntryPoint::check`] passes bytes to it and panics if a property is
//! violated. Beyond the absence of panics, each file defines further properties of the outcome.
//! # Invariants
//! A check depends only on its own bytes, not on those of earlier checks: changes are rolled back, or the
//! state is recreated.
//! # Not here
//! Mutation and coverage (libFuzzer); texts that are valid by construction (random queries of
//! `vervet-conformance`).
#![forbid(unsafe_code)]

mod files;
mod graph;
mod gremlin;
mod http;
mod load;
mod oracle;
mod query;
mod update;
mod wire;

pub use http::Address;
use vervet::Format;
pub use wire::WireFormat;

/// An entry point for untrusted bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryPoint {
    /// The text of a query.
    Query,
    /// The text of an update request.
    Update,
    /// A document of RDF.
    Load(Format),
    /// The text of a traversal.
    Gremlin,
    /// A file of a property graph.
    File(Format),
    /// A message of TinkerPop's protocol.
    TinkerpopMessage(WireFormat),
    /// A request to the server.
    Http(Address),
}

impl EntryPoint {
    /// All entry points, with the names of their fuzz targets and case folders.
    pub const ALL: [(&'static str, Self); 20] = [
        ("query", Self::Query),
        ("update", Self::Update),
        ("ntriples", Self::Load(Format::NTriples)),
        ("nquads", Self::Load(Format::NQuads)),
        ("turtle", Self::Load(Format::Turtle)),
        ("trig", Self::Load(Format::TriG)),
        ("rdfxml", Self::Load(Format::RdfXml)),
        ("jsonld", Self::Load(Format::JsonLd)),
        ("gremlin", Self::Gremlin),
        ("graphml", Self::File(Format::GraphMl)),
        ("graphson_file", Self::File(Format::GraphSon)),
        ("csv", Self::File(Format::Csv)),
        ("parquet", Self::File(Format::Parquet)),
        ("graphson", Self::TinkerpopMessage(WireFormat::GraphSon)),
        ("graphbinary", Self::TinkerpopMessage(WireFormat::GraphBinary)),
        ("http_query", Self::Http(Address::Query)),
        ("http_update", Self::Http(Address::Update)),
        ("http_store", Self::Http(Address::Store)),
        ("http_api", Self::Http(Address::Api)),
        ("http_raw", Self::Http(Address::Raw)),
    ];

    /// The entry with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, entry)| entry)
    }

    /// Passes `bytes` to the entry point.
    ///
    /// # Panics
    /// If a checked property is violated.
    pub fn check(self, bytes: &[u8]) {
        match self {
            Self::Query => with_text(bytes, query::check),
            Self::Update => with_text(bytes, update::check),
            Self::Load(format) => load::check(format, bytes),
            Self::Gremlin => with_text(bytes, gremlin::check),
            Self::File(format) => files::check(format, bytes),
            Self::TinkerpopMessage(wire) => wire::check(wire, bytes),
            Self::Http(address) => http::check(address, bytes),
        }
    }
}

/// Calls `check` if `bytes` are UTF-8: these interfaces take strings.
fn with_text(bytes: &[u8], check: fn(&str)) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        check(text);
    }
}
