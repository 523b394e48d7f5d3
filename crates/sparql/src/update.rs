//! Parser of updates: prologues, operations, patterns.
//!
//! Prefixes and base of an operation apply to later operations, variables do not. The scope of a blank node
//! label is one template, one pattern, or one `INSERT DATA`, and a label of a pattern or `INSERT DATA` is
//! used in only one of them in a request (SPARQL 1.1 §19.6).

use crate::lexer::Token;
use crate::parser::Parser;
use crate::template::{TemplateKind, retain_bound};
use crate::{QueryError, sub_query_order};
use oxrdf::NamedNode;
use vervet_algebra::{Dataset, Form, GraphTarget, Modify, Operation, Quads, Query, Transfer, Update};

/// The first keywords of operations.
const OPERATIONS: &str = "INSERT, DELETE, WITH, LOAD, CLEAR, DROP, CREATE, ADD, MOVE or COPY";

impl Parser<'_, '_> {
    pub(crate) fn update(mut self) -> Result<Update, QueryError> {
        let mut operations = Vec::new();
        loop {
            self.prologue()?;
            if self.ahead.token == Token::End {
                break;
            }
            self.begin_operation();
            operations.push(self.operation()?);
            if !self.eat(Token::Semicolon)? {
                if self.ahead.token != Token::End {
                    return Err(self.expected("; or the end of the update"));
                }
                break;
            }
        }
        self.require_parameters()?;
        Ok(Update { operations })
    }

    fn operation(&mut self) -> Result<Operation, QueryError> {
        let start = self.ahead;
        match self.keyword_ahead() {
            Some("INSERT") => {
                self.advance()?;
                if self.eat_keyword("DATA")? {
                    return Ok(Operation::InsertData(self.quads(TemplateKind::InsertData, None)?));
                }
                let insert = self.quads(TemplateKind::Insert, None)?;
                self.modify(None, Quads::default(), insert)
            }
            Some("DELETE") => {
                self.advance()?;
                if self.eat_keyword("DATA")? {
                    return Ok(Operation::DeleteData(self.quads(TemplateKind::DeleteData, None)?));
                }
                if self.eat_keyword("WHERE")? {
                    return self.delete_where();
                }
                self.delete_insert(None)
            }
            Some("WITH") => {
                self.advance()?;
                let graph = self.iri()?;
                if self.eat_keyword("DELETE")? {
                    return self.delete_insert(Some(graph));
                }
                self.expect_keyword("INSERT")?;
                let insert = self.quads(TemplateKind::Insert, Some(&graph))?;
                self.modify(Some(graph), Quads::default(), insert)
            }
            Some("LOAD") => {
                let silent = self.silent()?;
                let source = self.iri()?;
                let graph = if self.eat_keyword("INTO")? {
                    self.expect_keyword("GRAPH")?;
                    Some(self.iri()?)
                } else {
                    None
                };
                Ok(Operation::Load { silent, source, graph })
            }
            Some("CLEAR") => {
                let silent = self.silent()?;
                Ok(Operation::Clear { silent, target: self.graph_target()? })
            }
            Some("DROP") => {
                let silent = self.silent()?;
                Ok(Operation::Drop { silent, target: self.graph_target()? })
            }
            Some("CREATE") => {
                let silent = self.silent()?;
                self.expect_keyword("GRAPH")?;
                Ok(Operation::Create { silent, graph: self.iri()? })
            }
            Some("ADD") => Ok(Operation::Add(self.transfer()?)),
            Some("MOVE") => Ok(Operation::Move(self.transfer()?)),
            Some("COPY") => Ok(Operation::Copy(self.transfer()?)),
            Some("SELECT" | "ASK" | "CONSTRUCT" | "DESCRIBE") => {
                let message = format!("{} begins a query, and this is an update", self.spelled(start));
                Err(self
                    .error(start, message)
                    .with_hint("run it as a query: `vervet query`, `Database::query`, or over HTTP /query"))
            }
            _ => Err(self.expected(OPERATIONS)),
        }
    }

    /// Consumes the keyword of the operation, and `SILENT`.
    fn silent(&mut self) -> Result<bool, QueryError> {
        self.advance()?;
        self.eat_keyword("SILENT")
    }

    fn graph_target(&mut self) -> Result<GraphTarget, QueryError> {
        match self.keyword_ahead() {
            Some("GRAPH") => {
                self.advance()?;
                Ok(GraphTarget::Graph(self.iri()?))
            }
            Some("DEFAULT") => self.advance().map(|_| GraphTarget::Default),
            Some("NAMED") => self.advance().map(|_| GraphTarget::Named),
            Some("ALL") => self.advance().map(|_| GraphTarget::All),
            _ => Err(self.expected("GRAPH, DEFAULT, NAMED or ALL")),
        }
    }

    fn transfer(&mut self) -> Result<Transfer, QueryError> {
        let silent = self.silent()?;
        let from = self.graph_or_default()?;
        self.expect_keyword("TO")?;
        Ok(Transfer { silent, from, to: self.graph_or_default()? })
    }

    fn graph_or_default(&mut self) -> Result<Option<NamedNode>, QueryError> {
        if self.eat_keyword("DEFAULT")? {
            return Ok(None);
        }
        if !self.eat_keyword("GRAPH")? && !matches!(self.ahead.token, Token::Iri | Token::Name) {
            return Err(self.expected("DEFAULT, GRAPH or an IRI"));
        }
        self.iri().map(Some)
    }

    /// Parses the operation after `DELETE`.
    fn delete_insert(&mut self, with: Option<NamedNode>) -> Result<Operation, QueryError> {
        let delete = self.quads(TemplateKind::Delete, with.as_ref())?;
        let insert = if self.eat_keyword("INSERT")? {
            self.quads(TemplateKind::Insert, with.as_ref())?
        } else {
            Quads::default()
        };
        self.modify(with, delete, insert)
    }

    /// Parses the rest of an operation after its templates.
    fn modify(
        &mut self,
        with: Option<NamedNode>,
        delete: Quads,
        insert: Quads,
    ) -> Result<Operation, QueryError> {
        let dataset = match self.graphs_of("USING")? {
            Some(dataset) => dataset,
            None => Dataset { default: with.map(|graph| vec![graph]), named: None },
        };
        self.expect_keyword("WHERE")?;
        self.solve(delete, insert, dataset)
    }

    /// Parses `DELETE WHERE`: the quads are both template and pattern, and are parsed twice.
    fn delete_where(&mut self) -> Result<Operation, QueryError> {
        let (lexer, ahead) = (self.lexer, self.ahead);
        let delete = self.quads(TemplateKind::DeleteWhere, None)?;
        (self.lexer, self.ahead) = (lexer, ahead);
        self.solve(delete, Quads::default(), Dataset::default())
    }

    /// Parses the pattern and assembles the operation.
    fn solve(
        &mut self,
        mut delete: Quads,
        mut insert: Quads,
        dataset: Dataset,
    ) -> Result<Operation, QueryError> {
        let mut root = self.group()?;
        if self.has_inner_order {
            sub_query_order::remove_all(&mut root);
        }
        let bound = self.visible(&root);
        let mut columns = Vec::new();
        for (quads, comes) in [(&mut delete, false), (&mut insert, true)] {
            retain_bound(quads, comes, &|variable| bound.contains(variable));
            quads.variables(&mut columns);
        }
        let (variables, parameters) = self.take_variables();
        let solutions = Query { form: Form::Select(columns), root, variables, parameters };
        Ok(Operation::Modify(Box::new(Modify { delete, insert, dataset, solutions })))
    }
}
