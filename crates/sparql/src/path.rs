//! Property paths: parsing to [`Path`], and translation to patterns.
//!
//! A sequence becomes patterns joined on a new variable, an alternative a union, a negated property set a
//! pattern with a condition on its predicate (SPARQL 1.1 §18.2.2.4). Closures (`*`, `+`, `?`) remain paths.

use crate::QueryError;
use crate::lexer::Token;
use crate::parser::Parser;
use crate::triples::Sink;
use oxrdf::NamedNode;
use oxrdf::vocab::rdf;
use vervet_algebra::{Expression, Node, Path, PathPattern, Slot};

impl Parser<'_, '_> {
    pub(crate) fn path(&mut self) -> Result<Path, QueryError> {
        let mut all = vec![self.path_sequence()?];
        while self.eat(Token::Pipe)? {
            all.push(self.path_sequence()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Path::Alternative(all) })
    }

    fn path_sequence(&mut self) -> Result<Path, QueryError> {
        let mut all = vec![self.path_element()?];
        while self.eat(Token::Slash)? {
            all.push(self.path_element()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Path::Sequence(all) })
    }

    fn path_element(&mut self) -> Result<Path, QueryError> {
        if self.eat(Token::Caret)? {
            return Ok(Path::Inverse(Box::new(self.path_closure()?)));
        }
        self.path_closure()
    }

    /// Parses a primary path and its modifier.
    fn path_closure(&mut self) -> Result<Path, QueryError> {
        let path = match self.ahead.token {
            Token::ParenthesisOpen => {
                self.advance()?;
                let path = self.nested(Self::path)?;
                self.expect(Token::ParenthesisClose, "/, | or )")?;
                path
            }
            Token::Not => {
                self.advance()?;
                self.negated_set()?
            }
            _ => Path::Predicate(self.path_predicate()?),
        };
        let closure = match self.ahead.token {
            Token::Star => Path::ZeroOrMore,
            Token::Plus if !self.signed_number() => Path::OneOrMore,
            Token::Question => Path::ZeroOrOne,
            _ => return Ok(path),
        };
        self.advance()?;
        Ok(closure(Box::new(path)))
    }

    fn path_predicate(&mut self) -> Result<NamedNode, QueryError> {
        match self.ahead.token {
            Token::Iri | Token::Name => self.iri(),
            Token::Word if self.spelled(self.ahead) == "a" => {
                self.advance()?;
                Ok(rdf::TYPE.into_owned())
            }
            _ => Err(self.expected("a predicate")),
        }
    }

    /// Parses a negated property set after `!`: a predicate, or several in parentheses, each forwards or
    /// backwards.
    fn negated_set(&mut self) -> Result<Path, QueryError> {
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        let mut one = |parser: &mut Self| {
            let list = if parser.eat(Token::Caret)? { &mut backward } else { &mut forward };
            list.push(parser.path_predicate()?);
            Ok(())
        };
        if !self.eat(Token::ParenthesisOpen)? {
            one(self)?;
        } else if !self.eat(Token::ParenthesisClose)? {
            loop {
                one(self)?;
                if !self.eat(Token::Pipe)? {
                    break;
                }
            }
            self.expect(Token::ParenthesisClose, "| or )")?;
        }
        let back = |backward| Path::Inverse(Box::new(Path::Except(backward)));
        Ok(match (forward.is_empty(), backward.is_empty()) {
            (_, true) => Path::Except(forward),
            (true, false) => back(backward),
            (false, false) => Path::Alternative(vec![Path::Except(forward), back(backward)]),
        })
    }

    /// Translates a path into patterns and nodes of `sink`.
    pub(crate) fn emit_path(
        &mut self,
        subject: Slot,
        path: &Path,
        object: Slot,
        sink: &mut Sink,
    ) -> Result<(), QueryError> {
        self.path_pattern()?;
        match path {
            Path::Predicate(iri) => {
                let pattern = self.pattern(subject, Slot::Constant(iri.clone().into()), object);
                sink.patterns.push(pattern);
            }
            Path::Except(predicates) => {
                let predicate = self.new_variable("")?;
                let pattern = self.pattern(subject, Slot::Variable(predicate), object);
                let any = Node::Patterns(vec![pattern]);
                sink.nodes.push(if predicates.is_empty() {
                    any
                } else {
                    let these = predicates.iter().map(|iri| Expression::Constant(iri.clone().into()));
                    let is_one = Expression::In(Box::new(Expression::Variable(predicate)), these.collect());
                    Node::Filter { input: Box::new(any), condition: Expression::Not(Box::new(is_one)) }
                });
            }
            Path::Inverse(path) => self.emit_path(object, path, subject, sink)?,
            Path::Sequence(parts) => {
                let mut from = subject;
                for (i, part) in parts.iter().enumerate() {
                    let to = match i + 1 == parts.len() {
                        true => object.clone(),
                        false => Slot::Variable(self.new_variable("")?),
                    };
                    self.emit_path(from, part, to.clone(), sink)?;
                    from = to;
                }
            }
            Path::Alternative(parts) => {
                let mut branches = Vec::with_capacity(parts.len());
                for part in parts {
                    let mut branch = Sink::default();
                    self.emit_path(subject.clone(), part, object.clone(), &mut branch)?;
                    branches.push(self.joined(branch)?);
                }
                sink.nodes.push(Node::Union(branches));
            }
            Path::ZeroOrOne(_) | Path::ZeroOrMore(_) | Path::OneOrMore(_) => {
                let graphs = vec![self.graph.clone()];
                sink.nodes.push(Node::Path(PathPattern { subject, path: path.clone(), object, graphs }));
            }
        }
        Ok(())
    }
}
