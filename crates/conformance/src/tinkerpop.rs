//! Apache TinkerPop's feature files: the results of every Gremlin step on its toy graphs.
//!
//! # Shape
//! A scenario passes if it passes in every requested [`Configuration`]. It is left out if it needs null
//! properties, as in the reference filter, or if it is marked as untestable. Scenarios that elsewhere need a
//! graph computer run like all others.
//!
//! * `feature`: the files. `notation`: the values in them. `graphs`: the graphs. `elements`: look-up of
//!   elements by name. `configuration`: storage and limits. `scenario`: one scenario. `failure`: its
//!   failures. `compare`: results. `wire`: all of it through a driver.

mod compare;
mod configuration;
mod elements;
mod failure;
mod feature;
mod graphs;
mod notation;
mod scenario;
mod wire;

pub use configuration::Configuration;
pub use wire::{Driver, WireFormat};

use crate::{Outcome, Report};
use failure::ScenarioFailure;
use feature::Scenario;
use graphs::Graphs;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use wire::PythonDriver;

/// Tags of scenarios that the reference filter leaves out, and why.
const LEFT_OUT: [(&str, &str); 1] = [("@AllowNullPropertyValues", "needs properties that are null")];

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
