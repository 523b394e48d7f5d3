//! Output formats of Gremlin results.

/// Output format of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GremlinFormat {
    /// Aligned columns; maps with equal keys become columns.
    Table,
    /// GraphSON 3 with types, one value per line.
    GraphSon,
    /// GraphSON 3 without types, one value per line.
    Json,
}

impl GremlinFormat {
    /// The format with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "table" => Some(Self::Table),
            "graphson" => Some(Self::GraphSon),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}
