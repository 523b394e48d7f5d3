//! `SERVICE`: the query text of a pattern for a remote endpoint.
//!
//! The pattern is parsed to detect errors and to find its variables; the endpoint receives its text, preceded
//! by the prefixes and the base in effect.

use crate::QueryError;
use crate::lexer::Token;
use crate::limits::TEXT_BYTES_MAX;
use crate::parser::Parser;
use std::fmt::Write;
use vervet_algebra::{GraphSlot, Node, Service, Slot};

impl Parser<'_, '_> {
    /// Parses the clause after `SERVICE`.
    pub(crate) fn service(&mut self) -> Result<Node, QueryError> {
        let silent = self.eat_keyword("SILENT")?;
        let start = self.ahead;
        let endpoint = match start.token {
            Token::Variable => Slot::Variable(self.variable()?),
            Token::Iri | Token::Name => Slot::Constant(self.iri()?.into()),
            _ => return Err(self.expected("a variable or an IRI")),
        };
        if self.graph != GraphSlot::Default {
            return Err(self.unsupported(start, "SERVICE inside GRAPH is"));
        }
        let from = self.ahead.start;
        // The endpoint evaluates the pattern without outer rows, which are joined with its solutions.
        let rows = self.outer_rows.take();
        let scope = std::mem::take(&mut self.scope);
        let pattern = self.group();
        let inner = std::mem::replace(&mut self.scope, scope);
        self.outer_rows = rows;
        let pattern = pattern?;
        let to = self.last_end;
        let visible = self.visible(&pattern);
        let mut variables = Vec::new();
        for (name, variable) in inner.iter().filter(|(_, variable)| visible.contains(**variable)) {
            variables.push((*variable, *name));
        }
        variables.sort_unstable();
        let named = variables.iter().map(|(_, name)| Ok(((*name).to_owned(), self.variable_named(name)?)));
        let variables = named.collect::<Result<Vec<_>, QueryError>>()?;
        if self.options.parameters.iter().any(|name| self.text[from..to].contains(name)) {
            return Err(self.unsupported(start, "parameters inside SERVICE are"));
        }
        let text = format!("{}SELECT * {}", self.context(), &self.text[from..to]);
        self.service_bytes = self.service_bytes.saturating_add(text.len());
        if self.service_bytes > TEXT_BYTES_MAX {
            let message = format!("the texts for SERVICE endpoints are longer than {TEXT_BYTES_MAX} bytes");
            return Err(self.error(start, message));
        }
        Ok(Node::Service(Box::new(Service { endpoint, silent, text, variables })))
    }

    /// Base and prefixes in effect, as text.
    fn context(&self) -> String {
        let mut text = String::new();
        if let Some(base) = &self.base {
            let _ = writeln!(text, "BASE <{base}>");
        }
        let given = self.options.prefixes.iter().filter(|(name, _)| !self.prefixes.contains_key(name));
        let mut all: Vec<(&str, &str)> = given.copied().collect();
        all.extend(self.prefixes.iter().map(|(name, iri)| (*name, iri.as_str())));
        all.sort_unstable();
        for (name, iri) in all {
            let _ = writeln!(text, "PREFIX {name}: <{iri}>");
        }
        text
    }
}
