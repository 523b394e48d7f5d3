//! Reads the queries of gMark: a head, and unions of conjunctions of regular paths.
//!
//! # Shape
//! `SELECT DISTINCT ?x … WHERE { { ?x PATH ?y . … } UNION { … } }` or `ASK { … }`. A path consists of
//! predicates `:pN`, inverses `^:pN`, `/`, `|`, parentheses and the counted suffix `{,3}` of a draft of
//! SPARQL 1.1. Empty parts of a union are dropped: gMark writes them, and as SPARQL they would add a
//! solution.
//! # Not here
//! The parser of Vervet: this one belongs to the independent evaluator.

use vervet_model::{Error, ErrorKind, Result};

/// The suffix of a counted path.
const COUNTED: &str = "{,3}";

/// A query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathQuery {
    /// The selected variables; empty for `ASK`.
    pub head: Vec<String>,
    /// Whether it is an `ASK`.
    pub is_ask: bool,
    /// The parts of the union.
    pub bodies: Vec<Vec<Conjunct>>,
}

/// `?source PATH ?target`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conjunct {
    /// The variable at its start.
    pub source: String,
    /// The path.
    pub path: Path,
    /// The variable at its end.
    pub target: String,
}

/// A regular path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Path {
    /// One edge.
    Step {
        /// The number of the predicate.
        predicate: u32,
        /// Whether it is followed backwards.
        inverse: bool,
    },
    /// One after the other.
    Sequence(Vec<Path>),
    /// Any of these.
    Alternative(Vec<Path>),
    /// `(path){,3}`.
    Counted(Box<Path>),
}

/// Parses a query.
///
/// # Errors
/// [`ErrorKind::Query`] if the text is not of the form described above.
pub fn parse(text: &str) -> Result<PathQuery> {
    let start = text.find("SELECT").or_else(|| text.find("ASK"));
    let Some(start) = start else { return Err(expected("SELECT or ASK", text)) };
    let mut parser = Parser { rest: &text[start..] };
    let query = parser.query()?;
    match parser.rest.trim() {
        "" => Ok(query),
        rest => Err(expected("the end", rest)),
    }
}

/// The same query as SPARQL 1.1: without empty parts of unions, and with counted paths replaced by `counted`.
#[must_use]
pub fn as_sparql(text: &str, counted: CountedPath) -> String {
    let mut text = text.to_owned();
    while let Some(at) = text.find(COUNTED) {
        let open = opening(&text[..at]);
        let path = text[open..at].to_owned();
        let replacement = match counted {
            CountedPath::Star => format!("{path}*"),
            CountedPath::Three => format!("({path}?/{path}?/{path}?)"),
        };
        text.replace_range(open..at + COUNTED.len(), &replacement);
    }
    without_empty_parts(&text)
}

/// The meaning given to `(path){,3}`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum CountedPath {
    /// `(path)*`, as in gMark's own neutral form.
    #[default]
    Star,
    /// `(path)?/(path)?/(path)?`, the same as the draft under DISTINCT.
    Three,
}

/// The position of the parenthesis that the last character of `text` closes.
fn opening(text: &str) -> usize {
    let mut depth = 0u32;
    for (index, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 1 => return index,
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    0
}

fn without_empty_parts(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut kept: Vec<&str> = Vec::new();
    let mut index = 0;
    while index < words.len() {
        if let ["UNION", "{", "}", ..] = words[index..] {
            index += 3;
        } else {
            kept.push(words[index]);
            index += 1;
        }
    }
    kept.join(" ")
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn query(&mut self) -> Result<PathQuery> {
        let is_ask = self.take("ASK");
        let mut head = Vec::new();
        if !is_ask {
            self.need("SELECT")?;
            self.need("DISTINCT")?;
            while self.peek("?") {
                head.push(self.variable()?);
            }
            self.take("WHERE");
        }
        self.need("{")?;
        let mut bodies = vec![self.group()?];
        while self.take("UNION") {
            bodies.push(self.group()?);
        }
        self.need("}")?;
        bodies.retain(|body| !body.is_empty());
        Ok(PathQuery { head, is_ask, bodies })
    }

    fn group(&mut self) -> Result<Vec<Conjunct>> {
        self.need("{")?;
        let mut conjuncts = Vec::new();
        while self.peek("?") {
            let source = self.variable()?;
            let path = self.alternative()?;
            let target = self.variable()?;
            conjuncts.push(Conjunct { source, path, target });
            self.take(".");
        }
        self.need("}")?;
        Ok(conjuncts)
    }

    fn variable(&mut self) -> Result<String> {
        self.need("?")?;
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if name.is_empty() { Err(expected("a variable", rest)) } else { Ok(name.to_owned()) }
    }

    fn alternative(&mut self) -> Result<Path> {
        let mut branches = vec![self.sequence()?];
        while self.take("|") {
            branches.push(self.sequence()?);
        }
        Ok(one_or(branches, Path::Alternative))
    }

    fn sequence(&mut self) -> Result<Path> {
        let mut steps = vec![self.element()?];
        while self.take("/") {
            steps.push(self.element()?);
        }
        Ok(one_or(steps, Path::Sequence))
    }

    fn element(&mut self) -> Result<Path> {
        if self.take("(") {
            let path = self.alternative()?;
            self.need(")")?;
            return Ok(if self.take(COUNTED) { Path::Counted(Box::new(path)) } else { path });
        }
        let inverse = self.take("^");
        self.need(":p")?;
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        let predicate = digits.parse().map_err(|_| expected("the number of a predicate", rest))?;
        Ok(Path::Step { predicate, inverse })
    }

    fn peek(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(token)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek(token);
        if found {
            self.rest = &self.rest[token.len()..];
        }
        found
    }

    fn need(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(expected(token, self.rest)) }
    }
}

fn one_or(mut parts: Vec<Path>, many: impl FnOnce(Vec<Path>) -> Path) -> Path {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}

fn expected(what: &str, rest: &str) -> Error {
    let rest: String = rest.chars().take(40).collect();
    Error::new(ErrorKind::Query, format!("a query of gMark has no {what} before {rest:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "PREFIX : <http://example.org/gmark/> SELECT DISTINCT ?x0 ?x1 WHERE {  {  \
                        ?x0 (((:p1/^:p2)|(:p3))){,3} ?x1 . ?x1 ((:p4)) ?x2 . }  UNION  {  }  UNION  {  } }";

    #[test]
    fn queries_are_read() {
        let query = parse(TEXT).unwrap();
        assert_eq!(query.head, ["x0", "x1"]);
        assert_eq!((query.bodies.len(), query.bodies[0].len()), (1, 2));
        let step = |predicate, inverse| Path::Step { predicate, inverse };
        let inner =
            Path::Alternative(vec![Path::Sequence(vec![step(1, false), step(2, true)]), step(3, false)]);
        assert_eq!(query.bodies[0][0].path, Path::Counted(Box::new(inner)));
        assert_eq!(query.bodies[0][1].path, step(4, false));
        assert!(parse("ASK { { ?x (:p1) ?y . } }").unwrap().is_ask);
        assert!(parse("SELECT ?x { ?x :p ?y }").is_err());
    }

    #[test]
    fn counted_paths_become_sparql() {
        let start = "PREFIX : <http://example.org/gmark/> SELECT DISTINCT ?x0 ?x1 WHERE { { ?x0";
        let end = "?x1 . ?x1 ((:p4)) ?x2 . } }";
        assert_eq!(as_sparql(TEXT, CountedPath::Star), format!("{start} (((:p1/^:p2)|(:p3)))* {end}"));
        let path = "(((:p1/^:p2)|(:p3)))?";
        let three = format!("{start} ({path}/{path}/{path}) {end}");
        assert_eq!(as_sparql(TEXT, CountedPath::Three), three);
    }
}
