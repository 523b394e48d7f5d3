//! Parser of terms: resolution of IRIs, unescaping of literals.

use crate::lexer::{Lexeme, Token};
use crate::parser::Parser;
use crate::{QueryError, well_known_prefixes};
use oxiri::Iri;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Term, Triple};
use std::borrow::Cow;
use vervet_model::{is_plain_iri, nearest};

impl<'a> Parser<'a, '_> {
    /// Parses an IRI, absolute, relative or prefixed.
    pub(crate) fn iri(&mut self) -> Result<NamedNode, QueryError> {
        match self.ahead.token {
            Token::Iri => {
                let lexeme = self.advance()?;
                self.resolve(lexeme).map(NamedNode::new_unchecked)
            }
            Token::Name => {
                let lexeme = self.advance()?;
                self.prefixed(lexeme).map(NamedNode::new_unchecked)
            }
            _ => Err(self.expected("an IRI")),
        }
    }

    /// Resolves `<...>`.
    pub(crate) fn resolve(&self, lexeme: Lexeme) -> Result<String, QueryError> {
        let written = unescape(&self.text[lexeme.start + 1..lexeme.end - 1], false)
            .map_err(|message| self.error(lexeme, message))?;
        let resolved = match &self.base {
            Some(base) => base.resolve(&written),
            None if is_plain_iri(written.as_bytes()) => return Ok(written.into_owned()),
            None => Iri::parse(written.into_owned()),
        };
        resolved.map(Iri::into_inner).map_err(|error| {
            let shown = self.error(lexeme, format!("this is not a valid IRI: {error}"));
            if self.base.is_none() && !self.spelled(lexeme).contains(':') {
                return shown.with_hint("a relative IRI needs a BASE declaration");
            }
            shown
        })
    }

    /// Resolves `prefix:local`.
    fn prefixed(&self, lexeme: Lexeme) -> Result<String, QueryError> {
        let prefix = &self.text[lexeme.start..lexeme.extra];
        let local = &self.text[lexeme.extra + 1..lexeme.end];
        let Some(namespace) = self.namespace(prefix) else {
            return Err(self.undeclared(lexeme, prefix));
        };
        let mut iri = String::with_capacity(namespace.len() + local.len());
        iri.push_str(namespace);
        local.split('\\').for_each(|part| iri.push_str(part));
        // If a namespace ends within a host name, the local name becomes a part of the host name or of a
        // port.
        if is_plain_iri(iri.as_bytes()) {
            return Ok(iri);
        }
        Iri::parse(iri)
            .map(Iri::into_inner)
            .map_err(|error| self.error(lexeme, format!("this is not a valid IRI: {error}")))
    }

    fn namespace(&self, prefix: &str) -> Option<&str> {
        let declared = self.prefixes.get(prefix).map(String::as_str);
        let given = || self.options.prefixes.iter().find(|(name, _)| *name == prefix).map(|(_, iri)| *iri);
        declared.or_else(given)
    }

    fn undeclared(&self, lexeme: Lexeme, prefix: &str) -> QueryError {
        let error = QueryError::at(
            self.text,
            lexeme.start,
            lexeme.extra + 1,
            format!("the prefix {prefix}: is not declared"),
        );
        if let Some((name, iri)) = well_known_prefixes().iter().find(|(name, _)| *name == prefix) {
            return error.with_hint(format!("add PREFIX {name}: <{iri}> before the query"));
        }
        let declared = self.prefixes.keys().copied();
        let given = self.options.prefixes.iter().map(|(name, _)| *name);
        if let Some(name) = nearest(prefix, declared.chain(given)) {
            return error.with_hint(format!("did you mean {name}:?"));
        }
        match nearest(prefix, well_known_prefixes().iter().map(|(name, _)| *name))
            .and_then(|name| well_known_prefixes().iter().find(|(known, _)| *known == name))
        {
            Some((name, iri)) => error
                .with_hint(format!("did you mean {name}:? then add PREFIX {name}: <{iri}> before the query")),
            None => error.with_hint(format!("add PREFIX {prefix}: <...> before the query")),
        }
    }

    /// Whether a literal starts here (a number may have a sign).
    pub(crate) fn at_literal(&self) -> bool {
        match self.ahead.token {
            Token::Text | Token::Integer | Token::Decimal | Token::Double => true,
            Token::Plus | Token::Minus => self.signed_number(),
            Token::Word => self.at_keyword("true") || self.at_keyword("false"),
            _ => false,
        }
    }

    /// Whether the sign here belongs to a number.
    pub(crate) fn signed_number(&self) -> bool {
        let next = self.text.as_bytes().get(self.ahead.end);
        next.is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
    }

    /// Parses a literal; requires [`Parser::at_literal`].
    pub(crate) fn literal(&mut self) -> Result<Literal, QueryError> {
        let first = self.advance()?;
        let typed = |lexeme: Lexeme, datatype| {
            Literal::new_typed_literal(&self.text[first.start..lexeme.end], datatype)
        };
        match first.token {
            Token::Integer => Ok(typed(first, xsd::INTEGER)),
            Token::Decimal => Ok(typed(first, xsd::DECIMAL)),
            Token::Double => Ok(typed(first, xsd::DOUBLE)),
            // Keywords are case-insensitive; booleans are lower case.
            Token::Word => {
                Ok(Literal::new_typed_literal(self.spelled(first).to_ascii_lowercase(), xsd::BOOLEAN))
            }
            Token::Plus | Token::Minus => {
                let number = self.advance()?;
                let datatype = match number.token {
                    Token::Integer => xsd::INTEGER,
                    Token::Decimal => xsd::DECIMAL,
                    Token::Double => xsd::DOUBLE,
                    _ => return Err(self.error(number, "expected a number after the sign")),
                };
                Ok(Literal::new_typed_literal(&self.text[first.start..number.end], datatype))
            }
            _ => self.string_literal(first),
        }
    }

    fn string_literal(&mut self, first: Lexeme) -> Result<Literal, QueryError> {
        let value = self.unquote(first)?;
        match self.ahead.token {
            Token::DatatypeMark => {
                self.advance()?;
                let lexeme = self.ahead;
                let datatype = self.iri()?;
                if datatype == oxrdf::vocab::rdf::LANG_STRING
                    || datatype == oxrdf::vocab::rdf::DIR_LANG_STRING
                {
                    return Err(
                        self.error(lexeme, "a literal of this datatype is written with @ and a language")
                    );
                }
                Ok(Literal::new_typed_literal(value, datatype))
            }
            Token::Language => {
                let lexeme = self.advance()?;
                let tag = &self.text[lexeme.start + 1..lexeme.end];
                let (tag, direction) = match tag.split_once("--") {
                    None => (tag, None),
                    Some((tag, "ltr")) => (tag, Some(oxrdf::BaseDirection::Ltr)),
                    Some((tag, "rtl")) => (tag, Some(oxrdf::BaseDirection::Rtl)),
                    Some(_) => return Err(self.error(lexeme, "the direction of a text is ltr or rtl")),
                };
                match direction {
                    None => Literal::new_language_tagged_literal(value, tag),
                    Some(direction) => {
                        Literal::new_directional_language_tagged_literal(value, tag, direction)
                    }
                }
                .map_err(|error| self.error(lexeme, format!("this is not a valid language tag: {error}")))
            }
            _ => Ok(Literal::new_simple_literal(value)),
        }
    }

    /// The unescaped text of a string.
    pub(crate) fn unquote(&self, lexeme: Lexeme) -> Result<String, QueryError> {
        let inner = &self.text[lexeme.start + lexeme.extra..lexeme.end - lexeme.extra];
        unescape(inner, true).map(Cow::into_owned).map_err(|message| self.error(lexeme, message))
    }

    /// Parses a ground term: an IRI, a literal, or a triple term of these.
    pub(crate) fn ground_term(&mut self) -> Result<Term, QueryError> {
        if self.at_literal() {
            return self.literal().map(Term::from);
        }
        if self.ahead.token == Token::TripleTermOpen {
            return self.nested(Self::ground_triple);
        }
        if !matches!(self.ahead.token, Token::Iri | Token::Name) {
            return Err(self.expected("an IRI or a literal"));
        }
        self.iri().map(Term::from)
    }

    fn ground_triple(&mut self) -> Result<Term, QueryError> {
        self.advance()?;
        let subject = self.iri()?.into();
        let predicate = match self.ahead.token {
            Token::Word if self.spelled(self.ahead) == "a" => {
                self.advance()?;
                oxrdf::vocab::rdf::TYPE.into_owned()
            }
            _ => self.iri()?,
        };
        let object = self.ground_term()?;
        self.expect(Token::TripleTermClose, ")>>")?;
        Ok(Triple { subject, predicate, object }.into())
    }
}

/// Replaces escape sequences; single-letter escapes only in strings.
fn unescape(text: &str, string: bool) -> Result<Cow<'_, str>, &'static str> {
    if !text.contains('\\') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let letter = after.chars().next().ok_or("a backslash starts an escape, but nothing follows")?;
        rest = &after[letter.len_utf8()..];
        out.push(match letter {
            't' if string => '\t',
            'b' if string => '\u{8}',
            'n' if string => '\n',
            'r' if string => '\r',
            'f' if string => '\u{C}',
            '"' | '\'' | '\\' if string => letter,
            'u' | 'U' => {
                let digits = if letter == 'u' { 4 } else { 8 };
                let hex = rest.get(..digits).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
                let hex = hex.ok_or("\\u needs four hexadecimal digits, \\U eight")?;
                rest = &rest[digits..];
                let code = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
                code.ok_or("this escape is not a character")?
            }
            _ if string => return Err("an escape in a string is \\ and one of t b n r f \" ' \\ u U"),
            _ => return Err("an escape in an IRI is \\u or \\U"),
        });
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}
