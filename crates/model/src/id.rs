//! The 64-bit id: 4 bits of tag, 60 bits of payload.
//!
//! # Shape
//! `tag << 60 | payload`. Ids compare as plain numbers, so a sorted adjacency is grouped by tag.
//! # Invariants
//! 1. One term has exactly one id: a term that fits inside an id ([`crate::inline_id`]) never has a
//!    dictionary entry, and every other term has exactly one.
//! 2. Hence two terms are the same RDF term if and only if their ids are equal. (Ids with
//!    [`Tag::Computed`] belong to one query; that query keeps the invariant for them.)
//! 3. Zero is [`Id::UNBOUND`] and is never the id of a term.
//! # Source
//! DESIGN §2; the same idea as QLever's `ValueId`. Difference: canonical forms only, because terms must
//! survive an exact round trip.

use std::fmt;

/// Type of the payload of an [`Id`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Tag {
    /// No value: an unbound variable. Payload 0.
    Unbound = 0,
    /// An IRI or a blank node; payload: its dense vertex number.
    Vertex = 1,
    /// A statement with its own identity; payload: its dense edge number.
    Edge = 2,
    /// A literal or triple term of the dictionary; payload: its dense literal number.
    Literal = 3,
    /// An `xsd:string` of at most 7 bytes; see [`crate::inline_id`] for this and the following.
    ShortString = 4,
    /// An `xsd:integer` in canonical form.
    Integer = 5,
    /// An `xsd:decimal` in canonical form.
    Decimal = 6,
    /// An `xsd:double` in canonical form whose low mantissa bits are zero.
    Double = 7,
    /// `xsd:boolean`, `true` or `false`.
    Boolean = 8,
    /// An `xsd:dateTime` in canonical form with millisecond resolution and time zone `Z`.
    DateTime = 9,
    /// An `xsd:date` in canonical form without a time zone.
    Date = 10,
    /// An `xsd:int` in canonical form (the `Integer` of property graphs).
    Int = 11,
    /// An `xsd:long` in canonical form (the `Long` of property graphs).
    Long = 12,
    /// A term created by a running query; payload: its number in that query.
    Computed = 15,
}

impl Tag {
    /// The tag with this number, if there is one.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Unbound,
            1 => Self::Vertex,
            2 => Self::Edge,
            3 => Self::Literal,
            4 => Self::ShortString,
            5 => Self::Integer,
            6 => Self::Decimal,
            7 => Self::Double,
            8 => Self::Boolean,
            9 => Self::DateTime,
            10 => Self::Date,
            11 => Self::Int,
            12 => Self::Long,
            15 => Self::Computed,
            _ => return None,
        })
    }
}

/// A vertex, an edge or a value as a 64-bit number. See the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Id(u64);

impl Id {
    /// An unbound variable.
    pub const UNBOUND: Self = Self(0);
    /// Upper bound of all ids, above the id of every term.
    pub const END: Self = Self(u64::MAX);
    /// Number of bits of the payload.
    pub const PAYLOAD_BITS: u32 = 60;
    /// The largest payload.
    pub const PAYLOAD_MAX: u64 = (1 << Self::PAYLOAD_BITS) - 1;

    /// The id with this tag and payload; bits of `payload` above the 60th are dropped.
    #[inline]
    #[must_use]
    pub const fn new(tag: Tag, payload: u64) -> Self {
        Self((tag as u64) << Self::PAYLOAD_BITS | (payload & Self::PAYLOAD_MAX))
    }

    /// The vertex with this number.
    #[inline]
    #[must_use]
    pub const fn vertex(number: u64) -> Self {
        Self::new(Tag::Vertex, number)
    }

    /// The edge with this number.
    #[inline]
    #[must_use]
    pub const fn edge(number: u64) -> Self {
        Self::new(Tag::Edge, number)
    }

    /// The dictionary literal with this number.
    #[inline]
    #[must_use]
    pub const fn literal(number: u64) -> Self {
        Self::new(Tag::Literal, number)
    }

    /// The id with these bits, as stored in a file or a column; not validated.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// All 64 bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The tag; an unknown one (possible only in damaged data) reads as [`Tag::Unbound`].
    #[inline]
    #[must_use]
    pub const fn tag(self) -> Tag {
        match Tag::from_bits((self.0 >> Self::PAYLOAD_BITS) as u8) {
            Some(tag) => tag,
            None => Tag::Unbound,
        }
    }

    /// The low 60 bits.
    #[inline]
    #[must_use]
    pub const fn payload(self) -> u64 {
        self.0 & Self::PAYLOAD_MAX
    }

    /// Whether this is not [`Id::UNBOUND`].
    #[inline]
    #[must_use]
    pub const fn is_bound(self) -> bool {
        self.0 != 0
    }

    /// Whether this is an IRI or a blank node.
    #[inline]
    #[must_use]
    pub const fn is_vertex(self) -> bool {
        (self.0 >> Self::PAYLOAD_BITS) == Tag::Vertex as u64
    }

    /// Whether this is a literal of the store (inside the id or in the dictionary), or a triple term of it.
    #[inline]
    #[must_use]
    pub const fn is_stored_literal(self) -> bool {
        let tag = (self.0 >> Self::PAYLOAD_BITS) as u8;
        tag >= Tag::Literal as u8 && tag < Tag::Computed as u8
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag() {
            Tag::Unbound => f.write_str("unbound"),
            tag => write!(f, "{tag:?}:{}", self.payload()),
        }
    }
}

/// The end of a statement that is the key of a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Direction {
    /// Keys are subjects, neighbours are objects.
    Out = 0,
    /// Keys are objects, neighbours are subjects.
    In = 1,
}

impl Direction {
    /// Both directions, `Out` first.
    pub const BOTH: [Self; 2] = [Self::Out, Self::In];

    /// The opposite direction.
    #[inline]
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_and_payload_round_trip() {
        for bits in 0..16 {
            if let Some(tag) = Tag::from_bits(bits) {
                let id = Id::new(tag, 12345);
                assert_eq!((id.tag(), id.payload()), (tag, 12345));
            }
        }
        assert_eq!(Id::new(Tag::Vertex, u64::MAX).payload(), Id::PAYLOAD_MAX);
    }
}
