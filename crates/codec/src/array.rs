//! An array of numbers in one of two encodings: packed, or framed.
//!
//! # Shape
//! The descriptor of a framed array has a width that no packed array has, which distinguishes the two; either
//! may be used wherever the other may.
//! # Cost
//! Framed arrays take two to five times as long to read (see `framed`), so they are used only where they save
//! much: see [`Array::write_small`].

use crate::bytes::{Damaged, Reader};
use crate::framed::{FRAMED_WIDTH, Framed, FramedView};
use crate::packed::{Packed, PackedView};

/// A framed array is used if it takes at most this many [`PARTS`] of the bytes of a packed one.
const PARTS_MAX: usize = 3;
const PARTS: usize = 4;
/// Packed arrays of at most this many bytes stay packed: there is little to save.
const SMALL_BYTES: usize = 1 << 12;

/// Descriptor of an array in its section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Array {
    /// Every element has the same width in bytes.
    Packed(Packed),
    /// Each frame has its own width in bits.
    Framed(Framed),
}

impl Array {
    /// Appends `count` numbers between `minimum` and `maximum` to `body`: framed if that saves a quarter of
    /// the bytes, else packed.
    pub fn write_small(
        values: impl Iterator<Item = u64> + Clone,
        count: usize,
        minimum: u64,
        maximum: u64,
        body: &mut Vec<u8>,
    ) -> Self {
        let packed = count * Packed::width_of(maximum.saturating_sub(minimum));
        match Self::frame(values.clone(), count, minimum, packed, body) {
            Some(framed) => Self::Framed(framed),
            None => Self::Packed(Packed::write(values, count, minimum, maximum, body)),
        }
    }

    /// Appends the numbers framed, if that saves enough compared with another encoding.
    pub(crate) fn frame(
        values: impl Iterator<Item = u64>,
        count: usize,
        minimum: u64,
        other_bytes: usize,
        body: &mut Vec<u8>,
    ) -> Option<Framed> {
        if other_bytes <= SMALL_BYTES {
            return None;
        }
        Framed::write(values, count, minimum, other_bytes / PARTS * PARTS_MAX, body)
    }

    /// Appends the descriptor.
    pub fn write_meta(&self, meta: &mut Vec<u8>) {
        match self {
            Self::Packed(packed) => packed.write_meta(meta),
            Self::Framed(framed) => framed.write_meta(meta),
        }
    }

    /// Reads a descriptor of a section of `section_bytes`.
    ///
    /// # Errors
    /// The array would not lie inside the section.
    pub fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let mut ahead = meta.clone();
        let [_, _, width] = [ahead.u64()?, ahead.u64()?, ahead.u64()?];
        if width == FRAMED_WIDTH {
            return Framed::read_meta(meta, section_bytes).map(Self::Framed);
        }
        Packed::read_meta(meta, section_bytes).map(Self::Packed)
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Packed(packed) => packed.len(),
            Self::Framed(framed) => framed.len(),
        }
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of all elements, in bytes.
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        match self {
            Self::Packed(packed) => packed.size_bytes(),
            Self::Framed(framed) => framed.size_bytes(),
        }
    }

    /// A view of the array in the bytes of its section.
    #[inline]
    #[must_use]
    pub fn view<'a>(&self, section: &'a [u8]) -> ArrayView<'a> {
        match self {
            Self::Packed(packed) => ArrayView::Packed(packed.view(section)),
            Self::Framed(framed) => ArrayView::Framed(framed.view(section)),
        }
    }
}

/// A view of an array, for reading.
#[derive(Clone, Copy, Debug)]
pub enum ArrayView<'a> {
    /// A packed array.
    Packed(PackedView<'a>),
    /// A framed array.
    Framed(FramedView<'a>),
}

impl ArrayView<'_> {
    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Packed(view) => view.len(),
            Self::Framed(view) => view.len(),
        }
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reference that is added to each stored number.
    #[inline]
    #[must_use]
    pub const fn minimum(&self) -> u64 {
        match self {
            Self::Packed(view) => view.minimum(),
            Self::Framed(view) => view.minimum(),
        }
    }

    /// Element `index`.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        match self {
            Self::Packed(view) => view.get(index),
            Self::Framed(view) => view.get(index),
        }
    }

    /// The position of the first element in `start..end` that is not below `value`; the elements there
    /// must ascend.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, start: usize, end: usize, value: u64) -> usize {
        match self {
            Self::Packed(view) => view.lower_bound(start, end, value),
            Self::Framed(view) => view.lower_bound(start, end, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::PADDING;

    #[test]
    fn the_smaller_form_is_chosen() {
        let form = |values: &[u64]| {
            let (low, high) = (values.iter().min().copied(), values.iter().max().copied());
            let mut body = Vec::new();
            let values_of = values.iter().copied();
            let array =
                Array::write_small(values_of, values.len(), low.unwrap_or(0), high.unwrap_or(0), &mut body);
            let mut meta = Vec::new();
            array.write_meta(&mut meta);
            body.extend([0xFF; PADDING]);
            assert_eq!(Array::read_meta(&mut Reader::new(&meta), body.len()), Ok(array));
            assert!(Array::read_meta(&mut Reader::new(&meta[..meta.len() - 8]), body.len()).is_err());
            let view = array.view(&body);
            for (index, value) in values.iter().enumerate() {
                assert_eq!(view.get(index), *value);
                if values.is_sorted() {
                    let expected = values.partition_point(|other| other < value);
                    assert_eq!(view.lower_bound(0, values.len(), *value), expected);
                }
            }
            matches!(array, Array::Framed(_))
        };
        assert!(form(&(0..10_000).collect::<Vec<u64>>()));
        assert!(!form(&(0..1000).collect::<Vec<u64>>()), "small");
        let noise =
            |bits: u32| (0..10_000_u64).map(move |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits));
        assert!(form(&noise(9).collect::<Vec<u64>>()), "9 bits of 16");
        assert!(!form(&noise(15).collect::<Vec<u64>>()) && !form(&noise(64).collect::<Vec<u64>>()));
        assert!(!form(&[]));
    }
}
