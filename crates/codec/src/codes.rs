//! A column with order-preserving codes: an array, or codes of a table of distinct values.
//!
//! # Shape
//! Plain: the values themselves, packed or framed. Table: the distinct values in ascending order (packed),
//! and for each element its position there in 1 or 2 bytes (minimum 0); so codes compare like their values.
//! # Cost
//! A table costs one more load for each element, so it is used only where it at least halves the width: 256
//! values or fewer when a plain element takes 2 bytes or more, 65,536 or fewer from 4 bytes on. Framed values
//! are used only where the caller allows it, since they take longer to read.

use crate::array::{Array, ArrayView};
use crate::bytes::{Damaged, Reader, write_u64};
use crate::framed::FramedView;
use crate::packed::{Packed, PackedView};

/// Descriptor of a column in its section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codes {
    /// The values, or their codes.
    elements: Array,
    /// The distinct values, if `elements` are codes, which then are packed.
    table: Option<Packed>,
}

impl Codes {
    /// Whether a column of `count` elements between `minimum` and `maximum`, with `distinct` distinct values,
    /// should have a table.
    #[must_use]
    pub fn is_table_smaller(count: usize, distinct: usize, minimum: u64, maximum: u64) -> bool {
        let plain = Packed::width_of(maximum.saturating_sub(minimum));
        let code = Packed::width_of(distinct.saturating_sub(1) as u64).max(1);
        code <= 2 && code * 2 <= plain && count * code + distinct * plain <= count * plain
    }

    /// Appends the values without a table.
    pub fn write_plain(
        values: impl Iterator<Item = u64>,
        count: usize,
        minimum: u64,
        maximum: u64,
        body: &mut Vec<u8>,
    ) -> Self {
        Self { elements: Array::Packed(Packed::write(values, count, minimum, maximum, body)), table: None }
    }

    /// Appends the values framed, if that saves a quarter compared with plain values or, if `distinct` is
    /// given, with a table of that many values.
    pub fn write_framed(
        values: impl Iterator<Item = u64>,
        count: usize,
        distinct: Option<usize>,
        minimum: u64,
        maximum: u64,
        body: &mut Vec<u8>,
    ) -> Option<Self> {
        let plain = Packed::width_of(maximum.saturating_sub(minimum));
        let bytes = match distinct {
            Some(distinct) => count * Packed::width_of(distinct.saturating_sub(1) as u64) + distinct * plain,
            None => count * plain,
        };
        let elements = Array::frame(values, count, minimum, bytes, body)?;
        Some(Self { elements: Array::Framed(elements), table: None })
    }

    /// Appends `table` (distinct, ascending) and the `count` positions in it.
    pub fn write_table(
        table: &[u64],
        positions: impl Iterator<Item = u64>,
        count: usize,
        body: &mut Vec<u8>,
    ) -> Self {
        assert!(count == 0 || !table.is_empty(), "a column of codes has a table");
        debug_assert!(table.is_sorted_by(|a, b| a < b), "codes compare as their values do");
        let last = table.len().saturating_sub(1) as u64;
        let table = Packed::write_slice(table, body);
        let elements = Array::Packed(Packed::write(positions, count, 0, last, body));
        Self { elements, table: Some(table) }
    }

    /// Appends the descriptor.
    pub fn write_meta(&self, meta: &mut Vec<u8>) {
        self.elements.write_meta(meta);
        write_u64(u64::from(self.table.is_some()), meta);
        if let Some(table) = &self.table {
            table.write_meta(meta);
        }
    }

    /// Reads a descriptor of a section of `section_bytes`.
    ///
    /// # Errors
    /// The column would not lie inside the section.
    pub fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let elements = Array::read_meta(meta, section_bytes)?;
        let table = match (meta.u64()?, &elements) {
            (0, _) => None,
            (1, Array::Packed(codes)) if codes.minimum() == 0 => {
                Some(Packed::read_meta(meta, section_bytes)?)
            }
            _ => return Err(Damaged("unknown kind of column")),
        };
        Ok(Self { elements, table })
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Size of all elements and the table, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.elements.size_bytes() + self.table.map_or(0, |table| table.size_bytes())
    }

    /// A view of the column in the bytes of its section.
    #[inline]
    #[must_use]
    pub fn view<'a>(&self, section: &'a [u8]) -> CodesView<'a> {
        match self.elements.view(section) {
            ArrayView::Packed(elements) => CodesView::Packed(PackedCodes {
                elements,
                table: self.table.map(|table| table.view(section)),
            }),
            ArrayView::Framed(elements) => CodesView::Framed(elements),
        }
    }
}

/// A view of a column, for reading.
#[derive(Clone, Copy, Debug)]
pub enum CodesView<'a> {
    /// Values or codes of one width.
    Packed(PackedCodes<'a>),
    /// The values themselves.
    Framed(FramedView<'a>),
}

/// A column whose elements have one width.
#[derive(Clone, Copy, Debug)]
pub struct PackedCodes<'a> {
    /// The values, or their codes.
    pub elements: PackedView<'a>,
    /// The distinct values, if `elements` are codes.
    pub table: Option<PackedView<'a>>,
}

impl CodesView<'_> {
    /// Value `index`.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        match self {
            Self::Packed(view) => view.get(index),
            Self::Framed(view) => view.get(index),
        }
    }
}

impl PackedCodes<'_> {
    /// Value `index`.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        let element = self.elements.get(index);
        match &self.table {
            None => element,
            Some(table) => table.get(position(element)),
        }
    }

    /// The result of [`PackedView::get_raw`] of `elements` for elements with this value; `None` if there are
    /// none. Raw elements compare with it as their values do with `value`.
    #[inline]
    #[must_use]
    pub fn raw_of(&self, value: u64) -> Option<u64> {
        match &self.table {
            None => self.elements.raw_of(value),
            Some(table) => {
                let code = table.lower_bound(0, table.len(), value);
                (code < table.len() && table.get(code) == value)
                    .then_some(code as u64)
                    .and_then(|code| self.elements.raw_of(code))
            }
        }
    }
}

/// A code as a position; codes have at most 2 bytes.
#[inline(always)]
fn position(code: u64) -> usize {
    usize::try_from(code).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers of a test")]
mod tests {
    use super::*;
    use crate::bytes::PADDING;

    #[test]
    fn a_table_is_chosen_if_it_halves_the_width() {
        assert!(Codes::is_table_smaller(10_000, 200, 0, 70_000));
        assert!(!Codes::is_table_smaller(10_000, 300, 0, 70_000));
        assert!(Codes::is_table_smaller(1_000_000, 60_000, 0, 1 << 60));
        assert!(!Codes::is_table_smaller(1_000_000, 70_000, 0, 1 << 60));
        assert!(!Codes::is_table_smaller(10, 1, 5, 5));
    }

    #[test]
    fn values_round_trip_in_both_forms() {
        let table = [3_u64, 5, 1 << 40, u64::MAX];
        let positions = [0_u64, 3, 2, 2, 1];
        let values: Vec<u64> = positions.iter().map(|p| table[*p as usize]).collect();
        let mut body = Vec::new();
        let coded = Codes::write_table(&table, positions.iter().copied(), 5, &mut body);
        let plain = Codes::write_plain(values.iter().copied(), 5, 3, u64::MAX, &mut body);
        body.extend([0; PADDING]);
        for codes in [coded, plain] {
            let mut meta = Vec::new();
            codes.write_meta(&mut meta);
            assert_eq!(Codes::read_meta(&mut Reader::new(&meta), body.len()), Ok(codes));
            assert!(values.iter().enumerate().all(|(index, value)| codes.view(&body).get(index) == *value));
            let CodesView::Packed(view) = codes.view(&body) else { panic!("asked for as packed") };
            for (index, value) in values.iter().enumerate() {
                assert_eq!(view.get(index), *value);
                let raw = view.raw_of(*value).expect("value of the column");
                assert_eq!(view.elements.minimum().wrapping_add(raw), view.elements.get(index));
            }
            assert_eq!(view.raw_of(2), None);
        }
        let CodesView::Packed(view) = coded.view(&body) else { panic!("a table") };
        assert_eq!(view.raw_of(4), None);
    }

    #[test]
    fn framing_is_chosen_if_it_saves_a_quarter() {
        let mut body = Vec::new();
        let values: Vec<u64> = (0..10_000).map(|number| 70_000 + number / 3).collect();
        let write = |distinct, body: &mut Vec<u8>| {
            Codes::write_framed(values.iter().copied(), values.len(), distinct, 70_000, 73_333, body)
        };
        // A byte each; framed, six bits and a head.
        assert_eq!(write(Some(200), &mut body), None);
        assert!(body.is_empty());
        let codes = write(None, &mut body).expect("two bytes each");
        body.extend([0; PADDING]);
        let mut meta = Vec::new();
        codes.write_meta(&mut meta);
        assert_eq!(Codes::read_meta(&mut Reader::new(&meta), body.len()), Ok(codes));
        assert!(matches!(codes.view(&body), CodesView::Framed(_)));
        assert!(values.iter().enumerate().all(|(index, value)| codes.view(&body).get(index) == *value));
        // A framed array of codes is not a valid column.
        let kind = meta.len() - 8;
        meta[kind] = 1;
        assert!(Codes::read_meta(&mut Reader::new(&meta), body.len()).is_err());
    }
}
