//! Parser: state, token access, query forms.

use crate::analysis::mark_possible;
use crate::exists::ExistsScope;
use crate::lexer::{Lexeme, Lexer, Token};
use crate::limits::{CHAIN_MAX, NESTING_MAX, PATH_PATTERNS_MAX, VARIABLE_COUNT_MAX};
use crate::mistakes;
use crate::select::{Aggregation, SelectHead};
use crate::template::{DataLabels, Template};
use crate::triples::BlankNodeLabels;
use crate::{ParseOptions, QueryError, sub_query_order};
use foldhash::HashMap as SeededMap;
use oxiri::Iri;
use oxrdf::vocab::rdf;
use std::collections::HashSet;
use vervet_algebra::{
    Dataset, Expression, Form, GraphSlot, Node, Pattern, Query, Slot, TripleTemplate, Variable, VariableSet,
};
use vervet_model::nearest;

/// Variables of one scope, by name.
pub(crate) type Scope<'a> = SeededMap<&'a str, Variable>;

pub(crate) struct Parser<'a, 'o> {
    pub(crate) text: &'a str,
    pub(crate) options: &'o ParseOptions<'o>,
    pub(crate) lexer: Lexer<'a>,
    /// The look-ahead token; `lexer` is after it.
    pub(crate) ahead: Lexeme,
    /// End of the last consumed token.
    pub(crate) last_end: usize,
    pub(crate) base: Option<Iri<String>>,
    pub(crate) prefixes: SeededMap<&'a str, String>,
    /// The current scope; callers hold the outer ones.
    pub(crate) scope: Scope<'a>,
    pub(crate) names: Vec<String>,
    parameters_seen: Vec<bool>,
    /// The first position of each parameter.
    parameter_places: SeededMap<&'o str, usize>,
    /// Number of patterns generated for paths so far.
    path_patterns: usize,
    /// Bytes of `SERVICE` texts so far.
    pub(crate) service_bytes: usize,
    /// The graph that patterns range over.
    pub(crate) graph: GraphSlot,
    pub(crate) labels: BlankNodeLabels<'a>,
    /// The dataset that the query specifies.
    pub(crate) dataset: Dataset,
    /// The template of an update being parsed, if any.
    pub(crate) template: Option<Template<'a>>,
    pub(crate) data_labels: DataLabels<'a>,
    /// Collector of aggregates; `None` where they are not allowed.
    pub(crate) aggregation: Option<Aggregation<'a>>,
    /// Context for patterns in expressions.
    pub(crate) patterns: ExistsScope,
    /// Whether a sub-query has an `ORDER BY`.
    pub(crate) has_inner_order: bool,
    /// Within `EXISTS`: variables that outer rows may bind.
    pub(crate) outer_rows: Option<VariableSet>,
    /// Those of them that every outer row is known to bind.
    pub(crate) outer_certain: VariableSet,
    nesting: usize,
    chain: usize,
}

impl<'a, 'o> Parser<'a, 'o> {
    /// A parser at the start of a text of at most `bytes_max` bytes.
    pub(crate) fn new(
        text: &'a str,
        options: &'o ParseOptions<'o>,
        bytes_max: usize,
    ) -> Result<Self, QueryError> {
        if text.len() > bytes_max {
            return Err(QueryError::at("", 0, 0, format!("the text is longer than {bytes_max} bytes")));
        }
        let mut lexer = Lexer::new(text);
        let ahead = lexer.next()?;
        let base = match options.base_iri.map(|base| Iri::parse(base.to_owned())) {
            None => None,
            Some(Ok(base)) => Some(base),
            Some(Err(error)) => {
                return Err(QueryError::at(text, 0, 0, format!("the base IRI given is not valid: {error}")));
            }
        };
        if options.parameters.len() > VARIABLE_COUNT_MAX {
            return Err(QueryError::at(text, 0, 0, "there are too many parameters"));
        }
        Ok(Self {
            text,
            options,
            lexer,
            ahead,
            last_end: 0,
            base,
            prefixes: SeededMap::default(),
            scope: Scope::default(),
            names: parameter_names(options),
            parameters_seen: vec![false; options.parameters.len()],
            parameter_places: (options.parameters.iter().enumerate().rev())
                .map(|(position, name)| (*name, position))
                .collect(),
            path_patterns: 0,
            service_bytes: 0,
            graph: GraphSlot::Default,
            labels: BlankNodeLabels::default(),
            dataset: Dataset::default(),
            template: None,
            data_labels: DataLabels::default(),
            aggregation: None,
            patterns: ExistsScope::default(),
            has_inner_order: false,
            outer_rows: None,
            outer_certain: VariableSet::default(),
            nesting: 0,
            chain: 0,
        })
    }

    // Queries.

    pub(crate) fn query(self) -> Result<Query, QueryError> {
        Ok(self.query_and_prefixes()?.0)
    }

    /// The query, and the prefixes that it declares, by name.
    pub(crate) fn query_and_prefixes(mut self) -> Result<(Query, Vec<(String, String)>), QueryError> {
        self.prologue()?;
        let (form, mut root) = match self.keyword_ahead() {
            Some("SELECT") => self.select_query()?,
            Some("ASK") => {
                self.advance()?;
                (Form::Ask, self.pattern_and_modifiers(true)?)
            }
            Some("CONSTRUCT") => self.construct_query()?,
            Some("DESCRIBE") => self.describe_query()?,
            Some(
                "INSERT" | "DELETE" | "LOAD" | "CLEAR" | "CREATE" | "DROP" | "COPY" | "MOVE" | "ADD" | "WITH",
            ) => {
                return Err(self.error(self.ahead, "this is an update, not a query").with_hint(
                    "run it as one: `vervet update`, `Database::update`, or over HTTP POST /update",
                ));
            }
            _ => return Err(self.expected("SELECT, ASK, CONSTRUCT or DESCRIBE")),
        };
        if self.ahead.token != Token::End {
            return Err(self.expected("the end of the query"));
        }
        self.require_parameters()?;
        let dataset = self.options.dataset.unwrap_or(&self.dataset);
        if self.has_inner_order {
            sub_query_order::remove_unused(&mut root);
        }
        dataset.restrict(&mut root).map_err(|error| self.error(self.ahead, error.to_string()))?;
        let (variables, parameters) = self.take_variables();
        let mut prefixes: Vec<(String, String)> =
            self.prefixes.drain().map(|(name, iri)| (name.to_owned(), iri)).collect();
        prefixes.sort_unstable();
        Ok((Query { form, root, variables, parameters }, prefixes))
    }

    /// Checks that the text mentions each parameter.
    pub(crate) fn require_parameters(&self) -> Result<(), QueryError> {
        let Some(unseen) = self.parameters_seen.iter().position(|seen| !seen) else { return Ok(()) };
        let name = self.options.parameters[unseen];
        let error =
            QueryError::at(self.text, 0, 0, format!("the query does not mention the parameter ?{name}"));
        let others = self.names.iter().skip(self.options.parameters.len()).map(String::as_str);
        Err(match nearest(name, others.filter(|other| !other.is_empty())) {
            Some(other) => error.with_hint(format!("did you mean ?{other}?")),
            None => error,
        })
    }

    /// Starts an operation of an update, which has its own variables and limits.
    pub(crate) fn begin_operation(&mut self) {
        self.scope.clear();
        self.names = parameter_names(self.options);
        self.chain = 0;
        self.path_patterns = 0;
    }

    /// Takes the names of all variables, and the parameters, which are the first of them.
    pub(crate) fn take_variables(&mut self) -> (Vec<String>, Vec<Variable>) {
        let parameters = (0..self.options.parameters.len()).map(variable_at).collect();
        (std::mem::take(&mut self.names), parameters)
    }

    pub(crate) fn prologue(&mut self) -> Result<(), QueryError> {
        loop {
            if self.eat_keyword("PREFIX")? {
                let name = self.advance()?;
                if name.token != Token::Name || name.extra + 1 != name.end {
                    return Err(self.error(name, "expected a prefix with a colon, such as ex:"));
                }
                let iri = self.advance()?;
                if iri.token != Token::Iri {
                    return Err(self.error(iri, "expected the IRI of the prefix between < and >"));
                }
                let iri = self.resolve(iri)?;
                self.prefixes.insert(&self.text[name.start..name.extra], iri);
            } else if self.eat_keyword("BASE")? {
                let iri = self.advance()?;
                if iri.token != Token::Iri {
                    return Err(self.error(iri, "expected the base IRI between < and >"));
                }
                let resolved = self.resolve(iri)?;
                let base = Iri::parse(resolved);
                self.base = Some(base.map_err(|error| self.error(iri, error.to_string()))?);
            } else if self.eat_keyword("VERSION")? {
                let version = self.advance()?;
                if version.token != Token::Text || version.extra != 1 {
                    return Err(self.error(version, "expected a version such as \"1.2\""));
                }
            } else {
                return Ok(());
            }
        }
    }

    fn construct_query(&mut self) -> Result<(Form, Node), QueryError> {
        self.advance()?;
        if self.ahead.token == Token::BraceOpen {
            let (mut template, triples) = self.template()?;
            let root = self.pattern_and_modifiers(true)?;
            let bound = self.visible(&root);
            // A statement with a variable that neither a solution nor a parameter binds is never
            // instantiated; blank nodes have no name.
            template.retain(|pattern| {
                pattern.variables().all(|v| bound.contains(v) || self.names[v.index()].is_empty())
            });
            // Variables for blank nodes of the template have numbers above those of the pattern.
            return Ok((self.with_new_blanks(template, triples)?, root));
        }
        self.dataset_clauses()?;
        self.expect_keyword("WHERE")?;
        let sink = self.template_as_pattern()?;
        self.refuse_reifies(&sink)?;
        let (patterns, triples) = self.as_template(sink.patterns.clone(), sink.triples.clone())?;
        let form = self.with_new_blanks(patterns, triples)?;
        let node = self.joined(sink)?;
        let root = self.modifiers(node, &SelectHead::default(), false)?.0;
        Ok((form, root))
    }

    /// The statements of a template: reifiers become statements with `rdf:reifies`, since a constructed graph
    /// has no edges.
    pub(crate) fn as_template(
        &mut self,
        mut patterns: Vec<Pattern>,
        mut triples: Vec<TripleTemplate>,
    ) -> Result<(Vec<Pattern>, Vec<TripleTemplate>), QueryError> {
        for pattern in &mut patterns {
            let Some(edge) = pattern.edge.take() else { continue };
            let variable = self.new_variable("")?;
            let reifies = Slot::Constant(rdf::REIFIES.into_owned().into());
            let predicate = std::mem::replace(&mut pattern.predicate, reifies);
            let subject = std::mem::replace(&mut pattern.subject, edge);
            let object = std::mem::replace(&mut pattern.object, Slot::Variable(variable));
            triples.push(TripleTemplate { variable, parts: [subject, predicate, object] });
        }
        Ok((patterns, triples))
    }

    /// Replaces each unnamed variable of a template by a fresh blank node.
    fn with_new_blanks(
        &mut self,
        mut statements: Vec<Pattern>,
        mut triples: Vec<TripleTemplate>,
    ) -> Result<Form, QueryError> {
        let mut blanks: SeededMap<Variable, Variable> = SeededMap::default();
        let mut renew = |variable: &mut Variable| -> Result<(), QueryError> {
            if self.names[variable.index()].is_empty() {
                let blank = match blanks.get(variable) {
                    Some(blank) => *blank,
                    None => self.new_variable("")?,
                };
                blanks.insert(*variable, blank);
                *variable = blank;
            }
            Ok(())
        };
        for pattern in &mut statements {
            for slot in [&mut pattern.subject, &mut pattern.predicate, &mut pattern.object] {
                if let Slot::Variable(variable) = slot {
                    renew(variable)?;
                }
            }
        }
        for triple in &mut triples {
            renew(&mut triple.variable)?;
            for slot in &mut triple.parts {
                if let Slot::Variable(variable) = slot {
                    renew(variable)?;
                }
            }
        }
        Ok(Form::Construct { statements, triples })
    }

    fn describe_query(&mut self) -> Result<(Form, Node), QueryError> {
        self.advance()?;
        let mut slots = Vec::new();
        let all = self.eat(Token::Star)?;
        loop {
            match self.ahead.token {
                _ if all => break,
                Token::Variable => slots.push(Slot::Variable(self.variable()?)),
                Token::Iri | Token::Name => slots.push(Slot::Constant(self.iri()?.into())),
                _ if slots.is_empty() => return Err(self.expected("*, a variable or an IRI")),
                _ => break,
            }
        }
        let root = self.pattern_and_modifiers(false)?;
        if all {
            slots = self.visible_columns(&root).into_iter().map(Slot::Variable).collect();
        }
        Ok((Form::Describe(slots), root))
    }

    /// Parses dataset clauses, the pattern (optional unless `required`), and the solution modifiers.
    fn pattern_and_modifiers(&mut self, required: bool) -> Result<Node, QueryError> {
        self.dataset_clauses()?;
        let node =
            if required || self.ahead.token == Token::BraceOpen || self.keyword_ahead() == Some("WHERE") {
                self.where_clause()?
            } else {
                Node::unit()
            };
        Ok(self.modifiers(node, &SelectHead::default(), false)?.0)
    }

    /// Parses `FROM` and `FROM NAMED`, if present; they apply to the whole query.
    pub(crate) fn dataset_clauses(&mut self) -> Result<(), QueryError> {
        if let Some(dataset) = self.graphs_of("FROM")? {
            self.dataset = dataset;
        }
        Ok(())
    }

    /// Parses the graphs after each `keyword`, with or without `NAMED`, without duplicates; `None`: the
    /// keyword does not occur.
    pub(crate) fn graphs_of(&mut self, keyword: &str) -> Result<Option<Dataset>, QueryError> {
        let (mut default, mut named) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        let mut any = false;
        while self.eat_keyword(keyword)? {
            any = true;
            let is_named = self.eat_keyword("NAMED")?;
            if self.ahead.token == Token::Word {
                let error = self.expected("the IRI of a graph");
                return Err(error.with_hint(format!("{keyword} names a graph, not a table")));
            }
            let graph = self.iri()?;
            if seen.insert((is_named, graph.clone())) {
                if is_named { &mut named } else { &mut default }.push(graph);
            }
        }
        Ok(any.then_some(Dataset { default: Some(default), named: Some(named) }))
    }

    pub(crate) fn where_clause(&mut self) -> Result<Node, QueryError> {
        self.eat_keyword("WHERE")?;
        self.group()
    }

    // Variables.

    /// Parses a variable.
    pub(crate) fn variable(&mut self) -> Result<Variable, QueryError> {
        let lexeme = self.advance()?;
        if lexeme.token != Token::Variable {
            return Err(self.error(lexeme, "expected a variable"));
        }
        self.refuse_variable(lexeme)?;
        self.variable_named(&self.text[lexeme.start + 1..lexeme.end])
    }

    /// The variable of this name in the current scope.
    pub(crate) fn variable_named(&mut self, name: &'a str) -> Result<Variable, QueryError> {
        if let Some(&index) = self.parameter_places.get(name) {
            self.parameters_seen[index] = true;
            return Ok(variable_at(index));
        }
        if let Some(variable) = self.scope.get(name) {
            return Ok(*variable);
        }
        let variable = self.new_variable(name)?;
        self.scope.insert(name, variable);
        Ok(variable)
    }

    /// Creates a new variable.
    pub(crate) fn new_variable(&mut self, name: &str) -> Result<Variable, QueryError> {
        if self.names.len() >= VARIABLE_COUNT_MAX {
            return Err(
                self.error(self.ahead, format!("the query has more than {VARIABLE_COUNT_MAX} variables"))
            );
        }
        self.names.push(name.to_owned());
        Ok(variable_at(self.names.len() - 1))
    }

    /// Whether a value from outside the query replaces `variable`.
    pub(crate) fn is_parameter(&self, variable: Variable) -> bool {
        variable.index() < self.options.parameters.len()
    }

    /// The hidden variable of the graph of the enclosing `GRAPH ?g`.
    pub(crate) fn graph_variable(&self) -> Option<Variable> {
        match self.graph {
            GraphSlot::Variable(variable) => Some(variable),
            _ => None,
        }
    }

    /// Variables in scope for expressions after `node`: those that it binds, and the outer ones.
    pub(crate) fn readable(&self, node: &Node) -> VariableSet {
        let mut set = self.visible(node);
        if let Some(rows) = &self.outer_rows {
            set.add_all(rows);
        }
        set
    }

    /// Adds the outer variables to a set.
    pub(crate) fn with_outer(&self, mut set: VariableSet) -> VariableSet {
        (0..self.options.parameters.len()).for_each(|index| set.insert(variable_at(index)));
        if let Some(rows) = &self.outer_rows {
            set.add_all(rows);
        }
        set
    }

    /// Whether a variable is an outer one.
    pub(crate) fn has_outer(&self, variable: Variable) -> bool {
        variable.index() < self.options.parameters.len()
            || self.outer_rows.as_ref().is_some_and(|rows| rows.contains(variable))
    }

    /// Outer variables, bound before the pattern: parameters, and within `EXISTS` those of the outer rows.
    pub(crate) fn outer(&self) -> impl Iterator<Item = Variable> + '_ {
        let parameters = (0..self.options.parameters.len()).map(variable_at);
        parameters.chain(self.outer_rows.iter().flat_map(VariableSet::iter))
    }

    /// Variables that solutions of `node` may bind.
    pub(crate) fn visible(&self, node: &Node) -> VariableSet {
        let mut set = VariableSet::default();
        mark_possible(node, self.graph_variable(), &mut set);
        (0..self.options.parameters.len()).for_each(|index| set.insert(variable_at(index)));
        set
    }

    /// The columns of `SELECT *` in order of appearance in the text, which is the order of their numbers.
    pub(crate) fn visible_columns(&self, node: &Node) -> Vec<Variable> {
        let mut all = Vec::new();
        node.variables(&mut all);
        let shown = self.visible(node);
        all.retain(|variable| shown.contains(*variable) && !self.names[variable.index()].is_empty());
        all.sort_unstable();
        all
    }

    // Tokens.

    /// Consumes the next token.
    pub(crate) fn advance(&mut self) -> Result<Lexeme, QueryError> {
        let next = self.lexer.next()?;
        self.last_end = self.ahead.end;
        Ok(std::mem::replace(&mut self.ahead, next))
    }

    pub(crate) fn eat(&mut self, token: Token) -> Result<bool, QueryError> {
        if self.ahead.token != token {
            return Ok(false);
        }
        self.advance()?;
        Ok(true)
    }

    pub(crate) fn expect(&mut self, token: Token, what: &str) -> Result<(), QueryError> {
        if self.eat(token)? { Ok(()) } else { Err(self.expected(what)) }
    }

    /// Whether the next token is this keyword (case-insensitive).
    pub(crate) fn at_keyword(&self, keyword: &str) -> bool {
        self.ahead.token == Token::Word && self.spelled(self.ahead).eq_ignore_ascii_case(keyword)
    }

    pub(crate) fn eat_keyword(&mut self, keyword: &str) -> Result<bool, QueryError> {
        if !self.at_keyword(keyword) {
            return Ok(false);
        }
        self.advance()?;
        Ok(true)
    }

    pub(crate) fn expect_keyword(&mut self, keyword: &str) -> Result<(), QueryError> {
        if self.eat_keyword(keyword)? { Ok(()) } else { Err(self.expected(keyword)) }
    }

    /// The look-ahead keyword, in capitals.
    pub(crate) fn keyword_ahead(&self) -> Option<&'static str> {
        if self.ahead.token != Token::Word {
            return None;
        }
        let spelled = self.spelled(self.ahead);
        KEYWORDS.into_iter().find(|keyword| keyword.eq_ignore_ascii_case(spelled))
    }

    pub(crate) fn spelled(&self, lexeme: Lexeme) -> &'a str {
        &self.text[lexeme.start..lexeme.end]
    }

    // Limits and errors.

    /// Runs `inner` one nesting level deeper.
    pub(crate) fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        if self.nesting >= NESTING_MAX {
            return Err(
                self.error(self.ahead, format!("the query is nested more than {NESTING_MAX} levels deep"))
            );
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    /// Counts a pattern or operator generated for a path.
    pub(crate) fn path_pattern(&mut self) -> Result<(), QueryError> {
        self.path_patterns += 1;
        if self.path_patterns > PATH_PATTERNS_MAX {
            let message = format!("the paths of the query expand to more than {PATH_PATTERNS_MAX} patterns");
            return Err(self.error(self.ahead, message));
        }
        Ok(())
    }

    /// Counts one operator of a chain.
    pub(crate) fn link(&mut self) -> Result<(), QueryError> {
        self.chain += 1;
        if self.chain > CHAIN_MAX {
            return Err(
                self.error(self.ahead, format!("the query has more than {CHAIN_MAX} chained operators"))
            );
        }
        Ok(())
    }

    pub(crate) fn error(&self, at: Lexeme, message: impl Into<String>) -> QueryError {
        QueryError::at(self.text, at.start, at.end, message)
    }

    /// `what` ends in "is" or "are".
    pub(crate) fn unsupported(&self, at: Lexeme, what: &str) -> QueryError {
        self.error(at, format!("{what} not supported yet")).unsupported()
    }

    /// An error for the next token, which is not the expected `what`.
    pub(crate) fn expected(&self, what: &str) -> QueryError {
        let found = match self.ahead.token {
            Token::End => "the query ends".to_owned(),
            _ => format!("found {}", self.spelled(self.ahead).lines().next().unwrap_or_default()),
        };
        let error = self.error(self.ahead, format!("expected {what}, but {found}"));
        match self.mistake() {
            Some(hint) => error.with_hint(hint),
            None => self.with_spelling(error),
        }
    }

    /// The hint for the next token if it is a common mistake.
    fn mistake(&self) -> Option<String> {
        let (spelled, start) = (self.spelled(self.ahead), self.ahead.start);
        match self.ahead.token {
            Token::Word => mistakes::of_word(spelled).map(str::to_owned),
            Token::End => {
                let (bracket, at) = mistakes::open_bracket(self.text)?;
                let place = QueryError::at(self.text, at, at + 1, "");
                let (line, column) = (place.line(), place.column());
                Some(format!("the {bracket} in line {line}, column {column} is not closed"))
            }
            _ => mistakes::of_symbol(spelled, &self.text[..start], &self.text[start..]).map(str::to_owned),
        }
    }

    /// Adds the keyword that the next token resembles.
    fn with_spelling(&self, error: QueryError) -> QueryError {
        if self.ahead.token != Token::Word {
            return error;
        }
        let word = self.spelled(self.ahead);
        let other = KEYWORDS.into_iter().filter(|keyword| !keyword.eq_ignore_ascii_case(word));
        match nearest(word, other) {
            Some(keyword) if self.keyword_ahead().is_none() => {
                error.with_hint(format!("did you mean {keyword}?"))
            }
            _ => error,
        }
    }

    /// Replaces variables that are not visible, hence never bound, by `Unbound`.
    pub(crate) fn restrict(expression: &mut Expression, visible: &VariableSet) {
        expression.for_each_variable_mut(&mut |leaf| match leaf {
            Expression::Variable(variable) if !visible.contains(*variable) => *leaf = Expression::Unbound,
            Expression::Bound(variable) if !visible.contains(*variable) => {
                *leaf = Expression::Constant(oxrdf::Literal::from(false).into());
            }
            _ => {}
        });
    }
}

fn parameter_names(options: &ParseOptions<'_>) -> Vec<String> {
    options.parameters.iter().map(|name| (*name).to_owned()).collect()
}

/// The variable with this number, which [`VARIABLE_COUNT_MAX`] keeps small.
fn variable_at(index: usize) -> Variable {
    Variable(u16::try_from(index).expect("the number of variables is limited"))
}

/// Keywords outside of expressions.
const KEYWORDS: [&str; 54] = [
    "SELECT",
    "ASK",
    "CONSTRUCT",
    "DESCRIBE",
    "WHERE",
    "FILTER",
    "OPTIONAL",
    "UNION",
    "MINUS",
    "BIND",
    "VALUES",
    "GRAPH",
    "SERVICE",
    "DISTINCT",
    "REDUCED",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "ASC",
    "DESC",
    "LIMIT",
    "OFFSET",
    "AS",
    "FROM",
    "NAMED",
    "PREFIX",
    "BASE",
    "VERSION",
    "UNDEF",
    "EXISTS",
    "NOT",
    "IN",
    "SILENT",
    "INSERT",
    "DELETE",
    "LOAD",
    "CLEAR",
    "CREATE",
    "DROP",
    "COPY",
    "MOVE",
    "ADD",
    "WITH",
    "SEPARATOR",
    "true",
    "false",
    "LATERAL",
    "USING",
    "DATA",
    "INTO",
    "TO",
    "DEFAULT",
    "ALL",
];
