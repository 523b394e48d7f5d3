//! Recursive-descent parser of statements and steps.
//!
//! # Invariants
//! * One token of lookahead: the parser consumes a name, then the next token decides.
//! * `depth` is the current nesting depth; `deepest` is the maximum depth of the last parsed value, for
//!   predicates, which grow at their root (`p.and(q).or(r)`).

use super::error::{Fault, NO_LAMBDAS, Result};
use super::forms::{Callable, SOURCE, SPAWN, STEPS, TERMINALS, Table, is_terminal};
use super::lex::{Kind, Lexer, Token};
use super::mistakes;
use super::statement::{DEPTH_MAX, ParseOptions, Statement, TEXT_BYTES_MAX, Terminal, Transaction};
use super::suggest::nearest;
use crate::{Bytecode, Instruction, Span, Value};

/// The parser of one text.
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The lookahead token.
    pub(super) token: Token,
    pub(super) options: &'a ParseOptions<'a>,
    depth: usize,
    pub(super) deepest: usize,
    /// Number of values that ranges have created.
    pub(super) range_values: usize,
    /// Number of `UUID()` calls.
    pub(super) uuids: u128,
}

pub(super) fn parse(text: &str, options: &ParseOptions<'_>) -> Result<Vec<Statement>> {
    let mut parser = Parser::new(text, options)?;
    let mut statements = vec![parser.statement()?];
    loop {
        if parser.token.kind == Kind::Semicolon {
            parser.bump()?;
        }
        if parser.token.kind == Kind::End {
            return Ok(statements);
        }
        statements.push(parser.statement()?);
    }
}

pub(super) fn parse_value(text: &str, options: &ParseOptions<'_>) -> Result<Value> {
    let mut parser = Parser::new(text, options)?;
    let value = parser.argument()?;
    match parser.token.kind {
        Kind::End => Ok(value),
        _ => Err(parser.unexpected("the end of the value")),
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, options: &'a ParseOptions<'a>) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Fault::new(0, 0, format!("the text has more than {TEXT_BYTES_MAX} bytes")));
        }
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        Ok(Self { lexer, token, options, depth: 0, deepest: 0, range_values: 0, uuids: 0 })
    }

    // Tokens.

    /// Consumes the lookahead token.
    pub(super) fn bump(&mut self) -> Result<Token> {
        let token = self.token;
        self.token = self.lexer.next()?;
        Ok(token)
    }

    /// The text of a token.
    pub(super) fn text(&self, token: Token) -> &'a str {
        self.lexer.text().get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// Consumes a token of this kind; else an error that names `what`.
    pub(super) fn expect(&mut self, kind: Kind, what: &str) -> Result<Token> {
        if self.token.kind == kind { self.bump() } else { Err(self.unexpected(what)) }
    }

    /// The start of a token, for messages.
    pub(super) fn shown(&self, token: Token) -> String {
        const SHOWN_MAX: usize = 40;
        let text = self.text(token);
        let shown: String =
            text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if shown.len() < text.len() { shown + "…" } else { shown }
    }

    /// A fault at a token.
    pub(super) fn fault(&self, token: Token, message: impl Into<String>) -> Box<Fault> {
        Fault::new(token.start, token.end, message)
    }

    /// The fault for an unexpected lookahead token.
    #[cold]
    pub(super) fn unexpected(&self, what: &str) -> Box<Fault> {
        let found = match self.token.kind {
            Kind::End => "the end of the text".to_owned(),
            _ => self.shown(self.token),
        };
        self.fault(self.token, format!("expected {what}, found {found}"))
    }

    // Depth.

    /// Enters a nesting level; each successful call needs a `leave`.
    pub(super) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        self.reach(self.depth)
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Records a nesting depth of the current value.
    pub(super) fn reach(&mut self, depth: usize) -> Result<()> {
        self.deepest = self.deepest.max(depth);
        if self.deepest <= DEPTH_MAX {
            return Ok(());
        }
        let fault = self.fault(self.token, format!("more than {DEPTH_MAX} levels are nested here"));
        Err(fault.hint("split the query, or pass the values as parameters"))
    }

    /// Starts to measure the depth of a value; returns the previous measure, which the caller restores to
    /// `deepest`.
    pub(super) fn measure(&mut self) -> usize {
        std::mem::replace(&mut self.deepest, self.depth)
    }

    // Statements.

    /// The index of the source with this name.
    pub(super) fn source(&self, name: &str) -> Option<usize> {
        self.options.sources.iter().position(|source| source == name)
    }

    fn statement(&mut self) -> Result<Statement> {
        let first = self.token;
        if first.kind == Kind::Text && first.end - first.start == 2 {
            self.bump()?;
            return Ok(Statement::Nothing);
        }
        let name = self.text(first);
        let source = if first.kind == Kind::Name { self.source(name) } else { None };
        let Some(source) = source else {
            let sources = self.options.sources.join(" or ");
            let hint = format!(
                "start with a source, such as {}.V()",
                self.options.sources.first().map_or("g", |s| s)
            );
            let fault = self.unexpected(&format!("a traversal source ({sources})"));
            return Err(match mistakes::of_statement(name) {
                Some(language) => fault.hint(language),
                None => fault.hint(hint),
            });
        };
        self.bump()?;
        let mut bytecode = Bytecode::default();
        while self.token.kind == Kind::Dot {
            self.bump()?;
            let name = self.expect(Kind::Name, "the name of a step")?;
            match self.text(name) {
                "tx" => return self.transaction(source),
                "toString" => {
                    self.call(name, &TERMINALS)?;
                    return Ok(Statement::Source { source, bytecode, to_text: true });
                }
                text if SOURCE.find(text).is_some() => bytecode.source.push(self.call(name, &SOURCE)?),
                _ => {
                    let terminal = self.spawn(name, &mut bytecode)?;
                    let terminal = terminal.map(|(instruction, name)| self.terminal(&instruction, name));
                    return Ok(Statement::Traversal { source, bytecode, terminal: terminal.transpose()? });
                }
            }
        }
        Ok(Statement::Source { source, bytecode, to_text: false })
    }

    fn transaction(&mut self, source: usize) -> Result<Statement> {
        self.empty_parentheses()?;
        self.expect(Kind::Dot, "begin(), commit() or rollback()")?;
        let name = self.expect(Kind::Name, "begin(), commit() or rollback()")?;
        let action = match self.text(name) {
            "begin" => Transaction::Begin,
            "commit" => Transaction::Commit,
            "rollback" => Transaction::Rollback,
            _ => {
                let message = format!("a transaction has no {}()", self.shown(name));
                return Err(self.fault(name, message).hint("it has begin(), commit() and rollback()"));
            }
        };
        self.empty_parentheses()?;
        Ok(Statement::Transaction { source, action })
    }

    fn empty_parentheses(&mut self) -> Result<()> {
        self.expect(Kind::Open, "(")?;
        self.expect(Kind::Close, ")")?;
        Ok(())
    }

    fn terminal(&self, instruction: &Instruction, name: Token) -> Result<Terminal> {
        Ok(match (&*instruction.name, instruction.arguments.first()) {
            ("next", None) => Terminal::Next,
            ("next", Some(count)) => match count.as_integer() {
                Some(count) => Terminal::NextMany(count),
                None => return Err(self.fault(name, "next() takes a number of at most 64 bits")),
            },
            ("hasNext", _) => Terminal::HasNext,
            ("tryNext", _) => Terminal::TryNext,
            ("iterate", _) => Terminal::Iterate,
            ("toList", _) => Terminal::ToList,
            ("toSet", _) => Terminal::ToSet,
            ("toBulkSet", _) => Terminal::ToBulkSet,
            ("explain", _) => Terminal::Explain,
            _ => Terminal::ToText,
        })
    }

    // Traversals.

    /// Parses the steps of a source, whose first name is already consumed; returns the terminal method.
    fn spawn(&mut self, name: Token, bytecode: &mut Bytecode) -> Result<Option<(Instruction, Token)>> {
        if SPAWN.find(self.text(name)).is_none() {
            return Err(self.no_spawn(name));
        }
        bytecode.steps.push(self.call(name, &SPAWN)?);
        while self.token.kind == Kind::Dot {
            self.bump()?;
            let name = self.expect(Kind::Name, "the name of a step")?;
            if is_terminal(self.text(name)) {
                let instruction = self.call(name, &TERMINALS)?;
                if self.token.kind == Kind::Dot {
                    let message = format!("no step can follow {}()", instruction.name);
                    let hint = format!("put {}() at the end", instruction.name);
                    return Err(self.fault(self.token, message).hint(hint));
                }
                return Ok(Some((instruction, name)));
            }
            bytecode.steps.push(self.call(name, &STEPS)?);
        }
        Ok(None)
    }

    #[cold]
    fn no_spawn(&self, name: Token) -> Box<Fault> {
        let text = self.text(name);
        if STEPS.find(text).is_some() || is_terminal(text) {
            let message = format!("no traversal starts with {text}()");
            return self.fault(name, message).hint(format!("put V() or E() before it: g.V().{text}(…)"));
        }
        let fault =
            self.fault(name, format!("no traversal starts with {}, which is no step", self.shown(name)));
        if let Some(hint) = mistakes::of_start(text) {
            return fault.hint(hint);
        }
        match nearest(text, SPAWN.names().chain(SOURCE.names())) {
            Some(near) => fault.hint(format!("did you mean {near}()?")),
            None => fault.hint(list("a traversal starts with", SPAWN.names())),
        }
    }

    /// Parses a traversal of a source as an argument; its terminal method is required and becomes its last
    /// step.
    pub(super) fn terminated(&mut self, source: Token) -> Result<Bytecode> {
        let mut bytecode = Bytecode::default();
        while self.token.kind == Kind::Dot {
            self.bump()?;
            let name = self.expect(Kind::Name, "the name of a step")?;
            if SOURCE.find(self.text(name)).is_some() {
                bytecode.source.push(self.call(name, &SOURCE)?);
                continue;
            }
            if let Some((terminal, _)) = self.spawn(name, &mut bytecode)? {
                bytecode.steps.push(terminal);
                return Ok(bytecode);
            }
            break;
        }
        let name = self.text(source);
        let message = format!("{name} starts a traversal of its own, which gives no value here");
        Err(self.fault(source, message).hint("begin with __ instead of it, or end with next()"))
    }

    /// Parses an anonymous traversal, whose first name is already consumed.
    pub(super) fn anonymous(&mut self, name: Token) -> Result<Bytecode> {
        let first = self.call(name, &STEPS)?;
        self.anonymous_from(first)
    }

    /// Parses the rest of an anonymous traversal after its first step.
    pub(super) fn anonymous_from(&mut self, first: Instruction) -> Result<Bytecode> {
        let mut steps = vec![first];
        while self.token.kind == Kind::Dot {
            self.bump()?;
            let name = self.expect(Kind::Name, "the name of a step")?;
            let text = self.text(name);
            if is_terminal(text) {
                let message = format!("{text}() ends traversals of a source, not anonymous ones");
                return Err(self.fault(name, message).hint("leave it out"));
            }
            steps.push(self.call(name, &STEPS)?);
        }
        Ok(Bytecode { source: Vec::new(), steps })
    }

    /// Parses a call from a table; the name is already consumed.
    pub(super) fn call(&mut self, name: Token, table: &Table) -> Result<Instruction> {
        let text = self.text(name);
        let Some(callable) = table.find(text) else {
            return Err(self.no_step(name, table));
        };
        if self.token.kind == Kind::OpenBrace {
            return Err(self.unexpected("( after the name of a step").hint(NO_LAMBDAS));
        }
        if self.token.kind != Kind::Open {
            let fault = self.unexpected("( after the name of a step");
            return Err(fault.hint(format!("a step needs its parentheses: {text}()")));
        }
        self.bump()?;
        let strategies = matches!(text, "withStrategies" | "withoutStrategies");
        let mut arguments = self.arguments(Kind::Close, strategies)?;
        let close = self.bump()?;
        if text == "asNumber" {
            arguments.iter_mut().for_each(super::words::as_type);
        }
        if !callable.takes(&arguments) {
            return Err(self.wrong_arguments(name, close, callable, &arguments));
        }
        let at = Span { start: name.start, end: close.end };
        Ok(Instruction { name: callable.name.clone(), arguments, at })
    }

    /// Parses values up to a closing token, which is not consumed.
    pub(super) fn arguments(&mut self, close: Kind, strategies: bool) -> Result<Vec<Value>> {
        if self.token.kind == close {
            return Ok(Vec::new());
        }
        let mut arguments = Vec::with_capacity(1);
        loop {
            arguments.push(if strategies { self.strategy()? } else { self.argument()? });
            match self.token.kind {
                Kind::Comma => self.bump()?,
                kind if kind == close => return Ok(arguments),
                _ => return Err(self.unexpected(", or the end of the list")),
            };
        }
    }

    #[cold]
    fn no_step(&self, name: Token, table: &Table) -> Box<Fault> {
        let text = self.text(name);
        let fault = self.fault(name, format!("there is no step {}", self.shown(name)));
        if text == "tx" || SOURCE.find(text).is_some() {
            return fault.hint(format!("{text}() must directly follow g"));
        }
        if let Some(hint) = mistakes::of_step(text) {
            return fault.hint(hint);
        }
        match nearest(text, table.names()) {
            Some(near) => fault.hint(format!("did you mean {near}()?")),
            // `g.V().name`
            None if self.token.kind != Kind::Open => {
                fault.hint(format!("did you mean values(\"{}\")?", self.shown(name)))
            }
            None => fault,
        }
    }

    #[cold]
    pub(super) fn wrong_arguments(
        &self,
        name: Token,
        close: Token,
        callable: &Callable,
        arguments: &[Value],
    ) -> Box<Fault> {
        let types: Vec<_> = arguments.iter().map(Value::type_name).collect();
        let message = match types.is_empty() {
            true => format!("{}() needs an argument", callable.name),
            false => format!("{}() does not take {}", callable.name, types.join(", ")),
        };
        let fault = Fault::new(name.start, close.end, message);
        match (&*callable.name, arguments.first().and_then(Value::as_text)) {
            ("value", Some(key)) => fault.hint(format!("did you mean values(\"{key}\")?")),
            _ => fault.hint(callable.describe()),
        }
    }
}

fn list<'a>(begin: &str, names: impl Iterator<Item = &'a str>) -> String {
    format!("{begin} {}", names.collect::<Vec<_>>().join(", "))
}
