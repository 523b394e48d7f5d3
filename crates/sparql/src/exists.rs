//! `EXISTS`: patterns in expressions.
//!
//! Inside the pattern a name means what the row outside binds to it, if it may bind it, and otherwise
//! something of the pattern's own. What a row binds is known where its group ends, which is behind the
//! expression. So an expression is read at its place, where patterns in it are skipped, and if it had any,
//! once more when that is known ([`Parser::with_exists`]).
//! # Cost
//! A pattern is skipped once for each `EXISTS` around it, of which there are at most
//! [`crate::limits::NESTING_MAX`].

use crate::QueryError;
use crate::lexer::{Lexeme, Lexer, Token};
use crate::parser::Parser;
use crate::walk::{VariableSet, mentioned};
use vervet_algebra::{Exists, Expression, Node};

/// A place in the text to come back to.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    lexer: Lexer<'a>,
    ahead: Lexeme,
}

/// What is known about the rows outside while an expression is read.
#[derive(Default)]
pub(crate) struct Patterns {
    /// What they may bind; `None`: not known yet, patterns are skipped.
    rows: Option<VariableSet>,
    /// What all of them bind, as far as that is known.
    certain: VariableSet,
    /// Whether a pattern was skipped.
    skipped: bool,
}

impl<'a> Parser<'a, '_> {
    pub(crate) fn place(&self) -> Place<'a> {
        Place { lexer: self.lexer, ahead: self.ahead }
    }

    /// Reads from `place` and comes back.
    pub(crate) fn at_place<T>(
        &mut self,
        place: Place<'a>,
        read: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let here = std::mem::replace(&mut self.lexer, place.lexer);
        let ahead = std::mem::replace(&mut self.ahead, place.ahead);
        let result = read(self);
        (self.lexer, self.ahead) = (here, ahead);
        result
    }

    /// Reads expressions whose patterns are skipped; whether there are any, so that it is not what was meant.
    pub(crate) fn skipping_exists<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<(T, bool), QueryError> {
        let outer = std::mem::take(&mut self.patterns);
        let result = read(self);
        let skipped = std::mem::replace(&mut self.patterns, outer).skipped;
        Ok((result?, skipped))
    }

    /// Reads expressions with patterns in them, for rows that may bind `rows` and bind `certain`.
    pub(crate) fn reading_exists<T>(
        &mut self,
        rows: VariableSet,
        certain: VariableSet,
        read: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let patterns = Patterns { rows: Some(rows), certain, skipped: false };
        let outer = std::mem::replace(&mut self.patterns, patterns);
        let result = read(self);
        self.patterns = outer;
        result
    }

    /// Reads expressions; `rows` says what the rows that they are for bind, and is asked only if it matters.
    pub(crate) fn with_exists<T>(
        &mut self,
        rows: impl FnOnce(&Self) -> VariableSet,
        read: impl Fn(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let place = self.place();
        let aggregates = self.aggregation.as_ref().map_or(0, |all| all.list.len());
        let (found, skipped) = self.skipping_exists(&read)?;
        if !skipped {
            return Ok(found);
        }
        if let Some(all) = &mut self.aggregation {
            all.list.truncate(aggregates);
            all.by_text.retain(|_, place| *place < aggregates);
        }
        (self.lexer, self.ahead) = (place.lexer, place.ahead);
        let rows = rows(self);
        self.reading_exists(rows, VariableSet::default(), &read)
    }

    /// Whether patterns are read here, not skipped.
    pub(crate) fn reads_exists(&self) -> bool {
        self.patterns.rows.is_some()
    }

    /// Behind `EXISTS`.
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

    /// What the pattern mentions of the rows outside; the graph around both is one of them.
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
