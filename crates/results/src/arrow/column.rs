//! The buffers of a column of a batch.

use crate::decimal;
use crate::scalar::{ColumnType, Scalar, float};

/// A column that is being built.
pub(crate) struct Column {
    kind: ColumnType,
    row_count: usize,
    null_count: usize,
    /// One bit for each row: whether it has a value.
    validity: Vec<u8>,
    /// Texts: the end of each in `values`, after a first 0.
    offsets: Vec<u8>,
    /// Values of fixed width (booleans: bits), or the bytes of all texts.
    values: Vec<u8>,
}

impl Column {
    pub(crate) fn new(kind: ColumnType) -> Self {
        let mut column = Self {
            kind,
            row_count: 0,
            null_count: 0,
            validity: Vec::new(),
            offsets: Vec::new(),
            values: Vec::new(),
        };
        column.clear();
        column
    }

    pub(crate) fn clear(&mut self) {
        (self.row_count, self.null_count) = (0, 0);
        self.validity.clear();
        self.offsets.clear();
        self.values.clear();
        if self.has_text() {
            self.offsets.extend_from_slice(&0_i64.to_le_bytes());
        }
    }

    /// Whether the cells are texts. A column without values is one of texts.
    pub(crate) fn has_text(&self) -> bool {
        matches!(self.kind, ColumnType::Unknown | ColumnType::Text)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.validity.len() + self.offsets.len() + self.values.len()
    }

    pub(crate) fn null_count(&self) -> usize {
        self.null_count
    }

    /// Adds a cell: a value of the type of the column, or none. `text` is its text in a column of texts.
    pub(crate) fn push(&mut self, scalar: Scalar, text: &str) {
        let is_valid = match (self.kind, scalar) {
            (ColumnType::Unknown | ColumnType::Text, Scalar::Null) => self.push_text(None),
            (ColumnType::Unknown | ColumnType::Text, _) => self.push_text(Some(text)),
            (ColumnType::Boolean, scalar) => {
                let truth = if let Scalar::Boolean(truth) = scalar { Some(truth) } else { None };
                push_bit(&mut self.values, self.row_count, truth == Some(true));
                truth.is_some()
            }
            (ColumnType::Integer, Scalar::Integer(number)) => self.push_bytes(&number.to_le_bytes()),
            (ColumnType::Float, Scalar::Integer(number)) => self.push_bytes(&(number as f64).to_le_bytes()),
            (ColumnType::Float, Scalar::Float(number)) => self.push_bytes(&number.to_le_bytes()),
            (ColumnType::Float, Scalar::Decimal(value, scale)) => {
                self.push_bytes(&float(value, scale).to_le_bytes())
            }
            (ColumnType::Decimal(_, digits), Scalar::Integer(number)) => {
                self.push_decimal(decimal::rescaled(number.into(), 0, digits))
            }
            (ColumnType::Decimal(_, digits), Scalar::Decimal(value, scale)) => {
                self.push_decimal(decimal::rescaled(value, scale, digits))
            }
            (ColumnType::Date, Scalar::Date(days)) => self.push_bytes(&days.to_le_bytes()),
            (ColumnType::DateTime(_), Scalar::DateTime(micros, _)) => self.push_bytes(&micros.to_le_bytes()),
            (kind, _) => {
                self.values.resize(self.values.len() + width(kind), 0);
                false
            }
        };
        push_bit(&mut self.validity, self.row_count, is_valid);
        self.null_count += usize::from(!is_valid);
        self.row_count += 1;
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> bool {
        self.values.extend_from_slice(bytes);
        true
    }

    fn push_decimal(&mut self, value: Option<i128>) -> bool {
        self.values.extend_from_slice(&value.unwrap_or(0).to_le_bytes());
        value.is_some()
    }

    fn push_text(&mut self, text: Option<&str>) -> bool {
        self.values.extend_from_slice(text.unwrap_or_default().as_bytes());
        self.offsets.extend_from_slice(&(self.values.len() as u64).to_le_bytes());
        text.is_some()
    }

    /// The buffers in the order of the format. A column without nulls needs no bits of validity.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &[u8]> {
        let validity: &[u8] = if self.null_count == 0 { &[] } else { &self.validity };
        let offsets = self.has_text().then_some(self.offsets.as_slice());
        std::iter::once(validity).chain(offsets).chain(std::iter::once(self.values.as_slice()))
    }
}

/// The bytes of a value.
fn width(kind: ColumnType) -> usize {
    match kind {
        ColumnType::Decimal(..) => 16,
        ColumnType::Date => 4,
        ColumnType::Integer | ColumnType::Float | ColumnType::DateTime(_) => 8,
        ColumnType::Unknown | ColumnType::Text | ColumnType::Boolean => 0,
    }
}

/// Appends the bit with this number to bits with the lowest first.
fn push_bit(bits: &mut Vec<u8>, number: usize, bit: bool) {
    if number.is_multiple_of(8) {
        bits.push(0);
    }
    if let Some(last) = bits.last_mut() {
        *last |= u8::from(bit) << (number % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers(kind: ColumnType, cells: &[(Scalar, &str)]) -> Vec<Vec<u8>> {
        let mut column = Column::new(kind);
        cells.iter().for_each(|(scalar, text)| column.push(*scalar, text));
        column.buffers().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn buffers_are_those_of_the_format() {
        let (null, none) = ((Scalar::Null, ""), Vec::new());
        let truths = [true, false, true].map(|truth| (Scalar::Boolean(truth), ""));
        assert_eq!(buffers(ColumnType::Boolean, &truths), [none.clone(), vec![0b101]]);
        let nine = [vec![null; 8], vec![truths[0]]].concat();
        assert_eq!(buffers(ColumnType::Boolean, &nine), [vec![0, 1], vec![0, 1]]);
        let texts = [(Scalar::Text, "ab"), null, (Scalar::Text, ""), (Scalar::Integer(7), "7")];
        let offsets = [0_i64, 2, 2, 2, 3].map(i64::to_le_bytes).concat();
        assert_eq!(buffers(ColumnType::Text, &texts), [vec![0b1101], offsets, b"ab7".to_vec()]);
        assert_eq!(buffers(ColumnType::Unknown, &[null]), [vec![0], vec![0; 16], none.clone()]);
        let numbers = [(Scalar::Integer(1), ""), null, (Scalar::Decimal(25, 1), "")];
        let values = [100_i128, 0, 250].map(i128::to_le_bytes).concat();
        assert_eq!(buffers(ColumnType::Decimal(2, 2), &numbers), [vec![0b101], values]);
        let values = [1.0_f64, 0.0, 2.5].map(f64::to_le_bytes).concat();
        assert_eq!(buffers(ColumnType::Float, &numbers), [vec![0b101], values]);
        assert_eq!(buffers(ColumnType::Date, &[(Scalar::Date(-1), "")]), [none, vec![255; 4]]);
    }
}
