//! Frame-of-reference array: frames of 128 numbers, each with its own reference and bit width.
//!
//! # Shape
//! First a head of [`HEAD_BYTES`] for each frame, then the bits of each frame, each starting at a byte
//! boundary. A head: the reference less the minimum of the array (6 bytes), the position of the bits, counted
//! from the first head (5 bytes), and a byte: the width (at most 48), and 64 if the frame is a *slope*.
//! Element `j` of a frame is the reference, plus `j` in a slope, plus the `width` bits from bit `j * width`
//! on, low bits first.
//! # Invariants
//! 1. The minimum is not above any element, nor above any reference; the largest element is less than 2^48
//!    above it.
//! 2. As everywhere in this crate: no access panics, whatever the bytes are.
//! # Cost
//! An access: a load of the head, which 128 elements share, and one of the bits. 300,000 elements of 14 and
//! 22 bits (2026-11-22, a machine under load, the best of three): 2.4 ns each in sequence (packed: 0.5), 3.8
//! to 4.6 ns at random (1.7 to 2.0), 3.3 ns to write (2). Pairs of neighbouring elements (2026-11-27): 2.0 ns
//! in sequence and 3.4 at random with the head of the pair before, 3.2 without; where every third pair is of
//! another frame, 5.2 and 3.2. Space: three quarters of a bit for each element, and the bits. A slope takes
//! no bits at all where elements count up: edges of a file that is sorted by subject.
//! # Source
//! J. Goldstein, R. Ramakrishnan, U. Shaft, "Compressing Relations and Indexes", ICDE 1998 (frame of
//! reference); D. Lemire, L. Boytsov, "Decoding billions of integers per second through vectorization", SPE
//! 2015 (bits, frames of 128). Difference: no exceptions, so that any element can be read alone.

use crate::bytes::{Damaged, PADDING, Reader, load_u64, write_u64};

/// Number of elements of a frame.
pub(crate) const FRAME: usize = 128;
const HEAD_BYTES: usize = 12;
/// Bits of a number less the minimum: less than this.
const SPAN_BITS: u32 = 48;
const SLOPE: u64 = 64;
/// Upper bound of bit positions.
const BIT_POSITION_END: u64 = 1 << 40;
/// Marker in place of the width of a packed array.
pub(crate) const FRAMED_WIDTH: u64 = 9;

/// Descriptor of a framed array in its section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framed {
    offset: usize,
    count: usize,
    bytes: usize,
    minimum: u64,
}

impl Framed {
    /// Appends `count` numbers that are not below `minimum`; `None`, with nothing appended, if that would
    /// take more than `bytes_max` bytes, or if a number is too far from the minimum.
    pub fn write(
        values: impl Iterator<Item = u64>,
        count: usize,
        minimum: u64,
        bytes_max: usize,
        body: &mut Vec<u8>,
    ) -> Option<Self> {
        let offset = body.len();
        let heads = count.div_ceil(FRAME) * HEAD_BYTES;
        body.resize(offset + heads, 0);
        let mut values = values.take(count);
        let mut written = 0;
        for head in (offset..offset + heads).step_by(HEAD_BYTES) {
            let mut frame = [0_u64; FRAME];
            let mut length = 0;
            for (slot, value) in frame.iter_mut().zip(&mut values) {
                *slot = value.wrapping_sub(minimum);
                length += 1;
            }
            let place = (body.len() - offset) as u64;
            let form = FrameEncoding::of(&frame[..length]).filter(|_| place < BIT_POSITION_END);
            let Some(form) = form.filter(|_| body.len() - offset <= bytes_max) else {
                body.truncate(offset);
                return None;
            };
            let slope = if form.is_slope { SLOPE } else { 0 };
            let tail = place | (u64::from(form.width) | slope) << 40;
            body[head..head + 6].copy_from_slice(&form.reference.to_le_bytes()[..6]);
            body[head + 6..head + HEAD_BYTES].copy_from_slice(&tail.to_le_bytes()[..6]);
            form.append(&frame[..length], body);
            written += length;
        }
        debug_assert_eq!(written, count, "as many values as announced");
        let bytes = body.len() - offset;
        if bytes > bytes_max {
            body.truncate(offset);
            return None;
        }
        Some(Self { offset, count, bytes, minimum })
    }

    /// Appends the descriptor: that of a packed array with a width that packed arrays cannot have, and the
    /// length in bytes.
    pub(crate) fn write_meta(&self, meta: &mut Vec<u8>) {
        for number in [self.offset as u64, self.count as u64, FRAMED_WIDTH, self.minimum, self.bytes as u64] {
            write_u64(number, meta);
        }
    }

    /// Reads a descriptor of a section of `section_bytes`.
    ///
    /// # Errors
    /// The array would not lie inside the section.
    pub(crate) fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let (offset, count) = (meta.length()?, meta.length()?);
        if meta.u64()? != FRAMED_WIDTH {
            return Err(Damaged("unknown kind of array"));
        }
        let framed = Self { offset, count, minimum: meta.u64()?, bytes: meta.length()? };
        let end = framed.bytes.checked_add(framed.offset).and_then(|end| end.checked_add(PADDING));
        let heads = framed.count.div_ceil(FRAME).checked_mul(HEAD_BYTES);
        match (end, heads) {
            (Some(end), Some(heads)) if end <= section_bytes && heads <= framed.bytes => Ok(framed),
            _ => Err(Damaged("framed array reaches past its section")),
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

    /// Size of all elements, in bytes.
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// A view of the array in the bytes of its section.
    #[inline]
    #[must_use]
    pub fn view<'a>(&self, section: &'a [u8]) -> FramedView<'a> {
        let end = self.offset + self.bytes + PADDING;
        FramedView {
            bytes: section.get(self.offset..end).unwrap_or_default(),
            count: self.count,
            minimum: self.minimum,
        }
    }
}

/// Encoding parameters of a frame.
struct FrameEncoding {
    reference: u64,
    width: u32,
    is_slope: bool,
}

impl FrameEncoding {
    /// The parameters with the fewest bits; `None` if the numbers are too large.
    fn of(frame: &[u64]) -> Option<Self> {
        let (mut low, mut high) = (u64::MAX, 0);
        // Less the index in the frame; elements below their index make the difference wrap, and the span too
        // wide.
        let (mut low_above, mut high_above) = (u64::MAX, 0);
        for (value, place) in frame.iter().zip(0_u64..) {
            low = low.min(*value);
            high = high.max(*value);
            let above = value.wrapping_sub(place);
            low_above = low_above.min(above);
            high_above = high_above.max(above);
        }
        if low > high || u64::BITS - high.leading_zeros() > SPAN_BITS {
            return None;
        }
        let width = |low: u64, high: u64| u64::BITS - (high - low).leading_zeros();
        let (flat, slope) = (width(low, high), width(low_above, high_above));
        Some(if slope < flat {
            Self { reference: low_above, width: slope, is_slope: true }
        } else {
            Self { reference: low, width: flat, is_slope: false }
        })
    }

    fn append(&self, frame: &[u64], body: &mut Vec<u8>) {
        let start = body.len();
        let bytes = (frame.len() * self.width as usize).div_ceil(8);
        body.resize(start + bytes + PADDING, 0);
        let out = &mut body[start..];
        let (mut waiting, mut bits, mut at) = (0_u64, 0, 0);
        for (value, place) in frame.iter().zip(0_u64..) {
            let rest = value - self.reference - if self.is_slope { place } else { 0 };
            // Fewer than 8 bits are pending, and at most 48 are added.
            waiting |= rest << bits;
            if let Some(chunk) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<8>()) {
                *chunk = waiting.to_le_bytes();
            }
            bits += self.width;
            at += bits as usize / 8;
            waiting >>= bits & !7;
            bits &= 7;
        }
        body.truncate(start + bytes);
    }
}

/// A view of a framed array, for reading.
#[derive(Clone, Copy, Debug)]
pub struct FramedView<'a> {
    bytes: &'a [u8],
    count: usize,
    minimum: u64,
}

impl FramedView<'_> {
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

    /// Reference that is added to each stored number.
    #[inline]
    #[must_use]
    pub const fn minimum(&self) -> u64 {
        self.minimum
    }

    /// Element `index`.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.head(index / FRAME).map_or(0, |head| head.element(self.bytes, (index % FRAME) as u64))
    }

    /// A reader of pairs of neighbouring elements.
    #[inline(always)]
    #[must_use]
    pub fn pairs(&self) -> FramedPairs<'_> {
        FramedPairs { view: *self, frame: usize::MAX, head: FrameHead::default() }
    }

    /// Elements `index` and `index + 1`, without a memory of the pair before: where the frame of a pair is
    /// unpredictable, a misprediction takes longer than the decoding of a head.
    #[inline(always)]
    #[must_use]
    pub fn pair(&self, index: usize) -> (u64, u64) {
        let (frame, place) = (index / FRAME, index % FRAME);
        self.head(frame).unwrap_or_default().pair_in(self, index, place)
    }

    /// Whether two elements are in one frame or in adjacent ones.
    #[inline]
    #[must_use]
    pub const fn are_near(one: usize, other: usize) -> bool {
        (one / FRAME).abs_diff(other / FRAME) <= 1
    }

    /// Fills `out` with elements from `start` on; reads each head once.
    #[inline]
    pub fn copy<T>(&self, start: usize, out: &mut [T], make: impl Fn(u64) -> T) {
        let (mut index, mut rest) = (start, out);
        while !rest.is_empty() {
            let place = index % FRAME;
            let head = self.head(index / FRAME).unwrap_or_default();
            let (now, later) = rest.split_at_mut(rest.len().min(FRAME - place));
            for (place, slot) in (place as u64..).zip(&mut *now) {
                *slot = make(head.element(self.bytes, place));
            }
            index += now.len();
            rest = later;
        }
    }

    #[inline]
    fn head(&self, frame: usize) -> Option<FrameHead> {
        // One bounds check for all of the head; padding follows the last one.
        let at = frame.wrapping_mul(HEAD_BYTES);
        let head = u128::from_le_bytes(*self.bytes.get(at..)?.first_chunk::<16>()?);
        #[expect(clippy::cast_possible_truncation, reason = "the low 8 bytes, and 6 behind the first 6")]
        let (reference, tail) =
            (head as u64 & ((1 << SPAN_BITS) - 1), (head >> SPAN_BITS) as u64 & ((1 << 48) - 1));
        let form = tail >> 40;
        Some(FrameHead {
            base: self.minimum.wrapping_add(reference),
            at: tail & (BIT_POSITION_END - 1),
            width: form & (SLOPE - 1),
            slope: u64::from(form & SLOPE != 0),
        })
    }

    /// All elements.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.count).map(|index| self.get(index))
    }

    /// The position of the first element in `start..end` that is not below `value`; the elements there
    /// must ascend.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, start: usize, end: usize, value: u64) -> usize {
        let (mut low, mut high) = (start, end.max(start));
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle) < value { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Reads pairs of neighbouring elements; keeps the head of the last frame.
#[derive(Debug)]
pub struct FramedPairs<'a> {
    view: FramedView<'a>,
    frame: usize,
    head: FrameHead,
}

impl FramedPairs<'_> {
    /// Elements `index` and `index + 1`. Decodes a head if the pair before was of another frame, and one
    /// more for the last element of a frame; loads the bits of both elements at once up to a width of 28.
    #[inline(always)]
    pub fn get(&mut self, index: usize) -> (u64, u64) {
        let (frame, place) = (index / FRAME, index % FRAME);
        if frame != self.frame {
            (self.frame, self.head) = (frame, self.view.head(frame).unwrap_or_default());
        }
        self.head.pair_in(&self.view, index, place)
    }
}

/// A decoded head of a frame.
#[derive(Clone, Copy, Default, Debug)]
struct FrameHead {
    /// Sum of minimum and reference.
    base: u64,
    /// Position of its bits.
    at: u64,
    width: u64,
    /// Increment for each element.
    slope: u64,
}

impl FrameHead {
    #[inline(always)]
    fn element(&self, bytes: &[u8], place: u64) -> u64 {
        self.decode(place, self.window(bytes, place))
    }

    /// Elements `index` and `index + 1`, of which the first is at `place` in this frame.
    #[inline(always)]
    fn pair_in(&self, view: &FramedView<'_>, index: usize, place: usize) -> (u64, u64) {
        if place + 1 < FRAME {
            self.pair(view.bytes, place as u64)
        } else {
            (self.element(view.bytes, place as u64), view.get(index.wrapping_add(1)))
        }
    }

    /// Elements `place` and `place + 1` of the frame.
    #[inline(always)]
    fn pair(&self, bytes: &[u8], place: u64) -> (u64, u64) {
        let window = self.window(bytes, place);
        // Up to 7 bits lie before an element in the 64 that were loaded.
        let next = if self.width <= 28 { window >> self.width } else { self.window(bytes, place + 1) };
        (self.decode(place, window), self.decode(place + 1, next))
    }

    /// Bits from the first one of element `place` on.
    #[inline(always)]
    fn window(&self, bytes: &[u8], place: u64) -> u64 {
        let bit = place * self.width;
        let at = self.at.wrapping_add(bit / 8);
        load_u64(bytes, usize::try_from(at).unwrap_or(usize::MAX)) >> (bit % 8)
    }

    #[inline(always)]
    fn decode(&self, place: u64, window: u64) -> u64 {
        let rest = window & ((1 << self.width) - 1);
        self.base.wrapping_add(place * self.slope).wrapping_add(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[u64], minimum: u64) -> usize {
        let mut body = vec![7; 3];
        let framed = Framed::write(values.iter().copied(), values.len(), minimum, usize::MAX, &mut body);
        let framed = framed.expect("near each other");
        assert_eq!(framed.size_bytes(), body.len() - 3);
        let mut refused = vec![1];
        let too_few = framed.size_bytes().checked_sub(1);
        if let Some(bytes) = too_few {
            let none = Framed::write(values.iter().copied(), values.len(), minimum, bytes, &mut refused);
            assert_eq!((none, refused), (None, vec![1]));
        }
        let mut meta = Vec::new();
        framed.write_meta(&mut meta);
        assert!(Framed::read_meta(&mut Reader::new(&meta), body.len() + PADDING - 1).is_err());
        body.extend([0xFF; PADDING]);
        assert_eq!(Framed::read_meta(&mut Reader::new(&meta), body.len()), Ok(framed));
        let view = framed.view(&body);
        assert!(view.iter().eq(values.iter().copied()), "{values:?}");
        let mut pairs = view.pairs();
        for (index, pair) in values.windows(2).enumerate() {
            let (first, second) = pairs.get(index);
            assert_eq!([first, second], pair, "at {index}");
            assert_eq!(view.pairs().get(index), (first, second), "at {index}");
            assert_eq!(view.pair(index), (first, second), "at {index}");
        }
        for start in [0, 1, 100, 127, 128, 255] {
            let rest = values.get(start..).unwrap_or_default();
            let mut copied = vec![0; rest.len()];
            view.copy(start, &mut copied, |element| element);
            assert_eq!(copied, rest, "from {start}");
        }
        framed.size_bytes()
    }

    #[test]
    fn elements_round_trip() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for bits in 0..=48_u32 {
            for count in [0, 1, 2, 127, 128, 129, 300, 1000] {
                let top = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
                let minimum = random.u64(..).min(u64::MAX - top);
                let step = random.u64(0..3);
                let numbers = (0..count).map(|place| (place * step).min(top));
                let values: Vec<u64> =
                    numbers.map(|base| minimum + random.u64(base..=top.min(base + (top >> 3)))).collect();
                check(&values, minimum);
                let mut sorted = values;
                sorted.sort_unstable();
                check(&sorted, minimum);
                let mut body = Vec::new();
                let framed =
                    Framed::write(sorted.iter().copied(), sorted.len(), minimum, usize::MAX, &mut body);
                body.extend([0; PADDING]);
                let view = framed.expect("as before").view(&body);
                for value in sorted.iter().flat_map(|v| [v.saturating_sub(1), *v, v.saturating_add(1)]) {
                    let expected = sorted.partition_point(|v| *v < value);
                    assert_eq!(view.lower_bound(0, sorted.len(), value), expected, "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn counting_numbers_take_no_bits() {
        let values: Vec<u64> = (1000..2000).collect();
        assert_eq!(check(&values, 0), 8 * HEAD_BYTES);
        // They may begin below their index in the frame; then the slope would start below the minimum, and is
        // not used.
        check(&(0..300).collect::<Vec<u64>>(), 0);
        check(&(0..300).map(|number| number / 2).collect::<Vec<u64>>(), 0);
        check(&[5; 1000], 5);
    }

    #[test]
    fn numbers_beyond_the_span_are_refused() {
        let write = |values: &[u64]| {
            let mut body = vec![3];
            let framed = Framed::write(values.iter().copied(), values.len(), 0, usize::MAX, &mut body);
            assert!(framed.is_some() || body == [3]);
            framed.is_some()
        };
        assert!(write(&[0, (1 << 48) - 1]));
        assert!(!write(&[0, 1 << 48]));
        assert!(!write(&[u64::MAX]));
    }

    /// Arbitrary bytes: numbers, and no panic.
    #[test]
    fn damage_does_not_panic() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let count = random.usize(0..400);
            let heads = count.div_ceil(FRAME) * HEAD_BYTES;
            let bytes: Vec<u8> = (0..heads + random.usize(0..60)).map(|_| random.u8(..)).collect();
            let view = FramedView { bytes: &bytes, count, minimum: random.u64(..) };
            let sum = view.iter().fold(0, u64::wrapping_add);
            std::hint::black_box(sum);
            for index in [count, count + 1000, usize::MAX] {
                std::hint::black_box(view.get(index));
            }
            let place = view.lower_bound(0, count, random.u64(..));
            assert!(place <= count);
        }
    }
}
