//! `EXISTS`: parsing and scoping of patterns in expressions.
//!
//! A name in the pattern refers to the variable of the outer row if the row may bind it, and is local to the
//! pattern otherwise. The variables of the row are known at the end of its group, after the expression. So an
//! expression is parsed in two passes: first in place, skipping its patterns; and, if there were any, again
//! when the variables of the row are known ([`Parser::with_exists`]).
//! # Cost
//! A pattern is skipped once for each `EXISTS` around it, of which there are at most
//! [`crate::limits::NESTING_MAX`].

use crate::QueryError;
use crate::analysis::mentioned;
use crate::lexer::{Lexeme, Lexer, Token};
use crate::parser::Parser;
use vervet_algebra::{Exists, Expression, Node, VariableSet};

/// A parser position to return to.
#[derive(Clone, Copy)]
pub(crate) struct ParserPosition<'a> {
    lexer: Lexer<'a>,
    ahead: Lexeme,
}

/// Outer variables while an expression is parsed.
#[derive(Default)]
pub(crate) struct ExistsScope {
    /// Variables that outer rows may bind; `None`: not known yet, patterns are skipped.
    rows: Option<VariableSet>,
    /// Variables that all outer rows are known to bind.
    certain: VariableSet,
    /// Whether the pass has skipped a pattern.
    skipped: bool,
}

impl<'a> Parser<'a, '_> {
    pub(crate) fn parser_position(&self) -> ParserPosition<'a> {
        ParserPosition { lexer: self.lexer, ahead: self.ahead }
    }

    /// Parses from `position`, then restores the position.
    pub(crate) fn parse_at<T>(
        &mut self,
        position: ParserPosition<'a>,
        read: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let here = std::mem::replace(&mut self.lexer, position.lexer);
        let ahead = std::mem::replace(&mut self.ahead, position.ahead);
        let result = read(self);
        (self.lexer, self.ahead) = (here, ahead);
        result
    }

    /// Parses expressions, skipping their patterns; `true`: a pattern was skipped, and the result is
    /// incomplete.
    pub(crate) fn skipping_exists<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<(T, bool), QueryError> {
        let outer = std::mem::take(&mut self.patterns);
        let result = read(self);
        let skipped = std::mem::replace(&mut self.patterns, outer).skipped;
        Ok((result?, skipped))
    }

    /// Parses expressions with their patterns, for rows that may bind `rows` and certainly bind `certain`.
    pub(crate) fn reading_exists<T>(
        &mut self,
        rows: VariableSet,
        certain: VariableSet,
        read: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let patterns = ExistsScope { rows: Some(rows), certain, skipped: false };
        let outer = std::mem::replace(&mut self.patterns, patterns);
        let result = read(self);
        self.patterns = outer;
        result
    }

    /// Parses expressions in one or two passes; `rows` returns the variables of their rows, and is called
    /// only for the second pass.
    pub(crate) fn with_exists<T>(
        &mut self,
        rows: impl FnOnce(&Self) -> VariableSet,
        read: impl Fn(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let position = self.parser_position();
        let aggregates = self.aggregation.as_ref().map_or(0, |all| all.list.len());
        let (found, skipped) = self.skipping_exists(&read)?;
        if !skipped {
            return Ok(found);
        }
        if let Some(all) = &mut self.aggregation {
            all.list.truncate(aggregates);
            all.by_text.retain(|_, position| *position < aggregates);
        }
        (self.lexer, self.ahead) = (position.lexer, position.ahead);
        let rows = rows(self);
        self.reading_exists(rows, VariableSet::default(), &read)
    }

    /// Whether patterns are parsed, not skipped.
    pub(crate) fn reads_exists(&self) -> bool {
        self.patterns.rows.is_some()
    }

    /// The pattern after `EXISTS`.
    pub(crate) fn exists(&mut self) -> Result<Expression, QueryError> {
        if self.ahead.token != Token::BraceOpen {
            return Err(self.expected("{"));
        }
        self.link()?;
        let Some(rows) = self.patterns.rows.take() else {
            self.patterns.skipped = true;
            self.skip_group()?;
            return Ok(Expression::Unbound);
        };
        let scope = self.scope.iter().filter(|(_, variable)| rows.contains(**variable));
        let scope = scope.map(|(name, variable)| (*name, *variable)).collect();
        let outer_scope = std::mem::replace(&mut self.scope, scope);
        let outer_rows = self.outer_rows.replace(rows);
        let certain = self.patterns.certain.clone();
        let outer_certain = std::mem::replace(&mut self.outer_certain, certain);
        let outer_patterns = std::mem::take(&mut self.patterns);
        let aggregation = self.aggregation.take();
        let pattern = self.group();
        self.aggregation = aggregation;
        self.patterns = outer_patterns;
        let rows = std::mem::replace(&mut self.outer_rows, outer_rows);
        self.outer_certain = outer_certain;
        self.scope = outer_scope;
        let pattern = pattern?;
        let outer = match &rows {
            Some(rows) => self.outer_of(&pattern, rows),
            None => Vec::new(),
        };
        self.patterns.rows = rows;
        Ok(Expression::Exists(Box::new(Exists { pattern, outer })))
    }

    /// Outer variables that the pattern mentions, including that of the surrounding `GRAPH`.
    fn outer_of(&self, pattern: &Node, rows: &VariableSet) -> Vec<vervet_algebra::Variable> {
        let graph = self.graph_variable();
        let mut all = mentioned(pattern);
        all.retain(|variable| rows.contains(*variable) || Some(*variable) == graph);
        all
    }

    fn skip_group(&mut self) -> Result<(), QueryError> {
        let mut depth = 0_usize;
        loop {
            let lexeme = self.advance()?;
            match lexeme.token {
                Token::BraceOpen => depth += 1,
                Token::BraceClose => depth -= 1,
                Token::End => return Err(self.error(lexeme, "expected }, but the query ends")),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}
