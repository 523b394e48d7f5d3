//! Parser of expressions and aggregates.

use crate::QueryError;
use crate::function::{
    builtin, cast, is_aggregate, is_function, names, nearest_cast, nearest_text_function, text_function,
};
use crate::lexer::{Lexeme, Token};
use crate::mistakes;
use crate::parser::Parser;
use oxiri::Iri;
use oxrdf::vocab::rdf;
use oxrdf::{Term, Triple};
use vervet_algebra::{Aggregate, AggregateKind, Comparator, Expression, Function};
use vervet_model::{TextSearch, nearest};

const SEARCH_HINT: &str =
    "a search lists words that must all occur; also \"a phrase\", prefix*, -excluded, one OR other";

/// Maximum number of aggregates compared with a new one that has a different text.
const AGGREGATES_COMPARED: usize = 64;

impl Parser<'_, '_> {
    /// Parses an expression in the current scope.
    pub(crate) fn expression(&mut self) -> Result<Expression, QueryError> {
        self.nested(Self::or)
    }

    /// Parses a constraint, as after `FILTER`: an expression in parentheses, or a call.
    pub(crate) fn constraint(&mut self) -> Result<Expression, QueryError> {
        match self.ahead.token {
            Token::ParenthesisOpen => self.parenthesized(),
            Token::Word => self.builtin_call(),
            Token::Iri | Token::Name => self.iri_call(true),
            _ => {
                let error = self.expected("a condition in parentheses or a function");
                Err(match self.ahead.token {
                    Token::Variable | Token::Not => error.with_hint("put the condition in parentheses"),
                    _ => error,
                })
            }
        }
    }

    /// Whether a call starts here.
    pub(crate) fn at_function(&self) -> bool {
        match self.ahead.token {
            Token::Iri | Token::Name => true,
            Token::Word => is_function(self.spelled(self.ahead)),
            _ => false,
        }
    }

    fn or(&mut self) -> Result<Expression, QueryError> {
        let first = self.and()?;
        if self.ahead.token != Token::Or {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.eat(Token::Or)? {
            all.push(self.and()?);
        }
        Ok(Expression::Or(all))
    }

    fn and(&mut self) -> Result<Expression, QueryError> {
        let first = self.relation()?;
        if self.ahead.token != Token::And {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.eat(Token::And)? {
            all.push(self.relation()?);
        }
        Ok(Expression::And(all))
    }

    fn relation(&mut self) -> Result<Expression, QueryError> {
        let left = self.sum()?;
        if self.ahead.token == Token::Iri {
            // `?a<?b&&?c>?d`: the longest token wins, here an IRI (SPARQL 1.1 §19.8).
            let is_unequal = self.spelled(self.ahead) == "<>";
            return Err(self.expected("an operator or the end of the expression").with_hint(if is_unequal {
                "did you mean !=?"
            } else {
                "put a space after <"
            }));
        }
        let compare =
            |comparator, left, right| Expression::Compare(comparator, Box::new(left), Box::new(right));
        let comparator = match self.ahead.token {
            Token::Equal | Token::NotEqual => {
                let negated = self.advance()?.token == Token::NotEqual;
                let equal = Expression::Equal(Box::new(left), Box::new(self.sum()?));
                return Ok(if negated { Expression::Not(Box::new(equal)) } else { equal });
            }
            Token::Less => Comparator::Less,
            Token::LessOrEqual => Comparator::LessOrEqual,
            Token::Greater => Comparator::Greater,
            Token::GreaterOrEqual => Comparator::GreaterOrEqual,
            Token::Word => return self.membership(left),
            _ => return Ok(left),
        };
        self.advance()?;
        Ok(compare(comparator, left, self.sum()?))
    }

    /// Parses `IN` or `NOT IN`, if present.
    fn membership(&mut self, left: Expression) -> Result<Expression, QueryError> {
        let negated = self.eat_keyword("NOT")?;
        if !self.at_keyword("IN") {
            return if negated { Err(self.expected("IN")) } else { Ok(left) };
        }
        self.advance()?;
        let inside = Expression::In(Box::new(left), self.arguments()?);
        Ok(if negated { Expression::Not(Box::new(inside)) } else { inside })
    }

    fn sum(&mut self) -> Result<Expression, QueryError> {
        let mut left = self.product()?;
        loop {
            let add = self.ahead.token == Token::Plus;
            if !add && self.ahead.token != Token::Minus {
                return Ok(left);
            }
            self.link()?;
            self.advance()?;
            let right = Box::new(self.product()?);
            left = match add {
                true => Expression::Add(Box::new(left), right),
                false => Expression::Subtract(Box::new(left), right),
            };
        }
    }

    fn product(&mut self) -> Result<Expression, QueryError> {
        let mut left = self.unary()?;
        loop {
            let multiply = self.ahead.token == Token::Star;
            if !multiply && self.ahead.token != Token::Slash {
                return Ok(left);
            }
            self.link()?;
            self.advance()?;
            let right = Box::new(self.unary()?);
            left = match multiply {
                true => Expression::Multiply(Box::new(left), right),
                false => Expression::Divide(Box::new(left), right),
            };
        }
    }

    fn unary(&mut self) -> Result<Expression, QueryError> {
        match self.ahead.token {
            Token::Not => {
                self.advance()?;
                Ok(Expression::Not(Box::new(self.nested(Self::unary)?)))
            }
            Token::Plus | Token::Minus if !self.signed_number() => {
                let plus = self.advance()?.token == Token::Plus;
                let inner = Box::new(self.primary()?);
                Ok(if plus { Expression::Plus(inner) } else { Expression::Minus(inner) })
            }
            _ => self.primary(),
        }
    }

    fn primary(&mut self) -> Result<Expression, QueryError> {
        match self.ahead.token {
            Token::ParenthesisOpen => self.parenthesized(),
            Token::Variable => Ok(Expression::Variable(self.variable()?)),
            Token::Iri | Token::Name => self.iri_call(false),
            Token::TripleTermOpen => self.nested(Self::triple_expression),
            _ if self.at_literal() => Ok(Expression::Constant(self.literal()?.into())),
            Token::Word => self.builtin_call(),
            _ => Err(self.expected("an expression")),
        }
    }

    /// `<<( s p o )>>` of terms and variables.
    fn triple_expression(&mut self) -> Result<Expression, QueryError> {
        self.advance()?;
        let subject = self.triple_expression_node(false)?;
        let predicate = match self.ahead.token {
            Token::Word if self.spelled(self.ahead) == "a" => {
                self.advance()?;
                Expression::Constant(rdf::TYPE.into_owned().into())
            }
            _ => self.triple_expression_node(false)?,
        };
        let object = self.triple_expression_node(true)?;
        self.expect(Token::TripleTermClose, ")>>")?;
        Ok(match (subject, predicate, object) {
            (
                Expression::Constant(Term::NamedNode(subject)),
                Expression::Constant(Term::NamedNode(predicate)),
                Expression::Constant(object),
            ) => Expression::Constant(Triple { subject: subject.into(), predicate, object }.into()),
            (subject, predicate, object) => {
                Expression::Call(Function::Triple, vec![subject, predicate, object])
            }
        })
    }

    /// A component of a triple term in an expression.
    fn triple_expression_node(&mut self, is_object: bool) -> Result<Expression, QueryError> {
        match self.ahead.token {
            Token::Variable => Ok(Expression::Variable(self.variable()?)),
            Token::TripleTermOpen if is_object => self.nested(Self::triple_expression),
            _ if is_object && self.at_literal() => Ok(Expression::Constant(self.literal()?.into())),
            Token::Iri | Token::Name => Ok(Expression::Constant(self.iri()?.into())),
            _ if is_object => Err(self.expected("a variable, an IRI, a literal or <<(")),
            _ => Err(self.expected("a variable or an IRI")),
        }
    }

    fn parenthesized(&mut self) -> Result<Expression, QueryError> {
        self.expect(Token::ParenthesisOpen, "(")?;
        let expression = self.expression()?;
        self.expect(Token::ParenthesisClose, "an operator or )")?;
        Ok(expression)
    }

    /// `( expression, ... )`, possibly empty.
    fn arguments(&mut self) -> Result<Vec<Expression>, QueryError> {
        let mut all = Vec::new();
        self.expect(Token::ParenthesisOpen, "(")?;
        if self.eat(Token::ParenthesisClose)? {
            return Ok(all);
        }
        loop {
            all.push(self.expression()?);
            if self.eat(Token::ParenthesisClose)? {
                return Ok(all);
            }
            self.expect(Token::Comma, "an operator, \",\" or )")?;
        }
    }

    /// An IRI, or a function named by one.
    fn iri_call(&mut self, call_only: bool) -> Result<Expression, QueryError> {
        let at = self.ahead;
        let iri = self.iri()?;
        if self.ahead.token != Token::ParenthesisOpen {
            return if call_only { Err(self.expected("(")) } else { Ok(Expression::Constant(iri.into())) };
        }
        let arguments = self.arguments()?;
        if let Some(function) = text_function(&iri) {
            self.check_count(at, arguments.len(), 2, 2)?;
            if let Some(Expression::Constant(Term::Literal(search))) = arguments.get(1)
                && let Err(error) = TextSearch::parse(search.value())
            {
                return Err(self.error(at, error.to_string()).with_hint(SEARCH_HINT));
            }
            return Ok(Expression::Call(function, arguments));
        }
        if let Some(name) = nearest_text_function(&iri) {
            let error = self.error(at, format!("there is no function {iri}")).unsupported();
            return Err(error.with_hint(format!("did you mean <{name}>?")));
        }
        let Some(function) = cast(&iri) else {
            // Other systems may support the function, so the text is valid; a name close to that of a cast is
            // an error.
            return match nearest_cast(&iri) {
                Some(name) => Err(self
                    .error(at, format!("there is no function {iri}"))
                    .unsupported()
                    .with_hint(format!("did you mean {name}?"))),
                None => Ok(Expression::Call(Function::Unknown(iri), arguments)),
            };
        };
        self.check_count(at, arguments.len(), 1, 1)?;
        Ok(Expression::Call(function, arguments))
    }

    fn builtin_call(&mut self) -> Result<Expression, QueryError> {
        let at = self.advance()?;
        let name = self.spelled(at);
        if is_aggregate(name) {
            return self.aggregate(at);
        }
        if let Some((function, least, greatest)) = builtin(name) {
            let arguments = self.arguments()?;
            self.check_count(at, arguments.len(), least, greatest)?;
            let function = match function {
                Function::Iri { .. } => {
                    Function::Iri { base: self.base.as_ref().map(|base| Iri::as_str(base).to_owned()) }
                }
                other => other,
            };
            return Ok(Expression::Call(function, arguments));
        }
        if name.eq_ignore_ascii_case("EXISTS") {
            return self.nested(Self::exists);
        }
        if name.eq_ignore_ascii_case("NOT") && self.eat_keyword("EXISTS")? {
            return Ok(Expression::Not(Box::new(self.nested(Self::exists)?)));
        }
        if name.eq_ignore_ascii_case("NOT") {
            let error = self.error(at, "expected an expression, but found NOT");
            return Err(error.with_hint("negation is written !"));
        }
        self.special_form(at)
    }

    fn special_form(&mut self, at: Lexeme) -> Result<Expression, QueryError> {
        let name = self.spelled(at);
        match name.to_ascii_uppercase().as_str() {
            "BOUND" => {
                self.expect(Token::ParenthesisOpen, "(")?;
                let variable = self.variable()?;
                self.expect(Token::ParenthesisClose, ")")?;
                Ok(Expression::Bound(variable))
            }
            "COALESCE" => Ok(Expression::Coalesce(self.arguments()?)),
            "IF" => {
                let arguments = self.arguments()?;
                let count = arguments.len();
                match <[Expression; 3]>::try_from(arguments) {
                    Ok([condition, yes, no]) => {
                        Ok(Expression::If(Box::new(condition), Box::new(yes), Box::new(no)))
                    }
                    Err(_) => Err(self.wrong_count(at, count, 3, 3)),
                }
            }
            "SAMETERM" => {
                let arguments = self.arguments()?;
                let count = arguments.len();
                match <[Expression; 2]>::try_from(arguments) {
                    Ok([left, right]) => Ok(Expression::SameTerm(Box::new(left), Box::new(right))),
                    Err(_) => Err(self.wrong_count(at, count, 2, 2)),
                }
            }
            _ if self.ahead.token == Token::ParenthesisOpen => {
                let error = self.error(at, format!("there is no function {name}"));
                Err(match (mistakes::of_function(name), nearest(name, names())) {
                    (Some(hint), _) => error.with_hint(hint),
                    (None, Some(known)) => error.with_hint(format!("did you mean {known}?")),
                    (None, None) => error,
                })
            }
            _ => {
                let error = self.error(at, format!("expected an expression, but found {name}"));
                Err(match mistakes::of_word(name) {
                    Some(hint) => error.with_hint(hint),
                    None => error,
                })
            }
        }
    }

    fn check_count(&self, at: Lexeme, count: usize, least: usize, greatest: usize) -> Result<(), QueryError> {
        if (least..=greatest).contains(&count) {
            Ok(())
        } else {
            Err(self.wrong_count(at, count, least, greatest))
        }
    }

    fn wrong_count(&self, at: Lexeme, count: usize, least: usize, greatest: usize) -> QueryError {
        let wanted = match greatest - least {
            0 if least == 1 => "1 argument".to_owned(),
            0 => format!("{least} arguments"),
            _ => format!("{least} to {greatest} arguments"),
        };
        self.error(at, format!("{} takes {wanted}, but has {count}", self.spelled(at)))
    }

    /// Registers an aggregate with the group; returns the variable that holds its value.
    fn aggregate(&mut self, at: Lexeme) -> Result<Expression, QueryError> {
        let Some(mut aggregation) = self.aggregation.take() else {
            let error = self.error(at, format!("the aggregate {} is not allowed here", self.spelled(at)));
            return Err(error.with_hint(
                "aggregates belong in SELECT, HAVING, or ORDER BY of a grouped query, not in each other",
            ));
        };
        // The argument is in the scope before grouping.
        std::mem::swap(&mut self.scope, &mut aggregation.scope);
        let skips = !self.reads_exists();
        let result = if skips {
            self.aggregate_body(at)
        } else {
            self.reading_exists(
                aggregation.visible.clone(),
                vervet_algebra::VariableSet::default(),
                |parser| parser.aggregate_body(at),
            )
        };
        std::mem::swap(&mut self.scope, &mut aggregation.scope);
        let mut aggregate = result?;
        if let Some(expression) = &mut aggregate.expression {
            Self::restrict(expression, &aggregation.visible);
        }
        // Skipped patterns are missing in the expression, so its text is compared.
        let text = &self.text[at.start..self.last_end];
        let known = match aggregation.by_text.get(text) {
            Some(&position) => Some(position),
            // Compares a limited number of aggregates with different texts.
            None => {
                aggregation.list.iter().take(AGGREGATES_COMPARED).position(|(_, known)| *known == aggregate)
            }
        };
        let position = match known {
            Some(position) => position,
            None => {
                let variable = self.new_variable("")?;
                aggregation.list.push((variable, aggregate));
                aggregation.list.len() - 1
            }
        };
        aggregation.by_text.insert(text, position);
        let variable = aggregation.list[position].0;
        self.aggregation = Some(aggregation);
        Ok(Expression::Variable(variable))
    }

    fn aggregate_body(&mut self, at: Lexeme) -> Result<Aggregate, QueryError> {
        let name = self.spelled(at).to_ascii_uppercase();
        self.expect(Token::ParenthesisOpen, "(")?;
        let distinct = self.eat_keyword("DISTINCT")?;
        let expression = match name == "COUNT" && self.eat(Token::Star)? {
            true => None,
            false => Some(self.expression()?),
        };
        let kind = match name.as_str() {
            "COUNT" => AggregateKind::Count,
            "SUM" => AggregateKind::Sum,
            "MIN" => AggregateKind::Min,
            "MAX" => AggregateKind::Max,
            "AVG" => AggregateKind::Avg,
            "SAMPLE" => AggregateKind::Sample,
            _ => AggregateKind::GroupConcat { separator: self.separator()? },
        };
        self.expect(Token::ParenthesisClose, ")")?;
        Ok(Aggregate { kind, expression, distinct })
    }

    fn separator(&mut self) -> Result<String, QueryError> {
        if !self.eat(Token::Semicolon)? {
            return Ok(" ".to_owned());
        }
        self.expect_keyword("SEPARATOR")?;
        self.expect(Token::Equal, "=")?;
        let lexeme = self.advance()?;
        if lexeme.token != Token::Text {
            return Err(self.error(lexeme, "expected a string"));
        }
        self.unquote(lexeme)
    }
}
