//! Expression compiler: algebra expressions to executable trees, with constant look-up, pattern compilation
//! and constant folding.

use crate::MAX_DEPTH;
use crate::cast::Cast;
use crate::constant_list::ConstantList;
use crate::context::{Constant, Context};
use crate::dates::DateTimeField;
use crate::evaluator::Evaluator;
use crate::operator::{Operator, Unary};
use crate::pattern::Pattern;
use crate::strings::Hash;
use crate::value::Value;
use oxiri::Iri;
use vervet_algebra::{Comparator, Expression, Function};
use vervet_model::{Error, ErrorKind, Result, TextSearch};

/// Minimum number of constants in a list of `IN` for which hashing replaces comparisons, by whether the item
/// is a variable: its values are mostly compared by id.
const HASHED_MIN: [usize; 2] = [8, 16];

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(Constant),
    /// Always an error.
    Error,
    Variable(usize),
    Bound(usize),
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    Equal(Box<[Node; 2]>),
    SameTerm(Box<[Node; 2]>),
    Compare(Comparator, Box<[Node; 2]>),
    In(Box<Node>, Vec<Node>),
    /// `IN` with many constants, and the rest of the list.
    InConstants(Box<Node>, Box<ConstantList>, Vec<Node>),
    Arithmetic(Operator, Box<[Node; 2]>),
    Unary(Unary, Box<Node>),
    If(Box<[Node; 3]>),
    Coalesce(Vec<Node>),
    Str(Box<Node>),
    Lang(Box<Node>),
    LangDir(Box<Node>),
    LangMatches(Box<[Node; 2]>),
    Datatype(Box<Node>),
    Iri(Box<Node>, Option<Iri<String>>),
    Blank(Option<Box<Node>>),
    Rand,
    Uuid,
    StrUuid,
    Test(Test, Box<Node>),
    EqualityKey(Box<Node>),
    Text(TextFunction, Box<Node>),
    Pair(PairFunction, Box<[Node; 2]>),
    StrLang(Box<[Node; 2]>),
    StrLangDir(Box<[Node; 3]>),
    StrDt(Box<[Node; 2]>),
    Triple(Box<[Node; 3]>),
    /// Part of a triple term: subject (0), predicate (1) or object (2).
    TriplePart(usize, Box<Node>),
    Concat(Vec<Node>),
    SubStr(Box<[Node; 2]>, Option<Box<Node>>),
    Regex(Box<Node>, PatternNode),
    /// A text and a search; `true`: the score instead of the match.
    Search(Box<Node>, SearchNode, bool),
    Replace(Box<[Node; 2]>, PatternNode),
    DateTimeField(DateTimeField, Box<Node>),
    Cast(Cast, Box<Node>),
}

/// A test of the kind of a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Test {
    Iri,
    Blank,
    Literal,
    Numeric,
    /// A literal with a language tag.
    Language,
    /// A literal with a base direction.
    Direction,
    Triple,
}

/// A unary text function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TextFunction {
    Length,
    Upper,
    Lower,
    EncodeForUri,
    Hash(Hash),
}

/// A binary function of compatible texts (SPARQL 1.1 §17.4.3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PairFunction {
    Contains,
    StartsWith,
    EndsWith,
    Before,
    After,
}

/// A regular expression, constant or computed for each row.
#[derive(Clone, Debug)]
pub(crate) enum PatternNode {
    Fixed(Pattern),
    Computed(Box<Node>, Option<Box<Node>>),
}

/// A full-text search, constant or computed for each row.
#[derive(Clone, Debug)]
pub(crate) enum SearchNode {
    Fixed(TextSearch),
    Computed(Box<Node>),
}

/// Compiles `expression`.
pub(crate) fn compile(expression: &Expression, evaluator: &Evaluator<'_>, depth: usize) -> Result<Node> {
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("an expression is nested deeper than {MAX_DEPTH}"),
        )
        .with_hint("bind a part of it to a variable with BIND"));
    }
    let one = |e: &Expression| compile(e, evaluator, depth + 1).map(Box::new);
    let two = |a: &Expression, b: &Expression| -> Result<_> {
        Ok(Box::new([compile(a, evaluator, depth + 1)?, compile(b, evaluator, depth + 1)?]))
    };
    let all = |list: &[Expression]| {
        list.iter().map(|e| compile(e, evaluator, depth + 1)).collect::<Result<Vec<_>>>()
    };
    let node = match expression {
        Expression::Constant(term) => {
            let id = evaluator.intern(term.as_ref())?;
            let value = Context::new(evaluator, &[]).decode_id(id)?;
            Node::Constant(Constant { id, value })
        }
        Expression::Unbound => Node::Error,
        Expression::Variable(variable) => Node::Variable(variable.index()),
        Expression::Bound(variable) => Node::Bound(variable.index()),
        Expression::Or(list) => Node::Or(all(list)?),
        Expression::And(list) => Node::And(all(list)?),
        Expression::Not(a) => Node::Not(one(a)?),
        Expression::Equal(a, b) => Node::Equal(two(a, b)?),
        Expression::SameTerm(a, b) => Node::SameTerm(two(a, b)?),
        Expression::Compare(comparator, a, b) => Node::Compare(*comparator, two(a, b)?),
        Expression::In(a, list) => membership(one(a)?, all(list)?),
        Expression::Add(a, b) => Node::Arithmetic(Operator::Add, two(a, b)?),
        Expression::Subtract(a, b) => Node::Arithmetic(Operator::Subtract, two(a, b)?),
        Expression::Multiply(a, b) => Node::Arithmetic(Operator::Multiply, two(a, b)?),
        Expression::Divide(a, b) => Node::Arithmetic(Operator::Divide, two(a, b)?),
        Expression::Plus(a) => Node::Unary(Unary::Plus, one(a)?),
        Expression::Minus(a) => Node::Unary(Unary::Minus, one(a)?),
        Expression::If(a, b, c) => {
            let [a, b, c] = [a, b, c].map(|e| compile(e, evaluator, depth + 1));
            Node::If(Box::new([a?, b?, c?]))
        }
        Expression::Coalesce(list) => Node::Coalesce(all(list)?),
        Expression::Exists(_) => return Err(Error::internal("an EXISTS that the planner has not replaced")),
        Expression::Call(function, arguments) => call(function, all(arguments)?, evaluator)?,
    };
    fold(node, evaluator)
}

/// `item IN (list)`.
fn membership(item: Box<Node>, list: Vec<Node>) -> Node {
    let is_hashed = |node: &Node| matches!(node, Node::Constant(one) if ConstantList::takes(one));
    let least = HASHED_MIN[usize::from(matches!(*item, Node::Variable(_)))];
    if list.iter().filter(|node| is_hashed(node)).count() < least {
        return Node::In(item, list);
    }
    let (mut constants, mut others) = (ConstantList::default(), Vec::new());
    for node in list {
        match node {
            Node::Constant(constant) if ConstantList::takes(&constant) => constants.add(constant),
            node => others.push(node),
        }
    }
    Node::InConstants(item, Box::new(constants), others)
}

/// Compiles a call of `function` with compiled arguments.
fn call(function: &Function, arguments: Vec<Node>, evaluator: &Evaluator<'_>) -> Result<Node> {
    let count = arguments.len();
    let wrong =
        || Error::new(ErrorKind::Query, format!("the function {function:?} cannot take {count} arguments"));
    let mut arguments = arguments.into_iter();
    let mut take = || arguments.next().map(Box::new);
    // Each arm consumes its arguments; missing or excess ones are an error.
    let node = match function {
        Function::Concat => return Ok(Node::Concat(arguments.collect())),
        Function::Unknown(iri) => {
            return Err(Error::new(ErrorKind::Unsupported, format!("there is no function {iri}")).with_hint(
                "functions are those of SPARQL 1.1 and the casts xsd:string, xsd:integer and so on",
            ));
        }
        Function::Rand => Some(Node::Rand),
        Function::Uuid => Some(Node::Uuid),
        Function::StrUuid => Some(Node::StrUuid),
        Function::Now => {
            let value = Value::DateTime(evaluator.now());
            let id = value.intern(evaluator, &mut String::new())?;
            Some(Node::Constant(Constant { id, value }))
        }
        Function::BNode => Some(Node::Blank(take())),
        Function::Str => take().map(Node::Str),
        Function::Lang => take().map(Node::Lang),
        Function::Datatype => take().map(Node::Datatype),
        Function::Iri { base } => {
            let base = base.as_deref().or(evaluator.base()).map(parse_base).transpose()?;
            take().map(|a| Node::Iri(a, base))
        }
        Function::Abs => take().map(|a| Node::Unary(Unary::Abs, a)),
        Function::Ceil => take().map(|a| Node::Unary(Unary::Ceil, a)),
        Function::Floor => take().map(|a| Node::Unary(Unary::Floor, a)),
        Function::Round => take().map(|a| Node::Unary(Unary::Round, a)),
        Function::StrLen => take().map(|a| Node::Text(TextFunction::Length, a)),
        Function::UCase => take().map(|a| Node::Text(TextFunction::Upper, a)),
        Function::LCase => take().map(|a| Node::Text(TextFunction::Lower, a)),
        Function::EncodeForUri => take().map(|a| Node::Text(TextFunction::EncodeForUri, a)),
        Function::Md5 => take().map(|a| Node::Text(TextFunction::Hash(Hash::Md5), a)),
        Function::Sha1 => take().map(|a| Node::Text(TextFunction::Hash(Hash::Sha1), a)),
        Function::Sha256 => take().map(|a| Node::Text(TextFunction::Hash(Hash::Sha256), a)),
        Function::Sha384 => take().map(|a| Node::Text(TextFunction::Hash(Hash::Sha384), a)),
        Function::Sha512 => take().map(|a| Node::Text(TextFunction::Hash(Hash::Sha512), a)),
        Function::LangDir => take().map(Node::LangDir),
        Function::LangMatches => pair(take(), take()).map(Node::LangMatches),
        Function::Contains => pair(take(), take()).map(|ab| Node::Pair(PairFunction::Contains, ab)),
        Function::StrStarts => pair(take(), take()).map(|ab| Node::Pair(PairFunction::StartsWith, ab)),
        Function::StrEnds => pair(take(), take()).map(|ab| Node::Pair(PairFunction::EndsWith, ab)),
        Function::StrBefore => pair(take(), take()).map(|ab| Node::Pair(PairFunction::Before, ab)),
        Function::StrAfter => pair(take(), take()).map(|ab| Node::Pair(PairFunction::After, ab)),
        Function::StrLang => pair(take(), take()).map(Node::StrLang),
        Function::StrLangDir => match (take(), take(), take()) {
            (Some(text), Some(tag), Some(direction)) => {
                Some(Node::StrLangDir(Box::new([*text, *tag, *direction])))
            }
            _ => None,
        },
        Function::StrDt => pair(take(), take()).map(Node::StrDt),
        Function::Triple => match (take(), take(), take()) {
            (Some(subject), Some(predicate), Some(object)) => {
                Some(Node::Triple(Box::new([*subject, *predicate, *object])))
            }
            _ => None,
        },
        Function::Subject => take().map(|a| Node::TriplePart(0, a)),
        Function::Predicate => take().map(|a| Node::TriplePart(1, a)),
        Function::Object => take().map(|a| Node::TriplePart(2, a)),
        Function::SubStr => pair(take(), take()).map(|ab| Node::SubStr(ab, take())),
        Function::Regex => match (take(), take(), take()) {
            (Some(text), Some(pattern), flags) => Some(match pattern_node(pattern, flags, evaluator)? {
                Some(pattern) => Node::Regex(text, pattern),
                None => Node::Error,
            }),
            _ => None,
        },
        Function::TextMatches | Function::TextScore => match (take(), take()) {
            (Some(text), Some(search)) => Some(match search_node(search) {
                Some(search) => Node::Search(text, search, *function == Function::TextScore),
                None => Node::Error,
            }),
            _ => None,
        },
        Function::Replace => match (take(), take(), take(), take()) {
            (Some(text), Some(pattern), Some(replacement), flags) => {
                Some(match pattern_node(pattern, flags, evaluator)? {
                    Some(pattern) => Node::Replace(Box::new([*text, *replacement]), pattern),
                    None => Node::Error,
                })
            }
            _ => None,
        },
        Function::Year => take().map(|a| Node::DateTimeField(DateTimeField::Year, a)),
        Function::Month => take().map(|a| Node::DateTimeField(DateTimeField::Month, a)),
        Function::Day => take().map(|a| Node::DateTimeField(DateTimeField::Day, a)),
        Function::Hours => take().map(|a| Node::DateTimeField(DateTimeField::Hours, a)),
        Function::Minutes => take().map(|a| Node::DateTimeField(DateTimeField::Minutes, a)),
        Function::Seconds => take().map(|a| Node::DateTimeField(DateTimeField::Seconds, a)),
        Function::Timezone => take().map(|a| Node::DateTimeField(DateTimeField::Timezone, a)),
        Function::Tz => take().map(|a| Node::DateTimeField(DateTimeField::Tz, a)),
        Function::IsIri => take().map(|a| Node::Test(Test::Iri, a)),
        Function::IsBlank => take().map(|a| Node::Test(Test::Blank, a)),
        Function::IsLiteral => take().map(|a| Node::Test(Test::Literal, a)),
        Function::HasLang => take().map(|a| Node::Test(Test::Language, a)),
        Function::HasLangDir => take().map(|a| Node::Test(Test::Direction, a)),
        Function::IsTriple => take().map(|a| Node::Test(Test::Triple, a)),
        Function::IsNumeric => take().map(|a| Node::Test(Test::Numeric, a)),
        Function::EqualityKey => take().map(Node::EqualityKey),
        Function::Cast(datatype) => {
            let Some(cast) = Cast::from_iri(datatype.as_str()) else {
                return Err(Error::new(ErrorKind::Query, format!("there is no function {datatype}"))
                    .with_hint("functions named by an IRI are the casts to datatypes of XML Schema"));
            };
            take().map(|a| Node::Cast(cast, a))
        }
    };
    match node {
        Some(node) if arguments.next().is_none() => Ok(node),
        _ => Err(wrong()),
    }
}

fn pair(a: Option<Box<Node>>, b: Option<Box<Node>>) -> Option<Box<[Node; 2]>> {
    Some(Box::new([*a?, *b?]))
}

fn parse_base(base: &str) -> Result<Iri<String>> {
    Iri::parse(base.to_owned()).map_err(|error| {
        Error::new(ErrorKind::Query, format!("the base <{base}> is not an absolute IRI: {error}"))
    })
}

/// The pattern, compiled here if pattern and flags are constant; `None` if it is invalid.
fn pattern_node(
    pattern: Box<Node>,
    flags: Option<Box<Node>>,
    evaluator: &Evaluator<'_>,
) -> Result<Option<PatternNode>> {
    let flags_text = match flags.as_deref() {
        None => Some(""),
        Some(Node::Constant(Constant { value: Value::String(flags), .. })) => Some(&**flags),
        Some(_) => None,
    };
    Ok(match (&*pattern, flags_text) {
        (Node::Constant(Constant { value: Value::String(text), .. }), Some(flags)) => {
            let compiled = Context::new(evaluator, &[]).pattern(text, flags)?;
            compiled.map(PatternNode::Fixed)
        }
        _ => Some(PatternNode::Computed(pattern, flags)),
    })
}

/// The search, parsed here if it is constant; `None` if it is invalid.
fn search_node(search: Box<Node>) -> Option<SearchNode> {
    match &*search {
        Node::Constant(Constant { value: Value::String(text), .. }) => {
            TextSearch::parse(text).ok().map(SearchNode::Fixed)
        }
        _ => Some(SearchNode::Computed(search)),
    }
}

/// Constant folding: replaces `node` by its value if all its parts are constant.
fn fold(node: Node, evaluator: &Evaluator<'_>) -> Result<Node> {
    let mut constant = !matches!(
        node,
        Node::Constant(_)
            | Node::Error
            | Node::Variable(_)
            | Node::Bound(_)
            | Node::Blank(_)
            | Node::Rand
            | Node::Uuid
            | Node::StrUuid
    );
    node.for_each_child(&mut |child| constant &= matches!(child, Node::Constant(_) | Node::Error));
    if !constant {
        return Ok(node);
    }
    // Each constant part may take as long as a row.
    evaluator.check()?;
    let mut context = Context::new(evaluator, &[]);
    Ok(match node.evaluate(&mut context)? {
        None => Node::Error,
        Some(operand) => {
            let id = context.intern(operand.clone())?;
            Node::Constant(Constant { id, value: context.decode(operand)?.into_owned() })
        }
    })
}

impl Node {
    /// Calls `visit` with each direct child.
    pub(crate) fn for_each_child<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        match self {
            Self::Constant(_) | Self::Error | Self::Variable(_) | Self::Bound(_) => {}
            Self::Rand | Self::Uuid | Self::StrUuid | Self::Blank(None) => {}
            Self::Or(list) | Self::And(list) | Self::Coalesce(list) | Self::Concat(list) => {
                list.iter().for_each(visit)
            }
            Self::Not(a)
            | Self::Unary(_, a)
            | Self::Str(a)
            | Self::Lang(a)
            | Self::LangDir(a)
            | Self::Datatype(a)
            | Self::Iri(a, _)
            | Self::Blank(Some(a))
            | Self::Test(_, a)
            | Self::EqualityKey(a)
            | Self::Text(_, a)
            | Self::DateTimeField(_, a)
            | Self::TriplePart(_, a)
            | Self::Cast(_, a) => visit(a),
            Self::Equal(ab)
            | Self::SameTerm(ab)
            | Self::Compare(_, ab)
            | Self::Arithmetic(_, ab)
            | Self::LangMatches(ab)
            | Self::Pair(_, ab)
            | Self::StrLang(ab)
            | Self::StrDt(ab) => ab.iter().for_each(visit),
            Self::If(abc) | Self::StrLangDir(abc) | Self::Triple(abc) => abc.iter().for_each(visit),
            Self::In(a, list) => {
                visit(a);
                list.iter().for_each(visit);
            }
            Self::InConstants(a, _, others) => {
                visit(a);
                others.iter().for_each(visit);
            }
            Self::SubStr(ab, length) => {
                ab.iter().for_each(&mut *visit);
                length.iter().for_each(|length| visit(length));
            }
            Self::Regex(text, pattern) => {
                visit(text);
                pattern.for_each_child(visit);
            }
            Self::Search(text, search, _) => {
                visit(text);
                if let SearchNode::Computed(search) = search {
                    visit(search);
                }
            }
            Self::Replace(ab, pattern) => {
                ab.iter().for_each(&mut *visit);
                pattern.for_each_child(visit);
            }
        }
    }

    /// Appends the input variables to `out`; `false` if the value is not a function of them.
    pub(crate) fn inputs(&self, out: &mut Vec<usize>) -> bool {
        match self {
            Self::Variable(variable) | Self::Bound(variable) => {
                if !out.contains(variable) {
                    out.push(*variable);
                }
                true
            }
            Self::Rand | Self::Uuid | Self::StrUuid | Self::Blank(_) => false,
            _ => {
                let mut function = true;
                self.for_each_child(&mut |child| function &= child.inputs(out));
                function
            }
        }
    }
}

impl PatternNode {
    fn for_each_child<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        if let Self::Computed(pattern, flags) = self {
            visit(pattern);
            flags.iter().for_each(|flags| visit(flags));
        }
    }
}
