//! Parser of groups: `{ ... }` and their elements.
//!
//! The elements of a group are joined in the order of the text, and its filters apply to the whole group.
//! Only variables of the group are in scope in a filter (SPARQL 1.1 §18.2.2.6): at the end of the group, all
//! others become `Unbound`.

use crate::QueryError;
use crate::analysis::{conjunction, filter, join, mark_possible, mentioned};
use crate::exists::ParserPosition;
use crate::graph::same_term;
use crate::lexer::{Lexeme, Token};
use crate::parser::Parser;
use crate::triples::Sink;
use oxrdf::Literal;
use vervet_algebra::{Expression, Node, Variable, VariableSet};

/// A group before its filters are applied: those of an `OPTIONAL` are conditions of the left join.
struct OpenGroup<'a> {
    node: Node,
    filters: Vec<Condition<'a>>,
    /// Variables that its solutions may bind, and that all of them bind. Maintained incrementally, since each
    /// `OPTIONAL` and `BIND` of a large group reads them.
    possible: VariableSet,
    certain: VariableSet,
}

impl OpenGroup<'_> {
    /// Joins a part.
    fn join(&mut self, part: Node, graph: Option<Variable>) {
        mark_possible(&part, graph, &mut self.possible);
        self.certain.add_all(&part.certain());
        self.node = join(std::mem::replace(&mut self.node, Node::unit()), part);
    }
}

/// A filter of a group.
enum Condition<'a> {
    Read(Expression),
    /// A condition with patterns, parsed when the variables of the group are known.
    At(ParserPosition<'a>),
}

impl<'a> Parser<'a, '_> {
    /// A group with its filters applied.
    pub(crate) fn group(&mut self) -> Result<Node, QueryError> {
        let OpenGroup { node, filters, possible, certain } = self.nested(Self::open_group)?;
        if filters.is_empty() {
            return Ok(node);
        }
        let readable = self.with_outer(possible);
        let filters = self.conditions(filters, &readable, certain)?;
        Ok(filter(node, filters))
    }

    /// Parses the filters of a group, for rows that may bind `readable` and certainly bind `certain`.
    fn conditions(
        &mut self,
        filters: Vec<Condition<'a>>,
        readable: &VariableSet,
        mut certain: VariableSet,
    ) -> Result<Vec<Expression>, QueryError> {
        certain.add_all(&self.outer_certain);
        let mut all = Vec::with_capacity(filters.len());
        for filter in filters {
            let mut condition = match filter {
                Condition::Read(condition) => condition,
                Condition::At(position) => {
                    let (readable, certain) = (readable.clone(), certain.clone());
                    self.parse_at(position, |parser| {
                        parser.reading_exists(readable, certain, Self::constraint)
                    })?
                }
            };
            Self::restrict(&mut condition, readable);
            all.push(condition);
        }
        Ok(all)
    }

    fn open_group(&mut self) -> Result<OpenGroup<'a>, QueryError> {
        self.expect(Token::BraceOpen, "{")?;
        self.labels.end_pattern();
        let mut open = OpenGroup {
            node: Node::unit(),
            filters: Vec::new(),
            possible: VariableSet::default(),
            certain: VariableSet::default(),
        };
        if self.at_keyword("SELECT") {
            let node = self.sub_select()?;
            open.join(node, self.graph_variable());
            self.expect(Token::BraceClose, "}")?;
        } else {
            self.elements(&mut open)?;
        }
        self.labels.end_pattern();
        self.anchor(&mut open)?;
        Ok(open)
    }

    /// Parses all elements up to the closing brace.
    fn elements(&mut self, open: &mut OpenGroup<'a>) -> Result<(), QueryError> {
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
                let position = self.parser_position();
                let (condition, skipped) = self.skipping_exists(Self::constraint)?;
                open.filters.push(if skipped { Condition::At(position) } else { Condition::Read(condition) });
                dot_allowed = true;
                continue;
            }
            // A filter does not end a basic graph pattern; any other element does.
            let triples = self.joined(std::mem::take(&mut sink))?;
            open.join(triples, self.graph_variable());
            self.labels.end_pattern();
            if self.eat(Token::BraceClose)? {
                return Ok(());
            }
            self.element(open)?;
            dot_allowed = true;
        }
    }

    fn element(&mut self, open: &mut OpenGroup<'a>) -> Result<(), QueryError> {
        let start = self.ahead;
        let part = if self.ahead.token == Token::BraceOpen {
            self.group_or_union()?
        } else {
            let keyword = self.keyword_ahead();
            if matches!(keyword, Some("OPTIONAL" | "MINUS" | "BIND" | "VALUES" | "GRAPH" | "SERVICE")) {
                self.advance()?;
            }
            match keyword {
                Some("OPTIONAL") => return self.optional(open),
                Some("MINUS") => return self.minus(start, open),
                Some("BIND") => return self.bind(open),
                Some("VALUES") => self.data_block()?,
                Some("GRAPH") => self.graph_group()?,
                Some("SERVICE") => self.service()?,
                Some("LATERAL") => return Err(self.unsupported(start, "LATERAL is")),
                _ => return Err(self.expected("a triple, FILTER, OPTIONAL, another part of a group, or }")),
            }
        };
        open.join(part, self.graph_variable());
        Ok(())
    }

    /// Joins a group with the existence of the current graph, unless it implies that.
    fn anchor(&mut self, open: &mut OpenGroup<'a>) -> Result<(), QueryError> {
        if let Some(anchor) = self.anchor_of(&open.node)? {
            mark_possible(&anchor, self.graph_variable(), &mut open.possible);
            open.certain.add_all(&anchor.certain());
            open.node = join(anchor, std::mem::replace(&mut open.node, Node::unit()));
        }
        Ok(())
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

    fn optional(&mut self, open: &mut OpenGroup<'a>) -> Result<(), QueryError> {
        self.link()?;
        self.anchor(open)?;
        let OpenGroup { node: right, filters, possible, certain } = self.nested(Self::open_group)?;
        open.possible.add_all(&possible);
        let condition = if filters.is_empty() {
            None
        } else {
            let readable = self.with_outer(open.possible.clone());
            let mut all = open.certain.clone();
            all.add_all(&certain);
            Some(conjunction(self.conditions(filters, &readable, all)?))
        };
        let left = Box::new(std::mem::replace(&mut open.node, Node::unit()));
        open.node = Node::LeftJoin { left, right: Box::new(right), condition };
        Ok(())
    }

    /// The right side of `MINUS` has its own scope: its variables are not visible outside. Only names that
    /// the left side may bind, and outer variables, are shared between both sides.
    fn minus(&mut self, start: Lexeme, open: &mut OpenGroup<'a>) -> Result<(), QueryError> {
        self.link()?;
        self.anchor(open)?;
        let scope = self.scope.iter().filter(|(_, variable)| self.has_outer(**variable));
        let scope = scope.map(|(name, variable)| (*name, *variable)).collect();
        let outer = std::mem::replace(&mut self.scope, scope);
        let right = self.group();
        let inner = std::mem::replace(&mut self.scope, outer);
        let mut right = right?;
        let left_set = self.with_outer(open.possible.clone());
        let pairs: Vec<(Variable, Variable)> = inner
            .iter()
            .filter_map(|(name, variable)| Some((*variable, *self.scope.get(name)?)))
            .filter(|(_, shared)| left_set.contains(*shared))
            .collect();
        right.rename(&pairs);
        if let Some(graph) = self.graph_variable() {
            // Both sides bind the graph in this algebra and neither does in SPARQL's, so it must not affect
            // whether they share a variable.
            let of_right = right.certain();
            let is_shared = |variable: Variable| {
                variable != graph
                    && !self.has_outer(variable)
                    && open.certain.contains(variable)
                    && of_right.contains(variable)
            };
            if !pairs.iter().any(|(_, variable)| is_shared(*variable)) {
                return self.minus_of_graph(start, open, right);
            }
        }
        let left = Box::new(std::mem::replace(&mut open.node, Node::unit()));
        open.node = Node::Minus { left, right: Box::new(right) };
        Ok(())
    }

    /// `MINUS` within a `GRAPH` with a variable, where solutions need not share a variable besides it: an
    /// optional part on the graph, whose condition compares the shared variables, and without which a
    /// solution remains.
    fn minus_of_graph(
        &mut self,
        start: Lexeme,
        open: &mut OpenGroup<'a>,
        mut right: Node,
    ) -> Result<(), QueryError> {
        let visible = self.visible(&right);
        let mut shared: Vec<Variable> = (open.possible.iter())
            .filter(|variable| visible.contains(*variable) && !self.is_parameter(*variable))
            .collect();
        if let Some(rows) = &self.outer_rows {
            // A value from outside replaces the variable on both sides.
            shared.retain(|variable| !self.outer_certain.contains(*variable));
            if shared.iter().any(|variable| rows.contains(*variable)) {
                let what = "MINUS inside GRAPH with a variable, on variables that rows outside an EXISTS may bind, is";
                return Err(self.unsupported(start, what));
            }
        }
        if shared.is_empty() {
            return Ok(());
        }
        let of_right = right.certain();
        let bound = |variable: Variable| Expression::Bound(variable);
        let (mut pairs, mut compatible, mut both) = (Vec::new(), Vec::new(), Vec::new());
        let graph = self.graph_variable();
        for variable in mentioned(&right) {
            if Some(variable) == graph || self.has_outer(variable) {
                continue;
            }
            // The part hides all its variables.
            let copy = self.new_variable("")?;
            pairs.push((variable, copy));
            if !shared.contains(&variable) {
                continue;
            }
            let on_left = (!open.certain.contains(variable)).then(|| bound(variable));
            let on_right = (!of_right.contains(variable)).then(|| bound(copy));
            let not = |one: &Expression| Expression::Not(Box::new(one.clone()));
            let mut agree: Vec<Expression> = on_left.iter().chain(&on_right).map(not).collect();
            agree.push(same_term(variable, copy));
            compatible.push(if agree.len() == 1 { agree.remove(0) } else { Expression::Or(agree) });
            both.push(conjunction(on_left.into_iter().chain(on_right).collect()));
        }
        right.rename(&pairs);
        let variable = self.new_variable("")?;
        let expression = Expression::Constant(Literal::from(true).into());
        let right = Box::new(Node::Extend { input: Box::new(right), variable, expression });
        compatible.push(if both.len() == 1 { both.remove(0) } else { Expression::Or(both) });
        let left = Box::new(std::mem::replace(&mut open.node, Node::unit()));
        let joined = Node::LeftJoin { left, right, condition: Some(conjunction(compatible)) };
        open.node = filter(joined, vec![Expression::Not(Box::new(bound(variable)))]);
        Ok(())
    }

    fn bind(&mut self, open: &mut OpenGroup<'a>) -> Result<(), QueryError> {
        self.link()?;
        self.expect(Token::ParenthesisOpen, "(")?;
        let possible = &open.possible;
        let mut expression =
            self.with_exists(|parser| parser.with_outer(possible.clone()), Self::expression)?;
        self.expect_keyword("AS")?;
        let at = self.ahead;
        let variable = self.variable()?;
        self.expect(Token::ParenthesisClose, ")")?;
        let readable = self.with_outer(open.possible.clone());
        if readable.contains(variable) {
            let message = format!("BIND cannot give {} a second value", self.spelled(at));
            return Err(self.error(at, message));
        }
        Self::restrict(&mut expression, &readable);
        let input = Box::new(std::mem::replace(&mut open.node, Node::unit()));
        open.node = Node::Extend { input, variable, expression };
        open.possible.insert(variable);
        Ok(())
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
                return Err(self.error(start, message).with_hint("write UNDEF for no value"));
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
