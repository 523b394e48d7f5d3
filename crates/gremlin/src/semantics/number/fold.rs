//! Accumulators of `sum()`, `mean()`, `min()` and `max()`, with multiplicities; minimum and maximum of two
//! values.
//!
//! Nulls are ignored, but an input of only nulls has the result null, while an empty input has no result.

use super::{
    Class, Operation, Precision, add, common, compare_promoted, counted, divide_exactly, is_nan, multiply,
    promoted,
};
use crate::Value;
use crate::semantics::compare::compare;
use crate::semantics::{Error, Result};
use std::cmp::Ordering;

/// Accumulator of `sum()`.
#[derive(Clone, Debug, Default)]
pub struct Sum(Option<Value>);

impl Sum {
    /// Adds `value`, `count` times.
    ///
    /// # Errors
    /// Neither a number nor null, or the sum overflows.
    pub fn push(&mut self, value: &Value, count: u64) -> Result<()> {
        let product = if count == 1 { value.clone() } else { times(value, count)? };
        self.0 = Some(match self.0.take() {
            None | Some(Value::Null) => {
                // An error if `product` is not a number.
                if matches!(product, Value::Null) { product } else { multiply(&product, &Value::Byte(1))? }
            }
            Some(total) => add(&total, &product)?,
        });
        Ok(())
    }

    /// The sum; `None` for an empty input.
    #[must_use]
    pub fn finish(self) -> Option<Value> {
        self.0
    }
}

/// `value * count`, where `count` is converted to the type of `value` if it fits, else to a long. A count
/// beyond a long becomes a double for floats and doubles, and an arbitrary-precision integer for numbers of
/// arbitrary precision.
///
/// # Errors
/// As for [`multiply`].
pub(crate) fn times(value: &Value, count: u64) -> Result<Value> {
    let wide = || match (i64::try_from(count), value) {
        (Ok(count), _) => Value::Long(count),
        #[expect(clippy::cast_precision_loss, reason = "the product is rounded, too")]
        (Err(_), Value::Float(_) | Value::Double(_)) => Value::Double(count as f64),
        (Err(_), _) => counted(count.into()),
    };
    if let (Err(_), Some(value)) = (i64::try_from(count), super::small(value)) {
        return super::integers(Operation::Multiply, 64, value.into(), count.into());
    }
    let count = match value {
        Value::Byte(_) => i8::try_from(count).map_or_else(|_| wide(), Value::Byte),
        Value::Short(_) => i16::try_from(count).map_or_else(|_| wide(), Value::Short),
        Value::Int(_) => i32::try_from(count).map_or_else(|_| wide(), Value::Int),
        // Counts up to 2^24 are exact.
        Value::Float(_) if count <= 1 << 24 => super::to_float(&wide()).map_or_else(wide, Value::Float),
        _ => wide(),
    };
    multiply(value, &count)
}

/// Accumulator of `mean()`.
#[derive(Clone, Debug, Default)]
pub struct Mean {
    /// At least as wide as a long or a double.
    sum: Option<Value>,
    /// Number of summands.
    count: u128,
}

impl Mean {
    /// Adds `value`, `count` times.
    ///
    /// # Errors
    /// Neither a number nor null, or the sum overflows.
    pub fn push(&mut self, value: &Value, count: u64) -> Result<()> {
        if matches!(value, Value::Null) {
            self.sum.get_or_insert(Value::Null);
            return Ok(());
        }
        let product = multiply(value, &Value::Long(1)).and_then(|value| times(&value, count))?;
        self.sum = Some(match self.sum.take() {
            None | Some(Value::Null) => product,
            Some(total) => add(&total, &product)?,
        });
        self.count = self
            .count
            .checked_add(count.into())
            .ok_or_else(|| Error::new("mean() of more than 2^128 numbers"))?;
        Ok(())
    }

    /// The mean, a double or a decimal; `None` for an empty input.
    ///
    /// # Errors
    /// The sum is a decimal, and the quotient overflows.
    pub fn finish(self) -> Result<Option<Value>> {
        let count = counted(self.count);
        // A double needs a double divisor: an arbitrary-precision integer would turn the quotient into a
        // decimal.
        let count = match (&self.sum, &count) {
            (Some(Value::Float(_) | Value::Double(_)), Value::BigInteger(_)) => {
                super::to_double(&count).map_or(count, Value::Double)
            }
            _ => count,
        };
        self.sum.map(|sum| divide_exactly(&sum, &count)).transpose()
    }
}

/// Accumulator of `min()` or `max()`.
#[derive(Clone, Debug)]
pub struct Extreme {
    greatest: bool,
    value: Option<Value>,
}

impl Extreme {
    /// An empty `min()`.
    #[must_use]
    pub fn least() -> Self {
        Self { greatest: false, value: None }
    }

    /// An empty `max()`.
    #[must_use]
    pub fn greatest() -> Self {
        Self { greatest: true, value: None }
    }

    /// Adds `value`.
    ///
    /// # Errors
    /// `value` is incomparable with an earlier one.
    pub fn push(&mut self, value: &Value) -> Result<()> {
        self.value = Some(match self.value.take() {
            None => value.clone(),
            Some(other) if is_nan(&other) && matches!(value, Value::Null) => other,
            Some(other) if self.greatest => max(&other, value)?,
            Some(other) => min(&other, value)?,
        });
        Ok(())
    }

    /// The result; `None` for an empty input.
    #[must_use]
    pub fn finish(self) -> Option<Value> {
        self.value
    }
}

/// The minimum, in the common class of two numbers; the other operand if one is null or `NaN`.
///
/// # Errors
/// The operands are incomparable.
pub fn min(a: &Value, b: &Value) -> Result<Value> {
    extreme(Ordering::Less, a, b)
}

/// The maximum, as [`min`].
///
/// # Errors
/// The operands are incomparable.
pub fn max(a: &Value, b: &Value) -> Result<Value> {
    extreme(Ordering::Greater, a, b)
}

fn extreme(wanted: Ordering, a: &Value, b: &Value) -> Result<Value> {
    if matches!(a, Value::Null) || is_nan(a) && !matches!(b, Value::Null) {
        return Ok(b.clone());
    }
    if matches!(b, Value::Null) || is_nan(b) {
        return Ok(a.clone());
    }
    if let (Some(first), Some(second)) = (Class::of(a), Class::of(b)) {
        let chosen = match compare_promoted(a, b) {
            Some(Ordering::Equal) | None => a,
            Some(order) => {
                if order == wanted {
                    a
                } else {
                    b
                }
            }
        };
        return Ok(promoted(chosen, common(first, second, Precision::Natural)));
    }
    match compare(a, b) {
        Some(order) => Ok(if order == wanted { a.clone() } else { b.clone() }),
        None => Err(Error::new(format!("cannot compare {} with {}", a.type_name(), b.type_name()))),
    }
}
