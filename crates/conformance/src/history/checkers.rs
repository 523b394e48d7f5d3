//! Third-party checkers of histories.
//!
//! # Shape
//! A checker is a process. dbcop takes a folder, and prints `NAME: PASS` or `NAME: FAIL (why)` for each file;
//! Elle runs through our script `judge.clj`, which also prints a line for each file. dbcop searches for an
//! order of the transactions, which can take exponential time: it gets a folder for each history and
//! [`SEARCH_MAX`].
//! # Not here
//! The checkers themselves: docs/histories.md says how to get them.

use super::fault_injection::Fault;
use super::options::{LEVELS, Level, Options};
use super::record::Kind;
use crate::{Outcome, Report};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time limit of Elle for one folder.
const TIME_MAX: Duration = Duration::from_secs(900);
const SCRIPT: &str = include_str!("judge.clj");

/// The time limit of dbcop's search for one history.
const SEARCH_MAX: Duration = Duration::from_secs(20);

/// The verdict on a history.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Verdict {
    Accepted,
    /// With the checker's message.
    Rejected(String),
    /// No result within [`SEARCH_MAX`], or unknown.
    None,
}

/// Verdicts by name of the history.
type Verdicts = BTreeMap<String, Verdict>;

/// Every history of a level must be accepted at this level.
pub(super) fn accepted_by_dbcop(
    options: &Options,
    level: Level,
    folder: &Path,
    histories: u64,
    report: &mut Report,
) -> Result<(), String> {
    let Some(program) = &options.dbcop else { return Ok(()) };
    let start = Instant::now();
    let verdicts = dbcop(program, folder, level.dbcop)?;
    add(report, &format!("dbcop, {}", level.dbcop), &verdicts, true, histories);
    say("dbcop", level.dbcop, &verdicts, start);
    Ok(())
}

/// Like [`accepted_by_dbcop`]. For histories under snapshot isolation it prints how many are serializable.
pub(super) fn accepted_by_elle(
    options: &Options,
    level: Level,
    folder: &Path,
    histories: u64,
    report: &mut Report,
) -> Result<(), String> {
    let Some(program) = &options.elle else { return Ok(()) };
    let start = Instant::now();
    let verdicts = elle(program, options, folder, level.elle)?;
    add(report, &format!("Elle, {}", level.elle), &verdicts, true, histories);
    say("Elle", level.elle, &verdicts, start);
    if level != LEVELS[0] {
        let start = Instant::now();
        let verdicts = elle(program, options, folder, "serializable")?;
        say("Elle, which need not accept", "serializable", &verdicts, start);
    }
    Ok(())
}

/// Every history with this fault must be rejected at the levels that forbid it.
pub(super) fn rejected(
    options: &Options,
    fault: Fault,
    folder: &Path,
    histories: u64,
    report: &mut Report,
) -> Result<(), String> {
    for level in LEVELS.into_iter().filter(|level| fault.breaks(level.isolation)) {
        let category = |judge| format!("{judge}: fault '{}' rejected at {}", fault.name(), level.name);
        if let Some(program) = &options.dbcop {
            let start = Instant::now();
            let verdicts = dbcop(program, folder, level.dbcop)?;
            add(report, &category("dbcop"), &verdicts, false, histories);
            say("dbcop", level.dbcop, &verdicts, start);
        }
        if let Some(program) = &options.elle {
            let start = Instant::now();
            let verdicts = elle(program, options, folder, level.elle)?;
            add(report, &category("Elle"), &verdicts, false, histories);
            say("Elle", level.elle, &verdicts, start);
        }
    }
    Ok(())
}

fn say(judge: &str, level: &str, verdicts: &Verdicts, start: Instant) {
    let accepted = verdicts.values().filter(|verdict| **verdict == Verdict::Accepted).count();
    let none = verdicts.values().filter(|verdict| **verdict == Verdict::None).count();
    println!(
        "  {judge}, {level}: {accepted} accepted, {} rejected, {none} without a verdict, in {:.1} s",
        verdicts.len() - accepted - none,
        start.elapsed().as_secs_f64()
    );
}

/// A history without a verdict counts as not run; but at least one of all must have a verdict.
fn add(report: &mut Report, category: &str, verdicts: &Verdicts, accept: bool, histories: u64) {
    for (name, verdict) in verdicts {
        let outcome = match verdict {
            Verdict::None => Outcome::NotRun,
            Verdict::Accepted if accept => Outcome::Passed,
            Verdict::Accepted => Outcome::Failed("it was accepted".to_owned()),
            Verdict::Rejected(_) if !accept => Outcome::Passed,
            Verdict::Rejected(words) => Outcome::Failed(words.clone()),
        };
        report.add_outcome(category, name, outcome);
    }
    if verdicts.len() as u64 != histories || verdicts.values().all(|verdict| *verdict == Verdict::None) {
        let missing = format!("{} answers for {histories} histories", verdicts.len());
        report.add(category, "all are judged", Err(missing));
    }
}

fn dbcop(program: &Path, folder: &Path, level: &str) -> Result<Verdicts, String> {
    let folder = folder.join("dbcop");
    let problem = |error| format!("could not list {}: {error}", folder.display());
    let mut verdicts = Verdicts::new();
    for entry in std::fs::read_dir(&folder).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let mut command = Command::new(program);
        command.arg("verify").arg("--input-dir").arg(entry.path()).arg("--consistency").arg(level);
        let words = output(command, &[0, 1], SEARCH_MAX)?;
        let words =
            words.as_deref().map(|words| words.trim_end().split_once(".json: ").unwrap_or(("", words)).1);
        let verdict = match words {
            None => Verdict::None,
            Some("PASS") => Verdict::Accepted,
            Some(words) => Verdict::Rejected(words.to_owned()),
        };
        verdicts.insert(entry.file_name().to_string_lossy().into_owned(), verdict);
    }
    Ok(verdicts)
}

fn elle(program: &Path, options: &Options, folder: &Path, level: &str) -> Result<Verdicts, String> {
    let script = options.to.join("judge.clj");
    std::fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    let problem = |error| format!("could not list {}: {error}", folder.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(problem)? {
        files.push(entry.map_err(problem)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "edn"));
    files.sort();
    let mut verdicts = Verdicts::new();
    for kind in Kind::ALL {
        let of_kind = |file: &&PathBuf| {
            file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(kind.name()))
        };
        let model = if kind == Kind::Register { "rw-register" } else { "list-append" };
        let mut command = Command::new(program);
        command.arg(&script).arg(model).arg(level).args(files.iter().filter(of_kind));
        let words = output(command, &[0], TIME_MAX)?;
        let words = words.ok_or_else(|| format!("no verdicts within {} s", TIME_MAX.as_secs()))?;
        for line in words.lines() {
            let mut parts = line.split('\t');
            let (Some(file), Some(valid)) = (parts.next(), parts.next()) else { continue };
            let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let verdict = match valid {
                "true" => Verdict::Accepted,
                "false" => Verdict::Rejected(parts.next().unwrap_or_default().to_owned()),
                _ => Verdict::None,
            };
            verdicts.insert(name, verdict);
        }
    }
    Ok(verdicts)
}

/// The output of a program that ends with one of these codes; `None`: it exceeded `most`.
fn output(mut command: Command, codes: &[i32], most: Duration) -> Result<Option<String>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start {name}: {error}"))?;
    let mut pipe = child.stdout.take().ok_or("a child without output")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| format!("{name}: {error}"))? {
            Some(status) => break status,
            None if start.elapsed() > most => {
                // Both fail only if the process has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let text = reader.join().map_err(|_| format!("the output of {name} could not be read"))?;
    let text = text.map_err(|error| format!("the output of {name}: {error}"))?;
    if status.code().is_some_and(|code| codes.contains(&code)) {
        return Ok(Some(text));
    }
    Err(format!("{name} failed ({status})"))
}
