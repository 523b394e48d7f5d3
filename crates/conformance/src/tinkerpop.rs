//! Apache TinkerPop's feature files: the results of every Gremlin step on its toy graphs.
//!
//! # Shape
//! A scenario passes if it passes in every requested [`Configuration`]. It is left out if it needs null
//! properties, as in the reference filter, or if it is marked as untestable. Scenarios that elsewhere need a
//! graph computer run like all others.
//!
//! * `feature`: the files. `notation`: the values in them. `graphs`: the graphs. `scenario`: one scenario.
//!   `compare`: results. `wire`: all of it through a driver.

mod compare;
mod feature;
mod graphs;
mod notation;
mod scenario;
mod wire;

pub use wire::{Driver, WireFormat};

use crate::{Outcome, Report};
use feature::Scenario;
use graphs::Graphs;
use scenario::ScenarioFailure;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;
use wire::PythonDriver;

/// The time limit of a traversal.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The memory cap of a traversal: the largest scenario has a million traversers, each held in the side effect
/// and behind it.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Prefix of file names in traversals.
const DATA_PREFIX: &str = "\"data/";

/// Tags of scenarios that the reference filter leaves out, and why.
const LEFT_OUT: [(&str, &str); 1] = [("@AllowNullPropertyValues", "needs properties that are null")];

/// The storage of the data of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Configuration {
    /// In the base: loaded, or merged into it.
    Base,
    /// In the delta: written by transactions.
    Delta,
    /// Like `Delta`, with every step as a step and no kernels.
    Steps,
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only scenarios with this text in `folder/file: name`.
    pub only: Option<String>,
    /// Every scenario runs in each of these.
    pub configurations: Vec<Configuration>,
    /// Runs through this driver and a server, which chooses kernels itself; `None`: in this process.
    pub driver: Option<Driver>,
    /// Callback for every scenario and its outcome.
    pub each: Option<fn(&str, &Outcome)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            only: None,
            configurations: vec![Configuration::Base, Configuration::Delta, Configuration::Steps],
            driver: None,
            each: None,
        }
    }
}

/// Runs the scenarios below `root`, the folder with `features` and `graphs`.
///
/// # Errors
/// Missing or malformed files.
pub fn run(root: &Path, options: &Options, report: &mut Report) -> Result<(), String> {
    let data = root.join("graphs");
    let mut wire = options.driver.as_ref().map(PythonDriver::start).transpose()?;
    let mut graphs: Vec<(Configuration, Graphs)> = options
        .configurations
        .iter()
        .map(|&configuration| (configuration, Graphs::new(data.clone(), configuration)))
        .collect();
    for folder in entries(&root.join("features"))? {
        for file in entries(&root.join("features").join(&folder))? {
            let Some(stem) = file.strip_suffix(".feature") else { continue };
            let path = root.join("features").join(&folder).join(&file);
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let scenarios = feature::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            for scenario in &scenarios {
                let name = format!("{stem}/{}", scenario.name);
                let whole = format!("{folder}/{name}");
                if options.only.as_ref().is_some_and(|part| !whole.contains(part)) {
                    continue;
                }
                let outcome = outcome(scenario, &mut graphs, &data, wire.as_mut());
                if let Some(each) = options.each {
                    each(&whole, &outcome);
                }
                report.add_outcome(&format!("gremlin/{folder}"), &name, outcome);
            }
        }
    }
    Ok(())
}

/// Runs a scenario in all configurations; the first failure is its outcome.
fn outcome(
    scenario: &Scenario,
    graphs: &mut [(Configuration, Graphs)],
    data: &Path,
    mut wire: Option<&mut PythonDriver>,
) -> Outcome {
    if let Some((_, why)) = LEFT_OUT.iter().find(|(tag, _)| scenario.tags.iter().any(|own| own == tag)) {
        return Outcome::LeftOut((*why).to_owned());
    }
    if scenario.steps.iter().any(|step| step.text == "an unsupported test") {
        return Outcome::LeftOut("marked as untestable".to_owned());
    }
    for (configuration, graphs) in graphs {
        let run =
            AssertUnwindSafe(|| scenario::run(scenario, *configuration, graphs, data, wire.as_deref_mut()));
        let done = catch_unwind(run).unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(ScenarioFailure::Wrong(format!("panic: {message}")))
        });
        match done {
            Ok(()) => {}
            Err(ScenarioFailure::LeftOut(reason)) => return Outcome::LeftOut(reason),
            Err(ScenarioFailure::Unsupported(reason)) => return Outcome::Unsupported(reason),
            Err(ScenarioFailure::Wrong(reason)) => {
                return Outcome::Failed(format!("{configuration:?}: {reason}"));
            }
        }
    }
    Outcome::Passed
}

/// Names in a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<String>, String> {
    let read = fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut names: Vec<String> = read
        .map_err(|error| format!("could not read {}: {error}", folder.display()))?
        .into_iter()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    Ok(names)
}
