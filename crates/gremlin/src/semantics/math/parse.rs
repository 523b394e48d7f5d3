//! Compiler from text to a stack-machine program, by precedence climbing.

use super::program::{Binary, Expression, MAX_DEPTH, Operation, function};
use crate::semantics::{Error, Result};

pub(super) fn expression(text: &str) -> Result<Expression> {
    let expression = Expression { variables: Vec::new(), program: Vec::new() };
    let mut parser = Parser { text, at: 0, depth: 0, expression };
    parser.operand(Level::Sum)?;
    match parser.peek() {
        None => Ok(parser.expression),
        Some(_) => Err(parser.error("an operator or the end")),
    }
}

/// Precedence of an operator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Sum,
    Product,
    Sign,
    Power,
}

struct Parser<'t> {
    text: &'t str,
    /// Position of the next byte.
    at: usize,
    depth: usize,
    expression: Expression,
}

impl Parser<'_> {
    /// Parses an operand of operators with at least precedence `least`.
    fn operand(&mut self, least: Level) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::new(format!("cannot read math(): it nests deeper than {MAX_DEPTH}")));
        }
        self.prefix()?;
        while let Some((binary, level)) = self.peek().and_then(operator) {
            if level < least {
                break;
            }
            self.advance();
            // Left-associative, except powers.
            self.operand(match level {
                Level::Sum => Level::Product,
                Level::Product => Level::Sign,
                Level::Sign | Level::Power => Level::Power,
            })?;
            self.expression.program.push(Operation::Binary(binary));
        }
        self.depth -= 1;
        Ok(())
    }

    /// Parses a number, a variable, a parenthesized expression, or a sign or function with its operand.
    fn prefix(&mut self) -> Result<()> {
        match self.peek() {
            Some('-') => {
                self.advance();
                self.operand(Level::Sign)?;
                self.expression.program.push(Operation::Negate);
            }
            Some('+') => {
                self.advance();
                self.operand(Level::Sign)?;
            }
            Some('(' | '[' | '{') => self.brackets()?,
            Some(c) if c.is_ascii_digit() || c == '.' => self.number()?,
            Some(c) if c.is_alphabetic() || c == '_' => self.name()?,
            _ => return Err(self.error("a number, a variable, a function or '('")),
        }
        Ok(())
    }

    fn brackets(&mut self) -> Result<()> {
        self.advance();
        self.operand(Level::Sum)?;
        if !matches!(self.peek(), Some(')' | ']' | '}')) {
            return Err(self.error("an operator or ')'"));
        }
        self.advance();
        Ok(())
    }

    fn number(&mut self) -> Result<()> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut length = digits(rest);
        if rest.as_bytes().get(length) == Some(&b'.') {
            length += 1 + rest.get(length + 1..).map_or(0, digits);
        }
        if let Some(b'e' | b'E') = rest.as_bytes().get(length) {
            let sign = usize::from(matches!(rest.as_bytes().get(length + 1), Some(b'+' | b'-')));
            let exponent = rest.get(length + 1 + sign..).map_or(0, digits);
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        match rest.get(..length).and_then(|number| number.parse().ok()) {
            Some(number) => self.expression.program.push(Operation::Number(number)),
            None => return Err(self.error("a number")),
        }
        self.at += length;
        Ok(())
    }

    fn name(&mut self) -> Result<()> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default();
        if let Some(function) = function(name) {
            self.at += length;
            if matches!(self.peek(), Some('(' | '[' | '{')) {
                self.brackets()?;
            } else {
                self.operand(Level::Sum)?;
            }
            self.expression.program.push(Operation::Call(function));
            return Ok(());
        }
        let variables = &mut self.expression.variables;
        let index = variables.iter().position(|variable| **variable == *name).unwrap_or_else(|| {
            variables.push(name.into());
            variables.len() - 1
        });
        self.expression.program.push(Operation::Variable(index));
        self.at += length;
        Ok(())
    }

    /// The next non-white-space character; advances `at` to it.
    fn peek(&mut self) -> Option<char> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at = self.text.len() - rest.trim_start().len();
        rest.trim_start().chars().next()
    }

    fn advance(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    fn error(&mut self, expected: &str) -> Error {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |c| format!("'{c}'"));
        let line: String = self.text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let column = self.text.get(..self.at).unwrap_or_default().chars().count();
        Error::new(format!(
            "cannot read math(): expected {expected}, found {found}\n  {line}\n  {}^",
            " ".repeat(column)
        ))
    }
}

fn operator(c: char) -> Option<(Binary, Level)> {
    Some(match c {
        '+' => (Binary::Add, Level::Sum),
        '-' => (Binary::Subtract, Level::Sum),
        '*' => (Binary::Multiply, Level::Product),
        '/' => (Binary::Divide, Level::Product),
        '%' => (Binary::Remainder, Level::Product),
        '^' => (Binary::Power, Level::Power),
        _ => return None,
    })
}
