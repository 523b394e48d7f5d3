//! Values as bytes, and back.
//!
//! # Shape
//! A number is a LEB128 varint, a list its length and its elements, a struct its fields, an enum a number and
//! the fields of the variant. The version of these bytes is the protocol number of the connection.
//! # Invariants
//! Whatever the bytes are, reading does not panic, allocates at most in proportion to their number, and nests
//! at most [`DEPTH_MAX`] deep.

use std::ops::Range;
use std::sync::Arc;
use vervet_codec::{read_varint, write_varint};
use vervet_model::{Error, ErrorKind, Id, Result};

/// Enums nested in each other. Plans of queries that people write have some ten.
const DEPTH_MAX: u32 = 200;

/// A list reserves memory for at most so many elements before they are read.
const RESERVED_MAX: usize = 1 << 10;

/// Bytes that are read from the front.
pub(crate) struct Input<'b> {
    bytes: &'b [u8],
    depth: u32,
    /// Number of columns: variables are below.
    variables: usize,
}

impl<'b> Input<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, depth: 0, variables: 0 }
    }

    /// Variables that are read from now on are below this number.
    pub(crate) fn set_variables(&mut self, variables: usize) {
        self.variables = variables;
    }

    /// Whether a variable has a column.
    pub(crate) fn variables(&self) -> usize {
        self.variables
    }

    pub(crate) fn has_column(&self, index: usize) -> bool {
        index < self.variables
    }

    /// The next number.
    pub(crate) fn number(&mut self) -> Result<u64> {
        read_varint(&mut self.bytes).ok_or_else(|| malformed("they end too early"))
    }

    /// A number of elements, each of which takes at least one byte.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = usize::read(self)?;
        if count > self.bytes.len() { Err(malformed("a list is longer than they are")) } else { Ok(count) }
    }

    /// The number of bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| malformed("they end too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Reads something that may contain its like.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(malformed("they nest too deep"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Fails if bytes are left.
    pub(crate) fn end(&self) -> Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { Err(malformed("bytes are left at their end")) }
    }
}

/// The error of bytes that are no value.
#[cold]
pub(crate) fn malformed(what: &str) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("another server sent bytes that are no part of a query: {what}"),
    )
    .with_hint("all servers of a cluster must run the same version")
}

/// A value with bytes. See the header of this file.
pub(crate) trait Wire: Sized {
    /// Appends its bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads it from its bytes.
    ///
    /// # Errors
    /// Unavailable: they are not those of a value.
    fn read(input: &mut Input<'_>) -> Result<Self>;
}

/// Implements [`Wire`] for structs by their fields.
macro_rules! wire_struct {
    ($($name:ty { $($field:ident),* $(,)? })*) => { $(
        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $( $crate::wire::Wire::write(&self.$field, out); )*
            }

            fn read(input: &mut $crate::wire::Input<'_>) -> vervet_model::Result<Self> {
                Ok(Self { $( $field: $crate::wire::Wire::read(input)? ),* })
            }
        }
    )* };
}

/// Implements [`Wire`] for an enum by its numbered variants.
macro_rules! wire_enum {
    ($name:ty {
        $( $number:literal => $variant:ident $( ( $($item:ident),* ) )? $( { $($field:ident),* $(,)? } )? ),* $(,)?
    }) => {
        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $( Self::$variant $( ( $($item),* ) )? $( { $($field),* } )? => {
                        vervet_codec::write_varint($number, out);
                        $( $( $crate::wire::Wire::write($item, out); )* )?
                        $( $( $crate::wire::Wire::write($field, out); )* )?
                    } )*
                }
            }

            fn read(input: &mut $crate::wire::Input<'_>) -> vervet_model::Result<Self> {
                input.nested(|input| Ok(match input.number()? {
                    $( $number => Self::$variant
                        $( ( $({ let $item = $crate::wire::Wire::read(input)?; $item }),* ) )?
                        $( { $($field: $crate::wire::Wire::read(input)?),* } )?, )*
                    _ => return Err($crate::wire::malformed(concat!("an unknown ", stringify!($name)))),
                }))
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};

impl Wire for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        write_varint(*self, out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        input.number()
    }
}

macro_rules! wire_number {
    ($($name:ty),*) => { $(
        impl Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                write_varint(*self as u64, out);
            }

            fn read(input: &mut Input<'_>) -> Result<Self> {
                Self::try_from(input.number()?).map_err(|_| malformed("a number is too large"))
            }
        }
    )* };
}

wire_number!(u16, u32, usize);

impl Wire for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        match input.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(malformed("a truth value is neither")),
        }
    }
}

impl Wire for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bits().to_le_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let bytes = input.take(size_of::<u64>())?;
        Ok(Self::from_bits(u64::from_le_bytes(bytes.try_into().unwrap_or_default())))
    }
}

impl Wire for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let count = input.count()?;
        let text = std::str::from_utf8(input.take(count)?).map_err(|_| malformed("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }
}

impl Wire for Id {
    fn write(&self, out: &mut Vec<u8>) {
        write_varint(self.bits(), out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        Ok(Self::from_bits(input.number()?))
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        Ok(if bool::read(input)? { Some(T::read(input)?) } else { None })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let count = input.count()?;
        let mut values = Self::with_capacity(count.min(RESERVED_MAX));
        for _ in 0..count {
            values.push(T::read(input)?);
        }
        Ok(values)
    }
}

impl<T: Wire> Wire for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        T::read(input).map(Self::new)
    }
}

impl<T: Wire> Wire for Arc<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        T::read(input).map(Self::new)
    }
}

impl<T: Wire> Wire for Arc<[T]> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        Vec::read(input).map(Self::from)
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let mut values = Vec::with_capacity(N);
        for _ in 0..N {
            values.push(T::read(input)?);
        }
        values.try_into().map_err(|_| malformed("an array has another length"))
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        Ok((A::read(input)?, B::read(input)?))
    }
}

impl<T: Wire> Wire for Range<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.start.write(out);
        self.end.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        Ok(T::read(input)?..T::read(input)?)
    }
}
