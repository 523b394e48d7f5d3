//! The W3C's tests of RDF 1.1 documents, and the syntax tests of RDF 1.2, through our loader: N-Triples,
//! N-Quads, Turtle, TriG, RDF/XML.
//!
//! Valid documents are loaded, exported as N-Quads, and compared with the expected statements up to
//! isomorphism.

use crate::compare::isomorphic;
use crate::manifest::{Test, tests};
use crate::report::Outcome;
use crate::{Report, guarded};
use oxrdf::Dataset;
use oxrdfio::{RdfFormat, RdfParser};
use std::path::Path;
use vervet::{Database, ErrorKind, Format, LoadOptions, Source};

/// The loader has another code path for more than one thread.
const THREADS: [usize; 2] = [1, 3];

/// Runs the suite below `root` (the folder with `rdf`).
///
/// # Errors
/// Missing or malformed manifests.
pub fn run(root: &Path, report: &mut Report) -> Result<(), String> {
    for test in tests(root, "rdf/rdf11/manifest.ttl")? {
        report.add_outcome(&test.category(), &test.name, outcome(&test));
    }
    // It includes the manifest of 1.1.
    let of_12 = tests(root, "rdf/rdf12/manifest.ttl")?;
    for test in of_12.into_iter().filter(|test| test.category().contains("rdf12/")) {
        let outcome = match test.kind.ends_with("Syntax") {
            true => outcome_of_12(&test),
            // Graphs are compared after an export, in which reifiers are edges with generated names.
            false => Outcome::NotRun,
        };
        report.add_outcome(&test.category(), &test.name, outcome);
    }
    Ok(())
}

/// Like [`outcome`], but reifiers that the model cannot represent are not a failure.
fn outcome_of_12(test: &Test) -> Outcome {
    let mut unsupported = None;
    let asked = guarded(|| -> Result<(), String> {
        if let Err(error) = loaded(test, 1)?
            && error.kind() == ErrorKind::Unsupported
        {
            // Without its position.
            unsupported = error.message().rsplit(": ").next().map(str::to_owned);
        }
        Ok(())
    });
    if let (Ok(()), Some(reason), false) = (asked, unsupported, test.kind.contains("Negative")) {
        return Outcome::Unsupported(reason);
    }
    outcome(test)
}

fn outcome(test: &Test) -> Outcome {
    // Kinds have names like TestTurtleNegativeSyntax.
    let kind = test.kind.as_str();
    let check = if kind.ends_with("NegativeSyntax") || kind.ends_with("NegativeEval") {
        refused
    } else if kind.ends_with("PositiveSyntax") {
        |test: &Test, threads| load(test, threads).map(drop)
    } else if kind.starts_with("Test") && kind.ends_with("Eval") {
        evaluated
    } else {
        return Outcome::NotRun;
    };
    for threads in THREADS {
        if let Err(reason) = guarded(|| check(test, threads)) {
            return Outcome::Failed(format!("with {threads} threads: {reason}"));
        }
    }
    Outcome::Passed
}

/// The database, or the loader's error.
fn loaded(test: &Test, threads: usize) -> Result<Result<Database, vervet::Error>, String> {
    let file = test.action.as_ref().ok_or("the test has no document")?;
    let database = crate::partitions::database(&test.name);
    let options = LoadOptions { base_iri: Some(file.iri.clone()), threads, ..LoadOptions::default() };
    let loaded = database.load(vec![Source::path(&file.path)], &options);
    Ok(loaded.map(|_| database))
}

fn load(test: &Test, threads: usize) -> Result<Database, String> {
    loaded(test, threads)?.map_err(|error| error.to_string())
}

fn refused(test: &Test, threads: usize) -> Result<(), String> {
    match loaded(test, threads)? {
        Ok(_) => Err("the document is accepted".to_owned()),
        Err(error) if error.kind() == ErrorKind::Input => Ok(()),
        Err(error) => Err(format!("refused for another reason: {error}")),
    }
}

fn evaluated(test: &Test, threads: usize) -> Result<(), String> {
    let database = load(test, threads)?;
    let mut exported = Vec::new();
    database.export(Format::NQuads, &mut exported).map_err(|error| error.to_string())?;
    let found: Result<Dataset, _> = RdfParser::from_format(RdfFormat::NQuads).for_slice(&exported).collect();
    let found = found.map_err(|error| format!("the export is malformed: {error}"))?;
    let file = test.result.as_ref().ok_or("the test has no result")?;
    // N-Triples are valid N-Quads.
    let expected: Dataset = file.quads(RdfFormat::NQuads)?.into_iter().collect();
    if isomorphic(expected.clone(), found) {
        return Ok(());
    }
    Err(format!("expected\n{expected}\nfound\n{}", String::from_utf8_lossy(&exported)))
}
