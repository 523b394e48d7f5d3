//! Strategies of the traversal source.

use crate::context::Settings;
use crate::modulated::Modulated;
use std::sync::Arc;
use vervet_gremlin::{Bytecode, P, Value};
use vervet_model::{Error, ErrorKind, Result};

/// Default keys of `ReservedKeysVerificationStrategy`.
const RESERVED_KEYS: [&str; 2] = ["id", "label"];

/// Strategies that change the result of a traversal. The others are optimizations and have no effect here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strategies {
    /// `SubgraphStrategy(vertices, edges, vertexProperties)`.
    pub(crate) vertices: Option<Bytecode>,
    pub(crate) edges: Option<Bytecode>,
    pub(crate) vertex_properties: Option<Bytecode>,
    /// `checkAdjacentVertices: false`: edges are visible even if their ends are not.
    pub(crate) free_edges: bool,
    /// Without `ConnectiveStrategy`: infix `and()` and `or()` are not connectives.
    pub(crate) unconnected: bool,
    /// `ReadOnlyStrategy`.
    pub(crate) read_only: bool,
    /// `SeedStrategy(seed)`.
    pub(crate) seed: Option<i64>,
    /// `PartitionStrategy`.
    pub(crate) partition: Option<Partition>,
    /// `ReservedKeysVerificationStrategy(throwException: true)`.
    pub(crate) reserved_keys: Vec<Arc<str>>,
    /// `EdgeLabelVerificationStrategy(throwException: true)`.
    pub(crate) edge_labels: bool,
    /// `VertexProgramStrategy`, which `withComputer()` sets. It does not change the execution of steps.
    pub(crate) computer: bool,
    /// `VertexProgramRestrictionStrategy`.
    pub(crate) no_computer: bool,
}

/// A partition of the graph that a traversal reads and writes; a property of each element names its
/// partition.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) key: Arc<str>,
    write: Option<Value>,
    read: Vec<Value>,
}

impl Partition {
    /// The partition of new elements.
    pub(crate) fn write(&self) -> Result<Value> {
        self.write.clone().ok_or_else(|| {
            Error::new(ErrorKind::Query, "PartitionStrategy has no partition to write to")
                .with_hint("give it a writePartition")
        })
    }

    /// The partitions that reads see.
    pub(crate) fn read(&self) -> P {
        P::Within(self.read.clone())
    }
}

impl Strategies {
    /// Whether no strategy filters elements.
    pub(crate) fn is_plain(&self) -> bool {
        self.vertices.is_none()
            && self.edges.is_none()
            && self.vertex_properties.is_none()
            && self.partition.is_none()
            && !self.edge_labels
    }

    /// Rejects a source that both requests and forbids a graph computer.
    pub(crate) fn check_computer(&self) -> Result<()> {
        if self.computer && self.no_computer {
            let message = "The TraversalSource does not allow the use of a GraphComputer";
            return Err(Error::new(ErrorKind::Query, message));
        }
        Ok(())
    }

    /// Checks that a mutating step is permitted.
    pub(crate) fn check_write(&self, step: &Modulated<'_>) -> Result<()> {
        let class = match step.name() {
            "addV" => "AddVertexStep",
            "addE" => "AddEdgeStep",
            "property" => "AddPropertyStep",
            "mergeV" => "MergeVertexStep",
            "mergeE" => "MergeEdgeStep",
            _ => "DropStep",
        };
        if self.read_only {
            let message = "The provided traversal has a mutating step and thus is not read only";
            return Err(Error::new(ErrorKind::Query, format!("{message}: {class}")));
        }
        let is_reserved = |key: &&Value| {
            key.as_text().is_some_and(|key| self.reserved_keys.iter().any(|reserved| **reserved == *key))
        };
        let mut keys =
            step.writes.iter().flat_map(|write| [write.key].into_iter().chain(write.about.iter().step_by(2)));
        match keys.find(is_reserved).and_then(Value::as_text) {
            Some(key) => {
                let message = format!(
                    "The provided traversal contains a {class} that is setting a property key to a reserved word: {key}"
                );
                Err(Error::new(ErrorKind::Query, message))
            }
            None => Ok(()),
        }
    }

    /// Checks the edge labels of a step along edges.
    pub(crate) fn check_walk(&self, step: &Modulated<'_>) -> Result<()> {
        let along = matches!(step.name(), "out" | "in" | "both" | "outE" | "inE" | "bothE");
        if !self.edge_labels || !along || !step.arguments().is_empty() {
            return Ok(());
        }
        let message = format!(
            "The provided traversal contains a vertex step without any specified edge label: {}()",
            step.name()
        );
        Err(Error::new(ErrorKind::Query, message)
            .with_hint("name the edge labels, so that the step reads only these edges"))
    }

    /// Applies `withStrategies(…)` or `withoutStrategies(…)`.
    pub(crate) fn take(&mut self, name: &str, arguments: &[Value], settings: &mut Settings) -> Result<()> {
        for argument in arguments {
            let Value::Strategy(strategy) = argument else { continue };
            let simple = strategy.name.rsplit('.').next().unwrap_or_default();
            let with = name == "withStrategies";
            let option = |wanted: &str| {
                strategy.options.iter().find(|(name, _)| **name == *wanted).map(|(_, value)| value)
            };
            let traversal = |wanted: &str| match option(wanted) {
                Some(Value::Traversal(traversal)) => Some(traversal.as_ref().clone()),
                _ => None,
            };
            match simple {
                "SubgraphStrategy" if with => {
                    self.vertices = traversal("vertices");
                    self.free_edges = matches!(option("checkAdjacentVertices"), Some(Value::Boolean(false)));
                    self.edges = traversal("edges");
                    self.vertex_properties = traversal("vertexProperties");
                }
                "VertexProgramStrategy" => {
                    self.computer = with;
                    if with
                        && let Some(filter) =
                            ["vertices", "edges"].into_iter().find(|name| option(name).is_some())
                    {
                        let message = format!("VertexProgramStrategy with {filter} is not supported");
                        return Err(Error::new(ErrorKind::Unsupported, message)
                            .with_hint("SubgraphStrategy chooses vertices and edges"));
                    }
                }
                "VertexProgramRestrictionStrategy" => self.no_computer = with,
                "ConnectiveStrategy" => self.unconnected = !with,
                "ReadOnlyStrategy" => self.read_only = with,
                "ProductiveByStrategy" => settings.productive = with,
                "PartitionStrategy" => self.partition = if with { Some(partition(&option)?) } else { None },
                "ReservedKeysVerificationStrategy" => {
                    self.reserved_keys.clear();
                    if with && option("throwException") == Some(&Value::Boolean(true)) {
                        self.reserved_keys = match option("keys") {
                            Some(keys) => {
                                items(keys).iter().filter_map(Value::as_text).map(Arc::from).collect()
                            }
                            None => RESERVED_KEYS.map(Arc::from).to_vec(),
                        };
                    }
                }
                "EdgeLabelVerificationStrategy" => {
                    self.edge_labels = with && option("throwException") == Some(&Value::Boolean(true));
                }
                "SeedStrategy" if with => self.seed = option("seed").and_then(Value::as_integer),
                _ => {}
            }
        }
        Ok(())
    }
}

fn partition<'v>(option: &impl Fn(&str) -> Option<&'v Value>) -> Result<Partition> {
    let wrong = |message: &str| Error::new(ErrorKind::Query, message);
    let Some(Value::String(key)) = option("partitionKey") else {
        return Err(wrong("PartitionStrategy needs a partitionKey"));
    };
    if option("includeMetaProperties") == Some(&Value::Boolean(true)) {
        return Err(wrong("PartitionStrategy with includeMetaProperties is not supported")
            .with_hint("only vertices and edges have partitions"));
    }
    Ok(Partition {
        key: key.clone(),
        write: option("writePartition").cloned(),
        read: option("readPartitions").map(items).unwrap_or_default(),
    })
}

/// The items of a list or set.
fn items(value: &Value) -> Vec<Value> {
    match crate::semantic::items(value) {
        Some(items) => items.into_iter().map(|(value, _)| value).collect(),
        None => vec![value.clone()],
    }
}
