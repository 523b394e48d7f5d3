//! Comparisons of two terms by their ids, and classes of values whose order is total.
//!
//! A join on `a < b` needs only the least `b` of each key. That is sound within an [`OrderClass`]: if `b` is
//! not greater than `c` and `c < a`, then `b < a`, for every `a` of any class. So among values of one class
//! the least one decides for all.
//!
//! # Why this is right
//! Within a class the order is total, and `<` between classes is either always an error, or monotonic: a
//! number is rounded to the type of the other number, and rounding preserves order; a date without a time
//! zone is less than one with a time zone if it is less in every time zone.

use crate::compare::{compare, holds};
use crate::context::Context;
use crate::evaluator::Evaluator;
use crate::operands::{compare_ids, is_integer};
use crate::value::{Gregorian, Span, Value};
use vervet_algebra::Comparator;
use vervet_model::{Id, Result, Tag};

/// How a value compares with others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderClass {
    /// No comparison with it is true.
    Never,
    /// In the total order of the class with this number.
    Ordered(u8),
    /// In no class.
    Alone,
}

/// Class of integers and decimals.
const EXACT: u8 = 0;
const STRING: u8 = 2;
const BOOLEAN: u8 = 3;
const DATE_TIME: u8 = 4;
const DATE: u8 = 6;

impl Evaluator<'_> {
    /// `a comparator b`; `None` is a type error.
    ///
    /// # Errors
    /// Damaged dictionary; a limit.
    #[inline]
    pub fn holds(&self, comparator: Comparator, a: Id, b: Id) -> Result<Option<bool>> {
        match compare_ids(comparator, a, b) {
            None => self.holds_for_values(comparator, a, b),
            answer => Ok(answer),
        }
    }

    fn holds_for_values(&self, comparator: Comparator, a: Id, b: Id) -> Result<Option<bool>> {
        if !a.is_bound() || !b.is_bound() {
            return Ok(None);
        }
        let mut context = Context::new(self, &[]);
        if let Some(order) = context.order_of_texts(a, b)? {
            return Ok(Some(holds(comparator, order)));
        }
        let (a, b) = (context.decode_id(a)?, context.decode_id(b)?);
        Ok(compare(comparator, &a, &b))
    }

    /// The class of a value.
    ///
    /// # Errors
    /// Damaged dictionary; a limit.
    #[inline]
    pub fn order_class(&self, id: Id) -> Result<OrderClass> {
        Ok(OrderClass::Ordered(match id.tag() {
            tag if is_integer(tag) => EXACT,
            Tag::Decimal => EXACT,
            Tag::ShortString => STRING,
            Tag::Boolean => BOOLEAN,
            Tag::DateTime => DATE_TIME,
            Tag::Date => DATE + 1,
            Tag::Unbound => return Ok(OrderClass::Never),
            Tag::Vertex | Tag::Edge => return Ok(OrderClass::Alone),
            _ => return Ok(class_of(&Context::new(self, &[]).decode_id(id)?)),
        }))
    }
}

fn class_of(value: &Value<'_>) -> OrderClass {
    // Values with a time zone, and values without.
    let timed = |class: u8, has_zone: bool| class + u8::from(!has_zone);
    OrderClass::Ordered(match value {
        Value::Integer(_) | Value::Decimal(_) | Value::Wide(_) => EXACT,
        Value::Float(value) if value.is_nan() => return OrderClass::Never,
        Value::Double(value) if value.is_nan() => return OrderClass::Never,
        Value::Double(_) => 1,
        // A number is rounded more coarsely for a float, so floats and doubles are two classes.
        Value::Float(_) => 16,
        Value::String(_) => STRING,
        Value::Boolean(_) => BOOLEAN,
        Value::DateTime(value) => timed(DATE_TIME, value.timezone_offset().is_some()),
        Value::Date(value) => timed(DATE, value.timezone_offset().is_some()),
        Value::Time(value) => timed(8, value.timezone_offset().is_some()),
        Value::Gregorian(Gregorian::Year(value)) => timed(10, value.timezone_offset().is_some()),
        Value::Gregorian(Gregorian::YearMonth(value)) => timed(12, value.timezone_offset().is_some()),
        Value::Duration(Span::YearMonth(_)) => 14,
        Value::Duration(Span::DayTime(_)) => 15,
        // Durations and tagged texts are ordered in part, other terms are not.
        _ => return OrderClass::Alone,
    })
}
