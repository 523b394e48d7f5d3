//! Lists of `IN` with many constants, by hash.
//!
//! # Shape
//! Constants are of a class: IRIs, strings, language-tagged strings, numbers. Each class has a hash set or
//! table; the other elements, such as dates, literals of unknown datatypes and variables, are compared one by
//! one (`evaluate.rs`).
//! # Why this is right
//! `a IN (…)` is true if `a` equals an element, else an error if one comparison is, else false. Two values
//! of one class are never incomparable, so a look-up decides. A value outside the class of a constant
//! compares alike with all constants of the class, so one comparison decides: it is an error for literals of
//! unknown datatypes only.
//!
//! Equality of numbers is not transitive, since a float or double is compared with the other number rounded.
//! Integers and decimals are looked up among integers and decimals exactly. All other pairs are compared if
//! their nearest floats are equal, as those of equal numbers are.
//! # Cost
//! A look-up for each value, by id for IRIs, and for strings where the snapshot proves that a term is one.

use crate::arithmetic::nearest_float;
use crate::compare::equals;
use crate::context::{Constant, Context, Operand};
use crate::operands::is_plain_text;
use crate::value::Value;
use oxsdatatypes::{Decimal, Float};
use rustc_hash::FxHashSet;
use std::collections::{HashMap, HashSet};
use vervet_model::{Id, Result, Tag};

/// The classes of constants; see the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Iri,
    String,
    Language,
    Number,
}

impl Class {
    fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Iri(_) => Self::Iri,
            Value::String(_) => Self::String,
            Value::Language(..) => Self::Language,
            value if value.is_numeric() => Self::Number,
            _ => return None,
        })
    }
}

/// The constants of a list; see the header. Clients choose the constants, so hashes of texts are seeded.
#[derive(Clone, Default, Debug)]
pub(crate) struct ConstantList {
    /// IRIs and strings.
    ids: FxHashSet<Id>,
    iris: HashSet<Box<str>>,
    strings: HashSet<Box<str>>,
    /// Language tags by text.
    languages: HashMap<Box<str>, Vec<Box<str>>>,
    numbers: Numbers,
    /// One constant of each class.
    samples: Vec<(Class, Constant)>,
}

/// Numbers; see the header of the file.
#[derive(Clone, Default, Debug)]
struct Numbers {
    /// Integers and decimals.
    exact: HashSet<Decimal>,
    /// All others, by the bits of the nearest float.
    rounded: HashMap<u32, Vec<Value<'static>>>,
    /// Those in `exact`, by the bits of the nearest float.
    exact_by_float: HashMap<u32, Vec<Value<'static>>>,
}

impl ConstantList {
    /// Whether the constant is of a class.
    pub(crate) fn takes(constant: &Constant) -> bool {
        Class::of(&constant.value).is_some()
    }

    /// Adds a constant, if it is of a class.
    pub(crate) fn add(&mut self, constant: Constant) {
        let Some(class) = Class::of(&constant.value) else { return };
        match &constant.value {
            Value::Iri(text) => {
                self.ids.insert(constant.id);
                self.iris.insert(Box::from(&**text));
            }
            Value::String(text) => {
                self.ids.insert(constant.id);
                self.strings.insert(Box::from(&**text));
            }
            Value::Language(text, tag) => {
                self.languages.entry(Box::from(&**text)).or_default().push(Box::from(&**tag));
            }
            number => self.numbers.add(number),
        }
        if !self.samples.iter().any(|(of, _)| *of == class) {
            self.samples.push((class, constant));
        }
    }

    /// The ids of its IRIs and strings.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.ids.iter().copied()
    }

    /// Whether a list has the term with this id, if ids alone decide it; an error counts as false. `is_all`:
    /// the list has no other elements.
    #[inline]
    pub(crate) fn has_id(&self, id: Id, is_all: bool) -> Option<bool> {
        let is_identity = match id.tag() {
            Tag::Vertex | Tag::Edge | Tag::ShortString => true,
            // A string equals no other literal, and has one id.
            Tag::Literal => self.languages.is_empty() && self.numbers.is_empty(),
            _ => false,
        };
        match is_identity && self.ids.contains(&id) {
            true => Some(true),
            false => (is_identity && is_all).then_some(false),
        }
    }

    /// Whether the value of `item` is in the list (`None`: an error), and the item.
    pub(crate) fn contains<'e>(
        &self,
        item: Operand<'e>,
        context: &mut Context<'_>,
    ) -> Result<(Option<bool>, Operand<'e>)> {
        match item.known_id() {
            Some(id) if matches!(id.tag(), Tag::Vertex | Tag::Edge) => {
                Ok((Some(self.ids.contains(&id)), item))
            }
            // No comparison with a string is an error.
            Some(id) if is_plain_text(id, context)? => Ok((Some(self.ids.contains(&id)), item)),
            _ => {
                let value = context.decode(item)?;
                context.work(value.work())?;
                Ok((self.contains_value(&value), Operand::Value(value)))
            }
        }
    }

    fn contains_value(&self, value: &Value<'_>) -> Option<bool> {
        let of_value = Class::of(value);
        let mut result = Some(false);
        for (class, sample) in &self.samples {
            let found = match of_value == Some(*class) {
                true => Some(self.is_constant(value)),
                false => equals(value, &sample.value),
            };
            match found {
                Some(true) => return found,
                Some(false) => {}
                None => result = None,
            }
        }
        result
    }

    /// Whether a value of a class equals a constant.
    fn is_constant(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Iri(text) => self.iris.contains(&**text),
            Value::String(text) => self.strings.contains(&**text),
            Value::Language(text, tag) => {
                self.languages.get(&**text).is_some_and(|tags| tags.iter().any(|one| **one == **tag))
            }
            number => self.numbers.contains(number),
        }
    }
}

impl Numbers {
    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.rounded.is_empty()
    }

    fn add(&mut self, number: &Value<'static>) {
        let Some(bits) = bits_of_nearest(number) else { return };
        match exact(number) {
            Some(value) => {
                if self.exact.insert(value) {
                    self.exact_by_float.entry(bits).or_default().push(number.clone());
                }
            }
            None => self.rounded.entry(bits).or_default().push(number.clone()),
        }
    }

    fn contains(&self, number: &Value<'_>) -> bool {
        let exact = exact(number);
        if exact.is_some_and(|value| self.exact.contains(&value)) {
            return true;
        }
        let is_equal = |table: &HashMap<u32, Vec<Value<'static>>>| {
            !table.is_empty()
                && bits_of_nearest(number)
                    .and_then(|bits| table.get(&bits))
                    .is_some_and(|all| all.iter().any(|one| equals(number, one) == Some(true)))
        };
        is_equal(&self.rounded) || exact.is_none() && is_equal(&self.exact_by_float)
    }
}

/// An integer or decimal, unless it is too large.
fn exact(number: &Value<'_>) -> Option<Decimal> {
    match number {
        Value::Integer(value) => Decimal::try_from(*value).ok(),
        Value::Decimal(value) => Some(*value),
        _ => None,
    }
}

/// The bits of the nearest float; `None`: it is NaN, which equals nothing.
fn bits_of_nearest(number: &Value<'_>) -> Option<u32> {
    // The sum with zero is the same number, and never negative zero.
    let float = f32::from(nearest_float(number)? + Float::from(0.0));
    (!float.is_nan()).then(|| float.to_bits())
}
