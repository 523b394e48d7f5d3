//! Equality and order of two operands: by their ids if those decide, else by their values.

use crate::arithmetic::nearest_float;
use crate::compare::{compare, equals, holds};
use crate::context::{Context, Operand};
use crate::dates::{SECONDS_PER_DAY, instant};
use crate::value::Value;
use oxsdatatypes::Double;
use vervet_algebra::Comparator;
use vervet_model::{Id, Inline, Result, Tag};

/// See [`vervet_algebra::Function::EqualityKey`]: the term itself where equality is identity, the nearest
/// float of a number, the instant of a date or time, and one key for all other values.
pub(crate) fn equality_key<'e>(a: Operand<'e>, context: &mut Context<'_>) -> Result<Operand<'e>> {
    if let Some(id) = a.known_id()
        && (matches!(id.tag(), Tag::Vertex | Tag::Edge) || is_plain_text(id, context)?)
    {
        return Ok(a);
    }
    match a.known_id().and_then(Inline::from_id) {
        Some(Inline::DateTime(ms)) => return Ok(integer_key(ms.div_euclid(1000))),
        Some(Inline::Date(days)) => return Ok(integer_key(days.saturating_mul(SECONDS_PER_DAY))),
        _ => {}
    }
    let value = context.decode(a.clone())?;
    context.work(value.work())?;
    if let Some(seconds) = instant(&value) {
        return Ok(integer_key(seconds));
    }
    let key = match nearest_float(&value) {
        // The sum with zero is the same number, and never negative zero.
        Some(number) => Operand::Value(Value::Double(Double::from(number) + Double::from(0.0))),
        None if matches!(value, Value::Iri(_) | Value::Blank(_) | Value::String(_) | Value::Language(..)) => {
            a
        }
        None => Operand::Value(Value::Boolean(true)),
    };
    context.recycle_value(value);
    Ok(key)
}

/// `a = b`, by ids if they decide it.
pub(crate) fn equal(a: &Operand<'_>, b: &Operand<'_>, context: &mut Context<'_>) -> Result<Option<bool>> {
    if let (Some(a), Some(b)) = (a.known_id(), b.known_id()) {
        if let Some(answer) = equal_ids(a, b) {
            return Ok(Some(answer));
        }
        if is_plain_text(a, context)? && (a == b || is_plain_text(b, context)?) {
            return Ok(Some(a == b));
        }
    }
    let (a, b) = (context.decode(a.clone())?, context.decode(b.clone())?);
    context.work(a.work() + b.work())?;
    let answer = equals(&a, &b);
    context.recycle_value(a);
    context.recycle_value(b);
    Ok(answer)
}

fn integer_key<'e>(key: i64) -> Operand<'e> {
    Operand::Value(Value::Integer(key.into()))
}

/// Whether a stored term is certainly an `xsd:string`; each has one id.
pub(crate) fn is_plain_text(id: Id, context: &Context<'_>) -> Result<bool> {
    Ok(match id.tag() {
        Tag::ShortString => true,
        Tag::Literal => context.evaluator.snapshot().is_plain_text(id)?,
        _ => false,
    })
}

/// `a = b`, if the ids alone decide it.
#[inline]
pub(crate) fn equal_ids(a: Id, b: Id) -> Option<bool> {
    let (a_tag, b_tag) = (a.tag(), b.tag());
    let is_resource = |tag| matches!(tag, Tag::Vertex | Tag::Edge);
    let is_inline = |tag: Tag| tag >= Tag::ShortString && tag < Tag::Computed;
    if is_integer(a_tag) && is_integer(b_tag) {
        return Some(a.payload() == b.payload());
    }
    if a == b {
        // A double may be NaN; a dictionary literal may be NaN as a float.
        return (is_resource(a_tag) || (is_inline(a_tag) && a_tag != Tag::Double)).then_some(true);
    }
    match (a_tag, b_tag) {
        // (An unbound id matches none of these, and decides nothing.)
        (a, b) if is_resource(a) && (is_resource(b) || b == Tag::Literal || is_inline(b)) => Some(false),
        (a, b) if is_resource(b) && (a == Tag::Literal || is_inline(a)) => Some(false),
        // Canonical forms of one type: different ids are different values. (`1.5` and `1.50` are both inline
        // decimals, and zero has two doubles, so those two tags are excluded.)
        (a, b) if a == b && matches!(a, Tag::ShortString | Tag::Boolean | Tag::DateTime | Tag::Date) => {
            Some(false)
        }
        _ => None,
    }
}

/// Whether payloads are integers, which are comparable between all such tags.
pub(crate) fn is_integer(tag: Tag) -> bool {
    matches!(tag, Tag::Integer | Tag::Int | Tag::Long)
}

/// `a comparator b`, if the ids alone decide it: payloads preserve the order of values within a tag, and
/// among integers.
#[inline]
pub(crate) fn compare_ids(comparator: Comparator, a: Id, b: Id) -> Option<bool> {
    let tag = a.tag();
    let ordered = tag == b.tag()
        && matches!(tag, Tag::ShortString | Tag::Boolean | Tag::DateTime | Tag::Date)
        || is_integer(tag) && is_integer(b.tag());
    ordered.then(|| holds(comparator, a.payload().cmp(&b.payload())))
}

/// `a comparator b`, by ids or cached texts if they decide it.
pub(crate) fn compare_operands(
    comparator: Comparator,
    a: Operand<'_>,
    b: Operand<'_>,
    context: &mut Context<'_>,
) -> Result<Option<bool>> {
    if let (Some(a), Some(b)) = (a.known_id(), b.known_id()) {
        if let Some(answer) = compare_ids(comparator, a, b) {
            return Ok(Some(answer));
        }
        if let Some(order) = context.order_of_texts(a, b)? {
            return Ok(Some(holds(comparator, order)));
        }
    }
    let (a, b) = (context.decode(a)?, context.decode(b)?);
    context.work(a.work() + b.work())?;
    let answer = compare(comparator, &a, &b);
    context.recycle_value(a);
    context.recycle_value(b);
    Ok(answer)
}
