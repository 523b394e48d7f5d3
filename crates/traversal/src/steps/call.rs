//! Service steps: `call`, and `fail`.
//!
//! The services have the names that TinkerGraph registers: `tinker.search` finds elements with a text in a
//! property, `tinker.degree.centrality` counts edges.

use super::make::{self};
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::graph::read::{degree, edge_value, properties, vertex_value};
use crate::graph::scan::{EdgeScan, VertexScan};
use crate::modulated::Modulated;
use crate::outputs::Outputs;
use crate::step::{Pipeline, Step};
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Direction, Map, Token, Value};
use vervet_model::{Error, ErrorKind, Result};

const LIST: &str = "--list";
const SEARCH: &str = "tinker.search";
const DEGREE: &str = "tinker.degree.centrality";

/// A parameter of a service.
#[derive(Clone)]
enum ServiceParameter {
    Value(Value),
    Traversal(Pipeline),
}

impl ServiceParameter {
    fn new(value: &Value, compiler: &mut Compiler) -> Result<Self> {
        Ok(match value {
            Value::Traversal(traversal) => Self::Traversal(compiler.nested(traversal)?),
            value => Self::Value(value.clone()),
        })
    }

    fn value(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<Value> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Traversal(traversal) => Ok(traversal.first(traverser, context)?.unwrap_or_default()),
        }
    }
}

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    if step.name() == "fail" {
        let message = step.texts().into_iter().next().unwrap_or_else(|| "fail() Step Triggered".into());
        return Ok(make::filter(move |_, _| Err(Error::new(ErrorKind::Query, message.to_string()))));
    }
    let mut arguments = step.arguments().iter();
    let service: Arc<str> = match arguments.next() {
        None => LIST.into(),
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(query_error("call() needs the name of a service")),
    };
    if ![LIST, SEARCH, DEGREE].contains(&&*service) {
        let message = format!("there is no service {service}");
        return Err(query_error(message).with_hint("call() lists the services"));
    }
    let mut maps = Vec::new();
    for argument in arguments {
        maps.push(ServiceParameter::new(argument, compiler)?);
    }
    let mut options = Vec::new();
    for with in &step.withs {
        if let [Value::String(name), value] = with.arguments.as_slice() {
            options.push((name.clone(), ServiceParameter::new(value, compiler)?));
        }
    }
    Ok(make::flat_map(move |traverser, context, out| {
        let mut given = Map::default();
        for map in &mut maps {
            if let Value::Map(map) = map.value(traverser, context)? {
                given.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
        }
        for (name, value) in &mut options {
            given.insert(Value::String(name.clone()), value.value(traverser, context)?);
        }
        let given = |name: &str| given.get(&Value::text(name)).cloned();
        match &*service {
            LIST => {
                let wanted = given("service");
                for name in [SEARCH, DEGREE].map(Value::text) {
                    if wanted.as_ref().is_none_or(|wanted| *wanted == name) {
                        out.push_back(name);
                    }
                }
            }
            DEGREE => {
                let direction = match given("direction") {
                    Some(Value::Token(Token::Direction(direction))) => direction,
                    _ => Direction::In,
                };
                let Value::Vertex(vertex) = &traverser.value else {
                    return Err(Error::new(ErrorKind::Query, format!("{DEGREE} needs a vertex")));
                };
                let count =
                    context.read(|snapshot, names| degree(snapshot, names, vertex.key, direction, &[]))?;
                out.push_back(Value::Long(i64::try_from(count).unwrap_or(i64::MAX)));
            }
            _ => {
                let Some(Value::String(text)) = given("search") else {
                    return Err(Error::new(ErrorKind::Query, format!("{SEARCH} needs a text to search for"))
                        .with_hint("give it by with(\"search\", …)"));
                };
                let kind = given("type");
                search(&text, kind.as_ref().and_then(Value::as_text), out, context)?;
            }
        }
        Ok(())
    }))
}

/// Appends properties whose text contains `text`, of elements of this kind.
fn search(text: &str, kind: Option<&str>, found: &mut Outputs, context: &mut Context<'_>) -> Result<()> {
    let holds = |property: &Value| match property {
        Value::VertexProperty(property) => property.value.as_text().is_some_and(|value| value.contains(text)),
        Value::Property(property) => property.value.as_text().is_some_and(|value| value.contains(text)),
        _ => false,
    };
    let wanted = |name: &str| kind.is_none_or(|kind| kind == name);
    let of = |element: Value, context: &mut Context<'_>| -> Result<Vec<Value>> {
        context.control.work(64)?;
        let mut all = Vec::new();
        context.read(|snapshot, names| {
            all.clear();
            properties(snapshot, names, &element, &[], &mut |property| all.push(property))
        })?;
        Ok(all)
    };
    let mut scan = VertexScan::default();
    loop {
        let mut vertices = Vec::new();
        context.tick()?;
        if !context.read(|snapshot, names| scan.next_batch(snapshot, names, &mut vertices))? {
            break;
        }
        for vertex in vertices {
            for property in of(vertex_value(vertex.bits()), context)? {
                if wanted("VertexProperty") {
                    found.extend(of(property.clone(), context)?.into_iter().filter(|meta| holds(meta)));
                }
                if wanted("Vertex") && holds(&property) {
                    found.push_back(property);
                }
            }
            found.count(&context.memory)?;
        }
    }
    let mut scan = EdgeScan::new(None);
    while wanted("Edge") {
        let mut edges = Vec::new();
        context.tick()?;
        if !context.read(|snapshot, names| scan.next_batch(snapshot, names, &mut edges))? {
            break;
        }
        for edge in edges {
            found.extend(of(edge_value(edge), context)?.into_iter().filter(|property| holds(property)));
            found.count(&context.memory)?;
        }
    }
    Ok(())
}
