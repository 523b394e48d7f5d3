//! Arguments of `mergeV` and `mergeE`: validation of maps, and search for matching elements.

use super::argument::{WriteArgument, legal_key, legal_label};
use crate::compile::{BuildStep, Compiler};
use crate::context::Context;
use crate::error::query_error;
use crate::modulated::Modulated;
use crate::outputs::Outputs;
use crate::semantic::error_text;
use crate::step::Pipeline;
use crate::strategy::Strategies;
use crate::traverser::{Traverser, start_value};
use std::sync::Arc;
use vervet_gremlin::{Cardinality, Direction, Instruction, Map, Merge, T, Token, Value};
use vervet_model::Result;

/// Reserved keys, which are not properties.
pub(super) const ID: Value = Value::Token(Token::T(T::Id));
pub(super) const LABEL: Value = Value::Token(Token::T(T::Label));
pub(super) const OUT: Value = Value::Token(Token::Direction(Direction::Out));
pub(super) const IN: Value = Value::Token(Token::Direction(Direction::In));

/// The kind of merged element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeKind {
    Vertex,
    Edge,
}

impl MergeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Vertex => "mergeV",
            Self::Edge => "mergeE",
        }
    }

    fn allowed(self) -> (&'static [Value], &'static str) {
        match self {
            Self::Vertex => (&[ID, LABEL], "[id, label]"),
            Self::Edge => (&[ID, LABEL, IN, OUT], "[id, label, IN, OUT]"),
        }
    }
}

/// Finds elements by steps, which are compiled for each search.
#[derive(Clone, Copy)]
pub(super) struct ElementFinder {
    build_step: BuildStep,
}

impl ElementFinder {
    /// The elements that these steps find in the whole graph.
    pub(super) fn by_steps(
        self,
        mut steps: Vec<Instruction>,
        properties: &Map,
        context: &mut Context<'_>,
    ) -> Result<Vec<Value>> {
        for (key, value) in properties {
            if let Value::String(_) = key {
                let (value, _) = split(value.clone(), Cardinality::Single);
                steps.push(Instruction::new("has", vec![key.clone(), value]));
            }
        }
        let mut compiler =
            Compiler::new(self.build_step, context.settings.as_ref().clone(), Strategies::default(), false);
        let (mut found, mut outputs) = (Vec::new(), Outputs::default());
        compiler.pipeline(&steps)?.all(&Traverser::new(start_value()), &mut outputs, context)?;
        // Each element is returned once.
        while let Some((value, _)) = outputs.pop() {
            found.push(value);
        }
        Ok(found)
    }

    /// The vertices that match a map.
    pub(super) fn vertices_like(self, map: &Map, context: &mut Context<'_>) -> Result<Vec<Value>> {
        let mut steps = vec![Instruction::new("V", map.get(&ID).cloned().into_iter().collect())];
        if let Some(label) = map.get(&LABEL) {
            steps.push(Instruction::new("hasLabel", vec![label.clone()]));
        }
        self.by_steps(steps, map, context)
    }
}

/// The arguments and options of a merge.
#[derive(Clone)]
pub(super) struct Merging {
    pub(super) finder: ElementFinder,
    what: MergeKind,
    search: WriteArgument,
    on_create: Option<WriteArgument>,
    on_match: Option<WriteArgument>,
    pub(super) out_vertex: Option<WriteArgument>,
    pub(super) in_vertex: Option<WriteArgument>,
    /// `PartitionStrategy`: an additional entry of every map.
    partition: Option<(Value, Value)>,
}

impl Merging {
    pub(super) fn build(what: MergeKind, step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Self> {
        let search = match step.arguments() {
            // The current value is the map.
            [] => WriteArgument::Traversal(Pipeline::default()),
            [argument] => WriteArgument::new(argument, compiler)?,
            _ => return Err(query_error(format!("{}() takes one map", what.name()))),
        };
        let partition = match &compiler.strategies.partition {
            Some(partition) => Some((Value::String(partition.key.clone()), partition.write()?)),
            None => None,
        };
        let mut merging = Self {
            finder: ElementFinder { build_step: compiler.build_step },
            what,
            search,
            on_create: None,
            on_match: None,
            out_vertex: None,
            in_vertex: None,
            partition,
        };
        if let WriteArgument::Value(value) = &merging.search {
            check(what, map_of(what, value.clone())?.iter())?;
        }
        for option in &step.options {
            merging.option(option, compiler)?;
        }
        Ok(merging)
    }

    fn option(&mut self, option: &Instruction, compiler: &mut Compiler) -> Result<()> {
        let (token, argument, cardinality) = match option.arguments.as_slice() {
            [Value::Token(Token::Merge(token)), argument] => (*token, argument, None),
            [Value::Token(Token::Merge(token)), argument, Value::Token(Token::Cardinality(cardinality))] => {
                (*token, argument, Some(*cardinality))
            }
            _ => {
                let message = format!("an option of {}() is a Merge and a map", self.what.name());
                return Err(query_error(message));
            }
        };
        let argument = match (argument, cardinality) {
            (Value::Map(map), Some(cardinality)) => Value::map(with_cardinality(map, cardinality)),
            (argument, _) => argument.clone(),
        };
        let given = WriteArgument::new(&argument, compiler)?;
        let place = match token {
            Merge::OnCreate => &mut self.on_create,
            Merge::OnMatch => &mut self.on_match,
            Merge::OutV if self.what == MergeKind::Edge => &mut self.out_vertex,
            Merge::InV if self.what == MergeKind::Edge => &mut self.in_vertex,
            token => {
                return Err(query_error(format!("Option {} for Merge is not supported", token.name())));
            }
        };
        *place = Some(given);
        // A constant argument is validated even if its option is not used.
        if let (Merge::OnMatch, Some(WriteArgument::Value(value))) = (token, &self.on_match) {
            check_match(map_of(self.what, value.clone())?.iter())?;
        }
        if let (Merge::OnCreate, Some(WriteArgument::Value(value)), WriteArgument::Value(search)) =
            (token, &self.on_create, &self.search)
        {
            let (create, search) = (map_of(self.what, value.clone())?, map_of(self.what, search.clone())?);
            check(self.what, create.iter())?;
            check_overrides(&search, &create)?;
        }
        Ok(())
    }

    /// The search map.
    pub(super) fn search(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<Map> {
        let mut map = map_of(self.what, self.search.get(traverser, context)?)?;
        check(self.what, map.iter())?;
        self.add_partition(&mut map);
        Ok(map)
    }

    /// Additional entries of a new element; `None`: no onCreate option.
    pub(super) fn create(
        &mut self,
        searched: &Map,
        traverser: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<Option<Map>> {
        let Some(create) = &mut self.on_create else { return Ok(None) };
        let mut map = map_of(self.what, create.get(traverser, context)?)?;
        self.add_partition(&mut map);
        check(self.what, map.iter())?;
        check_overrides(searched, &map)?;
        Ok((!map.is_empty()).then_some(map))
    }

    /// Updates of a matched element.
    pub(super) fn matched(
        &mut self,
        traverser: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<Vec<(Arc<str>, Value)>> {
        let Some(matched) = &mut self.on_match else { return Ok(Vec::new()) };
        let mut map = map_of(self.what, matched.get(traverser, context)?)?;
        self.add_partition(&mut map);
        check_match(map.iter())?;
        map.into_iter().map(|(key, value)| Ok((legal_key(key)?, value))).collect()
    }

    fn add_partition(&self, map: &mut Map) {
        if let Some((key, value)) = &self.partition {
            map.insert(key.clone(), value.clone());
        }
    }
}

fn with_cardinality(map: &Map, cardinality: Cardinality) -> Map {
    map.iter()
        .map(|(key, value)| match (key, value) {
            (Value::String(_), Value::WithCardinality(_)) => (key.clone(), value.clone()),
            (Value::String(_), value) => {
                (key.clone(), Value::WithCardinality(Arc::new((cardinality, value.clone()))))
            }
            _ => (key.clone(), value.clone()),
        })
        .collect()
}

/// Splits a value from its cardinality; `otherwise` is the default.
pub(super) fn split(value: Value, otherwise: Cardinality) -> (Value, Cardinality) {
    match value {
        Value::WithCardinality(with) => (with.1.clone(), with.0),
        value => (value, otherwise),
    }
}

/// A map argument; null is the empty map.
fn map_of(what: MergeKind, value: Value) -> Result<Map> {
    match value {
        Value::Null => Ok(Map::default()),
        Value::Map(map) => Ok(map.as_ref().clone()),
        other if other == start_value() => {
            Err(query_error(format!("{}() without a map takes it from the step before it", what.name())))
        }
        other => Err(query_error(format!("{}() needs a Map, found a {}", what.name(), other.type_name()))),
    }
}

fn key_text(key: &Value) -> String {
    match key {
        Value::Token(token) => token.name().to_owned(),
        key => error_text(key),
    }
}

/// Validates a search or onCreate map.
fn check<'m>(what: MergeKind, map: impl Iterator<Item = (&'m Value, &'m Value)>) -> Result<()> {
    let (allowed, allowed_text) = what.allowed();
    let name = what.name();
    for (key, value) in map {
        if matches!((key, value), (Value::Token(_), Value::Null)) {
            let message = format!("{name}() does not allow null Map values - check: {}", key_text(key));
            return Err(query_error(message));
        }
        match key {
            Value::String(_) => drop(legal_key(key.clone())?),
            key if !allowed.contains(key) => {
                return Err(query_error(format!(
                    "{name}() and option(onCreate) args expect keys in Map to be either String or {allowed_text} - check: {}",
                    key_text(key)
                )));
            }
            key if *key == LABEL => match value {
                Value::String(_) => drop(legal_label(value.clone())?),
                other => {
                    return Err(query_error(format!(
                        "{name}() and option(onCreate) args expect T.label value to be of String - found: {}",
                        other.type_name()
                    )));
                }
            },
            _ => {}
        }
        if let Value::Token(Token::Merge(merge)) = value {
            let (wanted, direction) = match key {
                key if *key == OUT => (Merge::OutV, "OUT"),
                key if *key == IN => (Merge::InV, "IN"),
                _ => continue,
            };
            if *merge != wanted {
                return Err(query_error(format!(
                    "Only Merge.{} token may be used for Direction.{direction}, found: {}",
                    wanted.name(),
                    merge.name()
                )));
            }
        }
    }
    Ok(())
}

/// Validates an onMatch map.
fn check_match<'m>(map: impl Iterator<Item = (&'m Value, &'m Value)>) -> Result<()> {
    for (key, _) in map {
        if !matches!(key, Value::String(_)) {
            let message =
                format!("option(onMatch) expects keys in Map to be of String - check: {}", key_text(key));
            return Err(query_error(message));
        }
        legal_key(key.clone())?;
    }
    Ok(())
}

/// An onCreate map must not override the search map.
fn check_overrides(searched: &Map, create: &Map) -> Result<()> {
    for (key, value) in create {
        if searched.get(key).is_some_and(|other| other != value) {
            return Err(query_error(format!(
                "option(onCreate) cannot override values from merge() argument: ({}, {})",
                key_text(key),
                error_text(value)
            )));
        }
    }
    Ok(())
}
