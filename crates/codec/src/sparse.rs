//! Sparse set of numbers: a sorted array with a directory over the high bits.
//!
//! # Shape
//! `values`: the numbers, packed, or framed if that saves a quarter. `directory[b]`: position of the first
//! value whose distance from the minimum has high bits `b` or more; one bucket for about 8 evenly distributed
//! values.
//! # Cost
//! One directory access, then a binary search in one bucket: 2 to 3 cache misses for evenly distributed data,
//! and a plain binary search in the worst case. Space: `width + directory width / 8` bytes for each number,
//! less if they are framed.

use crate::array::{Array, ArrayView};
use crate::bytes::{Damaged, Reader, write_u64};
use crate::locate::{Locate, NONE};
use crate::packed::{Packed, PackedView};

/// Number of values in one bucket of the directory, if they are evenly distributed.
const BUCKET_VALUES: u64 = 8;

/// Descriptor of a sparse set in its section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sparse {
    values: Array,
    directory: Packed,
    shift: u32,
    span: u64,
}

impl Sparse {
    /// Appends `values`: distinct, ascending, at least one.
    ///
    /// # Panics
    /// `values` is empty.
    pub fn write(values: &[u64], body: &mut Vec<u8>) -> Self {
        let (Some(minimum), Some(maximum)) = (values.first().copied(), values.last().copied()) else {
            panic!("a sparse set has at least one value")
        };
        debug_assert!(values.is_sorted_by(|a, b| a < b), "values ascend and differ");
        let span = maximum - minimum;
        let buckets = (values.len() as u64 / BUCKET_VALUES).max(1);
        let mut shift = 0;
        while span >> shift >= buckets {
            shift += 1;
        }
        let mut directory: Vec<u64> = Vec::new();
        for (position, value) in values.iter().enumerate() {
            let bucket = (value - minimum) >> shift;
            while directory.len() as u64 <= bucket {
                directory.push(position as u64);
            }
        }
        directory.push(values.len() as u64);
        let values = Array::write_small(values.iter().copied(), values.len(), minimum, minimum + span, body);
        Self { values, directory: Packed::write_slice(&directory, body), shift, span }
    }

    /// Appends the descriptor.
    pub fn write_meta(&self, meta: &mut Vec<u8>) {
        self.values.write_meta(meta);
        self.directory.write_meta(meta);
        write_u64(u64::from(self.shift), meta);
        write_u64(self.span, meta);
    }

    /// Reads a descriptor of a section of `section_bytes`.
    ///
    /// # Errors
    /// The set would not lie inside the section.
    pub fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let values = Array::read_meta(meta, section_bytes)?;
        let directory = Packed::read_meta(meta, section_bytes)?;
        let shift = u32::try_from(meta.u64()?).map_err(|_| Damaged("directory shift"))?;
        let span = meta.u64()?;
        if shift > 63
            || (span >> shift).saturating_add(2) > directory.len() as u64
            || u32::try_from(values.len()).is_err()
        {
            return Err(Damaged("directory of a sparse key set"));
        }
        Ok(Self { values, directory, shift, span })
    }

    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Size of values and directory, in bytes.
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.values.size_bytes() + self.directory.size_bytes()
    }

    /// A view of the set in the bytes of its section.
    #[inline]
    #[must_use]
    pub fn view<'a>(&self, section: &'a [u8]) -> SparseView<'a> {
        SparseView {
            values: self.values.view(section),
            directory: self.directory.view(section),
            shift: self.shift,
            span: self.span,
        }
    }
}

/// A view of a sparse set, for reading.
#[derive(Clone, Copy, Debug)]
pub struct SparseView<'a> {
    values: ArrayView<'a>,
    directory: PackedView<'a>,
    shift: u32,
    span: u64,
}

impl SparseView<'_> {
    /// The value at `position`.
    #[inline]
    #[must_use]
    pub fn key(&self, position: usize) -> u64 {
        self.values.get(position)
    }

    /// Number of values below `value`.
    pub(crate) fn lower_bound(&self, value: u64) -> u64 {
        self.values.lower_bound(0, self.values.len(), value) as u64
    }
}

impl Locate for SparseView<'_> {
    #[inline(always)]
    fn position(&self, key: u64) -> u32 {
        let distance = key.wrapping_sub(self.values.minimum());
        if distance > self.span {
            return NONE;
        }
        let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let bucket = index(distance >> self.shift);
        let start = index(self.directory.get(bucket)).min(self.values.len());
        let end = index(self.directory.get(bucket + 1)).min(self.values.len());
        let position = self.values.lower_bound(start, end, key);
        if position < end && self.values.get(position) == key {
            u32::try_from(position).unwrap_or(NONE)
        } else {
            NONE
        }
    }
}
