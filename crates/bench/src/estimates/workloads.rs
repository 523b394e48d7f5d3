//! Data and queries of the benchmarks.

use super::options::EstimateOptions;
use crate::data::{self, PlainFile};
use crate::ours::Vervet;
use crate::patterns::PATTERNS;
use crate::snb::{self, Network, SubstitutionParameters};
use crate::{all, features};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use vervet::{Database, LoadOptions, Source};
use vervet_generate::write_edges;
use vervet_model::{Error, ErrorKind, Result};

/// The parts of a run.
pub const PARTS: [&str; 5] = ["lubm", "features", "patterns", "snb", "gmark"];

/// Data with its queries.
pub(super) struct Workload {
    pub(super) name: String,
    pub(super) database: Database,
    /// Name and text of each query.
    pub(super) queries: Vec<(String, String)>,
}

/// Calls `run` with each workload of a part, one in memory at a time.
pub(super) fn for_each(
    part: &str,
    options: &EstimateOptions,
    run: &mut dyn FnMut(Workload) -> Result<()>,
) -> Result<()> {
    let folder = options.data.join("data");
    match part {
        "lubm" => {
            for name in ["lubm-1", "lubm-10"] {
                let file = PlainFile::open(&folder.join("lubm").join(format!("{name}.nt.zst")))?;
                let queries = data::queries(&folder.join("lubm/queries"))?.into_iter().collect();
                run(Workload { name: name.to_owned(), database: load(file.path())?, queries })?;
            }
            Ok(())
        }
        "features" => {
            let file = PlainFile::open(&folder.join("lubm/lubm-10.nt.zst"))?;
            run(universities("features, lubm-10", load(file.path())?))?;
            let file = PlainFile::write(|out| write_edges(&all::made(options.edges).edges, out))?;
            run(graph(&format!("features, power law, {} edges", options.edges), load(file.path())?)?)
        }
        "patterns" => {
            let archive = folder.join("snap/snap-edge-lists.tar.zst");
            for graph in all::edge_lists(Some(&archive), options.edges)? {
                let file = PlainFile::write(|out| write_edges(&graph.edges, out))?;
                run(patterns(&graph.name, load(file.path())?)?)?;
            }
            Ok(())
        }
        "snb" => run(network(&folder.join("ldbc-snb"), options.count)?),
        _ => {
            for (name, graph, demo) in GMARK {
                run(gmark(&options.data.join("conformance/gmark"), name, graph, demo)?)?;
            }
            Ok(())
        }
    }
}

/// An in-memory database with the content of one file.
pub(super) fn load(file: &Path) -> Result<Database> {
    let database = Database::in_memory();
    database.load(vec![Source::path(file)], &LoadOptions::default())?;
    Ok(database)
}

/// The feature queries on universities.
pub(super) fn universities(name: &str, database: Database) -> Workload {
    let queries = features::texts(features::UNIVERSITIES, &[]);
    Workload { name: name.to_owned(), database, queries }
}

/// The feature queries on a graph.
pub(super) fn graph(name: &str, database: Database) -> Result<Workload> {
    let constants = features::vertices(&Vervet::on(database.clone(), 1))?;
    Ok(Workload { name: name.to_owned(), database, queries: features::texts(features::GRAPH, &constants) })
}

/// The patterns on a graph.
fn patterns(name: &str, database: Database) -> Result<Workload> {
    let constants = features::vertices(&Vervet::on(database.clone(), 1))?;
    let hub = constants.first().map_or("", |(_, iri)| iri.as_str());
    let queries = PATTERNS
        .iter()
        .map(|pattern| (pattern.name.to_owned(), pattern.text.replace("<urn:v$START>", hub)))
        .collect();
    Ok(Workload { name: format!("patterns, {name}"), database, queries })
}

/// The SPARQL queries of the social network, each with its parameters.
fn network(folder: &Path, count: usize) -> Result<Workload> {
    let archive = folder.join("sf0.1-rebuilt.tar.zst");
    let database = Database::in_memory();
    Network::open(&archive)?.load(&database)?;
    let parameters = folder.join("sf0.1-rebuilt-params.json");
    let file = parameters.is_file().then_some(parameters.as_path());
    let substitution = SubstitutionParameters::new(&database, file, count)?;
    let mut queries = Vec::new();
    for operation in snb::operations(&substitution, &[])? {
        for (at, parameters) in operation.parameters.iter().enumerate() {
            let text = operation.sparql_text(parameters);
            queries.extend(text.map(|text| (format!("{} #{at}", operation.name), text)));
        }
    }
    Ok(Workload { name: "snb, sf0.1".to_owned(), database, queries })
}

/// Name, graph and folder of queries of each workload of gMark.
const GMARK: [(&str, &str, &str); 2] =
    [("gmark, bib", "test-graph", "test"), ("gmark, social", "social-graph", "social")];

const GMARK_IRI: &str = "http://example.org/gmark/";

/// A graph and the queries of its workload.
fn gmark(folder: &Path, name: &str, graph: &str, demo: &str) -> Result<Workload> {
    let path = folder.join("graphs").join(format!("{graph}.txt.zst"));
    let failed = |error| Error::io(format_args!("read {}", path.display()), &error);
    let packed = zstd::Decoder::new(File::open(&path).map_err(failed)?).map_err(failed)?;
    let lines: Vec<String> = BufReader::new(packed).lines().collect::<Result<_, _>>().map_err(failed)?;
    let file = PlainFile::write(|out| {
        for line in &lines {
            let mut words = line.split_whitespace();
            if let (Some(source), Some(predicate), Some(target)) = (words.next(), words.next(), words.next())
            {
                writeln!(out, "<{GMARK_IRI}{source}> <{GMARK_IRI}p{predicate}> <{GMARK_IRI}{target}> .")?;
            }
        }
        Ok(())
    })?;
    let queries = folder.join("demo").join(demo).join("translated");
    let mut texts = Vec::new();
    for number in 0..50 {
        let file = queries.join(format!("query-{number}.sparql"));
        texts.push((format!("g{number:02}"), standard(&data::read(&file)?)?));
    }
    Ok(Workload { name: name.to_owned(), database: load(file.path())?, queries: texts })
}

/// Translates a query of gMark to SPARQL 1.1: `(path){,3}`, a star in the neutral form of the workload,
/// becomes `(path)*`, and empty parts of a union are removed.
fn standard(text: &str) -> Result<String> {
    let text = text.replace("{,3}", "*");
    let mut parts = text.split("UNION").map(str::trim);
    let first = parts.next().unwrap_or_default();
    let mut out = first.to_owned();
    let (mut open, mut closed) = (count(first, '{'), count(first, '}'));
    for part in parts {
        let is_empty = part.replace(['{', '}'], "").trim().is_empty();
        if !is_empty {
            out.push_str(" UNION ");
            out.push_str(part);
            open += count(part, '{');
            closed += count(part, '}');
        }
    }
    if closed > open {
        return Err(Error::new(ErrorKind::Input, format!("unbalanced braces in {text}")));
    }
    out.push_str(&" }".repeat(open - closed));
    Ok(out)
}

fn count(text: &str, what: char) -> usize {
    text.chars().filter(|one| *one == what).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_of_unions_are_removed() {
        let check = |text: &str, expected: &str| {
            let found = standard(text).unwrap();
            assert_eq!(found.split_whitespace().collect::<Vec<_>>().join(" "), expected);
        };
        check("SELECT ?a WHERE { { ?a (:p){,3} ?b . } UNION { } }", "SELECT ?a WHERE { { ?a (:p)* ?b . } }");
        check("ASK { { ?a :p ?b } UNION { ?a :q ?b } UNION }", "ASK { { ?a :p ?b } UNION { ?a :q ?b } }");
        assert!(standard("ASK { } }").is_err());
    }
}
