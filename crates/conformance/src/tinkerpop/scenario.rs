//! Runs one scenario on one graph.

use super::compare::{differences, in_order, items, same_tree, show_some};
use super::configuration::{Configuration, DATA_PREFIX, MEMORY_BYTES_MAX, TIMEOUT};
use super::elements::Elements;
use super::failure::ScenarioFailure;
use super::feature::{Scenario, Step};
use super::graphs::{Graph, Graphs};
use super::notation::{show, value};
use super::wire::{PythonDriver, Running, has_float, not_carried, plain};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;
use std::rc::Rc;
use vervet::gremlin::text::{ParseOptions, Statement, parse};
use vervet::gremlin::{Bytecode, Instruction, Map, Tree, Value};
use vervet::{Database, Error, ErrorKind, GremlinOptions};

/// The result of a traversal.
enum Results {
    /// `iterated to list`
    All(Vec<Value>),
    /// `iterated next`
    First(Value),
}

/// A running scenario.
struct Run<'s> {
    scenario: &'s Scenario,
    data: &'s Path,
    configuration: Configuration,
    graph: Option<ScenarioGraph>,
    options: GremlinOptions,
    side_effects: Vec<Instruction>,
    /// The driver, if the scenario runs through one.
    wire: Option<&'s mut PythonDriver>,
    text: String,
    traversal: Option<Result<Bytecode, Error>>,
    results: Option<Result<Results, Error>>,
}

/// The graph that it runs on.
enum ScenarioGraph {
    Named(Rc<Graph>),
    Empty(Database, OnceCell<Running>),
}

impl ScenarioGraph {
    fn database(&self) -> &Database {
        match self {
            Self::Named(graph) => &graph.database,
            Self::Empty(database, _) => database,
        }
    }

    fn server(&self) -> Result<&Running, String> {
        let (database, cell) = match self {
            Self::Named(graph) => (&*graph.database, &graph.server),
            Self::Empty(database, cell) => (database, cell),
        };
        if cell.get().is_none() {
            let _ = cell.set(Running::start(database)?);
        }
        cell.get().ok_or_else(|| "there is no server".to_owned())
    }
}

/// Features of a scenario that the driver or the server does not support.
fn not_over_the_wire(scenario: &Scenario) -> Option<&'static str> {
    for step in &scenario.steps {
        if step.text.starts_with("the result should be a tree") {
            return Some("not carried by the driver: trees");
        }
        if step.text.starts_with("the result should be a subgraph") {
            return Some("not carried by the driver: graphs");
        }
        if step.block.as_ref().is_some_and(|text| text.contains("g.io(")) {
            return Some("the server opens no files for clients");
        }
    }
    None
}

/// Runs a scenario. `data` is the folder of the files that it may read.
///
/// # Errors
/// Why it did not pass.
pub(super) fn run(
    scenario: &Scenario,
    configuration: Configuration,
    graphs: &mut Graphs,
    data: &Path,
    wire: Option<&mut PythonDriver>,
) -> Result<(), ScenarioFailure> {
    if let (Some(_), Some(why)) = (&wire, not_over_the_wire(scenario)) {
        return Err(ScenarioFailure::LeftOut(why.to_owned()));
    }
    let options = GremlinOptions {
        timeout: Some(TIMEOUT),
        memory_limit_bytes: Some(MEMORY_BYTES_MAX),
        kernels: configuration != Configuration::Steps,
        files: Some(data.to_owned()),
        ..GremlinOptions::default()
    };
    let mut run = Run {
        scenario,
        data,
        configuration,
        graph: None,
        options,
        side_effects: Vec::new(),
        wire,
        text: String::new(),
        traversal: None,
        results: None,
    };
    let done = scenario.steps.iter().try_for_each(|step| run.step(step, graphs));
    if let (Some(wire), Some(ScenarioGraph::Empty(_, server))) = (&mut run.wire, &run.graph)
        && let Some(server) = server.get()
    {
        wire.close(server)?;
    }
    done?;
    // An error that no step expects.
    run.results.map_or(Ok(()), |results| results.map(drop).map_err(ScenarioFailure::from))
}

impl Run<'_> {
    fn step(&mut self, step: &Step, graphs: &mut Graphs) -> Result<(), ScenarioFailure> {
        let text = step.text.as_str();
        let block = step.block.as_deref().unwrap_or_default();
        if let Some(name) = text.strip_prefix("the ").and_then(|text| text.strip_suffix(" graph")) {
            self.graph = Some(match name {
                "empty" => ScenarioGraph::Empty(crate::partitions::database(text), OnceCell::new()),
                name => ScenarioGraph::Named(graphs.named(name)?),
            });
        } else if text == "the graph initializer of" {
            if self.wire.is_some() {
                self.submit(block)??;
            } else {
                let bytecode = self.parse(block)?;
                self.database()?.traverse(&bytecode, &self.options)?;
            }
            self.settle()?;
        } else if let Some(definition) = text.strip_prefix("using the parameter ") {
            let (name, value) = self.definition(definition)?;
            self.options.bindings.insert(name, value);
        } else if let Some(definition) = text.strip_prefix("using the side effect ") {
            let (name, value) = self.definition(definition)?;
            self.side_effects.push(Instruction::new("withSideEffect", vec![Value::text(name), value]));
        } else if text == "the traversal of" {
            block.clone_into(&mut self.text);
            let bytecode = self.parse(&self.with_paths(block)).map(|mut bytecode| {
                bytecode.source.splice(0..0, self.side_effects.iter().cloned());
                bytecode
            });
            self.traversal = Some(bytecode);
        } else if self.wire.is_some() && (text == "iterated to list" || text == "iterated next") {
            let results = self.submit_with_side_effects()?;
            self.results = Some(match results {
                Ok(values) if text == "iterated next" => first(values.into_iter().next()),
                results => results.map(Results::All),
            });
            self.settle()?;
        } else if text == "iterated to list" || text == "iterated next" {
            let results = match self.traversal.take().ok_or_else(|| "there is no traversal".to_owned())? {
                Ok(bytecode) => self.iterate(&bytecode, text == "iterated next"),
                Err(error) => Err(error),
            };
            self.results = Some(results);
            self.settle()?;
        } else {
            self.assertion(step)?;
        }
        Ok(())
    }

    /// Checks an assertion about the results.
    fn assertion(&mut self, step: &Step) -> Result<(), ScenarioFailure> {
        let text = step.text.as_str();
        if let Some(rest) = text.strip_prefix("the traversal will raise an error") {
            return self.raises(rest);
        }
        if let Some(Err(error)) = &self.results {
            return Err(error.clone().into());
        }
        if let Some(rest) = text.strip_prefix("the graph should return ") {
            let (count, traversal) = rest.split_once(" for count of ").ok_or_else(|| unknown(text))?;
            let wanted: i64 = count.parse().map_err(|_| unknown(text))?;
            let traversal = unquoted(traversal)?;
            let got = if self.wire.is_some() {
                self.submit(&format!("{traversal}.count()"))??
            } else {
                let mut bytecode = self.parse(&traversal)?;
                bytecode.steps.push(Instruction::new("count", Vec::new()));
                self.database()?.traverse(&bytecode, &self.options)?.into_values()?
            };
            return match got.as_slice() {
                [count] if count.as_integer() == Some(wanted) => Ok(()),
                other => self.wrong(&format!("{wanted} of {traversal}"), &show_some(other)),
            };
        }
        let (floats, over_wire) = self.over_wire(step)?;
        let Some(Ok(results)) = &self.results else { return Err(unknown(text).into()) };
        let prints_ids = self.prints_ids();
        let expected = |cells: &[Vec<String>]| -> Result<Vec<Value>, String> {
            let elements = self.elements()?;
            let values = cells
                .iter()
                .skip(1)
                .flatten()
                .map(|cell| value(cell, elements.as_ref().unwrap_or(self.named_elements())));
            if over_wire {
                values.map(|value| value.map(|value| plain(&value, floats))).collect()
            } else if prints_ids {
                values.map(|value| value.map(|value| ids_as_here(&value))).collect()
            } else {
                values.collect()
            }
        };
        let actual = match results {
            Results::All(values) => values.clone(),
            Results::First(value) => entries(value),
        };
        let actual: Vec<Value> =
            if over_wire { actual.iter().map(|value| plain(value, floats)).collect() } else { actual };
        match text {
            "the result should be unordered" => {
                let expected = expected(&step.table)?;
                match differences(&expected, &actual) {
                    None => Ok(()),
                    Some(text) => {
                        self.wrong(&show_some(&expected), &format!("{} ({text})", show_some(&actual)))
                    }
                }
            }
            "the result should be ordered" => {
                let expected = expected(&step.table)?;
                if in_order(&expected, &actual) {
                    return Ok(());
                }
                self.wrong(&show_some(&expected), &show_some(&actual))
            }
            "the result should be of" => {
                let expected = expected(&step.table)?;
                if actual.iter().all(|value| expected.iter().any(|other| super::compare::same(other, value)))
                {
                    return Ok(());
                }
                self.wrong(&format!("only {}", show_some(&expected)), &show_some(&actual))
            }
            "the result should be empty" => {
                if actual.is_empty() {
                    return Ok(());
                }
                self.wrong("nothing", &show_some(&actual))
            }
            "the result should be a tree with a structure of" => {
                let elements = self.elements()?;
                let elements = elements.as_ref().unwrap_or(self.named_elements());
                let tree = tree(step.block.as_deref().unwrap_or_default(), elements)?;
                match results {
                    Results::First(Value::Tree(actual)) if same_tree(&tree, actual) => Ok(()),
                    _ => self.wrong(&format!("{tree:?}"), &show_some(&actual)),
                }
            }
            "the result should be a subgraph with the following" => {
                let expected = expected(&step.table)?;
                let Results::First(Value::Subgraph(graph)) = results else {
                    return self.wrong("a graph", &show_some(&actual));
                };
                let actual: Vec<Value> =
                    match step.table.first().and_then(|row| row.first()).map(String::as_str) {
                        Some("vertices") => graph.vertices.iter().cloned().map(Value::from).collect(),
                        Some("edges") => graph.edges.iter().cloned().map(Value::Edge).collect(),
                        _ => return Err(unknown(text).into()),
                    };
                match differences(&expected, &actual) {
                    None => Ok(()),
                    Some(text) => {
                        self.wrong(&show_some(&expected), &format!("{} ({text})", show_some(&actual)))
                    }
                }
            }
            text => {
                let count =
                    text.strip_prefix("the result should have a count of ").and_then(|n| n.parse().ok());
                let count: usize = count.ok_or_else(|| unknown(text))?;
                if actual.len() == count {
                    return Ok(());
                }
                self.wrong(&format!("{count} results"), &format!("{}: {}", actual.len(), show_some(&actual)))
            }
        }
    }

    /// ` with message containing text of "…"`, or nothing.
    fn raises(&mut self, rest: &str) -> Result<(), ScenarioFailure> {
        let error = match self.results.take() {
            Some(Err(error)) => error,
            Some(Ok(Results::All(values))) => return self.wrong("an error", &show_some(&values)),
            Some(Ok(Results::First(value))) => return self.wrong("an error", &show(&value)),
            None => return Err(unknown(rest).into()),
        };
        let Some(rest) = rest.strip_prefix(" with message ") else {
            return match ScenarioFailure::from(error) {
                ScenarioFailure::Wrong(_) => Ok(()),
                other => Err(other),
            };
        };
        let (how, wanted) = rest.split_once(" text of ").ok_or_else(|| unknown(rest))?;
        let (wanted, message) = (unquoted(wanted)?.to_lowercase(), error.message().to_lowercase());
        let is_as_said = match how {
            "containing" => message.contains(&wanted),
            "starting" => message.starts_with(&wanted),
            "ending" => message.ends_with(&wanted),
            _ => return Err(unknown(rest).into()),
        };
        match ScenarioFailure::from(error.clone()) {
            _ if is_as_said => Ok(()),
            ScenarioFailure::Wrong(_) => {
                self.wrong(&format!("an error {how} {wanted:?}"), &format!("the error {:?}", error.message()))
            }
            other => Err(other),
        }
    }

    /// Whether expected integers are ids of vertices: clusters are named by them.
    fn prints_ids(&self) -> bool {
        let mut texts = self.scenario.steps.iter().filter_map(|step| step.block.as_deref());
        texts.any(|text| text.contains("peerPressure()"))
    }

    fn wrong(&self, expected: &str, got: &str) -> Result<(), ScenarioFailure> {
        let blocks = self.scenario.steps.iter().filter(|step| step.text == "the traversal of");
        let text: Vec<&str> = blocks.filter_map(|step| step.block.as_deref()).collect();
        let text = text.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        Err(ScenarioFailure::Wrong(format!("{text}; expected {expected}; got {got}")))
    }

    fn database(&self) -> Result<&Database, String> {
        self.graph.as_ref().map(ScenarioGraph::database).ok_or_else(|| "there is no graph".to_owned())
    }

    /// The elements of a changing graph; `None`: see [`Run::named_elements`].
    fn elements(&self) -> Result<Option<Elements>, String> {
        match &self.graph {
            Some(ScenarioGraph::Empty(database, _)) => {
                Elements::of(database).map(Some).map_err(|error| error.to_string())
            }
            _ => Ok(None),
        }
    }

    fn named_elements(&self) -> &Elements {
        static NOTHING: std::sync::LazyLock<Elements> = std::sync::LazyLock::new(Elements::default);
        match &self.graph {
            Some(ScenarioGraph::Named(graph)) => &graph.elements,
            _ => &NOTHING,
        }
    }

    /// In the base configuration, merges the writes into the base.
    fn settle(&self) -> Result<(), ScenarioFailure> {
        if let (Configuration::Base, Some(ScenarioGraph::Empty(database, _))) =
            (self.configuration, &self.graph)
        {
            database.checkpoint()?;
        }
        Ok(())
    }

    /// `name defined as "value"`
    fn definition(&self, text: &str) -> Result<(String, Value), String> {
        let (name, text) = text.split_once(" defined as ").ok_or_else(|| unknown(text))?;
        let elements = self.elements()?;
        let value = value(&unquoted(text)?, elements.as_ref().unwrap_or(self.named_elements()))?;
        Ok((name.to_owned(), value))
    }

    /// The text with paths of files replaced by the local folder.
    fn with_paths(&self, text: &str) -> String {
        text.replace(DATA_PREFIX, &format!("\"{}/", self.data.display()))
    }

    fn parse(&self, text: &str) -> Result<Bytecode, Error> {
        let options =
            ParseOptions { bindings: Cow::Borrowed(&self.options.bindings), ..ParseOptions::default() };
        match parse(text, &options)?.as_slice() {
            [Statement::Traversal { bytecode, terminal: None, .. }] => Ok(bytecode.clone()),
            other => Err(Error::internal(format!("not one traversal: {other:?}"))),
        }
    }

    fn iterate(&self, bytecode: &Bytecode, next: bool) -> Result<Results, Error> {
        let database = self.database().map_err(Error::internal)?;
        let results = database.traverse(bytecode, &self.options)?;
        if !next {
            return Ok(Results::All(results.into_values()?));
        }
        first(results.values().next().cloned())
    }

    /// Submits a text through the driver.
    fn submit(&mut self, text: &str) -> Result<Result<Vec<Value>, Error>, ScenarioFailure> {
        let graph = self.graph.as_ref().ok_or_else(|| "there is no graph".to_owned())?;
        let wire = self.wire.as_mut().ok_or_else(|| "there is no driver".to_owned())?;
        wire.submit(graph.server()?, text, &self.options.bindings)
    }

    /// Submits the traversal through the driver; side effects become bindings.
    fn submit_with_side_effects(&mut self) -> Result<Result<Vec<Value>, Error>, ScenarioFailure> {
        let mut text = self.text.trim().to_owned();
        let side_effects = std::mem::take(&mut self.side_effects);
        if !side_effects.is_empty() {
            let rest = text.strip_prefix('g').ok_or_else(|| format!("{text} has no source"))?;
            let mut source = "g".to_owned();
            for (number, instruction) in side_effects.into_iter().enumerate() {
                let [Value::String(name), value] = instruction.arguments.as_slice() else { continue };
                source += &format!(".withSideEffect(\"{name}\", given{number})");
                self.options.bindings.insert(format!("given{number}"), value.clone());
            }
            text = source + rest;
        }
        self.submit(&text)
    }

    /// Whether fractions are compared as floats, and whether a driver is used.
    fn over_wire(&self, step: &Step) -> Result<(bool, bool), ScenarioFailure> {
        if self.wire.is_none() {
            return Ok((false, false));
        }
        let elements = self.elements()?;
        let elements = elements.as_ref().unwrap_or(self.named_elements());
        let mut floats = false;
        for cell in step.table.iter().skip(1).flatten() {
            let value = value(cell, elements)?;
            if let Some(why) = not_carried(&value) {
                return Err(ScenarioFailure::LeftOut(format!("not carried by the driver: {why}")));
            }
            floats |= has_float(&value);
        }
        Ok((floats, true))
    }
}

/// The result of `next()`.
fn first(value: Option<Value>) -> Result<Results, Error> {
    value.map(Results::First).ok_or_else(|| Error::new(ErrorKind::Query, "there is no next result"))
}

/// A single result as a list: a collection as its items, a map as its entries, each a map.
fn entries(value: &Value) -> Vec<Value> {
    match value {
        Value::List(values) => values.to_vec(),
        Value::Set(values) => values.iter().cloned().collect(),
        Value::Bulk(bulk) => items(bulk),
        Value::Path(path) => path.objects.clone(),
        Value::Map(map) => {
            map.iter().map(|(key, value)| Map::from_iter([(key.clone(), value.clone())]).into()).collect()
        }
        value => vec![value.clone()],
    }
}

/// Ids of the toy graphs have the type Integer in TinkerGraph, and Long here.
fn ids_as_here(value: &Value) -> Value {
    match value {
        Value::Int(id) => Value::Long(i64::from(*id)),
        Value::List(values) => Value::list(values.iter().map(ids_as_here).collect()),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (ids_as_here(key), ids_as_here(value)));
            Value::map(entries.collect())
        }
        other => other.clone(),
    }
}

/// The tree drawn by lines of `|--value`, three spaces for each level.
fn tree(text: &str, elements: &Elements) -> Result<Tree, String> {
    let mut tree = Tree::default();
    let mut path: Vec<usize> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (spaces, content) = line.split_once("|--").ok_or_else(|| format!("{line} is not a branch"))?;
        path.truncate(spaces.len() / 3);
        let mut parent = &mut tree;
        for place in &path {
            parent = &mut parent.children[*place].1;
        }
        path.push(parent.children.len());
        parent.children.push((value(content, elements)?, Tree::default()));
    }
    Ok(tree)
}

/// The text between quotes.
fn unquoted(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Ok(inner.ok_or_else(|| format!("{text} is not quoted"))?.replace("\\\"", "\""))
}

fn unknown(step: &str) -> String {
    format!("unknown step: {step}")
}
