//! Shared test support: a snapshot that is a table of terms, and expressions from SPARQL text.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test that goes wrong may stop")]

use oxrdf::{Term, TermRef};
use spargebra::algebra::{Expression as Parsed, Function as ParsedFunction, GraphPattern};
use spargebra::{Query, SparqlParser};
use std::collections::HashMap;
use std::ops::Range;
use vervet_algebra::{Comparator, Expression, Function, Variable};
use vervet_expression::{CompiledExpression, ComputedTerms, Evaluator};
use vervet_model::{
    Direction, Error, Id, Inline, LiteralKind, Meter, Result, TermParts, TextSearch, inline_id,
};
use vervet_snapshot::{ClassId, Segment, Snapshot};

pub(crate) const PREFIXES: &str = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> PREFIX ex: <http://example.org/> \
    PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ";
pub(crate) const BASE: &str = "http://base.example/dir/";

/// A snapshot with only a dictionary.
#[derive(Default)]
pub(crate) struct Terms {
    vertices: Vec<Term>,
    literals: Vec<Term>,
    ids: HashMap<Term, Id>,
}

impl Terms {
    pub(crate) fn new(terms: impl IntoIterator<Item = Term>) -> Self {
        let mut all = Self::default();
        for term in terms {
            all.add(term);
        }
        all
    }

    pub(crate) fn add(&mut self, term: Term) -> Id {
        if let Some(id) = self.lookup(term.as_ref()).unwrap() {
            return id;
        }
        let id = if let Term::Literal(_) = term {
            self.literals.push(term.clone());
            Id::literal(self.literals.len() as u64 - 1)
        } else {
            self.vertices.push(term.clone());
            Id::vertex(self.vertices.len() as u64 - 1)
        };
        self.ids.insert(term, id);
        id
    }

    fn term(&self, id: Id) -> Result<&Term> {
        let list = if id.is_vertex() { &self.vertices } else { &self.literals };
        list.get(id.payload() as usize).ok_or_else(|| Error::internal(format!("no term {id:?}")))
    }
}

/// Splits a text in two, so that readers receive it in two pieces.
fn halves(text: &str) -> (&str, &str) {
    let middle = (0..=text.len() / 2).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.split_at(middle)
}

impl Snapshot for Terms {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        if let TermRef::Literal(literal) = term
            && literal.language().is_none()
            && let Some(id) = inline_id(literal.value(), literal.datatype().as_str())
        {
            return Ok(Some(id));
        }
        Ok(self.ids.get(&term.into_owned()).copied())
    }

    fn read_term(&self, id: Id, _scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        if let Some(inline) = Inline::from_id(id) {
            let mut text = String::new();
            inline.write_lexical(&mut text);
            let datatype = inline.datatype();
            let kind = if datatype.ends_with("#string") {
                LiteralKind::String
            } else {
                LiteralKind::Typed(datatype)
            };
            read(TermParts::Literal { head: &text, tail: "", kind });
            return Ok(());
        }
        match self.term(id)? {
            Term::NamedNode(node) => {
                let (namespace, local) = halves(node.as_str());
                read(TermParts::Iri { namespace, local });
            }
            Term::BlankNode(node) => read(TermParts::Blank(node.as_str())),
            Term::Literal(literal) => {
                let (head, tail) = halves(literal.value());
                let tag;
                let kind = match (literal.language(), literal.direction()) {
                    (Some(language), Some(direction)) => {
                        tag = format!("{language}--{direction}");
                        LiteralKind::Language(&tag)
                    }
                    (Some(language), None) => LiteralKind::Language(language),
                    (None, _) if literal.datatype().as_str().ends_with("XMLSchema#string") => {
                        LiteralKind::String
                    }
                    (None, _) => {
                        tag = literal.datatype().as_str().to_owned();
                        LiteralKind::Typed(&tag)
                    }
                };
                read(TermParts::Literal { head, tail, kind });
            }
            Term::Triple(_) => return Err(Error::internal("a triple term")),
        }
        Ok(())
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        for &id in ids {
            self.read_term(id, &mut String::new(), &mut |parts| parts.write_nt(out))?;
            ends.push(out.len());
        }
        Ok(())
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        Ok(matches!(self.term(id)?, Term::BlankNode(_)))
    }

    fn segment(&self, _: Id, _: Direction) -> Result<Option<&dyn Segment>> {
        Ok(None)
    }

    fn predicates(&self) -> &[(Id, u64)] {
        &[]
    }

    fn graphs(&self) -> &[(Id, u64)] {
        &[]
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        vervet_snapshot::read_is_plain_text(self, id)
    }

    fn may_have_blanks(&self) -> bool {
        true
    }

    fn text_rank(&self, _: Id) -> Result<Option<u64>> {
        Ok(None)
    }

    fn may_have_triple_terms(&self) -> bool {
        true
    }

    fn unordered_literals(
        &self,
        _from: &[u8],
        _to: Option<&[u8]>,
        _out: &mut Vec<Id>,
        _meter: &mut Meter<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn unordered_literal_count(&self, _from: &[u8], _to: Option<&[u8]>) -> Result<u64> {
        Ok(0)
    }

    fn classes_are_exact(&self) -> bool {
        true
    }

    fn literal_range(&self, _from: &[u8], _to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        Ok(None)
    }

    fn search_count(&self, _: &TextSearch, _: &mut Meter<'_>) -> Result<Option<u64>> {
        Ok(None)
    }

    fn search(&self, _: &TextSearch, _: &mut Vec<Id>, _: &mut Meter<'_>) -> Result<()> {
        Err(Error::internal("no index of words"))
    }

    fn literals_in_order(&self, _: Range<u64>, _: &mut Vec<Id>) -> Result<()> {
        Err(Error::internal("no order of literals"))
    }

    fn type_predicate(&self) -> Option<Id> {
        None
    }

    fn vertex_count(&self) -> u64 {
        self.vertices.len() as u64
    }

    fn edge_count(&self) -> u64 {
        0
    }

    fn literal_count(&self) -> u64 {
        self.literals.len() as u64
    }

    fn statement_count(&self) -> u64 {
        0
    }

    fn edge(&self, _: Id) -> Result<[Id; 4]> {
        Err(Error::internal("no edges"))
    }

    fn classes_of_type(&self, _: Id) -> &[ClassId] {
        &[]
    }

    fn class_size(&self, _: ClassId) -> u64 {
        0
    }
}

/// The expression of this SPARQL text; variables are `?v0`, `?v1` and so on.
pub(crate) fn parse(text: &str) -> Expression {
    let query = format!("{PREFIXES} SELECT ({text} AS ?result) {{}}");
    let query = SparqlParser::new().parse_query(&query).unwrap_or_else(|error| panic!("{text}: {error}"));
    let Query::Select { pattern: GraphPattern::Project { inner, .. }, .. } = query else { panic!("{text}") };
    let GraphPattern::Extend { expression, .. } = *inner else { panic!("{text}") };
    convert(&expression)
}

/// The term of this SPARQL text.
pub(crate) fn term(text: &str) -> Term {
    match parse(text) {
        Expression::Constant(term) => term,
        // The parser reads a signed number as an operator on a number.
        Expression::Minus(inner) => match *inner {
            Expression::Constant(Term::Literal(literal)) => {
                oxrdf::Literal::new_typed_literal(format!("-{}", literal.value()), literal.datatype()).into()
            }
            other => panic!("{text}: {other:?}"),
        },
        other => panic!("{text}: {other:?}"),
    }
}

fn convert(parsed: &Parsed) -> Expression {
    let one = |a: &Parsed| Box::new(convert(a));
    let all = |list: &[Parsed]| list.iter().map(convert).collect::<Vec<_>>();
    match parsed {
        Parsed::NamedNode(node) => Expression::Constant(node.clone().into()),
        Parsed::Literal(literal) => Expression::Constant(literal.clone().into()),
        Parsed::Variable(variable) => Expression::Variable(number(variable)),
        Parsed::Bound(variable) => Expression::Bound(number(variable)),
        Parsed::Or(a, b) => Expression::Or(vec![convert(a), convert(b)]),
        Parsed::And(a, b) => Expression::And(vec![convert(a), convert(b)]),
        Parsed::Not(a) => Expression::Not(one(a)),
        Parsed::Equal(a, b) => Expression::Equal(one(a), one(b)),
        Parsed::SameTerm(a, b) => Expression::SameTerm(one(a), one(b)),
        Parsed::Less(a, b) => Expression::Compare(Comparator::Less, one(a), one(b)),
        Parsed::LessOrEqual(a, b) => Expression::Compare(Comparator::LessOrEqual, one(a), one(b)),
        Parsed::Greater(a, b) => Expression::Compare(Comparator::Greater, one(a), one(b)),
        Parsed::GreaterOrEqual(a, b) => Expression::Compare(Comparator::GreaterOrEqual, one(a), one(b)),
        Parsed::In(a, list) => Expression::In(one(a), all(list)),
        Parsed::Add(a, b) => Expression::Add(one(a), one(b)),
        Parsed::Subtract(a, b) => Expression::Subtract(one(a), one(b)),
        Parsed::Multiply(a, b) => Expression::Multiply(one(a), one(b)),
        Parsed::Divide(a, b) => Expression::Divide(one(a), one(b)),
        Parsed::UnaryPlus(a) => Expression::Plus(one(a)),
        Parsed::UnaryMinus(a) => Expression::Minus(one(a)),
        Parsed::If(a, b, c) => Expression::If(one(a), one(b), one(c)),
        Parsed::Coalesce(list) => Expression::Coalesce(all(list)),
        Parsed::FunctionCall(function, arguments) => {
            Expression::Call(convert_function(function), all(arguments))
        }
        Parsed::Exists(_) => panic!("EXISTS is not an expression here"),
    }
}

fn number(variable: &oxrdf::Variable) -> Variable {
    Variable(variable.as_str().strip_prefix('v').and_then(|n| n.parse().ok()).expect("a variable like ?v0"))
}

fn convert_function(function: &ParsedFunction) -> Function {
    macro_rules! same {
        ($($name:ident)*) => {
            match function {
                $(ParsedFunction::$name => Function::$name,)*
                ParsedFunction::Iri => Function::Iri { base: None },
                ParsedFunction::Custom(name) => Function::Cast(name.clone()),
                other => panic!("{other:?}"),
            }
        };
    }
    same!(Str Lang LangMatches Datatype BNode Rand Abs Ceil Floor Round Concat SubStr StrLen Replace UCase LCase
        EncodeForUri Contains StrStarts StrEnds StrBefore StrAfter Year Month Day Hours Minutes Seconds Timezone Tz
        Now Uuid StrUuid Md5 Sha1 Sha256 Sha384 Sha512 StrLang LangDir HasLang HasLangDir StrLangDir StrDt IsIri IsBlank IsLiteral IsNumeric IsTriple Regex)
}

pub(crate) fn now() -> oxsdatatypes::DateTime {
    "2024-02-29T12:34:56.789Z".parse().unwrap()
}

/// The value of an expression for each row of `columns`, as terms.
pub(crate) fn evaluate(
    snapshot: &Terms,
    text: &str,
    columns: &[Vec<Term>],
    rows: usize,
) -> Vec<Option<Term>> {
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(snapshot, &computed, now(), 7).with_base(Some(BASE.to_owned()));
    let columns: Vec<Vec<Id>> = columns
        .iter()
        .map(|column| column.iter().map(|term| evaluator.intern(term.as_ref()).unwrap()).collect())
        .collect();
    let compiled =
        CompiledExpression::new(&parse(text), &evaluator).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut out = Vec::new();
    compiled.evaluate(&evaluator, &columns, rows, &mut out).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(out.len(), rows);
    let terms: Vec<_> = out.iter().map(|&id| evaluator.term(id).unwrap()).collect();
    for (id, term) in out.iter().zip(&terms) {
        if let Some(term) = term {
            assert_eq!(evaluator.intern(term.as_ref()).unwrap(), *id, "{term} has two ids");
        }
    }
    terms
}
