//! Groups: `{ ... }` and what stands in them.
//!
//! The elements of a group are joined in the order of the text, except that its filters apply to the whole
//! group. A filter sees what the group binds and nothing else (SPARQL 1.1 §18.2.2.6): everything else it
//! mentions becomes `Unbound` here, when the group ends.

use crate::QueryError;
use crate::exists::Place;
use crate::lexer::Token;
use crate::parser::Parser;
use crate::triples::Sink;
use crate::walk::{VariableSet, certain, filter, join, mark_possible};
use vervet_algebra::{Expression, Node, Variable};

/// A group whose filters have not been applied yet: those of an `OPTIONAL` are conditions of the left join.
struct Open<'a> {
    node: Node,
    filters: Vec<Condition<'a>>,
}

/// A filter of a group.
enum Condition<'a> {
    Read(Expression),
    /// It has patterns, which are read when it is known what the group binds.
    At(Place<'a>),
}

impl<'a> Parser<'a, '_> {
    /// A group with its filters applied.
    pub(crate) fn group(&mut self) -> Result<Node, QueryError> {
        let Open { node, filters } = self.nested(Self::open_group)?;
        if filters.is_empty() {
            return Ok(node);
        }
        let readable = self.readable(&node);
        let filters = self.conditions(filters, &readable, certain(&node))?;
        Ok(filter(node, filters))
    }

    /// The filters of a group, for rows that may bind `readable` and bind `certain`.
    fn conditions(
        &mut self,
        filters: Vec<Condition<'a>>,
        readable: &VariableSet,
        mut certain: VariableSet,
    ) -> Result<Vec<Expression>, QueryError> {
        certain.union(&self.outer_certain);
        let mut all = Vec::with_capacity(filters.len());
        for filter in filters {
            let mut condition = match filter {
                Condition::Read(condition) => condition,
                Condition::At(place) => {
                    let (readable, certain) = (readable.clone(), certain.clone());
                    self.at_place(place, |parser| parser.reading_exists(readable, certain, Self::constraint))?
                }
            };
            Self::restrict(&mut condition, readable);
            all.push(condition);
        }
        Ok(all)
    }

    fn open_group(&mut self) -> Result<Open<'a>, QueryError> {
        self.expect(Token::BraceOpen, "{")?;
        self.labels.end_pattern();
        let mut open = Open { node: Node::unit(), filters: Vec::new() };
        if self.at_keyword("SELECT") {
            open.node = self.sub_select()?;
            self.expect(Token::BraceClose, "}")?;
        } else {
            self.elements(&mut open)?;
        }
        self.labels.end_pattern();
        open.node = self.anchored(open.node)?;
        Ok(open)
    }

    /// Everything up to the closing brace.
    fn elements(&mut self, open: &mut Open<'a>) -> Result<(), QueryError> {
        let mut sink = Sink::default();
        let mut dot_allowed = false;
        loop {
            if self.at_subject() {
                self.triples_block(&mut sink)?;
                dot_allowed = false;
                if self.at_subject() {
                    return Err(self.expected(". before the next triple"));
                }
                continue;
            }
            if self.ahead.token == Token::Dot && dot_allowed {
                self.advance()?;
                dot_allowed = false;
                continue;
            }
            if self.eat_keyword("FILTER")? {
                let place = self.place();
                let (condition, skipped) = self.skipping_exists(Self::constraint)?;
                open.filters.push(if skipped { Condition::At(place) } else { Condition::Read(condition) });
                dot_allowed = true;
                continue;
            }
            // A filter does not end a basic graph pattern; all else does.
            let triples = self.joined(std::mem::take(&mut sink))?;
            open.node = join(std::mem::replace(&mut open.node, Node::unit()), triples);
            self.labels.end_pattern();
            if self.eat(Token::BraceClose)? {
                return Ok(());
            }
            let left = std::mem::replace(&mut open.node, Node::unit());
            open.node = self.element(left)?;
            dot_allowed = true;
        }
    }

    fn element(&mut self, left: Node) -> Result<Node, QueryError> {
        if self.ahead.token == Token::BraceOpen {
            let right = self.group_or_union()?;
            return Ok(join(left, right));
        }
        let start = self.ahead;
        match self.keyword_ahead() {
            Some("OPTIONAL") => {
                self.advance()?;
                self.optional(left)
            }
            Some("MINUS") => {
                self.advance()?;
                self.minus(left)
            }
            Some("BIND") => {
                self.advance()?;
                self.bind(left)
            }
            Some("VALUES") => {
                self.advance()?;
                let values = self.data_block()?;
                Ok(join(left, values))
            }
            Some("GRAPH") => {
                self.advance()?;
                let right = self.graph_group()?;
                Ok(join(left, right))
            }
            Some("SERVICE") => {
                self.advance()?;
                let right = self.service()?;
                Ok(join(left, right))
            }
            Some("LATERAL") => Err(self.unsupported(start, "LATERAL is")),
            _ => Err(self.expected("a triple, FILTER, OPTIONAL, another part of a group, or }")),
        }
    }

    fn group_or_union(&mut self) -> Result<Node, QueryError> {
        let first = self.group()?;
        if !self.at_keyword("UNION") {
            return Ok(first);
        }
        let mut branches = vec![first];
        while self.eat_keyword("UNION")? {
            branches.push(self.group()?);
        }
        Ok(Node::Union(branches))
    }

    fn optional(&mut self, left: Node) -> Result<Node, QueryError> {
        self.link()?;
        let left = self.anchored(left)?;
        let Open { node: right, filters } = self.nested(Self::open_group)?;
        let condition = if filters.is_empty() {
            None
        } else {
            let mut readable = self.readable(&left);
            mark_possible(&right, self.graph_variable(), &mut readable);
            let mut all = certain(&left);
            all.union(&certain(&right));
            Some(crate::walk::conjunction(self.conditions(filters, &readable, all)?))
        };
        Ok(Node::LeftJoin { left: Box::new(left), right: Box::new(right), condition })
    }

    /// The right side of a minus has a table of names of its own: what it binds is never seen. Only names
    /// that the left side may bind mean the same on both sides, and those that have values before anything.
    fn minus(&mut self, left: Node) -> Result<Node, QueryError> {
        self.link()?;
        let start = self.ahead;
        let left = self.anchored(left)?;
        let given: VariableSet = self.outer().collect();
        let scope = self.scope.iter().filter(|(_, variable)| given.contains(**variable));
        let scope = scope.map(|(name, variable)| (*name, *variable)).collect();
        let outer = std::mem::replace(&mut self.scope, scope);
        let right = self.group();
        let inner = std::mem::replace(&mut self.scope, outer);
        let mut right = right?;
        let left_set = self.readable(&left);
        let pairs: Vec<(Variable, Variable)> = inner
            .iter()
            .filter_map(|(name, variable)| Some((*variable, *self.scope.get(name)?)))
            .filter(|(_, shared)| left_set.contains(*shared))
            .collect();
        right.rename(&pairs);
        if let Some(graph) = self.graph_variable() {
            // Both sides bind the graph in our algebra and neither does in SPARQL's: it must not decide.
            let mut right_set = self.visible(&right);
            let mut left_set = left_set;
            left_set.remove(graph);
            right_set.remove(graph);
            let everywhere = (certain(&left), certain(&right));
            let shared =
                |variable: &Variable| everywhere.0.contains(*variable) && everywhere.1.contains(*variable);
            if !pairs.iter().any(|(_, to)| *to != graph && shared(to)) {
                if left_set.is_disjoint(&right_set) {
                    return Ok(left);
                }
                return Err(self.unsupported(
                    start,
                    "MINUS inside GRAPH with a variable, on variables that may be unbound, is",
                ));
            }
        }
        Ok(Node::Minus { left: Box::new(left), right: Box::new(right) })
    }

    fn bind(&mut self, left: Node) -> Result<Node, QueryError> {
        self.link()?;
        self.expect(Token::ParenthesisOpen, "(")?;
        let mut expression = self.with_exists(|parser| parser.readable(&left), Self::expression)?;
        self.expect_keyword("AS")?;
        let at = self.ahead;
        let variable = self.variable()?;
        self.expect(Token::ParenthesisClose, ")")?;
        let readable = self.readable(&left);
        if readable.contains(variable) {
            let message = format!("BIND cannot give {} a second value", self.spelled(at));
            return Err(self.error(at, message));
        }
        if self.graph_variable() == Some(variable) {
            return Err(self.unsupported(at, "BIND to the variable of the GRAPH around it is"));
        }
        Self::restrict(&mut expression, &readable);
        Ok(Node::Extend { input: Box::new(left), variable, expression })
    }

    /// The variables and rows of `VALUES`.
    pub(crate) fn data_block(&mut self) -> Result<Node, QueryError> {
        let mut variables = Vec::new();
        let mut seen = VariableSet::default();
        let single = self.ahead.token == Token::Variable;
        if !single {
            self.expect(Token::ParenthesisOpen, "a variable or (")?;
        }
        while self.ahead.token == Token::Variable {
            let at = self.ahead;
            let variable = self.variable()?;
            if seen.contains(variable) {
                return Err(self.error(at, format!("{} is already a column", self.spelled(at))));
            }
            seen.insert(variable);
            variables.push(variable);
            if single {
                break;
            }
        }
        if !single {
            self.expect(Token::ParenthesisClose, "a variable or )")?;
        }
        self.expect(Token::BraceOpen, "{")?;
        let mut rows = Vec::new();
        while !self.eat(Token::BraceClose)? {
            let start = self.ahead;
            let mut row = Vec::with_capacity(variables.len());
            if single {
                row.push(self.data_value()?);
            } else {
                self.expect(Token::ParenthesisOpen, "( or }")?;
                while !self.eat(Token::ParenthesisClose)? {
                    row.push(self.data_value()?);
                }
            }
            if row.len() != variables.len() {
                let message = format!("this row has {} values for {} variables", row.len(), variables.len());
                return Err(self.error(start, message).with_hint("UNDEF stands for no value"));
            }
            rows.push(row);
        }
        Ok(Node::Values { variables, rows })
    }

    fn data_value(&mut self) -> Result<Option<oxrdf::Term>, QueryError> {
        if self.eat_keyword("UNDEF")? {
            return Ok(None);
        }
        self.ground_term().map(Some)
    }
}
