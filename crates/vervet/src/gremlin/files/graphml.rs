//! GraphML reading: the loader produces a list of statements, which become vertices and edges.
//!
//! `crate::export` writes GraphML.

use std::collections::HashMap;
use std::path::Path;
use vervet_gremlin::{Cardinality, Value};
use vervet_kernel::Control;
use vervet_load::{Format, LoadOptions, Source, Target};
use vervet_model::vocab::{EDGE_ID, KEY_NAMESPACE, LABEL_NAMESPACE, RDF_TYPE, VERTEX_NAMESPACE, iri_name};
use vervet_model::{Error, Id, LiteralKind, Result, Statement, Tag, TermParts};
use vervet_traversal::{Host, Owner};

/// Memory charge of a buffered term or statement, in bytes.
const HELD_BYTES: u64 = 128;
const LABEL_DEFAULT: &str = "vertex";

/// Adds the graph of a file to a transaction.
pub(super) fn read(host: &mut dyn Host, path: &Path, control: &Control<'_>) -> Result<()> {
    let options = LoadOptions { format: Some(Format::GraphMl), threads: 1, ..LoadOptions::default() };
    let mut buffered = BufferedTarget {
        control,
        names: HashMap::new(),
        terms: Vec::new(),
        statements: Vec::new(),
        edges: 0,
    };
    vervet_load::load(vec![Source::path(path)], &options, &mut buffered, &mut std::io::sink())?;
    let BufferedTarget { terms, statements, .. } = buffered;
    let term = |id: Id| {
        let place = usize::try_from(id.payload()).ok();
        place.and_then(|place| terms.get(place)).ok_or_else(|| Error::internal("an unknown loader term"))
    };
    let name = |id: Id, namespace: &str| -> Result<String> {
        match term(id)? {
            oxrdf::Term::NamedNode(node) => {
                Ok(iri_name(namespace, node.as_str()).unwrap_or_else(|| node.as_str().to_owned()))
            }
            other => Err(Error::internal(format!("{other} names nothing"))),
        }
    };
    // Vertices in order of first occurrence, with their labels; then statements about edges.
    let (mut order, mut labels) = (Vec::new(), HashMap::<Id, Vec<String>>::new());
    let mut about: HashMap<Id, Vec<(Id, Id)>> = HashMap::new();
    for statement in &statements {
        if statement.subject.tag() == Tag::Edge {
            about.entry(statement.subject).or_default().push((statement.predicate, statement.object));
            continue;
        }
        let ends = [Some(statement.subject), Some(statement.object).filter(|_| statement.edge.is_bound())];
        for vertex in ends.into_iter().flatten() {
            labels.entry(vertex).or_insert_with(|| {
                order.push(vertex);
                Vec::new()
            });
        }
        if term(statement.predicate)?.to_string() == format!("<{RDF_TYPE}>") {
            labels.entry(statement.subject).or_default().push(name(statement.object, LABEL_NAMESPACE)?);
        }
    }
    let mut vertices: HashMap<Id, u64> = HashMap::with_capacity(order.len());
    for vertex in order {
        control.check()?;
        let own = labels.remove(&vertex).unwrap_or_default();
        let label = if own.is_empty() { LABEL_DEFAULT.to_owned() } else { own.join("::") };
        let id = Value::text(name(vertex, VERTEX_NAMESPACE)?);
        vertices.insert(vertex, host.add_vertex(Some(&id), &label)?);
    }
    let known = |id: Id| vertices.get(&id).copied().ok_or_else(|| Error::internal("a vertex was not added"));
    for statement in statements {
        control.check()?;
        let Statement { subject, predicate, object, edge, .. } = statement;
        if subject.tag() == Tag::Edge || term(predicate)?.to_string() == format!("<{RDF_TYPE}>") {
            continue;
        }
        let key = name(predicate, KEY_NAMESPACE)?;
        if !edge.is_bound() {
            if let oxrdf::Term::Literal(value) = term(object)? {
                host.put_vertex_property(known(subject)?, &key, value, Cardinality::Single)?;
            }
            continue;
        }
        let (mut id, mut properties) = (None, Vec::new());
        for (predicate, object) in about.remove(&edge).unwrap_or_default() {
            let oxrdf::Term::Literal(value) = term(object)? else { continue };
            match term(predicate)? {
                oxrdf::Term::NamedNode(node) if node.as_str() == EDGE_ID => {
                    id = Some(Value::text(value.value()));
                }
                _ => properties.push((name(predicate, KEY_NAMESPACE)?, value)),
            }
        }
        let added = host.add_edge(known(subject)?, &key, known(object)?, id.as_ref())?;
        let mut owner = Owner::Edge(added);
        for (key, value) in properties {
            owner = host.put_property(owner, &key, value)?;
        }
    }
    Ok(())
}

/// Buffers terms and statements until the file has been read to its end.
struct BufferedTarget<'a> {
    control: &'a Control<'a>,
    names: HashMap<oxrdf::Term, Id>,
    terms: Vec<oxrdf::Term>,
    statements: Vec<Statement>,
    edges: u64,
}

impl BufferedTarget<'_> {
    fn intern(&mut self, term: oxrdf::Term) -> Result<Id> {
        if let Some(id) = self.names.get(&term) {
            return Ok(*id);
        }
        self.control.grow(2 * HELD_BYTES)?;
        let number = self.terms.len() as u64;
        let id = if term.is_literal() { Id::literal(number) } else { Id::vertex(number) };
        self.terms.push(term.clone());
        self.names.insert(term, id);
        Ok(id)
    }
}

impl Target for BufferedTarget<'_> {
    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        self.intern(oxrdf::NamedNode::new_unchecked(iri).into())
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.intern(oxrdf::BlankNode::new_unchecked(label).into())
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        self.intern(TermParts::Literal { head: value, tail: "", kind }.to_term())
    }

    fn next_edge(&mut self) -> Result<Id> {
        self.edges += 1;
        Ok(Id::edge(self.edges - 1))
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        let statement = |&[subject, predicate, object]: &[Id; 3]| Statement {
            subject,
            predicate,
            object,
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        };
        let statements: Vec<Statement> = triples.iter().map(statement).collect();
        self.add(&statements)
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.control.check()?;
        self.control.grow(HELD_BYTES * statements.len() as u64)?;
        self.statements.extend_from_slice(statements);
        Ok(())
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        self.statements.retain_mut(each);
        Ok(())
    }
}
