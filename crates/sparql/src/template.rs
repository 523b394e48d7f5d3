//! Templates of updates: the quads of `INSERT`, `DELETE` and their `DATA` forms.
//!
//! # Shape
//! The same functions parse the triples of templates and patterns. While a [`Template`] is open,
//! [`Parser::emit_pattern`] adds each triple to it directly instead of collecting patterns, so a block with a
//! million triples stores each distinct term once and 28 bytes for each triple. Blank nodes have numbers
//! local to the template (and are encoded as `_:N`, triple terms as `_:tN`), instead of variables, which are
//! limited to [`crate::limits::VARIABLE_COUNT_MAX`].
//! # Cost
//! Linear in the text: a hash table of terms.

use crate::QueryError;
use crate::lexer::{Lexeme, Token};
use crate::parser::Parser;
use crate::triples::Sink;
use foldhash::{HashMap as SeededMap, HashSet as SeededSet};
use oxrdf::{BlankNode, NamedNode, Term};
use vervet_algebra::{GraphSlot, Pattern, Quad, Quads, Slot, TemplateTerm, Variable};

/// Use of a template, which determines the permitted terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TemplateKind {
    InsertData,
    DeleteData,
    Insert,
    Delete,
    DeleteWhere,
}

impl TemplateKind {
    fn name(self) -> &'static str {
        match self {
            Self::InsertData => "INSERT DATA",
            Self::DeleteData => "DELETE DATA",
            Self::Insert => "INSERT",
            Self::Delete => "DELETE",
            Self::DeleteWhere => "DELETE WHERE",
        }
    }

    fn has_variables(self) -> bool {
        matches!(self, Self::Insert | Self::Delete | Self::DeleteWhere)
    }

    fn inserts(self) -> bool {
        matches!(self, Self::Insert | Self::InsertData)
    }
}

/// Prefix of the label that encodes a triple term.
const TRIPLE: char = 't';

/// A template being parsed.
pub(crate) struct Template<'a> {
    kind: TemplateKind,
    terms: SeededMap<TemplateTerm, u32>,
    quads: Vec<Quad>,
    /// Numbers of blank nodes by label.
    labels: SeededMap<&'a str, u32>,
    blanks: u32,
}

impl Template<'_> {
    fn new(kind: TemplateKind) -> Self {
        Self { kind, terms: SeededMap::default(), quads: Vec::new(), labels: SeededMap::default(), blanks: 0 }
    }

    fn new_blank(&mut self) -> u32 {
        self.blanks += 1;
        self.blanks - 1
    }

    /// Adds a triple term with variables; returns its encoded slot.
    pub(crate) fn triple(&mut self, parts: [Slot; 3]) -> Slot {
        let parts = parts.map(|part| self.position(part));
        let position = self.position_of(TemplateTerm::Triple(parts));
        Slot::Constant(BlankNode::new_unchecked(format!("{TRIPLE}{position}")).into())
    }

    fn position(&mut self, slot: Slot) -> u32 {
        let term = match slot {
            Slot::Variable(variable) => TemplateTerm::Variable(variable),
            // Only `blank_slot` creates blank nodes here.
            Slot::Constant(Term::BlankNode(node)) => {
                let number = |text: &str| text.parse().expect("blank nodes of templates are numbers");
                match node.as_str().strip_prefix(TRIPLE) {
                    Some(position) => return number(position),
                    None => TemplateTerm::Blank(number(node.as_str())),
                }
            }
            Slot::Constant(term) => TemplateTerm::Constant(term),
        };
        self.position_of(term)
    }

    fn position_of(&mut self, term: TemplateTerm) -> u32 {
        let next = u32::try_from(self.terms.len()).expect("the length of texts is limited");
        *self.terms.entry(term).or_insert(next)
    }

    fn push(&mut self, pattern: Pattern) {
        let graph = match pattern.graph {
            GraphSlot::Named(node) => Some(Slot::Constant(node.into())),
            GraphSlot::Variable(variable) => Some(Slot::Variable(variable)),
            GraphSlot::Default | GraphSlot::Any => None,
        };
        let quad = Quad {
            subject: self.position(pattern.subject),
            predicate: self.position(pattern.predicate),
            object: self.position(pattern.object),
            graph: graph.map(|slot| self.position(slot)),
            edge: pattern.edge.map(|slot| self.position(slot)),
        };
        self.quads.push(quad);
    }

    fn finish(self) -> Quads {
        let mut terms = vec![TemplateTerm::Blank(0); self.terms.len()];
        for (term, position) in self.terms {
            terms[position as usize] = term;
        }
        Quads { terms, quads: self.quads }
    }
}

fn blank_slot(number: u32) -> Slot {
    Slot::Constant(BlankNode::new_unchecked(number.to_string()).into())
}

impl<'a> Parser<'a, '_> {
    /// Parses `{ quads }`; `graph` applies to triples outside of `GRAPH`.
    pub(crate) fn quads(
        &mut self,
        kind: TemplateKind,
        graph: Option<&NamedNode>,
    ) -> Result<Quads, QueryError> {
        let slot = graph.map_or(GraphSlot::Default, |graph| GraphSlot::Named(graph.clone()));
        let outer = std::mem::replace(&mut self.graph, slot);
        self.template = Some(Template::new(kind));
        let result = self.quads_of(kind);
        let template = self.template.take();
        self.graph = outer;
        result?;
        let template = template.expect("it was open");
        if kind == TemplateKind::InsertData {
            self.data_labels.extend(template.labels.keys());
        }
        Ok(template.finish())
    }

    fn quads_of(&mut self, kind: TemplateKind) -> Result<(), QueryError> {
        let mut sink = Sink::template();
        self.expect(Token::BraceOpen, "{")?;
        loop {
            self.triples_block(&mut sink)?;
            if self.eat(Token::BraceClose)? {
                return Ok(());
            }
            if !self.eat_keyword("GRAPH")? {
                return Err(self.expected("a triple, GRAPH or }"));
            }
            let slot = match self.ahead.token {
                Token::Variable => GraphSlot::Variable(self.variable()?),
                Token::Iri | Token::Name => GraphSlot::Named(self.iri()?),
                _ if kind.has_variables() => return Err(self.expected("a variable or an IRI")),
                _ => return Err(self.expected("an IRI")),
            };
            let outer = std::mem::replace(&mut self.graph, slot);
            self.expect(Token::BraceOpen, "{")?;
            let triples = self.triples_block(&mut sink);
            self.graph = outer;
            triples?;
            self.expect(Token::BraceClose, "a triple or }")?;
            self.eat(Token::Dot)?;
        }
    }

    /// Adds a parsed triple to the template or the sink.
    pub(crate) fn emit_pattern(&mut self, pattern: Pattern, sink: &mut Sink) {
        match &mut self.template {
            Some(template) => template.push(pattern),
            None => {
                if sink.patterns.is_empty() {
                    // Patterns are large, and most groups have only one.
                    sink.patterns.reserve_exact(1);
                }
                sink.patterns.push(pattern);
            }
        }
    }

    /// An unlabelled blank node at `at`.
    pub(crate) fn anonymous(&mut self, at: Lexeme) -> Result<Slot, QueryError> {
        self.refuse_blank(at)?;
        match &mut self.template {
            Some(template) => Ok(blank_slot(template.new_blank())),
            None => Ok(Slot::Variable(self.new_variable("")?)),
        }
    }

    /// The blank node of a label, if a template is open.
    pub(crate) fn template_label(&mut self, at: Lexeme) -> Result<Option<Slot>, QueryError> {
        if self.template.is_none() {
            return Ok(None);
        }
        self.refuse_blank(at)?;
        let label: &'a str = self.spelled(at);
        let reused = self.data_labels.contains(label);
        let Some(template) = &mut self.template else { return Ok(None) };
        if reused && template.kind == TemplateKind::InsertData {
            let message = format!("the label {label} is already used in an earlier INSERT DATA");
            let hint = "blank nodes are new in each operation: use another label, or one operation";
            return Err(self.error(at, message).with_hint(hint));
        }
        let number = match template.labels.get(label) {
            Some(number) => *number,
            None => {
                let number = template.new_blank();
                template.labels.insert(label, number);
                number
            }
        };
        Ok(Some(blank_slot(number)))
    }

    fn refuse_blank(&self, at: Lexeme) -> Result<(), QueryError> {
        match &self.template {
            Some(template) if !template.kind.inserts() => {
                let hint = match template.kind {
                    TemplateKind::DeleteData => "use DELETE WHERE with a variable to find what it should be",
                    _ => "use a variable",
                };
                let message = format!("{} cannot have blank nodes", template.kind.name());
                Err(self.error(at, message).with_hint(hint))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn refuse_variable(&self, at: Lexeme) -> Result<(), QueryError> {
        match &self.template {
            Some(template) if !template.kind.has_variables() => {
                let name = template.kind.name();
                let verb = if template.kind.inserts() { "INSERT" } else { "DELETE" };
                let hint = format!("use {verb} {{ ... }} WHERE {{ ... }}");
                Err(self.error(at, format!("{name} cannot have variables")).with_hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Whether a template of deletions is open.
    pub(crate) fn deletes(&self) -> bool {
        self.template.as_ref().is_some_and(|template| !template.kind.inserts())
    }

    /// Rejects `<<` at `at`: it refers to a statement without asserting it, but every edge is an asserted
    /// statement.
    pub(crate) fn refuse_reified(&self, at: Lexeme) -> Result<(), QueryError> {
        match &self.template {
            Some(template) => {
                let hint = "write the statement with its reifier: ?s ?p ?o ~ ?edge";
                let what = format!("reified triples in {} are", template.kind.name());
                Err(self.unsupported(at, &what).with_hint(hint))
            }
            None => Ok(()),
        }
    }
}

/// Blank node labels used in `INSERT DATA` so far in a request.
pub(crate) type DataLabels<'a> = SeededSet<&'a str>;

/// Drops statements with a variable that is never bound, and terms that only these contain. Insertions do not
/// require a bound reifier.
pub(crate) fn retain_bound(quads: &mut Quads, comes: bool, is_bound: &dyn Fn(Variable) -> bool) {
    let terms = &quads.terms;
    let mut made = Vec::with_capacity(terms.len());
    for term in terms {
        made.push(match term {
            TemplateTerm::Variable(variable) => is_bound(*variable),
            // Components precede their triple term.
            TemplateTerm::Triple(parts) => parts.iter().all(|part| made[*part as usize]),
            TemplateTerm::Constant(_) | TemplateTerm::Blank(_) => true,
        });
    }
    let is_made = |position: u32| made[position as usize];
    let before = quads.quads.len();
    let mut is_same = true;
    for quad in quads.quads.iter_mut().filter(|quad| comes && quad.edge.is_some_and(|edge| !is_made(edge))) {
        (quad.edge, is_same) = (None, false);
    }
    quads.quads.retain(|quad| quad.positions().all(is_made));
    if quads.quads.len() == before && is_same {
        return;
    }
    let old = std::mem::take(&mut quads.terms);
    let mut moved: Vec<Option<u32>> = vec![None; old.len()];
    for quad in &mut quads.quads {
        let positions = [&mut quad.subject, &mut quad.predicate, &mut quad.object];
        for position in positions.into_iter().chain(&mut quad.graph).chain(&mut quad.edge) {
            *position = move_term(*position, &old, &mut moved, &mut quads.terms);
        }
    }
}

/// The new position of a term; moves it with its components unless already moved. Recursion is as deep as
/// triple terms are nested in the text.
fn move_term(at: u32, old: &[TemplateTerm], moved: &mut [Option<u32>], terms: &mut Vec<TemplateTerm>) -> u32 {
    if let Some(new) = moved[at as usize] {
        return new;
    }
    let term = match &old[at as usize] {
        TemplateTerm::Triple(parts) => {
            TemplateTerm::Triple(parts.map(|part| move_term(part, old, moved, terms)))
        }
        term => term.clone(),
    };
    terms.push(term);
    let new = u32::try_from(terms.len() - 1).expect("there are fewer than before");
    moved[at as usize] = Some(new);
    new
}
