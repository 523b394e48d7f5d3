//! Branching steps: `union`, `coalesce`, `optional`, `choose`, `branch`.

use super::make;
use super::subquery::SubqueryFilter;
use crate::analysis::gathers;
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::modulated::Modulated;
use crate::semantic::predicate;
use crate::step::{Input, Pipeline, Step};
use crate::traverser::Traverser;
use vervet_gremlin::{P, Pick, T, Token, Value};
use vervet_model::{Error, Result};

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    Ok(match step.name() {
        "union" => {
            let branches = compiler.traversals(step.instruction)?;
            let all: Vec<usize> = (0..branches.len()).collect();
            let barrier = step.arguments().iter().any(gathers);
            Box::new(Branch::new(branches, barrier, move |_, _| Ok(all.clone())))
        }
        "coalesce" => {
            let mut branches = compiler.traversals(step.instruction)?;
            make::flat_map(move |traverser, context, out| {
                for branch in &mut branches {
                    branch.all(traverser, out, context)?;
                    if !out.is_empty() {
                        break;
                    }
                }
                Ok(())
            })
        }
        "optional" => {
            let mut branches = compiler.traversals(step.instruction)?;
            match branches.pop() {
                Some(body) => Box::new(Optional { body, running: false }),
                None => return Err(query_error("optional() needs a traversal")),
            }
        }
        name => choice(step, name == "branch", compiler)?,
    })
}

/// The pick token of an option.
#[derive(Clone)]
enum Case {
    Test(P),
    Traversal(Pipeline),
    Any,
    Otherwise,
    Unproductive,
}

fn choice(step: &Modulated<'_>, several: bool, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let barrier = step.arguments().iter().skip(1).any(gathers)
        || step.options.iter().any(|option| option.arguments.last().is_some_and(gathers));
    let mut condition = condition_of(step, compiler)?;
    if step.arguments().len() > 1 {
        return two_way_choice(step, condition, barrier, compiler);
    }
    let (mut cases, mut branches) = (Vec::new(), Vec::new());
    for option in &step.options {
        let (case, body) = match option.arguments.as_slice() {
            [body] => (Case::Any, body),
            [case, body] => (case_of(case, several, compiler)?, body),
            _ => return Err(query_error("option() takes a case and a traversal")),
        };
        cases.push(case);
        branches.push(branch_of(body, compiler)?);
    }
    let pass = branches.len();
    if !several {
        branches.push(Pipeline::default());
    }
    Ok(Box::new(Branch::new(branches, barrier, move |traverser, context| {
        let answer = condition.first(traverser, context)?;
        let mut taken = matching_cases(&mut cases, answer.as_ref(), several, traverser, context)?;
        if taken.is_empty() && !several {
            // A traverser without a matching option passes unchanged.
            taken.push(pass);
        }
        Ok(taken)
    })))
}

fn wrong_arguments(step: &Modulated<'_>) -> Error {
    query_error(format!("{}() does not take these arguments", step.name()))
}

/// The steps whose first result selects the options.
fn condition_of(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Pipeline> {
    Ok(match step.arguments().first() {
        Some(Value::Traversal(traversal)) => compiler.nested(traversal)?,
        Some(Value::P(test)) => {
            let test = test.clone();
            let step =
                make::filter(move |t, context| crate::semantic::passes(&test, &t.value, context.control));
            Pipeline::new(vec![compiler.node(step)])
        }
        Some(Value::Token(Token::T(token))) => {
            let token: T = *token;
            let step =
                make::map(move |t, context| crate::graph::element::token_value(&t.value, token, context));
            Pipeline::new(vec![compiler.node(step)])
        }
        Some(value) => Pipeline::new(vec![compiler.node(Box::new(make::constant(value.clone())))]),
        None => return Err(wrong_arguments(step)),
    })
}

/// The steps of a branch; a value other than a traversal is its only result.
fn branch_of(value: &Value, compiler: &mut Compiler) -> Result<Pipeline> {
    match value {
        Value::Traversal(traversal) => compiler.nested(traversal),
        value => Ok(Pipeline::new(vec![compiler.node(Box::new(make::constant(value.clone())))])),
    }
}

/// `choose(condition, yes, no)`: the condition holds if it has any result.
fn two_way_choice(
    step: &Modulated<'_>,
    condition: Pipeline,
    barrier: bool,
    compiler: &mut Compiler,
) -> Result<Box<dyn Step>> {
    let [test, yes, rest @ ..] = step.arguments() else { return Err(wrong_arguments(step)) };
    let mut condition = match test {
        Value::Traversal(traversal) => SubqueryFilter::new(traversal, compiler)?,
        _ => SubqueryFilter::of_steps(condition),
    };
    let mut branches = vec![branch_of(yes, compiler)?];
    match rest {
        [] => branches.push(Pipeline::default()),
        [no] => branches.push(branch_of(no, compiler)?),
        _ => return Err(wrong_arguments(step)),
    }
    Ok(Box::new(Branch::new(branches, barrier, move |traverser, context| {
        Ok(vec![usize::from(!condition.test(traverser, context)?)])
    })))
}

/// The pick token of `option(case, body)`.
fn case_of(case: &Value, several: bool, compiler: &mut Compiler) -> Result<Case> {
    Ok(match case {
        Value::Token(Token::Pick(Pick::Any)) => Case::Any,
        Value::Token(Token::Pick(Pick::None)) => Case::Otherwise,
        Value::Token(Token::Pick(Pick::Unproductive)) => Case::Unproductive,
        Value::Traversal(_) if !several => {
            return Err(query_error("Traversal is not allowed as a Pick token for choose()"));
        }
        Value::Traversal(traversal) => Case::Traversal(compiler.nested(traversal)?),
        value => Case::Test(predicate(value)),
    })
}

/// Positions of the cases that match the answer of the condition; the first one only, unless `several`.
fn matching_cases(
    cases: &mut [Case],
    answer: Option<&Value>,
    several: bool,
    traverser: &Traverser,
    context: &mut Context<'_>,
) -> Result<Vec<usize>> {
    let mut taken = Vec::new();
    let mut found = false;
    for (i, case) in cases.iter_mut().enumerate() {
        let fits = match (answer, case) {
            (Some(_), Case::Any) => {
                taken.push(i);
                if !several {
                    return Ok(taken);
                }
                continue;
            }
            (Some(answer), Case::Test(test)) => crate::semantic::passes(test, answer, context.control)?,
            (Some(answer), Case::Traversal(traversal)) => {
                traversal.test(&traverser.at(answer.clone()), context)?
            }
            _ => false,
        };
        if fits {
            found = true;
            taken.push(i);
            if !several {
                return Ok(taken);
            }
        }
    }
    let other = |wanted: fn(&Case) -> bool| cases.iter().position(wanted);
    if answer.is_none() {
        if let Some(i) = other(|case| matches!(case, Case::Unproductive)) {
            return Ok(vec![i]);
        }
    } else if !found && let Some(i) = other(|case| matches!(case, Case::Otherwise)) {
        taken.push(i);
    }
    Ok(taken)
}

/// Selects the branches of a traverser.
trait Choose {
    fn choose(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<Vec<usize>>;
}

impl<F> Choose for F
where
    F: FnMut(&Traverser, &mut Context<'_>) -> Result<Vec<usize>>,
{
    fn choose(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<Vec<usize>> {
        self(traverser, context)
    }
}

/// Branches, the same for all traversers, of which each traverser enters some.
#[derive(Clone)]
struct Branch<F> {
    branches: Vec<Pipeline>,
    choose: F,
    /// Whether a branch is a barrier.
    barrier: bool,
    /// The branches that have received a traverser since they were last pulled.
    fed: Vec<bool>,
    asking: Option<usize>,
}

impl<F: Choose + Clone + 'static> Branch<F> {
    fn new(branches: Vec<Pipeline>, barrier: bool, choose: F) -> Self
    where
        F: FnMut(&Traverser, &mut Context<'_>) -> Result<Vec<usize>>,
    {
        Self { fed: vec![false; branches.len()], branches, choose, barrier, asking: None }
    }
}

impl<F: Choose + Clone + 'static> Step for Branch<F> {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            while let Some(at) = self.asking {
                let Some(branch) = self.branches.get_mut(at) else {
                    self.asking = None;
                    break;
                };
                if self.fed.get(at) == Some(&true)
                    && let Some(next) = branch.next(context)?
                {
                    return Ok(Some(next));
                }
                if let Some(fed) = self.fed.get_mut(at) {
                    *fed = false;
                }
                self.asking = Some(at + 1);
            }
            let mut any = false;
            while let Some(traverser) = input.next(context)? {
                any = true;
                for branch in self.choose.choose(&traverser, context)? {
                    if let (Some(branch), Some(fed)) =
                        (self.branches.get_mut(branch), self.fed.get_mut(branch))
                    {
                        branch.start(traverser.clone(), context)?;
                        *fed = true;
                    }
                }
                if !self.barrier {
                    break;
                }
            }
            if !any {
                return Ok(None);
            }
            self.asking = Some(0);
        }
    }

    fn reset(&mut self) {
        self.branches.iter_mut().for_each(Pipeline::reset);
        self.fed.fill(false);
        self.asking = None;
    }

    fn moves(&self) -> bool {
        false
    }
}

/// The results of a traverser, or the traverser itself if there are none.
#[derive(Clone)]
struct Optional {
    body: Pipeline,
    running: bool,
}

impl Step for Optional {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        if self.running {
            if let Some(next) = self.body.next(context)? {
                return Ok(Some(next));
            }
            self.running = false;
        }
        self.body.reset();
        let Some(traverser) = input.next(context)? else { return Ok(None) };
        self.body.start(traverser.clone(), context)?;
        match self.body.next(context)? {
            Some(next) => {
                self.running = true;
                Ok(Some(next))
            }
            None => Ok(Some(traverser)),
        }
    }

    fn reset(&mut self) {
        self.body.reset();
        self.running = false;
    }

    fn moves(&self) -> bool {
        false
    }
}
