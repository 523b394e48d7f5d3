//! Bulk loader: converts RDF documents and property-graph files to statements of a [`Target`].
//!
//! docs/loading.md is the manual: formats, the mapping of property graphs, errors, measured rates.
//!
//! # Shape
//! N-Triples and N-Quads are split into blocks that threads parse in parallel; other RDF formats are parsed
//! by one thread while another merges; property graphs (GraphML, GraphSON, JSON of APOC, tables as CSV or
//! Parquet) are read by the calling thread. Ids are assigned in the order of first occurrence in the input,
//! independent of the number of threads.
//!
//! ```
//! use vervet_load::{LoadOptions, Source, load};
//! # use vervet_load::testing::MapTarget;
//!
//! # fn main() -> vervet_model::Result<()> {
//! let mut target = MapTarget::default();
//! let source = Source::bytes("people.ttl", *b"@prefix : <http://a/> . :ann :knows :bob, :eve .");
//! let report = load(vec![source], &LoadOptions::default(), &mut target, &mut std::io::sink())?;
//! assert_eq!(report.statements, 2);
//! # Ok(())
//! # }
//! ```
//! # Not here
//! Atomicity (the caller drops a target whose load failed), external sorting, and storage in general.
#![forbid(unsafe_code)]

mod apoc;
mod block;
mod csv_rows;
mod cypher;
mod dialect;
mod document;
mod document_parser;
mod edge_table;
mod edges;
mod folder;
mod graphml;
mod graphson;
mod guard;
mod header;
mod inference;
mod input;
mod kuzu;
mod lines;
mod mapping;
mod merge;
mod options;
mod parallel;
#[cfg(feature = "parquet")]
mod parquet;
mod positioned;
mod property;
mod quotes;
mod schema;
mod source;
mod table;
mod target;
mod terms;
#[doc(hidden)]
pub mod testing;
mod value;
mod vertex_sets;

#[cfg(feature = "parquet")]
pub use crate::parquet::{
    ELEMENTS_MAX, FOOTER_BYTES_MAX, LIST_VALUES_MAX, PAGE_BYTES_MAX, PAGES_BYTES_MIN, PAGES_TIMES_MAX,
    ROW_GROUPS_MAX, SCHEMA_DEPTH_MAX, WORK_TIMES_MAX,
};
pub use guard::{
    ATTRIBUTES_MAX, CONTEXT_KEYS_MAX, DEPTH_MAX, DOCTYPE_BYTES_MAX, ENTITIES_BYTES_MIN, ENTITIES_TIMES_MAX,
    ENTITY_BYTES_MAX, check_json, check_xml,
};
pub use mapping::Mapping;
pub use options::{LoadOptions, LoadReport, NOTES_MAX, Progress};
pub use schema::{Schema, schema};
pub use source::{Format, Source};
pub use target::{Kind, Statement, Target, TermRef};

use merge::Merger;
use std::io::Write;
use std::sync::Arc;
use vervet_model::{Error, ErrorKind, Result};

/// Loads `sources` in order into `target`.
///
/// With [`LoadOptions::skip_errors`] every malformed statement is written as one line (`file:line:column:
/// reason`) to `skipped`.
///
/// # Errors
/// [`ErrorKind::Input`]: unknown format, malformed statement (`file:line:column: reason`), truncated or
/// damaged compressed data, a document beyond [`DEPTH_MAX`] or a similar limit. [`ErrorKind::Unsupported`]:
/// triple terms of RDF 1.2 other than objects of `rdf:reifies`. [`ErrorKind::Io`]: a file cannot be read.
/// [`ErrorKind::Cancelled`]. Errors of the target. After an error the target holds a part of the input.
pub fn load<T: Target + ?Sized>(
    sources: Vec<Source>,
    options: &LoadOptions<'_>,
    target: &mut T,
    skipped: &mut dyn Write,
) -> Result<LoadReport> {
    let mut notes = Vec::new();
    let mut sources = folder::expand(sources, options.format.is_some(), &mut notes)?;
    // Formats are checked first, so that a wrong file name is reported before hours of loading.
    let formats = sources.iter_mut().map(|source| format(source, options)).collect::<Result<Vec<_>>>()?;
    check_mapping(&sources, options)?;
    let bytes_total = sources.iter().map(Source::size_bytes).sum();
    let mut merger = Merger::new(target, options, skipped, bytes_total);
    notes.into_iter().for_each(|note| merger.report.note(note));
    for (number, (source, format)) in sources.iter_mut().zip(formats).enumerate() {
        merger.begin(source, format, number);
        load_source(source, format, &mut merger)?;
    }
    merger.resolve_edges_at_end()?;
    merger.record_added(0)?;
    merger.report.merged_vertices = merger.seen.merged;
    merger.report.missing_vertices = merger.seen.missing();
    Ok(merger.report)
}

/// # Errors
/// [`ErrorKind::Input`]: an entry of the mapping matches no source.
pub(crate) fn check_mapping(sources: &[Source], options: &LoadOptions<'_>) -> Result<()> {
    let names: Vec<&str> = sources.iter().map(Source::name).collect();
    match options.mapping.as_ref().and_then(|mapping| mapping.unused(&names)) {
        None => Ok(()),
        Some(pattern) => {
            let message = format!("the mapping has an entry for {pattern}, and no file has such a name");
            let names: Vec<&str> = names.iter().take(8).map(|name| mapping::base_name(name)).collect();
            let hint = format!("correct its name, or remove it; the files are {}", names.join(", "));
            Err(Error::new(ErrorKind::Input, message).with_hint(hint))
        }
    }
}

fn format(source: &mut Source, options: &LoadOptions<'_>) -> Result<Format> {
    let by_name = || Format::from_file_name(source.name());
    let format = options.format.or_else(by_name).ok_or_else(|| {
        let is_cypher = source.name().to_ascii_lowercase().ends_with(".cypher");
        let hint = match is_cypher {
            true => "scripts in Cypher are not loaded: name the folder of an export of Kùzu, or export from Neo4j with \
                     apoc.export.json.all",
            false => "name it with --format: nt, nq, ttl, trig, rdf, jsonld, graphml, graphson, jsonl, csv or parquet",
        };
        Error::new(ErrorKind::Input, format!("cannot tell the format of {} from its name", source.name()))
            .with_hint(hint)
    })?;
    // GraphML files may also have the extension .xml.
    if options.format.is_none() && format == Format::RdfXml && graphml::is_graphml(&source.head()?) {
        return Ok(Format::GraphMl);
    }
    if options.format.is_none() && format == Format::GraphSon && apoc::is_apoc(&source.head()?) {
        return Ok(Format::ApocJson);
    }
    Ok(format)
}

#[cfg(not(feature = "parquet"))]
fn without_parquet(source: &Source) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{}: this program was built without Parquet", source.name()))
        .with_hint("build it with the feature parquet, which is on by default, or write the file as CSV")
}

fn load_source<T: Target + ?Sized>(
    source: &mut Source,
    format: Format,
    merger: &mut Merger<'_, T>,
) -> Result<()> {
    let bytes = Arc::clone(&merger.bytes);
    if let Some(format) = document_parser::library_format(format) {
        let again = source.again();
        let input = source.open(&bytes)?;
        return document::load_document(source.name(), input, again, format, merger);
    }
    match format {
        Format::NTriples | Format::NQuads => {
            let stream = source.open(&bytes)?;
            let blocks = input::LineBlocks::new(source.name(), stream, input::BLOCK_BYTES);
            parallel::load_lines(blocks, format == Format::NQuads, merger)
        }
        Format::GraphMl => {
            let input = source.open(&bytes)?;
            graphml::load_graphml(source.name(), input, merger)
        }
        Format::GraphSon | Format::GraphSon2 => {
            let again = source.again();
            let input = source.open(&bytes)?;
            graphson::load_graphson(source.name(), input, again, merger)
        }
        Format::ApocJson => {
            let input = source.open(&bytes)?;
            apoc::load_apoc(source.name(), input, merger)
        }
        Format::Csv => table::load_csv(source, merger),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::load_parquet(source, merger),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(without_parquet(source)),
        other => Err(Error::internal(format!("no loader for {other:?}"))),
    }
}
