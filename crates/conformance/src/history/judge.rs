//! Programs that judge histories.
//!
//! # Shape
//! A judge is a process. dbcop is given a folder, and prints `NAME: PASS` or `NAME: FAIL (why)` for each file; Elle is
//! given `judge.clj`, a script of ours that calls it, and prints a line for each file too. A file of which
//! a judge says nothing, and a judge that does not end within [`TIME_MAX`], is a failure.
//! # Not here
//! The judges themselves: docs/histories.md says where they are to be had.

use super::plant::Fault;
use super::record::Kind;
use super::{LEVELS, Level, Options};
use crate::Report;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that a judge may take for one folder.
const TIME_MAX: Duration = Duration::from_secs(900);
const SCRIPT: &str = include_str!("judge.clj");

/// Whether a judge accepts a history, and its words, by the name of the history.
type Verdicts = BTreeMap<String, (bool, String)>;

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

/// The same. For those under snapshot isolation it is printed how many are serializable.
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
    let accepted = verdicts.values().filter(|(accepted, _)| *accepted).count();
    println!(
        "  {judge}, {level}: {accepted} of {} accepted, in {:.1} s",
        verdicts.len(),
        start.elapsed().as_secs_f64()
    );
}

fn add(report: &mut Report, category: &str, verdicts: &Verdicts, accept: bool, histories: u64) {
    for (name, (accepted, words)) in verdicts {
        let result = if *accepted == accept { Ok(()) } else { Err(words.clone()) };
        report.add(category, name, result);
    }
    if verdicts.len() as u64 != histories {
        let missing = format!("{} verdicts for {histories} histories", verdicts.len());
        report.add(category, "all are judged", Err(missing));
    }
}

fn dbcop(program: &Path, folder: &Path, level: &str) -> Result<Verdicts, String> {
    let mut command = Command::new(program);
    command.arg("verify").arg("--input-dir").arg(folder.join("dbcop")).arg("--consistency").arg(level);
    let verdict = |line: &str| {
        let (name, words) = line.split_once(".json: ")?;
        Some((name.to_owned(), (words == "PASS", words.to_owned())))
    };
    Ok(output(command, &[0, 1])?.lines().filter_map(verdict).collect())
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
        for line in output(command, &[0])?.lines() {
            let mut parts = line.split('\t');
            let (Some(file), Some(valid)) = (parts.next(), parts.next()) else { continue };
            let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let words = format!("{valid} {}", parts.next().unwrap_or_default());
            // Neither of them: unknown, which is no verdict.
            if valid == "true" || valid == "false" {
                verdicts.insert(name, (valid == "true", words));
            }
        }
    }
    Ok(verdicts)
}

/// What a program prints, if it ends in time and with one of these codes.
fn output(mut command: Command, codes: &[i32]) -> Result<String, String> {
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
            None if start.elapsed() > TIME_MAX => {
                // Both fail only if it has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} took longer than {} s", TIME_MAX.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let text = reader.join().map_err(|_| format!("the output of {name} could not be read"))?;
    let text = text.map_err(|error| format!("the output of {name}: {error}"))?;
    if status.code().is_some_and(|code| codes.contains(&code)) {
        return Ok(text);
    }
    Err(format!("{name} failed ({status})"))
}
