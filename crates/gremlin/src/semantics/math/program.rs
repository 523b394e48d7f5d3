//! Programs of a stack machine, to which expressions compile.

use crate::semantics::{Error, Result};
use std::sync::Arc;

/// Maximum nesting depth of parentheses, signs, powers and functions.
pub const MAX_DEPTH: usize = 200;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// In the order of their first appearance.
    pub(super) variables: Vec<Arc<str>>,
    pub(super) program: Vec<Operation>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Number(f64),
    /// The variable with this index.
    Variable(usize),
    Negate,
    Binary(Binary),
    Call(Function),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Function(fn(f64) -> f64);

impl Expression {
    /// The distinct variables in the order of their first appearance. They include `pi` and `e`, for which
    /// [`constant`](super::constant) is the fallback.
    #[must_use]
    pub fn variables(&self) -> &[Arc<str>] {
        &self.variables
    }

    /// The value of the expression, where `values[i]` is the value of `variables()[i]`.
    ///
    /// # Errors
    /// Fewer values than variables, or a division by zero.
    pub fn evaluate(&self, values: &[f64]) -> Result<f64> {
        let mut stack = Vec::with_capacity(8);
        for operation in &self.program {
            let value = match operation {
                Operation::Number(number) => *number,
                Operation::Variable(index) => *values.get(*index).ok_or_else(|| {
                    let name = self.variables.get(*index).map_or("", |name| name);
                    Error::new(format!("the variable {name} of math() has no value"))
                })?,
                Operation::Negate => -pop(&mut stack),
                Operation::Call(Function(function)) => function(pop(&mut stack)),
                Operation::Binary(binary) => {
                    let (b, a) = (pop(&mut stack), pop(&mut stack));
                    binary.apply(a, b)?
                }
            };
            stack.push(value);
        }
        Ok(pop(&mut stack))
    }
}

/// Pops a value; a compiled program never underflows the stack.
fn pop(stack: &mut Vec<f64>) -> f64 {
    stack.pop().unwrap_or(f64::NAN)
}

impl Binary {
    fn apply(self, a: f64, b: f64) -> Result<f64> {
        Ok(match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide | Self::Remainder if b == 0.0 => {
                return Err(Error::new("Division by zero! math() divides by a number that is 0"));
            }
            Self::Divide => a / b,
            Self::Remainder => a % b,
            Self::Power => a.powf(b),
        })
    }
}

/// The function with this name.
pub(super) fn function(name: &str) -> Option<Function> {
    Some(Function(match name {
        "abs" => f64::abs,
        "acos" => f64::acos,
        "asin" => f64::asin,
        "atan" => f64::atan,
        "cbrt" => f64::cbrt,
        "ceil" => f64::ceil,
        "cos" => f64::cos,
        "cosh" => f64::cosh,
        "exp" => f64::exp,
        "floor" => f64::floor,
        "log" => f64::ln,
        "log10" => f64::log10,
        "log2" => f64::log2,
        "signum" => sign,
        "sin" => f64::sin,
        "sinh" => f64::sinh,
        "sqrt" => f64::sqrt,
        "tan" => f64::tan,
        "tanh" => f64::tanh,
        _ => return None,
    }))
}

/// Zero for zero and `NaN`, unlike `f64::signum`.
fn sign(number: f64) -> f64 {
    if number > 0.0 {
        1.0
    } else if number < 0.0 {
        -1.0
    } else {
        0.0
    }
}
