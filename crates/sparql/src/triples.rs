//! Parser of triples: property lists, blank nodes, collections, reifiers.

use crate::QueryError;
use crate::analysis::join;
use crate::lexer::Token;
use crate::parser::Parser;
use crate::triple_term_patterns;
use foldhash::HashMap as SeededMap;
use oxrdf::vocab::rdf;
use oxrdf::{Term, Triple};
use std::collections::HashSet;
use vervet_algebra::{
    Expression, Function, GraphSlot, Node, Path, Pattern, Slot, TripleTemplate, Variable, VariableSet,
};

/// Blank node labels. The scope of a label is one basic graph pattern.
#[derive(Default)]
pub(crate) struct BlankNodeLabels<'a> {
    /// The number of the current basic graph pattern.
    current: u32,
    known: SeededMap<&'a str, (u32, Variable)>,
}

impl BlankNodeLabels<'_> {
    /// Ends the current basic graph pattern.
    pub(crate) fn end_pattern(&mut self) {
        self.current = self.current.wrapping_add(1);
    }
}

/// Output of the triples parsed so far.
#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) patterns: Vec<Pattern>,
    /// Nodes generated for paths, other than patterns.
    pub(crate) nodes: Vec<Node>,
    /// Triple terms with variables; nested ones precede those that contain them.
    pub(crate) triples: Vec<TripleTemplate>,
    /// Whether this is a template, in which paths are not allowed.
    template: bool,
}

impl Sink {
    /// A sink for a template.
    pub(crate) fn template() -> Self {
        Self { template: true, ..Self::default() }
    }

    /// Joins all output; `outer`: outer variables. Drops a plain pattern if a pattern for the edges of the
    /// same statement implies it.
    fn into_node(mut self, outer: &VariableSet) -> Node {
        let of_edges: HashSet<Pattern> = (self.patterns.iter())
            .filter(|pattern| pattern.edge.is_some())
            .map(|pattern| Pattern { edge: None, ..pattern.clone() })
            .collect();
        if !of_edges.is_empty() {
            self.patterns.retain(|pattern| pattern.edge.is_some() || !of_edges.contains(pattern));
        }
        if self.triples.is_empty() {
            return self.nodes.into_iter().fold(Node::Patterns(self.patterns), join);
        }
        triple_term_patterns::with_triples(self.patterns, self.nodes, &self.triples, outer)
    }
}

pub(crate) enum Verb {
    Simple(Slot),
    Path(Path),
}

fn is_reifies(verb: &Verb) -> bool {
    matches!(verb, Verb::Simple(Slot::Constant(Term::NamedNode(iri))) if *iri == rdf::REIFIES)
}

impl<'a> Parser<'a, '_> {
    /// Parses triples up to another element or the end of the group.
    pub(crate) fn triples_block(&mut self, sink: &mut Sink) -> Result<(), QueryError> {
        while self.at_subject() {
            self.triples_same_subject(sink)?;
            if !self.eat(Token::Dot)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether a triple starts here.
    pub(crate) fn at_subject(&self) -> bool {
        let token = self.ahead.token;
        matches!(
            token,
            Token::Variable
                | Token::Iri
                | Token::Name
                | Token::Blank
                | Token::BracketOpen
                | Token::ParenthesisOpen
        ) || matches!(token, Token::ReifiedOpen | Token::TripleTermOpen)
            || self.at_literal()
    }

    /// Parses `{ triples }` of `CONSTRUCT`; blank nodes remain blank nodes.
    pub(crate) fn template(&mut self) -> Result<(Vec<Pattern>, Vec<TripleTemplate>), QueryError> {
        let sink = self.template_as_pattern()?;
        let template = self.as_template(sink.patterns, sink.triples)?;
        // Template and pattern have separate label scopes.
        self.labels = BlankNodeLabels::default();
        Ok(template)
    }

    /// Parses `{ triples }` without paths, as template and pattern.
    pub(crate) fn template_as_pattern(&mut self) -> Result<Sink, QueryError> {
        let mut sink = Sink::template();
        self.expect(Token::BraceOpen, "{")?;
        self.triples_block(&mut sink)?;
        self.expect(Token::BraceClose, "a triple or }")?;
        Ok(sink)
    }

    /// Rejects `rdf:reifies` of a variable in a text that is both template and pattern: in a pattern, edges
    /// represent it, and a template cannot contain edges.
    pub(crate) fn refuse_reifies(&self, sink: &Sink) -> Result<(), QueryError> {
        let reifies = |pattern: &Pattern| {
            let is_reifies =
                matches!(&pattern.predicate, Slot::Constant(Term::NamedNode(iri)) if *iri == rdf::REIFIES);
            is_reifies && pattern.object.variable().is_some()
        };
        if sink.patterns.iter().any(reifies) {
            let what = "rdf:reifies of a variable where one text is template and pattern is";
            let hint = "write both: CONSTRUCT { ... } WHERE { ... }";
            return Err(self.unsupported(self.ahead, what).with_hint(hint));
        }
        Ok(())
    }

    /// Joins all triples of a group.
    pub(crate) fn joined(&self, sink: Sink) -> Result<Node, QueryError> {
        if sink.triples.is_empty() {
            return Ok(sink.into_node(&VariableSet::default()));
        }
        let mut outer = VariableSet::default();
        for variable in sink.triples.iter().flat_map(|triple| &triple.parts).filter_map(Slot::variable) {
            if self.is_outer(variable)? {
                outer.insert(variable);
            }
        }
        Ok(sink.into_node(&outer))
    }

    /// Whether outer rows bind a variable that would be assigned: then its value is compared instead.
    fn is_outer(&self, variable: Variable) -> Result<bool, QueryError> {
        if !self.has_outer(variable) {
            return Ok(false);
        }
        if variable.index() < self.options.parameters.len() || self.outer_certain.contains(variable) {
            return Ok(true);
        }
        let what = "a triple term, or rdf:reifies, of a variable that the rows outside of EXISTS may leave unbound is";
        Err(self.unsupported(self.ahead, what))
    }

    fn triples_same_subject(&mut self, sink: &mut Sink) -> Result<(), QueryError> {
        let (subject, complete) = self.node(sink)?;
        if complete && !self.at_verb() {
            return Ok(());
        }
        self.property_list(&subject, sink)
    }

    fn at_verb(&self) -> bool {
        match self.ahead.token {
            Token::Variable
            | Token::Iri
            | Token::Name
            | Token::Caret
            | Token::Not
            | Token::ParenthesisOpen => true,
            Token::Word => self.spelled(self.ahead) == "a",
            _ => false,
        }
    }

    fn property_list(&mut self, subject: &Slot, sink: &mut Sink) -> Result<(), QueryError> {
        self.verb_and_objects(subject, sink)?;
        while self.eat(Token::Semicolon)? {
            if self.at_verb() {
                self.verb_and_objects(subject, sink)?;
            }
        }
        Ok(())
    }

    fn verb_and_objects(&mut self, subject: &Slot, sink: &mut Sink) -> Result<(), QueryError> {
        let verb = self.verb(sink)?;
        loop {
            self.object(subject, &verb, sink)?;
            if !self.eat(Token::Comma)? {
                return Ok(());
            }
        }
    }

    fn verb(&mut self, sink: &Sink) -> Result<Verb, QueryError> {
        if self.ahead.token == Token::Variable {
            return Ok(Verb::Simple(Slot::Variable(self.variable()?)));
        }
        if !self.at_verb() {
            return Err(self.expected("a predicate"));
        }
        let start = self.ahead;
        match self.path()? {
            Path::Predicate(iri) => Ok(Verb::Simple(Slot::Constant(iri.into()))),
            _ if sink.template => Err(self.error(start, "a template cannot have property paths")),
            path => Ok(Verb::Path(path)),
        }
    }

    fn object(&mut self, subject: &Slot, verb: &Verb, sink: &mut Sink) -> Result<(), QueryError> {
        if is_reifies(verb) && self.ahead.token == Token::TripleTermOpen {
            return self.reifies(subject, sink);
        }
        let before = sink.triples.len();
        let (object, _) = self.node(sink)?;
        if matches!(verb, Verb::Path(_)) {
            // Operators around the whole group match the ends of the path.
            (before * 4..sink.triples.len() * 4).try_for_each(|_| self.link())?;
        }
        if !matches!(self.ahead.token, Token::Tilde | Token::AnnotationOpen) {
            return self.emit(subject, verb, object, sink);
        }
        let Verb::Simple(predicate) = verb else {
            return Err(self.error(self.ahead, "a property path cannot have a reifier"));
        };
        if sink.template && self.template.is_none() {
            // In a constructed graph, a reifier does not imply that its statement is asserted.
            self.emit(subject, verb, object.clone(), sink)?;
        }
        while matches!(self.ahead.token, Token::Tilde | Token::AnnotationOpen) {
            let edge = self.reifier()?;
            let pattern = self.pattern(subject.clone(), predicate.clone(), object.clone());
            self.emit_pattern(Pattern { edge: Some(edge.clone()), ..pattern }, sink);
            if self.eat(Token::AnnotationOpen)? {
                self.nested(|parser| parser.property_list(&edge, sink))?;
                self.expect(Token::AnnotationClose, "; or |}")?;
            }
        }
        Ok(())
    }

    /// `subject rdf:reifies <<( s p o )>>`: the subject becomes the edge of the statement.
    fn reifies(&mut self, subject: &Slot, sink: &mut Sink) -> Result<(), QueryError> {
        self.refuse_reified(self.ahead)?;
        self.advance()?;
        let pattern = self.inner_triple(sink)?;
        self.expect(Token::TripleTermClose, ")>>")?;
        self.emit_pattern(Pattern { edge: Some(subject.clone()), ..pattern }, sink);
        Ok(())
    }

    /// Parses `~ e`, `~`, or an implicit reifier before an annotation block.
    fn reifier(&mut self) -> Result<Slot, QueryError> {
        let start = self.ahead;
        if self.eat(Token::Tilde)? {
            match self.ahead.token {
                Token::Variable => return Ok(Slot::Variable(self.variable()?)),
                Token::Iri | Token::Name => return Ok(Slot::Constant(self.iri()?.into())),
                Token::Blank => return self.labelled_blank(),
                Token::BracketOpen => {
                    self.advance()?;
                    self.expect(Token::BracketClose, "]")?;
                }
                _ => {}
            }
        }
        self.anonymous(start)
    }

    /// The `s p o` of `<< s p o >>` and `<<( s p o )>>`.
    fn inner_triple(&mut self, sink: &mut Sink) -> Result<Pattern, QueryError> {
        let subject = self.inner_node(sink)?;
        let predicate = match self.ahead.token {
            Token::Variable => Slot::Variable(self.variable()?),
            Token::Word if self.spelled(self.ahead) == "a" => {
                self.advance()?;
                Slot::Constant(rdf::TYPE.into_owned().into())
            }
            _ => Slot::Constant(self.iri()?.into()),
        };
        let object = self.inner_node(sink)?;
        Ok(self.pattern(subject, predicate, object))
    }

    /// Parses `<<( s p o )>>` as a subject or object: a constant, or a variable defined in [`Sink::triples`].
    fn triple_term(&mut self, sink: &mut Sink) -> Result<Slot, QueryError> {
        self.advance()?;
        if self.ahead.token == Token::ReifiedOpen {
            return Err(self.expected("a term"));
        }
        let Pattern { subject, predicate, object, .. } = self.inner_triple(sink)?;
        self.expect(Token::TripleTermClose, ")>>")?;
        match (&subject, &predicate, &object) {
            (
                Slot::Constant(Term::NamedNode(subject)),
                Slot::Constant(Term::NamedNode(predicate)),
                Slot::Constant(object),
            ) if !object.is_blank_node() => {
                let (subject, predicate) = (subject.clone().into(), predicate.clone());
                Ok(Slot::Constant(Triple { subject, predicate, object: object.clone() }.into()))
            }
            // Blank nodes among its components belong to the template.
            _ if let Some(template) = &mut self.template => Ok(template.triple([subject, predicate, object])),
            _ => {
                let variable = self.new_variable("")?;
                sink.triples.push(TripleTemplate { variable, parts: [subject, predicate, object] });
                Ok(Slot::Variable(variable))
            }
        }
    }

    /// Parses a subject or object within a reified triple: no collections, no property lists.
    fn inner_node(&mut self, sink: &mut Sink) -> Result<Slot, QueryError> {
        let start = self.ahead;
        match self.node(sink)? {
            (_, true) if start.token != Token::ReifiedOpen => {
                Err(self.error(start, "expected a term without nested triples"))
            }
            _ if start.token == Token::ParenthesisOpen => Err(self.error(start, "a list is not valid here")),
            (slot, _) => Ok(slot),
        }
    }

    /// Parses a subject or object; `true`: it may stand alone, since it contains triples.
    fn node(&mut self, sink: &mut Sink) -> Result<(Slot, bool), QueryError> {
        match self.ahead.token {
            Token::Variable => Ok((Slot::Variable(self.variable()?), false)),
            Token::Iri | Token::Name => Ok((Slot::Constant(self.iri()?.into()), false)),
            Token::Blank => Ok((self.labelled_blank()?, false)),
            Token::BracketOpen => self.nested(|parser| parser.bracket(sink)),
            Token::ParenthesisOpen => self.nested(|parser| parser.collection(sink)),
            Token::ReifiedOpen => self.nested(|parser| Ok((parser.reified(sink)?, true))),
            Token::TripleTermOpen => self.nested(|parser| Ok((parser.triple_term(sink)?, false))),
            _ if self.at_literal() => Ok((Slot::Constant(self.literal()?.into()), false)),
            _ => Err(self.expected("a variable or a term")),
        }
    }

    fn labelled_blank(&mut self) -> Result<Slot, QueryError> {
        let lexeme = self.advance()?;
        if let Some(slot) = self.template_label(lexeme)? {
            return Ok(slot);
        }
        let label = self.spelled(lexeme);
        let current = self.labels.current;
        match self.labels.known.get(label) {
            Some((pattern, variable)) if *pattern == current => Ok(Slot::Variable(*variable)),
            Some(_) => {
                let hint = "use a variable to refer to the same node in two places";
                let message = format!("the label {label} is already used in another graph pattern");
                Err(self.error(lexeme, message).with_hint(hint))
            }
            None => {
                let variable = self.new_variable("")?;
                self.labels.known.insert(label, (current, variable));
                Ok(Slot::Variable(variable))
            }
        }
    }

    /// `[]` or `[ property list ]`.
    fn bracket(&mut self, sink: &mut Sink) -> Result<(Slot, bool), QueryError> {
        let start = self.advance()?;
        let slot = self.anonymous(start)?;
        if self.eat(Token::BracketClose)? {
            return Ok((slot, false));
        }
        self.property_list(&slot, sink)?;
        self.expect(Token::BracketClose, "; or ]")?;
        Ok((slot, true))
    }

    /// `()` or `( nodes )`.
    fn collection(&mut self, sink: &mut Sink) -> Result<(Slot, bool), QueryError> {
        let start = self.advance()?;
        let nil = Slot::Constant(rdf::NIL.into_owned().into());
        if self.eat(Token::ParenthesisClose)? {
            return Ok((nil, false));
        }
        let first = Slot::Constant(rdf::FIRST.into_owned().into());
        let rest = Slot::Constant(rdf::REST.into_owned().into());
        let head = self.anonymous(start)?;
        let mut cell = head.clone();
        loop {
            let (member, _) = self.node(sink)?;
            let pattern = self.pattern(cell.clone(), first.clone(), member);
            self.emit_pattern(pattern, sink);
            if self.eat(Token::ParenthesisClose)? {
                let pattern = self.pattern(cell, rest, nil);
                self.emit_pattern(pattern, sink);
                return Ok((head, true));
            }
            let next = self.anonymous(start)?;
            let pattern = self.pattern(cell, rest.clone(), next.clone());
            self.emit_pattern(pattern, sink);
            cell = next;
        }
    }

    /// Parses `<< s p o ~ e >>`, which denotes `e`.
    fn reified(&mut self, sink: &mut Sink) -> Result<Slot, QueryError> {
        self.refuse_reified(self.ahead)?;
        self.advance()?;
        let pattern = self.inner_triple(sink)?;
        let edge = self.reifier()?;
        self.expect(Token::ReifiedClose, ">>")?;
        self.emit_pattern(Pattern { edge: Some(edge.clone()), ..pattern }, sink);
        Ok(edge)
    }

    fn emit(&mut self, subject: &Slot, verb: &Verb, object: Slot, sink: &mut Sink) -> Result<(), QueryError> {
        match verb {
            Verb::Simple(predicate) => {
                let pattern = self.pattern(subject.clone(), predicate.clone(), object);
                let of_reifiers = is_reifies(verb) && !sink.template && self.template.is_none();
                // A triple term can neither be a reifier nor name a graph.
                let is_else =
                    |object| [pattern.subject.variable(), self.graph_variable()].contains(&Some(object));
                if is_reifies(verb) && pattern.object.variable().is_some() && self.deletes() {
                    let what = "rdf:reifies of a variable in DELETE is";
                    let hint = "delete the statement with its reifier: ?s ?p ?o ~ ?edge";
                    return Err(self.unsupported(self.ahead, what).with_hint(hint));
                }
                match pattern.object.variable().filter(|object| of_reifiers && !is_else(*object)) {
                    Some(object) => sink.nodes.push(self.reified_as(pattern, object)?),
                    None => self.emit_pattern(pattern, sink),
                }
                Ok(())
            }
            Verb::Path(path) => self.emit_path(subject.clone(), path, object, sink),
        }
    }

    /// `subject rdf:reifies ?object`: the asserted statements, and for each edge the triple term of its
    /// statement.
    fn reified_as(&mut self, stated: Pattern, object: Variable) -> Result<Node, QueryError> {
        let of = [self.new_variable("")?, self.new_variable("")?, self.new_variable("")?];
        let [s, p, o] = of.map(Slot::Variable);
        let edges = Pattern { edge: Some(stated.subject.clone()), ..self.pattern(s, p, o) };
        let parts = of.into_iter().map(Expression::Variable).collect();
        let is_outer = self.is_outer(object)?;
        let variable = if is_outer { self.new_variable("")? } else { object };
        let mut edges = Node::Extend {
            input: Box::new(Node::Patterns(vec![edges])),
            variable,
            expression: Expression::Call(Function::Triple, parts),
        };
        let condition = match is_outer {
            true => {
                let [a, b] = [variable, object].map(|variable| Box::new(Expression::Variable(variable)));
                Expression::SameTerm(a, b)
            }
            // A triple term nested too deep is unbound, so it is in no solution.
            false => Expression::Bound(variable),
        };
        edges = Node::Filter { input: Box::new(edges), condition };
        Ok(Node::Union(vec![Node::Patterns(vec![stated]), edges]))
    }

    pub(crate) fn pattern(&self, subject: Slot, predicate: Slot, object: Slot) -> Pattern {
        Pattern { subject, predicate, object, graph: self.graph.clone(), edge: None, parallel: false }
    }

    /// A pattern that any statement of the current graph matches.
    pub(crate) fn any_statement(&mut self) -> Result<Pattern, QueryError> {
        let subject = Slot::Variable(self.new_variable("")?);
        let predicate = Slot::Variable(self.new_variable("")?);
        let object = Slot::Variable(self.new_variable("")?);
        debug_assert!(self.graph != GraphSlot::Default, "the default graph always exists");
        Ok(self.pattern(subject, predicate, object))
    }
}
