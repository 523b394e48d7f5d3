//! What strategies of the source change.

use crate::context::Settings;
use vervet_gremlin::{Bytecode, Value};
use vervet_model::Result;

/// Strategies that change what a traversal means. The others only say how a machine could go about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strategies {
    /// `SubgraphStrategy(vertices, edges, vertexProperties)`.
    pub(crate) vertices: Option<Bytecode>,
    pub(crate) edges: Option<Bytecode>,
    pub(crate) vertex_properties: Option<Bytecode>,
    /// `ReadOnlyStrategy`.
    pub(crate) read_only: bool,
    /// `SeedStrategy(seed)`.
    pub(crate) seed: Option<i64>,
}

impl Strategies {
    /// Whether all elements are as they are in the graph.
    pub(crate) fn is_plain(&self) -> bool {
        self.vertices.is_none() && self.edges.is_none() && self.vertex_properties.is_none()
    }

    /// Reads `withStrategies(…)` or `withoutStrategies(…)`.
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
                    self.edges = traversal("edges");
                    self.vertex_properties = traversal("vertexProperties");
                }
                "ReadOnlyStrategy" => self.read_only = with,
                "ProductiveByStrategy" => settings.productive = with,
                "SeedStrategy" if with => self.seed = option("seed").and_then(Value::as_integer),
                _ => {}
            }
        }
        Ok(())
    }
}
