//! Triples: property lists, blank nodes, collections, reifiers.

use crate::QueryError;
use crate::lexer::Token;
use crate::parser::Parser;
use crate::walk::join;
use oxrdf::vocab::rdf;
use rustc_hash::FxHashMap;
use vervet_algebra::{GraphSlot, Node, Path, Pattern, Slot, Variable};

/// Labels of blank nodes. A label belongs to one basic graph pattern.
#[derive(Default)]
pub(crate) struct Labels<'a> {
    /// The number of the current basic graph pattern.
    current: u32,
    known: FxHashMap<&'a str, (u32, Variable)>,
}

impl Labels<'_> {
    /// A basic graph pattern ends here.
    pub(crate) fn end_pattern(&mut self) {
        self.current = self.current.wrapping_add(1);
    }
}

/// What triples have become so far.
#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) patterns: Vec<Pattern>,
    /// What paths have become, other than patterns.
    pub(crate) nodes: Vec<Node>,
    /// No paths here.
    template: bool,
}

impl Sink {
    /// For triples without paths.
    pub(crate) fn template() -> Self {
        Self { template: true, ..Self::default() }
    }

    /// All of it joined. A plain pattern beside one for the edges of the same statement says nothing new.
    pub(crate) fn into_node(mut self) -> Node {
        let edges: Vec<Pattern> = self.patterns.iter().filter(|p| p.edge.is_some()).cloned().collect();
        if !edges.is_empty() {
            self.patterns.retain(|pattern| {
                pattern.edge.is_some()
                    || !edges.iter().any(|edge| {
                        (&edge.subject, &edge.predicate, &edge.object, &edge.graph)
                            == (&pattern.subject, &pattern.predicate, &pattern.object, &pattern.graph)
                    })
            });
        }
        self.nodes.into_iter().fold(Node::Patterns(self.patterns), join)
    }
}

pub(crate) enum Verb {
    Simple(Slot),
    Path(Path),
}

impl<'a> Parser<'a, '_> {
    /// The triples from here to something that is not one, or to the end of a group.
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

    /// `{ triples }` of `CONSTRUCT`, with blank nodes for blank nodes.
    pub(crate) fn template(&mut self) -> Result<Vec<Pattern>, QueryError> {
        let patterns = self.template_as_pattern()?;
        // The same label in the pattern is another blank node, and there it may be used again.
        self.labels = Labels::default();
        Ok(patterns)
    }

    /// `{ triples }` without paths.
    pub(crate) fn template_as_pattern(&mut self) -> Result<Vec<Pattern>, QueryError> {
        let mut sink = Sink::template();
        self.expect(Token::BraceOpen, "{")?;
        self.triples_block(&mut sink)?;
        self.expect(Token::BraceClose, "a triple or }")?;
        Ok(sink.patterns)
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
        if self.ahead.token == Token::TripleTermOpen {
            return self.reifies(subject, verb, sink);
        }
        let (object, _) = self.node(sink)?;
        if !matches!(self.ahead.token, Token::Tilde | Token::AnnotationOpen) {
            return self.emit(subject, verb, object, sink);
        }
        let Verb::Simple(predicate) = verb else {
            return Err(self.error(self.ahead, "a property path cannot have a reifier"));
        };
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

    /// `subject rdf:reifies <<( s p o )>>`: the subject is the edge of that statement.
    fn reifies(&mut self, subject: &Slot, verb: &Verb, sink: &mut Sink) -> Result<(), QueryError> {
        let is_reifies =
            matches!(verb, Verb::Simple(Slot::Constant(oxrdf::Term::NamedNode(iri))) if *iri == rdf::REIFIES);
        if !is_reifies {
            return Err(self.unsupported(self.ahead, "triple terms other than as objects of rdf:reifies are"));
        }
        self.refuse_reified(self.ahead)?;
        self.advance()?;
        let pattern = self.inner_triple(sink)?;
        self.expect(Token::TripleTermClose, ")>>")?;
        self.emit_pattern(Pattern { edge: Some(subject.clone()), ..pattern }, sink);
        Ok(())
    }

    /// `~ e`, `~`, or nothing before an annotation block.
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

    /// A subject or object inside a reified triple: no collections, no property lists.
    fn inner_node(&mut self, sink: &mut Sink) -> Result<Slot, QueryError> {
        let start = self.ahead;
        match self.node(sink)? {
            (_, true) if start.token != Token::ReifiedOpen => {
                Err(self.error(start, "expected a term without triples of its own"))
            }
            _ if start.token == Token::ParenthesisOpen => Err(self.error(start, "a list cannot stand here")),
            (slot, _) => Ok(slot),
        }
    }

    /// A subject or object, and whether it may stand alone because it says something itself.
    fn node(&mut self, sink: &mut Sink) -> Result<(Slot, bool), QueryError> {
        match self.ahead.token {
            Token::Variable => Ok((Slot::Variable(self.variable()?), false)),
            Token::Iri | Token::Name => Ok((Slot::Constant(self.iri()?.into()), false)),
            Token::Blank => Ok((self.labelled_blank()?, false)),
            Token::BracketOpen => self.nested(|parser| parser.bracket(sink)),
            Token::ParenthesisOpen => self.nested(|parser| parser.collection(sink)),
            Token::ReifiedOpen => self.nested(|parser| Ok((parser.reified(sink)?, true))),
            Token::TripleTermOpen => {
                Err(self.unsupported(self.ahead, "triple terms other than as objects of rdf:reifies are"))
            }
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
                let hint = "use a variable to speak of the same thing in two places";
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

    /// `<< s p o ~ e >>` stands for `e`.
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
                self.emit_pattern(pattern, sink);
                Ok(())
            }
            Verb::Path(path) => self.emit_path(subject.clone(), path, object, sink),
        }
    }

    pub(crate) fn pattern(&self, subject: Slot, predicate: Slot, object: Slot) -> Pattern {
        Pattern { subject, predicate, object, graph: self.graph.clone(), edge: None, parallel: false }
    }

    /// A pattern that any statement of the current graph matches.
    pub(crate) fn any_statement(&mut self) -> Result<Pattern, QueryError> {
        let subject = Slot::Variable(self.new_variable("")?);
        let predicate = Slot::Variable(self.new_variable("")?);
        let object = Slot::Variable(self.new_variable("")?);
        debug_assert!(self.graph != GraphSlot::Default, "the default graph is always there");
        Ok(self.pattern(subject, predicate, object))
    }
}
