//! Arguments that say how files are read.

use clap::Args;
use oxrdf::NamedNode;
use std::path::PathBuf;
use vervet::Format;

/// How files are read.
#[derive(Args, Debug)]
pub(crate) struct ReadingArguments {
    /// Format of all files (default: by file extension)
    #[arg(long, value_parser = input_format)]
    pub format: Option<Format>,
    /// Named graph for statements without a graph name
    #[arg(long, value_name = "IRI", value_parser = iri)]
    pub graph: Option<NamedNode>,
    /// Base IRI of relative IRIs
    #[arg(long, value_name = "IRI", value_parser = iri)]
    pub base: Option<NamedNode>,
    /// Skip malformed statements, count them and write them to the report
    #[arg(long)]
    pub skip_errors: bool,
    /// Output of --skip-errors (default: DB.skipped.txt, beside the directory); `-` is standard error
    #[arg(long, value_name = "FILE", requires = "skip_errors")]
    pub report: Option<PathBuf>,
    /// CSV and Parquet: derive labels and edge labels from the file names, as in the files of LDBC
    #[arg(long)]
    pub names_from_files: bool,
    /// CSV and Parquet: the id column of vertices, if the header does not mark one
    #[arg(long = "id", value_name = "COLUMN", conflicts_with = "row_ids")]
    pub id: Option<String>,
    /// CSV and Parquet: number the rows of vertices that have no id column
    #[arg(long)]
    pub row_ids: bool,
    /// GraphML, CSV and Parquet: the key that holds the label; may be given several times
    #[arg(long = "label", value_name = "KEY")]
    pub labels: Vec<String>,
    /// CSV and Parquet: label of vertices and edges to which the file gives none
    #[arg(long, value_name = "LABEL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub default_label: Option<String>,
    /// Load an undirected edge as two, one in each direction (default: one, in the direction as written)
    #[arg(long)]
    pub both_directions: bool,
    /// Read the meaning of table columns from this mapping file (docs/loading.md); --print-mapping writes a
    /// first version
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
}

fn input_format(name: &str) -> Result<Format, String> {
    Format::from_name(name)
        .ok_or_else(|| "known are nt, nq, ttl, trig, rdf, jsonld, graphml, graphson, csv, parquet".to_owned())
}

pub(crate) fn iri(text: &str) -> Result<NamedNode, String> {
    let text = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(text);
    NamedNode::new(text).map_err(|error| format!("not an absolute IRI: {error}"))
}
