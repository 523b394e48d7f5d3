//! Loads and openings in subprocesses: fair memory figures, and the cost of a start.
//!
//! # Shape
//! The program starts itself with a hidden command ([`Task`] as JSON), whose last output line is a JSON
//! object. A subprocess starts with a small resident set, and no engine reuses memory freed by another.

use crate::compare::load;
use crate::engine::{Engine, Sink};
use crate::measure::process_cpu;
use crate::ours::Vervet;
use crate::peer::Oxigraph;
use crate::report::{ColdFigures, LoadFigures, ProcessLoad, SizeFigures};
use crate::snb::SnbOptions;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use vervet::Database;
use vervet_model::{Error, ErrorKind, Result};

/// The hidden command of the program.
pub const COMMAND: &str = "task";

/// The number of fresh processes that open the database; the median counts.
const OPENINGS: usize = 9;

/// The task of a subprocess.
#[derive(Serialize, Deserialize, Debug)]
pub enum Task {
    /// Load a file into one engine.
    Load {
        /// N-Triples.
        file: PathBuf,
        /// Into Oxigraph instead of our engine.
        peer: bool,
        /// Threads of the loader; `None`: its own choice.
        threads: Option<usize>,
        /// The directory of the database; `None`: in memory.
        directory: Option<PathBuf>,
    },
    /// Open a database and answer one query as TSV.
    Open {
        /// The directory of the database.
        directory: PathBuf,
        /// The query.
        text: String,
    },
    /// Open a stored network and run its queries.
    Network {
        /// The directory of the database.
        directory: PathBuf,
        /// The parameter file; `None`: parameters are drawn from the network.
        parameters: Option<PathBuf>,
        /// The number of parameters.
        count: usize,
    },
}

#[derive(Serialize, Deserialize)]
struct Opened {
    rows: u64,
    /// From the start of the process, dynamic linking included.
    cpu_ms: f64,
}

/// What to measure in subprocesses.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The path of this program.
    pub program: &'a Path,
    /// N-Triples, unpacked.
    pub file: &'a Path,
    /// Load into the peer too.
    pub peer: bool,
    /// The number of repetitions of each load; the fastest counts.
    pub repeats: usize,
    /// The query for a freshly opened database, and its number of rows, if known.
    pub query: Option<(&'a str, Option<u64>)>,
}

/// The results of the subprocesses.
#[derive(Debug)]
pub struct Found {
    /// One entry per load.
    pub loads: Vec<ProcessLoad>,
    /// The sizes of the durable database on disk.
    pub sizes: Vec<SizeFigures>,
    /// Opening it and answering a query.
    pub cold: Option<ColdFigures>,
}

/// Loads `plan.file` into every engine, each time in a subprocess, then opens the stored database.
///
/// # Errors
/// A process fails, or there is no space for temporary files.
pub fn run(plan: &Plan<'_>) -> Result<Found> {
    let folder = tempfile::Builder::new()
        .prefix("vervet-bench-")
        .tempdir()
        .map_err(|error| Error::io("make a temporary folder", &error))?;
    let mut loads = Vec::new();
    let mut directory = None;
    for (threads, durable) in [(1, false), (2, false), (1, true), (2, true)] {
        let mut best: Option<LoadFigures> = None;
        for repeat in 0..plan.repeats.max(1) {
            let into = durable.then(|| folder.path().join(format!("{threads}-{repeat}")));
            let figures = plan.load(false, Some(threads), into.as_deref())?;
            if let (Some(new), Some(old)) = (into, &mut directory) {
                remove(std::mem::replace(old, new))?;
            } else if durable {
                directory = Some(folder.path().join(format!("{threads}-{repeat}")));
            }
            best = faster(best, figures);
        }
        loads.extend(best.map(|figures| ProcessLoad { figures, threads: Some(threads), durable }));
    }
    if plan.peer {
        let mut best = None;
        for _ in 0..plan.repeats.max(1) {
            best = faster(best, plan.load(true, None, None)?);
        }
        loads.extend(best.map(|figures| ProcessLoad { figures, threads: None, durable: false }));
    }
    let directory = directory.ok_or_else(|| Error::internal("no load was durable"))?;
    let sizes = sizes(&directory)?;
    let cold = match plan.query {
        Some((text, rows)) => Some(plan.cold(&directory, text, rows)?),
        None => None,
    };
    Ok(Found { loads, sizes, cold })
}

impl Plan<'_> {
    fn load(&self, peer: bool, threads: Option<usize>, directory: Option<&Path>) -> Result<LoadFigures> {
        self.start(&Task::Load {
            file: self.file.to_owned(),
            peer,
            threads,
            directory: directory.map(Path::to_owned),
        })
    }

    fn cold(&self, directory: &Path, text: &str, expected: Option<u64>) -> Result<ColdFigures> {
        let task = Task::Open { directory: directory.to_owned(), text: text.to_owned() };
        let (mut cpu, mut wall, mut rows) = (Vec::new(), Vec::new(), 0);
        for _ in 0..OPENINGS {
            let begin = Instant::now();
            let opened: Opened = self.start(&task)?;
            wall.push(begin.elapsed().as_secs_f64() * 1e3);
            cpu.push(opened.cpu_ms);
            rows = opened.rows;
            if let Some(expected) = expected.filter(|&expected| expected != rows) {
                let what = format!("a stored database gives {rows} rows, not {expected}");
                return Err(Error::internal(what));
            }
        }
        cpu.sort_by(f64::total_cmp);
        wall.sort_by(f64::total_cmp);
        Ok(ColdFigures { cpu_ms: cpu[OPENINGS / 2], wall_ms: wall[OPENINGS / 2], rows })
    }

    /// Starts this program for a task and reads its answer.
    fn start<T: DeserializeOwned>(&self, task: &Task) -> Result<T> {
        start(self.program, task)
    }
}

/// The resident memory, in bytes, of a process that has opened a stored network and run its queries.
///
/// # Errors
/// The process fails.
pub fn resident(program: &Path, directory: &Path, options: &SnbOptions) -> Result<u64> {
    let (parameters, count) = (options.parameters.clone(), options.count);
    start(program, &Task::Network { directory: directory.to_owned(), parameters, count })
}

fn start<T: DeserializeOwned>(program: &Path, task: &Task) -> Result<T> {
    let task = serde_json::to_string(task)
        .map_err(|error| Error::internal(format!("a task has no JSON form: {error}")))?;
    let output = Command::new(program)
        .args([COMMAND, &task])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Error::io(format_args!("start {}", program.display()), &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(Error::new(ErrorKind::Io, format!("a process for {task} ended: {}", output.status)));
    }
    serde_json::from_str(text.lines().last().unwrap_or_default())
        .map_err(|error| Error::internal(format!("a process for {task} answered {text:?}: {error}")))
}

/// Runs a task and returns its answer as JSON: the body of the hidden command.
///
/// # Errors
/// Errors of the engine; [`ErrorKind::Input`] if the task is invalid.
pub fn perform(task: &str) -> Result<String> {
    let task: Task = serde_json::from_str(task)
        .map_err(|error| Error::new(ErrorKind::Input, format!("{task:?} is no task: {error}")))?;
    let json = |answer: serde_json::Result<String>| {
        answer.map_err(|error| Error::internal(format!("an answer has no JSON form: {error}")))
    };
    match task {
        Task::Load { file, peer, threads, directory } => {
            let mut engine: Box<dyn Engine> = match directory {
                _ if peer => Box::new(Oxigraph::new(threads)?),
                Some(directory) => {
                    Box::new(Vervet::on(Database::open_or_create(directory)?, threads.unwrap_or(2)))
                }
                None => Box::new(Vervet::new(threads.unwrap_or(2))),
            };
            json(serde_json::to_string(&load(engine.as_mut(), &file)?))
        }
        Task::Network { directory, parameters, count } => {
            let bytes = crate::snb::resident(&directory, parameters.as_deref(), count)?;
            json(serde_json::to_string(&bytes))
        }
        Task::Open { directory, text } => {
            let engine = Vervet::on(Database::open(directory)?, 1);
            let rows = engine.query_tsv(&text, &mut Sink::counting())?;
            json(serde_json::to_string(&Opened { rows, cpu_ms: process_cpu().as_secs_f64() * 1e3 }))
        }
    }
}

fn faster(best: Option<LoadFigures>, new: LoadFigures) -> Option<LoadFigures> {
    Some(match best {
        Some(best) if best.seconds <= new.seconds => best,
        _ => new,
    })
}

/// Bytes by component, as reported by the database, and of all files, as reported by the system.
fn sizes(directory: &Path) -> Result<Vec<SizeFigures>> {
    let (mut dictionary, mut segments, mut rest) = (0, 0, 0);
    for part in Database::open(directory)?.component_sizes()? {
        *match part.segment {
            Some(_) => &mut segments,
            None if part.name == "edge table" => &mut rest,
            None => &mut dictionary,
        } += part.size_bytes;
    }
    let failed = |error| Error::io(format_args!("read {}", directory.display()), &error);
    let mut files = 0;
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        files += entry.and_then(|entry| entry.metadata()).map_err(failed)?.len();
    }
    let figures = |part: &str, bytes| SizeFigures { part: part.to_owned(), bytes };
    Ok(vec![
        figures("dictionary", dictionary),
        figures("segments (adjacency)", segments),
        figures("edge table", rest),
        figures("all files", files),
    ])
}

fn remove(directory: PathBuf) -> Result<()> {
    std::fs::remove_dir_all(&directory)
        .map_err(|error| Error::io(format_args!("remove {}", directory.display()), &error))
}
