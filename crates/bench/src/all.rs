//! Runs every comparison kept with the project in one command, and writes each report as soon as it is done.

use crate::compare::Contest;
use crate::lubm::{self, LubmOptions, Processes};
use crate::patterns::{self, EdgeList};
use crate::report::Report;
use crate::{data, table};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vervet_generate::PowerLaw;
use vervet_model::{Error, ErrorKind, Result};

/// Selects what to compare and where to write it.
#[derive(Clone, Debug)]
pub struct AllOptions {
    /// Holds `lubm/lubm-10.nt.zst`, `lubm/lubm-40.nt.zst` and `snap/snap-edge-lists.tar.zst`.
    pub data: PathBuf,
    /// Output folder: a `.md` and a `.json` for each part.
    pub output: PathBuf,
    /// The path of this program, to start it as a subprocess.
    pub program: PathBuf,
    /// Time for each engine and mode in the light mix.
    pub light: Duration,
    /// Number of edges of the generated graph.
    pub edges: u32,
    /// Only these parts; empty: all.
    pub only: Vec<String>,
}

/// The real graphs of the part `patterns`.
const GRAPHS: [&str; 2] = ["wiki-Vote", "grqc"];

/// Data of LUBM, with the number of repetitions of each load.
const UNIVERSITIES: [(&str, usize); 2] = [("lubm-10", 3), ("lubm-40", 1)];

/// The part about graph patterns.
const PATTERNS: &str = "patterns";

/// Runs all parts, with engines created by `contest`; returns whether all values were right.
///
/// # Errors
/// Data is missing, an engine cannot load it, or a report cannot be written.
pub fn run(options: &AllOptions, contest: impl Fn() -> Result<Contest>) -> Result<bool> {
    let wanted = |part: &str| options.only.is_empty() || options.only.iter().any(|only| only == part);
    if let Some(other) = options
        .only
        .iter()
        .find(|only| UNIVERSITIES.iter().all(|(part, _)| part != only) && *only != PATTERNS)
    {
        return Err(Error::new(ErrorKind::Input, format!("there is no part {other:?}"))
            .with_hint("the parts are lubm-10, lubm-40, patterns"));
    }
    std::fs::create_dir_all(&options.output)
        .map_err(|error| Error::io(format_args!("create {}", options.output.display()), &error))?;
    let mut right = true;
    for (part, repeats) in UNIVERSITIES.into_iter().filter(|(part, _)| wanted(part)) {
        let begin = Instant::now();
        let lubm = LubmOptions {
            data: options.data.join("lubm").join(format!("{part}.nt.zst")),
            only: (1..=7).map(|number| format!("q{number}")).collect(),
            processes: Some(Processes { program: options.program.clone(), repeats }),
            light: Some(options.light),
            ..LubmOptions::default()
        };
        let report = lubm::run(&lubm, &mut contest()?)?;
        right &= keep(&options.output, part, &[report], begin)?;
    }
    if wanted(PATTERNS) {
        let begin = Instant::now();
        let archive = options.data.join("snap/snap-edge-lists.tar.zst");
        let mut graphs = edge_lists(Some(&archive), options.edges)?;
        graphs.retain(|graph| graph.name == MADE || GRAPHS.contains(&graph.name.as_str()));
        let reports = patterns::run_all(graphs, contest, &mut |_| {})?;
        right &= keep(&options.output, PATTERNS, &reports, begin)?;
    }
    Ok(right)
}

/// The name of the generated graph.
pub const MADE: &str = "power-law";

/// A generated power-law graph with `edges` edges.
#[must_use]
pub fn made(edges: u32) -> EdgeList {
    let made = PowerLaw { vertices: edges.div_ceil(10), edges, ..PowerLaw::default() };
    EdgeList { name: MADE.to_owned(), edges: made.generate() }
}

/// A generated graph with `edges` edges, and the graphs of an archive.
///
/// # Errors
/// The archive cannot be read.
pub fn edge_lists(archive: Option<&Path>, edges: u32) -> Result<Vec<EdgeList>> {
    let mut graphs = vec![made(edges)];
    if let Some(archive) = archive {
        graphs.extend(data::edge_lists(archive)?.into_iter().map(|(name, edges)| EdgeList { name, edges }));
    }
    Ok(graphs)
}

/// Prints and writes reports; returns whether all values were right.
fn keep(folder: &Path, part: &str, reports: &[Report], begin: Instant) -> Result<bool> {
    for report in reports {
        println!("{report}");
    }
    Report::write_markdown(reports, &folder.join(format!("{part}.md")))?;
    Report::write_json(reports, &folder.join(format!("{part}.json")))?;
    eprintln!("{part}: {} s", table::figure(begin.elapsed().as_secs_f64()));
    Ok(reports.iter().all(Report::is_right))
}
