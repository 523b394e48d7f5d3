//! `sum()`, `mean()`, `min()` and `max()` over many values, each with how often it came.
//!
//! Nulls do not count, but they are something: over nothing at all there is no result, over nulls the result
//! is null.

use super::{add, counted, divide_exactly, is_nan, max, min, multiply};
use crate::Value;
use crate::semantics::Result;

/// A running `sum()`.
#[derive(Clone, Debug, Default)]
pub struct Sum(Option<Value>);

impl Sum {
    /// Adds `value`, `count` times.
    ///
    /// # Errors
    /// If it is neither a number nor null, or the sum overflows.
    pub fn push(&mut self, value: &Value, count: u64) -> Result<()> {
        let product = if count == 1 { value.clone() } else { times(value, count)? };
        self.0 = Some(match self.0.take() {
            None | Some(Value::Null) => {
                // Fails on what is no number.
                if matches!(product, Value::Null) { product } else { multiply(&product, &Value::Byte(1))? }
            }
            Some(total) => add(&total, &product)?,
        });
        Ok(())
    }

    /// The sum; `None` if nothing was pushed.
    #[must_use]
    pub fn finish(self) -> Option<Value> {
        self.0
    }
}

/// `value * count`, where `count` counts as a number of the same type if it fits, else as a long; one that no
/// long can hold counts as a double for floats and doubles, and as a number of arbitrary precision for those.
///
/// # Errors
/// As of [`multiply`].
pub(crate) fn times(value: &Value, count: u64) -> Result<Value> {
    let wide = || match (i64::try_from(count), value) {
        (Ok(count), _) => Value::Long(count),
        #[expect(clippy::cast_precision_loss, reason = "the product is rounded, too")]
        (Err(_), Value::Float(_) | Value::Double(_)) => Value::Double(count as f64),
        (Err(_), _) => counted(count.into()),
    };
    if let (Err(_), Some(value)) = (i64::try_from(count), super::small(value)) {
        return super::integers(super::Operation::Multiply, 64, value.into(), count.into());
    }
    let count = match value {
        Value::Byte(_) => i8::try_from(count).map_or_else(|_| wide(), Value::Byte),
        Value::Short(_) => i16::try_from(count).map_or_else(|_| wide(), Value::Short),
        Value::Int(_) => i32::try_from(count).map_or_else(|_| wide(), Value::Int),
        // 2^24 and below are exact.
        Value::Float(_) if count <= 1 << 24 => super::to_float(&wide()).map_or_else(wide, Value::Float),
        _ => wide(),
    };
    multiply(value, &count)
}

/// A running `mean()`.
#[derive(Clone, Debug, Default)]
pub struct Mean {
    /// As wide as a long or a double at least.
    sum: Option<Value>,
    /// How many numbers it is the sum of.
    count: u128,
}

impl Mean {
    /// Takes `value` in, `count` times.
    ///
    /// # Errors
    /// If it is neither a number nor null, or the sum overflows.
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
            .ok_or_else(|| crate::semantics::Error::new("mean() of more than 2^128 numbers"))?;
        Ok(())
    }

    /// The mean, a double or a decimal; `None` if nothing was pushed.
    ///
    /// # Errors
    /// If the sum is a decimal that overflows in the division.
    pub fn finish(self) -> Result<Option<Value>> {
        let count = counted(self.count);
        // A double is divided by a double, which an integer of arbitrary precision would turn into a decimal.
        let count = match (&self.sum, &count) {
            (Some(Value::Float(_) | Value::Double(_)), Value::BigInteger(_)) => {
                super::to_double(&count).map_or(count, Value::Double)
            }
            _ => count,
        };
        self.sum.map(|sum| divide_exactly(&sum, &count)).transpose()
    }
}

/// A running `min()` or `max()`.
#[derive(Clone, Debug)]
pub struct Extreme {
    greatest: bool,
    value: Option<Value>,
}

impl Extreme {
    /// `min()` so far of nothing.
    #[must_use]
    pub fn least() -> Self {
        Self { greatest: false, value: None }
    }

    /// `max()` so far of nothing.
    #[must_use]
    pub fn greatest() -> Self {
        Self { greatest: true, value: None }
    }

    /// Takes `value` in.
    ///
    /// # Errors
    /// If it cannot be compared with what came before.
    pub fn push(&mut self, value: &Value) -> Result<()> {
        self.value = Some(match self.value.take() {
            None => value.clone(),
            Some(other) if is_nan(&other) && matches!(value, Value::Null) => other,
            Some(other) if self.greatest => max(&other, value)?,
            Some(other) => min(&other, value)?,
        });
        Ok(())
    }

    /// The result; `None` if nothing was pushed.
    #[must_use]
    pub fn finish(self) -> Option<Value> {
        self.value
    }
}
