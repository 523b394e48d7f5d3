//! Packed array: numbers of 0 to 8 bytes each, less their minimum (frame of reference).
//!
//! # Shape
//! Element `i` is `minimum + (8 bytes at offset + i * width, little-endian, masked to width bytes)`.
//! Width 0: all elements are equal.
//! # Cost
//! An access is one unaligned load, one mask and one addition; space is `count * width` bytes. Bytes, not
//! bits, because shifts and straddled words would cost more than the bytes they save.

use crate::bytes::{Damaged, PADDING, Reader, load_u64, write_u64};

/// Descriptor of a packed array in its section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packed {
    offset: usize,
    count: usize,
    width: usize,
    minimum: u64,
}

impl Packed {
    /// Number of bytes that numbers up to `span` need.
    #[must_use]
    pub const fn width_of(span: u64) -> usize {
        (8 - span.leading_zeros() as usize / 8) % 9
    }

    /// Appends `count` numbers between `minimum` and `maximum` to `body`.
    ///
    /// Numbers outside of the bounds are an error of the caller: the array would be unreadable.
    ///
    /// # Panics
    /// `minimum` is above `maximum`; `values` has fewer than `count` numbers.
    pub fn write(
        values: impl Iterator<Item = u64>,
        count: usize,
        minimum: u64,
        maximum: u64,
        body: &mut Vec<u8>,
    ) -> Self {
        assert!(minimum <= maximum, "bounds out of order: {minimum}, {maximum}");
        let width = Self::width_of(maximum - minimum);
        let offset = body.len();
        body.resize(offset + count * width + PADDING, 0);
        let mut at = offset;
        let mut written = 0;
        for value in values.take(count) {
            debug_assert!(
                (minimum..=maximum).contains(&value),
                "{value} is outside of {minimum}..={maximum}"
            );
            // The next store overwrites the upper bytes of this one, and the last ones are cut off.
            if let Some(chunk) = body.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<8>()) {
                *chunk = value.wrapping_sub(minimum).to_le_bytes();
            }
            at += width;
            written += 1;
        }
        body.truncate(offset + count * width);
        assert_eq!(written, count, "as many values as announced");
        Self { offset, count, width, minimum }
    }

    /// Appends the numbers of a slice, with the narrowest width that fits.
    pub fn write_slice(values: &[u64], body: &mut Vec<u8>) -> Self {
        let minimum = values.iter().copied().min().unwrap_or(0);
        let maximum = values.iter().copied().max().unwrap_or(0);
        Self::write(values.iter().copied(), values.len(), minimum, maximum, body)
    }

    /// Appends the descriptor.
    pub fn write_meta(&self, meta: &mut Vec<u8>) {
        for number in [self.offset as u64, self.count as u64, self.width as u64, self.minimum] {
            write_u64(number, meta);
        }
    }

    /// Reads a descriptor of a section of `section_bytes`.
    ///
    /// # Errors
    /// The array would not lie inside the section.
    pub fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let packed = Self {
            offset: meta.length()?,
            count: meta.length()?,
            width: meta.length()?,
            minimum: meta.u64()?,
        };
        if packed.width > 8 {
            return Err(Damaged("packed width above 8 bytes"));
        }
        let end = packed.count.checked_mul(packed.width).and_then(|bytes| bytes.checked_add(packed.offset));
        match end.and_then(|end| end.checked_add(PADDING)) {
            Some(end) if end <= section_bytes => Ok(packed),
            _ => Err(Damaged("packed array reaches past its section")),
        }
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size of each element, in bytes.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Reference that is added to each stored number.
    #[must_use]
    pub const fn minimum(&self) -> u64 {
        self.minimum
    }

    /// Size of all elements, in bytes.
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.count * self.width
    }

    /// A view of the array in the bytes of its section.
    #[inline]
    #[must_use]
    pub fn view<'a>(&self, section: &'a [u8]) -> PackedView<'a> {
        let end = self.offset + self.size_bytes() + PADDING;
        PackedView {
            bytes: section.get(self.offset..end).unwrap_or_default(),
            count: self.count,
            width: self.width,
            mask: mask_of(self.width),
            minimum: self.minimum,
        }
    }
}

/// Mask of the low `width` bytes.
const fn mask_of(width: usize) -> u64 {
    match width {
        0 => 0,
        1..8 => (1 << (8 * width)) - 1,
        _ => u64::MAX,
    }
}

/// A view of a packed array, for reading.
#[derive(Clone, Copy, Debug)]
pub struct PackedView<'a> {
    bytes: &'a [u8],
    count: usize,
    width: usize,
    mask: u64,
    minimum: u64,
}

impl<'a> PackedView<'a> {
    /// Number of elements.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size of each element, in bytes.
    #[inline]
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Reference that is added to each stored number.
    #[inline]
    #[must_use]
    pub const fn minimum(&self) -> u64 {
        self.minimum
    }

    /// Element `index`. An unspecified number past the end.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.minimum.wrapping_add(load_u64(self.bytes, index.wrapping_mul(self.width)) & self.mask)
    }

    /// Element `index` less the minimum, for a width known at compile time.
    #[inline(always)]
    #[must_use]
    pub fn get_raw<const WIDTH: usize>(&self, index: usize) -> u64 {
        load_u64(self.bytes, index.wrapping_mul(WIDTH)) & const { mask_of(WIDTH) }
    }

    /// The 8 bytes from element `index` on, as a little-endian number: that element less the minimum in the
    /// lowest `WIDTH` bytes, the next ones above.
    #[inline(always)]
    #[must_use]
    pub fn window<const WIDTH: usize>(&self, index: usize) -> u64 {
        load_u64(self.bytes, index.wrapping_mul(WIDTH))
    }

    /// Elements `index` and `index + 1` less the minimum; `WIDTH` is the width, at most 4.
    #[inline(always)]
    #[must_use]
    pub fn raw_pair<const WIDTH: usize>(&self, index: usize) -> (u64, u64) {
        let window = self.window::<WIDTH>(index);
        let mask = const { mask_of(WIDTH) };
        (window & mask, window >> (8 * WIDTH) & mask)
    }

    /// `value` less the minimum, if it is within the range of elements; for comparisons with
    /// [`Self::get_raw`].
    #[inline]
    #[must_use]
    pub fn raw_of(&self, value: u64) -> Option<u64> {
        value.checked_sub(self.minimum).filter(|raw| *raw <= self.mask)
    }

    /// Fills `out` with the elements from `start` on.
    #[inline]
    pub fn decode<const WIDTH: usize>(&self, start: usize, out: &mut [u64]) {
        let window = self.bytes.get(start.wrapping_mul(WIDTH)..).unwrap_or_default();
        for (index, out) in out.iter_mut().enumerate() {
            *out = self.minimum.wrapping_add(load_u64(window, index * WIDTH) & const { mask_of(WIDTH) });
        }
    }

    /// All elements.
    pub fn iter(self) -> impl Iterator<Item = u64> + 'a {
        (0..self.count).map(move |index| self.get(index))
    }

    /// The position of the first element in `start..end` that is not below `value`; the elements there
    /// must ascend.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, start: usize, end: usize, value: u64) -> usize {
        let mut base = start;
        let mut length = end.saturating_sub(start);
        // Halves without a branch on the comparison, which would be mispredicted half of the time.
        while length > 1 {
            let half = length / 2;
            base = if self.get(base + half - 1) < value { base + half } else { base };
            length -= half;
        }
        if length == 1 && self.get(base) < value { base + 1 } else { base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        for (span, width) in [(0, 0), (1, 1), (255, 1), (256, 2), (0xFF_FFFF, 3), (1 << 24, 4), (u64::MAX, 8)]
        {
            assert_eq!(Packed::width_of(span), width, "{span}");
        }
    }

    #[test]
    fn elements_round_trip_at_every_width() {
        for bits in 0..=64_u32 {
            let top = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            let minimum = 77_u64.min(u64::MAX - top);
            let mut values: Vec<u64> =
                (0..50_u64).map(|i| minimum + i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % top.max(1)).collect();
            values.extend([minimum, minimum + top]);
            values.sort_unstable();
            let mut body = vec![9; 3];
            let packed = Packed::write_slice(&values, &mut body);
            let mut meta = Vec::new();
            packed.write_meta(&mut meta);
            body.extend([0xFF; PADDING]);
            assert_eq!(Packed::read_meta(&mut Reader::new(&meta), body.len()), Ok(packed));
            assert!(Packed::read_meta(&mut Reader::new(&meta), body.len() - 1).is_err());
            let view = packed.view(&body);
            for index in 0..values.len() - 1 {
                let pair = match view.width() {
                    1 => view.raw_pair::<1>(index),
                    2 => view.raw_pair::<2>(index),
                    3 => view.raw_pair::<3>(index),
                    4 => view.raw_pair::<4>(index),
                    _ => break,
                };
                let (first, second) = pair;
                assert_eq!([first + view.minimum(), second + view.minimum()], values[index..index + 2]);
            }
            assert!(view.iter().eq(values.iter().copied()), "bits {bits}");
            for value in values.iter().flat_map(|v| [v.saturating_sub(1), *v, v.saturating_add(1)]) {
                let expected = values.partition_point(|v| *v < value);
                assert_eq!(view.lower_bound(0, values.len(), value), expected, "bits {bits}, value {value}");
            }
        }
    }
}
