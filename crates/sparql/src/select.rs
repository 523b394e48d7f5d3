//! `SELECT`, sub-queries and solution modifiers: grouping, order, slices.
//!
//! The expressions of a `SELECT` clause precede the pattern that binds their variables. The parser records
//! their positions and parses them after the pattern, so that scoping is known, also where grouping hides the
//! variables of the pattern.

use crate::QueryError;
use crate::analysis::{filter, join};
use crate::function::is_aggregate;
use crate::lexer::{Lexeme, Lexer, Token};
use crate::parser::{Parser, Scope};
use foldhash::HashMap as SeededMap;
use vervet_algebra::{Aggregate, Expression, Form, Node, OrderKey, Variable, VariableSet};
use vervet_model::nearest;

/// An unresolved `SELECT` clause.
#[derive(Default)]
pub(crate) struct SelectHead<'a> {
    distinct: bool,
    reduced: bool,
    all: bool,
    items: Vec<Item<'a>>,
    /// Whether an expression contains an aggregate.
    aggregates: bool,
}

enum Item<'a> {
    Variable(Lexeme),
    /// `( expression AS ?v )`: position after the opening parenthesis.
    Expression(Lexer<'a>, Lexeme),
}

/// Collector of the aggregates of the current query.
pub(crate) struct Aggregation<'a> {
    /// Distinct aggregates, and the variable that holds each.
    pub(crate) list: Vec<(Variable, Aggregate)>,
    /// Positions in `list` by the text of an aggregate: equal texts are the same aggregate.
    pub(crate) by_text: SeededMap<&'a str, usize>,
    /// The scope before grouping, which applies within aggregates.
    pub(crate) scope: Scope<'a>,
    /// Variables bound before grouping.
    pub(crate) visible: VariableSet,
}

/// A column of a result and its name.
type Column<'a> = (&'a str, Variable);

impl<'a> Parser<'a, '_> {
    pub(crate) fn select_query(&mut self) -> Result<(Form, Node), QueryError> {
        let head = self.select_clause()?;
        self.dataset_clauses()?;
        let node = self.where_clause()?;
        let (node, columns) = self.modifiers(node, &head, false)?;
        Ok((Form::Select(columns.into_iter().map(|(_, variable)| variable).collect()), node))
    }

    /// Parses a sub-query. Names that it does not project are local.
    pub(crate) fn sub_select(&mut self) -> Result<Node, QueryError> {
        let head = self.select_clause()?;
        if head.all {
            let node = self.where_clause()?;
            return Ok(self.modifiers(node, &head, true)?.0);
        }
        // Projected names refer to the outer scope; outer variables are bound within the sub-query, too.
        let mut scope = Scope::default();
        for item in &head.items {
            if let Item::Variable(lexeme) = item
                && let Some((name, variable)) = self.scope.get_key_value(&self.spelled(*lexeme)[1..])
                && self.has_outer(*variable)
            {
                scope.insert(*name, *variable);
            }
        }
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = self.where_clause().and_then(|node| self.modifiers(node, &head, true));
        self.scope = outer;
        let (mut node, columns) = result?;
        let mut pairs = Vec::with_capacity(columns.len());
        for (name, inner) in columns {
            let shown = self.variable_named(name)?;
            if shown != inner {
                pairs.push((inner, shown));
            }
        }
        node.rename(&pairs);
        Ok(node)
    }

    fn select_clause(&mut self) -> Result<SelectHead<'a>, QueryError> {
        self.advance()?;
        let mut head = SelectHead::default();
        head.distinct = self.eat_keyword("DISTINCT")?;
        head.reduced = !head.distinct && self.eat_keyword("REDUCED")?;
        head.all = self.eat(Token::Star)?;
        loop {
            match self.ahead.token {
                _ if head.all => break,
                Token::Variable => head.items.push(Item::Variable(self.advance()?)),
                Token::ParenthesisOpen => {
                    self.advance()?;
                    head.items.push(Item::Expression(self.lexer, self.ahead));
                    self.skip_parenthesis(&mut head)?;
                }
                Token::Comma if !head.items.is_empty() => {
                    let error = self.expected("a column or {");
                    return Err(error.with_hint("columns have spaces between them, no commas"));
                }
                Token::Word if self.keyword_ahead().is_none() => return Err(self.no_column()),
                _ if head.items.is_empty() => {
                    return Err(self.expected("*, a variable or (expression AS ?variable)"));
                }
                _ => break,
            }
        }
        Ok(head)
    }

    /// The error for a word in the place of a column: an expression without parentheses and name, or a
    /// variable without `?`.
    fn no_column(&mut self) -> QueryError {
        let (at, word) = (self.ahead, self.spelled(self.ahead));
        if nearest(word, ["WHERE", "FROM", "DISTINCT", "REDUCED"]).is_some() {
            return self.expected("a column or {");
        }
        let error = self.expected("*, a variable or (expression AS ?variable)");
        let mut depth = 0_usize;
        let mut is_call = false;
        while self.advance().is_ok() && self.ahead.token != Token::End {
            match self.ahead.token {
                Token::ParenthesisOpen => depth += 1,
                Token::ParenthesisClose => depth = depth.saturating_sub(1),
                _ => {}
            }
            is_call |= depth > 0;
            if depth == 0 {
                break;
            }
        }
        if is_call && self.ahead.token == Token::ParenthesisClose {
            return error.with_hint(format!("write ({} AS ?name)", &self.text[at.start..self.ahead.end]));
        }
        error.with_hint(format!("did you mean ?{word}?"))
    }

    /// The error for a text that ends before the parenthesis at `open` is closed, as in `(COUNT(?c AS ?n)`:
    /// at the `AS` that is one level too deep, if there is one.
    fn not_closed(&self, open: (Lexer<'a>, Lexeme)) -> QueryError {
        let (mut lexer, mut ahead) = open;
        let (mut depth, mut braces) = (1_usize, 0_usize);
        while ahead.token != Token::End {
            match ahead.token {
                Token::ParenthesisOpen => depth += 1,
                Token::ParenthesisClose => depth = depth.saturating_sub(1),
                Token::BraceOpen => braces += 1,
                Token::BraceClose => braces = braces.saturating_sub(1),
                Token::Word if depth > 1 && braces == 0 && self.spelled(ahead).eq_ignore_ascii_case("AS") => {
                    let error = self.error(ahead, "expected ), but found AS");
                    return error.with_hint("close the function before AS: (COUNT(?x) AS ?name)");
                }
                _ => {}
            }
            let Ok(next) = lexer.next() else { break };
            ahead = next;
        }
        self.expected(")")
    }

    /// Skips past the parenthesis that closes the one just consumed.
    fn skip_parenthesis(&mut self, head: &mut SelectHead<'a>) -> Result<(), QueryError> {
        let open = (self.lexer, self.ahead);
        let mut depth = 1;
        loop {
            if self.ahead.token == Token::End {
                return Err(self.not_closed(open));
            }
            let lexeme = self.advance()?;
            match lexeme.token {
                Token::ParenthesisOpen => depth += 1,
                Token::ParenthesisClose => depth -= 1,
                Token::Word if self.ahead.token == Token::ParenthesisOpen => {
                    head.aggregates |= is_aggregate(self.spelled(lexeme));
                }
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Parses the solution modifiers after the pattern `node`, and resolves the columns of the `SELECT`
    /// clause.
    pub(crate) fn modifiers(
        &mut self,
        node: Node,
        head: &SelectHead<'a>,
        inner: bool,
    ) -> Result<(Node, Vec<Column<'a>>), QueryError> {
        let outer = self.aggregation.take();
        let result = self.modifiers_of(node, head, inner);
        self.aggregation = outer;
        result
    }

    fn modifiers_of(
        &mut self,
        mut node: Node,
        head: &SelectHead<'a>,
        inner: bool,
    ) -> Result<(Node, Vec<Column<'a>>), QueryError> {
        let start = self.ahead;
        let mut keys = Vec::new();
        let by = self.eat_keyword("GROUP")?;
        if by {
            self.expect_keyword("BY")?;
            (node, keys) = self.group_keys(node)?;
        }
        let having_at = self.ahead;
        let having = self.eat_keyword("HAVING")?;
        let grouped = by || having || head.aggregates;
        if grouped {
            if head.all {
                return Err(self.error(start, "SELECT * cannot be grouped").with_hint("name the columns"));
            }
            self.enter_grouping(&node, &keys);
        }
        let rows = |parser: &Self| match grouped {
            true => keys.iter().copied().chain(parser.outer()).collect(),
            false => parser.readable(&node),
        };
        let conditions = match having {
            true => self.with_exists(rows, |parser| parser.having(having_at))?,
            false => Vec::new(),
        };
        let after = self.parser_position();
        let items =
            self.with_exists(rows, |parser| parser.parse_at(after, |parser| parser.select_items(head)))?;
        let of_items = |parser: &Self| {
            let mut all = rows(parser);
            items.iter().for_each(|(_, variable, _)| all.insert(*variable));
            all
        };
        let order = self.with_exists(of_items, Self::order_clause)?;
        let (offset, limit) = self.slice_clauses()?;
        let values = if self.eat_keyword("VALUES")? { Some(self.data_block()?) } else { None };

        if grouped {
            node = self.grouping(node, keys)?;
        }
        let (late, conditions) = self.on_aliases(conditions, &node, &items);
        let conditions = self.restricted(conditions, &node);
        node = filter(node, conditions);
        if let Some(values) = values {
            node = join(node, values);
        }
        let (mut node, columns) = self.extended(node, head, items, grouped)?;
        node = filter(node, late);
        let sliced = offset > 0 || limit.is_some();
        if !order.is_empty() {
            self.has_inner_order |= inner;
            let readable = self.readable(&node);
            let mut order = order;
            order.iter_mut().for_each(|key| Self::restrict(&mut key.expression, &readable));
            order.retain(|key| !matches!(key.expression, Expression::Unbound | Expression::Constant(_)));
            if !order.is_empty() {
                node = Node::OrderBy { input: Box::new(node), keys: order };
            }
        }
        if inner || head.distinct || head.reduced {
            node = self.projected(node, &columns);
        }
        if head.distinct {
            node = Node::Distinct(Box::new(node));
        } else if head.reduced {
            node = Node::Reduced(Box::new(node));
        }
        if sliced {
            if self.graph_variable().is_some() {
                return Err(self.unsupported(start, "LIMIT and OFFSET inside GRAPH with a variable are"));
            }
            node = Node::Slice { input: Box::new(node), start: offset, length: limit };
        }
        Ok((node, columns))
    }

    // Grouping.

    fn group_keys(&mut self, mut node: Node) -> Result<(Node, Vec<Variable>), QueryError> {
        let mut keys = Vec::new();
        let mut seen = VariableSet::default();
        loop {
            let at = self.ahead;
            let (mut expression, name) = match at.token {
                Token::Variable => (Expression::Variable(self.variable()?), None),
                Token::ParenthesisOpen => {
                    self.advance()?;
                    let expression = self.with_exists(|parser| parser.readable(&node), Self::expression)?;
                    let name =
                        if self.eat_keyword("AS")? { Some((self.ahead, self.variable()?)) } else { None };
                    self.expect(Token::ParenthesisClose, "AS or )")?;
                    (expression, name)
                }
                _ if self.at_function() => {
                    (self.with_exists(|parser| parser.readable(&node), Self::constraint)?, None)
                }
                _ if keys.is_empty() => return Err(self.expected("a variable, a function or (")),
                _ => return Ok((node, keys)),
            };
            let variable = match (&expression, name) {
                (Expression::Variable(variable), None) => *variable,
                (_, name) => {
                    self.link()?;
                    let visible = self.readable(&node);
                    let variable = match name {
                        None => self.new_variable("")?,
                        Some((at, variable)) if visible.contains(variable) => {
                            return Err(self.error(at, format!("{} already has a value", self.spelled(at))));
                        }
                        Some((_, variable)) => variable,
                    };
                    Self::restrict(&mut expression, &visible);
                    node = Node::Extend { input: Box::new(node), variable, expression };
                    variable
                }
            };
            if !seen.contains(variable) {
                seen.insert(variable);
                keys.push(variable);
            }
        }
    }

    /// Enters the scope after grouping, in which only the names of keys keep their variables.
    fn enter_grouping(&mut self, node: &Node, keys: &[Variable]) {
        let before = std::mem::take(&mut self.scope);
        let kept: VariableSet = keys.iter().copied().collect();
        self.scope = before.iter().filter(|(_, v)| kept.contains(**v)).map(|(name, v)| (*name, *v)).collect();
        let visible = self.readable(node);
        self.aggregation =
            Some(Aggregation { list: Vec::new(), by_text: SeededMap::default(), scope: before, visible });
    }

    fn grouping(&mut self, node: Node, mut keys: Vec<Variable>) -> Result<Node, QueryError> {
        let graph = self.graph_variable();
        let of_each_graph = graph.filter(|_| keys.is_empty());
        keys.extend(graph);
        let aggregates =
            self.aggregation.as_mut().map(|all| std::mem::take(&mut all.list)).unwrap_or_default();
        let counts_columns =
            aggregates.iter().any(|(_, aggregate)| aggregate.distinct && aggregate.expression.is_none());
        let input = if counts_columns {
            // `COUNT(DISTINCT *)` compares the columns of `SELECT *`, not blank nodes and hidden variables.
            let mut variables = self.visible_columns(&node);
            variables.extend(keys.iter().filter(|key| !variables.contains(key)).copied().collect::<Vec<_>>());
            Node::Project { input: Box::new(node), variables }
        } else {
            node
        };
        match of_each_graph {
            Some(graph) => self.grouping_by_graph(input, graph, aggregates),
            None => Ok(Node::Group { input: Box::new(input), keys, aggregates }),
        }
    }

    fn having(&mut self, at: Lexeme) -> Result<Vec<Expression>, QueryError> {
        let mut conditions = Vec::new();
        while self.ahead.token == Token::ParenthesisOpen || self.at_function() {
            conditions.push(self.constraint()?);
        }
        if conditions.is_empty() {
            return Err(self.error(at, "HAVING needs a condition, such as HAVING (COUNT(*) > 1)"));
        }
        Ok(conditions)
    }

    // Columns.

    /// The variable, name and expression of each item.
    fn select_items(
        &mut self,
        head: &SelectHead<'a>,
    ) -> Result<Vec<(Lexeme, Variable, Option<Expression>)>, QueryError> {
        let mut items: Vec<(Lexeme, Variable, Option<Expression>)> = Vec::with_capacity(head.items.len());
        let mut seen = VariableSet::default();
        for item in &head.items {
            let (at, expression) = match item {
                Item::Variable(lexeme) => (*lexeme, None),
                Item::Expression(lexer, ahead) => {
                    self.link()?;
                    (self.lexer, self.ahead) = (*lexer, *ahead);
                    let expression = self.expression()?;
                    if self.ahead.token == Token::ParenthesisClose {
                        let text = &self.text[ahead.start..self.last_end];
                        return Err(self.expected("AS").with_hint(format!("write ({text} AS ?name)")));
                    }
                    self.expect_keyword("AS")?;
                    let at = self.advance()?;
                    if at.token != Token::Variable {
                        return Err(self.error(at, "expected a variable"));
                    }
                    self.expect(Token::ParenthesisClose, ")")?;
                    (at, Some(expression))
                }
            };
            let variable = self.variable_named(&self.text[at.start + 1..at.end])?;
            if seen.contains(variable) {
                return Err(self.error(at, format!("{} is already a column", self.spelled(at))));
            }
            seen.insert(variable);
            items.push((at, variable, expression));
        }
        Ok(items)
    }

    /// `node` extended by the expressions of the `SELECT` clause, and the columns.
    fn extended(
        &mut self,
        mut node: Node,
        head: &SelectHead<'a>,
        items: Vec<(Lexeme, Variable, Option<Expression>)>,
        grouped: bool,
    ) -> Result<(Node, Vec<Column<'a>>), QueryError> {
        if head.all {
            let all = self.visible_columns(&node);
            let names: SeededMap<Variable, &'a str> =
                self.scope.iter().map(|(name, variable)| (*variable, *name)).collect();
            let name = |variable| names.get(&variable).copied().unwrap_or_default();
            return Ok((node, all.into_iter().map(|variable| (name(variable), variable)).collect()));
        }
        if items.is_empty() {
            return Ok((node, Vec::new()));
        }
        let mut columns = Vec::with_capacity(items.len());
        let mut visible = None;
        for (at, variable, expression) in items {
            columns.push((&self.text[at.start + 1..at.end], variable));
            if expression.is_none() && !grouped {
                continue;
            }
            let visible = visible.get_or_insert_with(|| self.readable(&node));
            match expression {
                None if !visible.contains(variable) => return Err(self.not_grouped(at, self.spelled(at))),
                None => {}
                Some(_) if visible.contains(variable) => {
                    return Err(
                        self.error(at, format!("{} already has a value in the pattern", self.spelled(at)))
                    );
                }
                Some(mut expression) => {
                    if grouped {
                        self.check_grouped(at, &mut expression, visible)?;
                    }
                    Self::restrict(&mut expression, visible);
                    node = Node::Extend { input: Box::new(node), variable, expression };
                    visible.insert(variable);
                }
            }
        }
        Ok((node, columns))
    }

    fn check_grouped(
        &self,
        at: Lexeme,
        expression: &mut Expression,
        visible: &VariableSet,
    ) -> Result<(), QueryError> {
        let mut hidden = None;
        expression.for_each_variable_mut(&mut |leaf| match leaf {
            Expression::Variable(variable) if !visible.contains(*variable) => hidden = Some(*variable),
            _ => {}
        });
        match hidden {
            Some(variable) => Err(self.not_grouped(at, &format!("?{}", self.names[variable.index()]))),
            None => Ok(()),
        }
    }

    fn not_grouped(&self, at: Lexeme, name: &str) -> QueryError {
        // `GROUPBY ?x`, or `GROUP BY` behind another clause: the rest of the query is the cause.
        if self.ahead.token == Token::Word {
            return self.expected("the end of the query");
        }
        self.error(at, format!("{name} has no single value in a group")).with_hint(format!(
            "add {name} to GROUP BY, or use it inside an aggregate such as SAMPLE({name})"
        ))
    }

    /// Removes and returns the conditions of `HAVING` that mention a name defined by `SELECT` (`(COUNT(?c) AS
    /// ?n) … HAVING (?n > 1)`), to apply them after that name is bound. By the standard such a name is
    /// unbound in `HAVING`, so the result would always be empty; other systems support it as an extension.
    fn on_aliases(
        &self,
        conditions: Vec<Expression>,
        node: &Node,
        items: &[(Lexeme, Variable, Option<Expression>)],
    ) -> (Vec<Expression>, Vec<Expression>) {
        if conditions.is_empty() {
            return (conditions, Vec::new());
        }
        let mut visible = self.readable(node);
        let named = items.iter().filter(|(_, _, expression)| expression.is_some());
        let aliases: Vec<Variable> =
            named.map(|(_, variable, _)| *variable).filter(|variable| !visible.contains(*variable)).collect();
        let (mut late, early): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|condition| {
            let mut mentioned = Vec::new();
            condition.variables(&mut mentioned);
            mentioned.iter().any(|variable| aliases.contains(variable))
        });
        aliases.into_iter().for_each(|alias| visible.insert(alias));
        late.iter_mut().for_each(|condition| Self::restrict(condition, &visible));
        (late, early)
    }

    fn restricted(&self, mut conditions: Vec<Expression>, node: &Node) -> Vec<Expression> {
        if !conditions.is_empty() {
            let visible = self.readable(node);
            conditions.iter_mut().for_each(|condition| Self::restrict(condition, &visible));
        }
        conditions
    }

    /// Projects, unless the projection would hide no variable.
    fn projected(&self, node: Node, columns: &[Column<'a>]) -> Node {
        let mut variables: Vec<Variable> = columns.iter().map(|(_, variable)| *variable).collect();
        variables.extend(self.graph_variable().filter(|graph| !variables.contains(graph)));
        let mut all = Vec::new();
        node.variables(&mut all);
        let shown: VariableSet = variables.iter().copied().collect();
        if all.iter().all(|variable| shown.contains(*variable)) {
            return node;
        }
        Node::Project { input: Box::new(node), variables }
    }

    // Order and slices.

    fn order_clause(&mut self) -> Result<Vec<OrderKey>, QueryError> {
        let mut keys = Vec::new();
        if !self.eat_keyword("ORDER")? {
            return Ok(keys);
        }
        self.expect_keyword("BY")?;
        loop {
            let descending = self.at_keyword("DESC");
            let expression = if descending || self.at_keyword("ASC") {
                self.advance()?;
                if self.ahead.token != Token::ParenthesisOpen {
                    let word = if descending { "DESC" } else { "ASC" };
                    let error = self.expected("( after ASC or DESC");
                    return Err(error.with_hint(format!("write ORDER BY {word}(?x)")));
                }
                self.advance()?;
                let expression = self.expression()?;
                self.expect(Token::ParenthesisClose, ")")?;
                expression
            } else if self.ahead.token == Token::Variable {
                Expression::Variable(self.variable()?)
            } else if self.ahead.token == Token::ParenthesisOpen || self.at_function() {
                self.constraint()?
            } else if keys.is_empty() {
                return Err(self.expected("a variable, ASC, DESC or ("));
            } else {
                return Ok(keys);
            };
            keys.push(OrderKey { expression, descending });
        }
    }

    fn slice_clauses(&mut self) -> Result<(usize, Option<usize>), QueryError> {
        let mut offset = None;
        let mut limit = None;
        loop {
            if limit.is_none() && self.eat_keyword("LIMIT")? {
                limit = Some(self.count()?);
            } else if offset.is_none() && self.eat_keyword("OFFSET")? {
                offset = Some(self.count()?);
            } else {
                return Ok((offset.unwrap_or(0), limit));
            }
        }
    }

    fn count(&mut self) -> Result<usize, QueryError> {
        if self.ahead.token != Token::Integer {
            return Err(self.expected("a whole number"));
        }
        let lexeme = self.advance()?;
        self.spelled(lexeme).parse().map_err(|_| self.error(lexeme, "this number is too large"))
    }
}
