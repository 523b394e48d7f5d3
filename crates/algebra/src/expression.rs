//! Expressions: the operators and functions of SPARQL 1.1 §17, and aggregates.

use crate::distinct::DistinctVariables;
use crate::{Node, Variable, VariableSet};
use oxrdf::{NamedNode, Term};

/// A comparison of values (RDFterm-equal for terms that are not values).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparator {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparator {
    /// The comparator with its operands exchanged: `a < b` is `b > a`.
    #[must_use]
    pub const fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }
}

/// An expression over the variables of a solution; evaluates to a term or to an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expression {
    /// A term.
    Constant(Term),
    /// The value of a variable; an error if unbound.
    Variable(Variable),
    /// A variable that is not in scope: always an error.
    Unbound,
    /// `BOUND`
    Bound(Variable),
    /// `||` with SPARQL's three-valued logic.
    Or(Vec<Expression>),
    /// `&&` with SPARQL's three-valued logic.
    And(Vec<Expression>),
    /// `!`
    Not(Box<Expression>),
    /// `=`
    Equal(Box<Expression>, Box<Expression>),
    /// `sameTerm`
    SameTerm(Box<Expression>, Box<Expression>),
    /// `<`, `<=`, `>`, `>=`
    Compare(Comparator, Box<Expression>, Box<Expression>),
    /// `IN`
    In(Box<Expression>, Vec<Expression>),
    /// `+`
    Add(Box<Expression>, Box<Expression>),
    /// `-`
    Subtract(Box<Expression>, Box<Expression>),
    /// `*`
    Multiply(Box<Expression>, Box<Expression>),
    /// `/`
    Divide(Box<Expression>, Box<Expression>),
    /// Unary `+`
    Plus(Box<Expression>),
    /// Unary `-`
    Minus(Box<Expression>),
    /// `IF`
    If(Box<Expression>, Box<Expression>, Box<Expression>),
    /// `COALESCE`
    Coalesce(Vec<Expression>),
    /// Whether a pattern has a solution.
    Exists(Box<Exists>),
    /// Any other function.
    Call(Function, Vec<Expression>),
}

/// `EXISTS`: a correlated pattern; the values of the current row replace its outer variables (SPARQL 1.1
/// §18.6, `substitute`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exists {
    /// The pattern. Its expressions may mention variables that only the row binds.
    pub pattern: Node,
    /// Correlated variables: those of the row that the pattern mentions. All others are local to the pattern.
    pub outer: Vec<Variable>,
}

impl Expression {
    /// Whether it certainly has a value in rows that bind the variables `certain`; `false`: it may be an
    /// error.
    #[must_use]
    pub fn is_certain(&self, certain: &VariableSet) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Variable(variable) => certain.contains(*variable),
            Self::Call(Function::EqualityKey, operands) => {
                operands.iter().all(|operand| operand.is_certain(certain))
            }
            _ => false,
        }
    }

    /// Appends to `out` the variables that occur in the expression, without duplicates.
    pub fn variables(&self, out: &mut Vec<Variable>) {
        let mut all = DistinctVariables::new(out);
        self.visit_variables(&mut |variable| all.add(variable));
    }

    /// [`Expression::variables`] as a set.
    #[must_use]
    pub fn variable_set(&self) -> VariableSet {
        let mut set = VariableSet::default();
        self.visit_variables(&mut |variable| set.insert(variable));
        set
    }

    fn visit_variables(&self, add: &mut dyn FnMut(Variable)) {
        match self {
            Self::Constant(_) | Self::Unbound => {}
            Self::Variable(variable) | Self::Bound(variable) => add(*variable),
            Self::Exists(exists) => exists.outer.iter().for_each(|variable| add(*variable)),
            _ => self.for_each_child(&mut |child| child.visit_variables(add)),
        }
    }

    /// Whether two evaluations for equal rows may differ.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        let mut found = matches!(self, Self::Call(function, _) if function.is_volatile());
        self.for_each_child(&mut |child| found = found || child.is_volatile());
        found
    }

    /// Whether the expression contains [`Expression::Exists`].
    #[must_use]
    pub fn has_exists(&self) -> bool {
        if let Self::Exists(_) = self {
            return true;
        }
        let mut any = false;
        self.for_each_child(&mut |child| any |= child.has_exists());
        any
    }

    /// Calls `visit` with each `EXISTS` of the expression, not with those nested in patterns of others.
    pub fn for_each_exists(&self, visit: &mut dyn FnMut(&Exists)) {
        match self {
            Self::Exists(exists) => visit(exists),
            _ => self.for_each_child(&mut |child| child.for_each_exists(visit)),
        }
    }

    /// Mutable variant of [`Expression::for_each_exists`].
    pub fn for_each_exists_mut(&mut self, visit: &mut dyn FnMut(&mut Exists)) {
        match self {
            Self::Exists(exists) => visit(exists),
            _ => self.for_each_child_mut(&mut |child| child.for_each_exists_mut(visit)),
        }
    }

    /// Calls `visit` with each [`Expression::Variable`] and [`Expression::Bound`], which it may replace;
    /// patterns of `EXISTS` are not visited.
    pub fn for_each_variable_mut(&mut self, visit: &mut dyn FnMut(&mut Expression)) {
        match self {
            Self::Variable(_) | Self::Bound(_) => visit(self),
            _ => self.for_each_child_mut(&mut |child| child.for_each_variable_mut(visit)),
        }
    }

    /// Calls `visit` with each direct sub-expression; the pattern of an `EXISTS` contains none.
    pub fn for_each_child(&self, visit: &mut dyn FnMut(&Expression)) {
        match self {
            Self::Constant(_) | Self::Variable(_) | Self::Unbound | Self::Bound(_) | Self::Exists(_) => {}
            Self::Or(all) | Self::And(all) | Self::Coalesce(all) | Self::Call(_, all) => {
                all.iter().for_each(visit);
            }
            Self::Not(a) | Self::Plus(a) | Self::Minus(a) => visit(a),
            Self::Equal(a, b)
            | Self::SameTerm(a, b)
            | Self::Compare(_, a, b)
            | Self::Add(a, b)
            | Self::Subtract(a, b)
            | Self::Multiply(a, b)
            | Self::Divide(a, b) => {
                visit(a);
                visit(b);
            }
            Self::In(a, all) => {
                visit(a);
                all.iter().for_each(visit);
            }
            Self::If(a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
        }
    }

    /// Mutable variant of [`Expression::for_each_child`].
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expression)) {
        match self {
            Self::Constant(_) | Self::Variable(_) | Self::Unbound | Self::Bound(_) | Self::Exists(_) => {}
            Self::Or(all) | Self::And(all) | Self::Coalesce(all) | Self::Call(_, all) => {
                all.iter_mut().for_each(visit);
            }
            Self::Not(a) | Self::Plus(a) | Self::Minus(a) => visit(a),
            Self::Equal(a, b)
            | Self::SameTerm(a, b)
            | Self::Compare(_, a, b)
            | Self::Add(a, b)
            | Self::Subtract(a, b)
            | Self::Multiply(a, b)
            | Self::Divide(a, b) => {
                visit(a);
                visit(b);
            }
            Self::In(a, all) => {
                visit(a);
                all.iter_mut().for_each(visit);
            }
            Self::If(a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
        }
    }
}

/// The functions of SPARQL 1.1 §17.4, those of SPARQL 1.2 for base directions and triple terms, the casts of
/// §17.5, and those for full-text search.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "each is the function of SPARQL with the same name")]
pub enum Function {
    Str,
    Lang,
    LangMatches,
    Datatype,
    Iri {
        /// Base against which a relative IRI is resolved.
        base: Option<String>,
    },
    BNode,
    Rand,
    Abs,
    Ceil,
    Floor,
    Round,
    Concat,
    SubStr,
    StrLen,
    Replace,
    UCase,
    LCase,
    EncodeForUri,
    Contains,
    StrStarts,
    StrEnds,
    StrBefore,
    StrAfter,
    Year,
    Month,
    Day,
    Hours,
    Minutes,
    Seconds,
    Timezone,
    Tz,
    Now,
    Uuid,
    StrUuid,
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    StrLang,
    LangDir,
    HasLang,
    HasLangDir,
    StrLangDir,
    IsTriple,
    Triple,
    Subject,
    Predicate,
    Object,
    StrDt,
    IsIri,
    IsBlank,
    IsLiteral,
    IsNumeric,
    Regex,
    /// A value that is equal for terms that are equal (`=`), and mostly different for others; never an error.
    /// The planner adds it; no language has it.
    EqualityKey,
    /// Full-text match of a literal: `urn:vervet:text:matches`.
    TextMatches,
    /// Full-text score of a literal: `urn:vervet:text:score`.
    TextScore,
    /// A constructor function, named by its datatype.
    Cast(NamedNode),
    /// An unknown function: the query text is valid, evaluation is an expression error.
    Unknown(NamedNode),
}

impl Function {
    /// Whether two calls with equal arguments may yield different values.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        matches!(self, Self::Rand | Self::BNode | Self::Uuid | Self::StrUuid)
    }
}

/// Kind of an aggregate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AggregateKind {
    /// Number of solutions (no expression) or of values.
    Count,
    /// Sum of numbers.
    Sum,
    /// Mean of numbers.
    Avg,
    /// Least value in the order of `ORDER BY`.
    Min,
    /// Greatest value in the order of `ORDER BY`.
    Max,
    /// Any value.
    Sample,
    /// Strings joined.
    GroupConcat {
        /// The string between two values.
        separator: String,
    },
}

impl AggregateKind {
    /// Whether the value depends on the order of the solutions: the standard leaves it open, and queries rely
    /// on the order of a sub-query.
    #[must_use]
    pub fn depends_on_order(&self) -> bool {
        matches!(self, Self::Sample | Self::GroupConcat { .. })
    }
}

/// An aggregate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Aggregate {
    /// The kind.
    pub kind: AggregateKind,
    /// The aggregated expression; `None` only for `COUNT(*)`.
    pub expression: Option<Expression>,
    /// Whether equal values (for `COUNT(*)`: solutions) count once.
    pub distinct: bool,
}

impl Aggregate {
    /// Whether duplicates in the input leave the result unchanged.
    #[must_use]
    pub fn ignores_duplicates(&self) -> bool {
        let counts_once = self.distinct || matches!(self.kind, AggregateKind::Min | AggregateKind::Max);
        counts_once && self.expression.as_ref().is_none_or(|expression| !expression.is_volatile())
    }
}
