//! Filter push-down: conditions split into conjuncts, each applied as soon as its variables are bound.

use crate::cost;
use crate::scope::expression_variables;
use oxrdf::{Term, vocab::xsd};
use std::rc::Rc;
use vervet_algebra::{Expression, Function, Variable, VariableSet};

/// One conjunct of a condition.
#[derive(Clone, Debug)]
pub(crate) struct Conjunct {
    /// The condition. Shared, since an `IN` may list very many terms and each plan alternative holds its
    /// filters.
    pub(crate) expression: Rc<Expression>,
    /// Whether the condition contains `EXISTS`.
    pub(crate) has_exists: bool,
    /// Its variables.
    pub(crate) variables: VariableSet,
    /// Estimated fraction of rows that pass.
    pub(crate) selectivity: f64,
    /// Estimated cost for a row, in ns.
    pub(crate) cost: f64,
}

impl Conjunct {
    pub(crate) fn new(expression: Expression) -> Self {
        Self {
            variables: expression_variables(&expression),
            selectivity: selectivity(&expression),
            cost: cost(&expression),
            has_exists: expression.has_exists(),
            expression: Rc::new(expression),
        }
    }

    /// Whether push-down may move the conjunct.
    pub(crate) fn is_movable(&self) -> bool {
        !self.expression.is_volatile()
    }

    /// The variable and the term, if the conjunct is equivalent to `sameTerm(variable, term)`.
    ///
    /// `=` is `sameTerm` for IRIs and plain strings: no other term is equal to them. Numbers, booleans,
    /// dates and tagged strings are compared by value, so they are not in here.
    pub(crate) fn as_binding(&self) -> Option<(Variable, &Term)> {
        let (a, b, any) = match &*self.expression {
            Expression::SameTerm(a, b) => (a, b, true),
            Expression::Equal(a, b) => (a, b, false),
            _ => return None,
        };
        match (&**a, &**b) {
            (Expression::Variable(variable), Expression::Constant(term))
            | (Expression::Constant(term), Expression::Variable(variable))
                if any || is_identity(term) =>
            {
                Some((*variable, term))
            }
            _ => None,
        }
    }

    /// The variable and the terms, if the conjunct is equivalent to `variable IN (terms)` under `sameTerm`.
    pub(crate) fn as_one_of(&self) -> Option<(Variable, Vec<&Term>)> {
        one_of(&self.expression)
    }

    /// The variable, if the conjunct only compares it with constants.
    fn compared(&self) -> Option<Variable> {
        let mut all = match &*self.expression {
            Expression::And(all) => all.iter(),
            one => std::slice::from_ref(one).iter(),
        };
        let variable_of = |one: &Expression| match one {
            Expression::Compare(_, a, b) => match (&**a, &**b) {
                (Expression::Variable(variable), Expression::Constant(_)) => Some(*variable),
                _ => None,
            },
            _ => None,
        };
        let first = variable_of(all.next()?)?;
        all.all(|one| variable_of(one) == Some(first)).then_some(first)
    }

    /// Conjoins `other`.
    fn and(&mut self, other: Self) {
        let mine = Rc::make_mut(&mut self.expression);
        if !matches!(mine, Expression::And(_)) {
            *mine = Expression::And(vec![std::mem::replace(mine, Expression::Unbound)]);
        }
        if let Expression::And(all) = mine {
            match Rc::unwrap_or_clone(other.expression) {
                Expression::And(of) => all.extend(of),
                one => all.push(one),
            }
        }
        self.variables.add_all(&other.variables);
        self.selectivity *= other.selectivity;
    }
}

/// As [`Conjunct::as_one_of`].
pub(crate) fn one_of(expression: &Expression) -> Option<(Variable, Vec<&Term>)> {
    let Expression::In(one, list) = expression else { return None };
    let Expression::Variable(variable) = **one else { return None };
    let mut terms = Vec::with_capacity(list.len());
    for one in list {
        match one {
            Expression::Constant(term) if is_identity(term) => terms.push(term),
            _ => return None,
        }
    }
    Some((variable, terms))
}

/// Maximum number of separate conditions at one position; more become a single condition.
const APART_MAX: usize = 32;

/// Fuses comparisons of one variable with constants that are tested at the same position, so that each value
/// is read once.
pub(crate) fn together(filters: Vec<Conjunct>) -> Vec<Conjunct> {
    let mut all: Vec<Conjunct> = Vec::with_capacity(filters.len());
    // Position of the first condition that compares each variable.
    let mut positions: Vec<(Variable, usize)> = Vec::new();
    for filter in filters {
        let Some(variable) = filter.compared() else {
            all.push(filter);
            continue;
        };
        match positions.binary_search_by_key(&variable, |(of, _)| *of) {
            Ok(at) => all[positions[at].1].and(filter),
            Err(at) => {
                positions.insert(at, (variable, all.len()));
                all.push(filter);
            }
        }
    }
    if all.len() > APART_MAX {
        // Each step takes stack space, so very many conditions become one step.
        let (mut apart, mut rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|filter| filter.has_exists);
        if let Some(mut one) = rest.pop() {
            rest.drain(..).for_each(|filter| one.and(filter));
            apart.insert(0, one);
        }
        return apart;
    }
    all
}

fn is_identity(term: &Term) -> bool {
    match term {
        Term::NamedNode(_) => true,
        Term::Literal(literal) => literal.datatype() == xsd::STRING,
        _ => false,
    }
}

/// Appends the conjuncts of `condition`.
///
/// A row passes `a && b` exactly if it passes both, even if one of them is an error.
pub(crate) fn split(condition: &Expression, out: &mut Vec<Conjunct>) {
    match condition {
        Expression::And(all) => all.iter().for_each(|one| split(one, out)),
        one => out.push(Conjunct::new(one.clone())),
    }
}

/// Heuristic selectivity, independent of values.
fn selectivity(expression: &Expression) -> f64 {
    match expression {
        Expression::Equal(..) | Expression::SameTerm(..) => 0.05,
        Expression::Compare(..) => 0.4,
        Expression::In(_, all) => all.iter().fold(0.0_f64, |sum, _| sum + 0.05).min(0.9),
        Expression::Not(one) => (1.0 - selectivity(one)).max(0.05),
        Expression::And(all) => all.iter().map(selectivity).product(),
        Expression::Or(all) => all.iter().map(selectivity).sum::<f64>().min(1.0),
        Expression::Bound(_) => 0.8,
        Expression::Call(Function::TextMatches, _) => 0.01,
        Expression::Call(..) => 0.2,
        _ => 0.5,
    }
}

/// Cost of a test for each row; comparisons of a variable with constants are cheap, since ids decide them.
fn cost(expression: &Expression) -> f64 {
    let is_variable = |one: &Expression| matches!(one, Expression::Variable(_));
    let is_constant = |one: &Expression| matches!(one, Expression::Constant(_));
    match expression {
        Expression::Compare(_, a, b) | Expression::Equal(a, b) | Expression::SameTerm(a, b)
            if is_variable(a) && is_constant(b) || is_constant(a) && is_variable(b) =>
        {
            cost::FILTER_ID_ROW
        }
        Expression::In(one, all) if is_variable(one) && all.iter().all(is_constant) => cost::FILTER_ID_ROW,
        Expression::Not(one) => cost(one),
        _ => cost::FILTER_ROW,
    }
}
