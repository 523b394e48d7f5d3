//! Validator of Thrift's compact protocol, for the footer and the page headers of Parquet.
//!
//! The library allocates as many items as a list declares, and recurses as deep as a schema does. So this
//! module validates these bytes first, against tables of the structures, and passes only valid bytes to the
//! library. It skips unknown fields, as the library does.
//!
//! # Invariants
//! 1. The library splits valid bytes into the same fields, since each field that it knows has the type that
//!    it assumes; constructs that it might read differently (maps, lists of booleans, overlong numbers) are
//!    invalid.
//! 2. A list has at most as many items as remaining bytes.
//! # Cost
//! One pass, no allocation.

/// Maximum nesting depth of structures and lists; that of the format is 7.
const DEPTH_MAX: usize = 24;
/// Maximum number of items of a list; the longest of the format are the columns of a row group.
const ITEMS_MAX: usize = 1 << 20;

const BOOLEANS: [u8; 2] = [1, 2];
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Events during the walk over a structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// Declared number of children of a schema element.
    Children,
    /// End of a schema element.
    Element,
    /// Type of a page.
    PageType,
    /// Header of a page of this type.
    Header(i64),
    /// Decompressed size of a page, in bytes.
    Uncompressed,
    /// Compressed size of a page, in bytes.
    Compressed,
    /// Number of values of a page.
    Values,
    /// Start of an item of the list of row groups.
    RowGroup,
}

/// Type of a field.
#[derive(Clone, Copy)]
enum FieldType {
    Boolean,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static FieldType),
    Struct(&'static ThriftStruct),
}

struct ThriftStruct {
    fields: &'static [(i16, FieldType, Option<Event>)],
    /// Event at the end of the structure.
    end: Option<Event>,
}

const fn structure(fields: &'static [(i16, FieldType, Option<Event>)]) -> ThriftStruct {
    ThriftStruct { fields, end: None }
}

static PAIR: ThriftStruct = structure(&[(1, FieldType::Binary, None), (2, FieldType::Binary, None)]);
static UNIT: ThriftStruct = structure(&[]);
static TIME_UNIT: ThriftStruct = structure(&[
    (1, FieldType::Struct(&UNIT), None),
    (2, FieldType::Struct(&UNIT), None),
    (3, FieldType::Struct(&UNIT), None),
]);
static TIME: ThriftStruct =
    structure(&[(1, FieldType::Boolean, None), (2, FieldType::Struct(&TIME_UNIT), None)]);
static DECIMAL: ThriftStruct = structure(&[(1, FieldType::I32, None), (2, FieldType::I32, None)]);
static INTEGER: ThriftStruct = structure(&[(1, FieldType::I8, None), (2, FieldType::Boolean, None)]);
static VARIANT: ThriftStruct = structure(&[(1, FieldType::I8, None)]);
static GEOGRAPHY: ThriftStruct = structure(&[(1, FieldType::Binary, None), (2, FieldType::I32, None)]);
static LOGICAL_TYPE: ThriftStruct = structure(&[
    (1, FieldType::Struct(&UNIT), None),
    (2, FieldType::Struct(&UNIT), None),
    (3, FieldType::Struct(&UNIT), None),
    (4, FieldType::Struct(&UNIT), None),
    (5, FieldType::Struct(&DECIMAL), None),
    (6, FieldType::Struct(&UNIT), None),
    (7, FieldType::Struct(&TIME), None),
    (8, FieldType::Struct(&TIME), None),
    (10, FieldType::Struct(&INTEGER), None),
    (11, FieldType::Struct(&UNIT), None),
    (12, FieldType::Struct(&UNIT), None),
    (13, FieldType::Struct(&UNIT), None),
    (14, FieldType::Struct(&UNIT), None),
    (15, FieldType::Struct(&UNIT), None),
    (16, FieldType::Struct(&VARIANT), None),
    (17, FieldType::Struct(&GEOGRAPHY), None),
    (18, FieldType::Struct(&GEOGRAPHY), None),
    (19, FieldType::Struct(&UNIT), None),
]);
static ELEMENT: ThriftStruct = ThriftStruct {
    fields: &[
        (1, FieldType::I32, None),
        (2, FieldType::I32, None),
        (3, FieldType::I32, None),
        (4, FieldType::Binary, None),
        (5, FieldType::I32, Some(Event::Children)),
        (6, FieldType::I32, None),
        (7, FieldType::I32, None),
        (8, FieldType::I32, None),
        (9, FieldType::I32, None),
        (10, FieldType::Struct(&LOGICAL_TYPE), None),
    ],
    end: Some(Event::Element),
};
static STATISTICS: ThriftStruct = structure(&[
    (1, FieldType::Binary, None),
    (2, FieldType::Binary, None),
    (3, FieldType::I64, None),
    (4, FieldType::I64, None),
    (5, FieldType::Binary, None),
    (6, FieldType::Binary, None),
    (7, FieldType::Boolean, None),
    (8, FieldType::Boolean, None),
]);
static ENCODING_STATISTICS: ThriftStruct =
    structure(&[(1, FieldType::I32, None), (2, FieldType::I32, None), (3, FieldType::I32, None)]);
static SIZE_STATISTICS: ThriftStruct = structure(&[
    (1, FieldType::I64, None),
    (2, FieldType::List(&FieldType::I64), None),
    (3, FieldType::List(&FieldType::I64), None),
]);
static BOX: ThriftStruct = structure(&[
    (1, FieldType::Double, None),
    (2, FieldType::Double, None),
    (3, FieldType::Double, None),
    (4, FieldType::Double, None),
    (5, FieldType::Double, None),
    (6, FieldType::Double, None),
    (7, FieldType::Double, None),
    (8, FieldType::Double, None),
]);
static GEOGRAPHY_STATISTICS: ThriftStruct =
    structure(&[(1, FieldType::Struct(&BOX), None), (2, FieldType::List(&FieldType::I32), None)]);
static COLUMN: ThriftStruct = structure(&[
    (1, FieldType::I32, None),
    (2, FieldType::List(&FieldType::I32), None),
    (3, FieldType::List(&FieldType::Binary), None),
    (4, FieldType::I32, None),
    (5, FieldType::I64, None),
    (6, FieldType::I64, None),
    (7, FieldType::I64, None),
    (8, FieldType::List(&FieldType::Struct(&PAIR)), None),
    (9, FieldType::I64, None),
    (10, FieldType::I64, None),
    (11, FieldType::I64, None),
    (12, FieldType::Struct(&STATISTICS), None),
    (13, FieldType::List(&FieldType::Struct(&ENCODING_STATISTICS)), None),
    (14, FieldType::I64, None),
    (15, FieldType::I32, None),
    (16, FieldType::Struct(&SIZE_STATISTICS), None),
    (17, FieldType::Struct(&GEOGRAPHY_STATISTICS), None),
]);
static CHUNK: ThriftStruct = structure(&[
    (1, FieldType::Binary, None),
    (2, FieldType::I64, None),
    (3, FieldType::Struct(&COLUMN), None),
    (4, FieldType::I64, None),
    (5, FieldType::I32, None),
    (6, FieldType::I64, None),
    (7, FieldType::I32, None),
    (9, FieldType::Binary, None),
]);
static SORTING: ThriftStruct =
    structure(&[(1, FieldType::I32, None), (2, FieldType::Boolean, None), (3, FieldType::Boolean, None)]);
static ROW_GROUP: ThriftStruct = ThriftStruct {
    fields: &[
        (1, FieldType::List(&FieldType::Struct(&CHUNK)), None),
        (2, FieldType::I64, None),
        (3, FieldType::I64, None),
        (4, FieldType::List(&FieldType::Struct(&SORTING)), None),
        (5, FieldType::I64, None),
        (6, FieldType::I64, None),
        (7, FieldType::I16, None),
    ],
    end: Some(Event::RowGroup),
};
static COLUMN_ORDER: ThriftStruct =
    structure(&[(1, FieldType::Struct(&UNIT), None), (2, FieldType::Struct(&UNIT), None)]);
static FOOTER: ThriftStruct = structure(&[
    (1, FieldType::I32, None),
    (2, FieldType::List(&FieldType::Struct(&ELEMENT)), None),
    (3, FieldType::I64, None),
    (4, FieldType::List(&FieldType::Struct(&ROW_GROUP)), None),
    (5, FieldType::List(&FieldType::Struct(&PAIR)), None),
    (6, FieldType::Binary, None),
    (7, FieldType::List(&FieldType::Struct(&COLUMN_ORDER)), None),
    (9, FieldType::Binary, None),
]);
static DATA_PAGE: ThriftStruct = ThriftStruct {
    fields: &[
        (1, FieldType::I32, Some(Event::Values)),
        (2, FieldType::I32, None),
        (3, FieldType::I32, None),
        (4, FieldType::I32, None),
        (5, FieldType::Struct(&STATISTICS), None),
    ],
    end: Some(Event::Header(0)),
};
static DICTIONARY_PAGE: ThriftStruct = ThriftStruct {
    fields: &[
        (1, FieldType::I32, Some(Event::Values)),
        (2, FieldType::I32, None),
        (3, FieldType::Boolean, None),
    ],
    end: Some(Event::Header(2)),
};
static DATA_PAGE_2: ThriftStruct = ThriftStruct {
    fields: &[
        (1, FieldType::I32, Some(Event::Values)),
        (2, FieldType::I32, None),
        (3, FieldType::I32, None),
        (4, FieldType::I32, None),
        (5, FieldType::I32, None),
        (6, FieldType::I32, None),
        (7, FieldType::Boolean, None),
        (8, FieldType::Struct(&STATISTICS), None),
    ],
    end: Some(Event::Header(3)),
};
static PAGE: ThriftStruct = structure(&[
    (1, FieldType::I32, Some(Event::PageType)),
    (2, FieldType::I32, Some(Event::Uncompressed)),
    (3, FieldType::I32, Some(Event::Compressed)),
    (4, FieldType::I32, None),
    (5, FieldType::Struct(&DATA_PAGE), None),
    (6, FieldType::Struct(&UNIT), None),
    (7, FieldType::Struct(&DICTIONARY_PAGE), None),
    (8, FieldType::Struct(&DATA_PAGE_2), None),
]);

/// Reason for invalid bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ThriftError {
    /// The bytes end within the structure.
    Short,
    Wrong(&'static str),
}

type Checked<T> = Result<T, ThriftError>;

/// Validates the footer of a file.
pub(super) fn footer(bytes: &[u8], on_event: &mut dyn FnMut(Event, i64) -> Checked<()>) -> Checked<()> {
    Validator { bytes, at: 0, on_event }.structure(&FOOTER, 0)
}

/// Validates the header of a page and returns its length in bytes.
pub(super) fn page_header(
    bytes: &[u8],
    on_event: &mut dyn FnMut(Event, i64) -> Checked<()>,
) -> Checked<usize> {
    let mut walk = Validator { bytes, at: 0, on_event };
    walk.structure(&PAGE, 0)?;
    Ok(walk.at)
}

struct Validator<'a> {
    bytes: &'a [u8],
    at: usize,
    on_event: &'a mut dyn FnMut(Event, i64) -> Checked<()>,
}

impl Validator<'_> {
    fn byte(&mut self) -> Checked<u8> {
        let byte = *self.bytes.get(self.at).ok_or(ThriftError::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_bytes(&mut self, count: usize) -> Checked<()> {
        if count > self.bytes.len() - self.at {
            return Err(ThriftError::Short);
        }
        self.at += count;
        Ok(())
    }

    fn unsigned(&mut self) -> Checked<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        // The tenth byte has the highest bit.
        match self.byte()? {
            last @ (0 | 1) => Ok(number | u64::from(last) << 63),
            _ => Err(ThriftError::Wrong("a number is too long")),
        }
    }

    fn signed(&mut self, bits: u32) -> Checked<i64> {
        let number = self.unsigned()?;
        let signed = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
        if bits < 64 && !(-(1_i64 << (bits - 1))..1 << (bits - 1)).contains(&signed) {
            return Err(ThriftError::Wrong("a number is too large"));
        }
        Ok(signed)
    }

    fn structure(&mut self, layout: &ThriftStruct, depth: usize) -> Checked<()> {
        if depth > DEPTH_MAX {
            return Err(ThriftError::Wrong("it is nested too deeply"));
        }
        let mut last = 0_i16;
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == 0 {
                break;
            }
            last = match i16::from(head >> 4) {
                0 => i16::try_from(self.signed(16)?)
                    .map_err(|_| ThriftError::Wrong("a number is too large"))?,
                more => last.checked_add(more).ok_or(ThriftError::Wrong("a number is too large"))?,
            };
            match layout.fields.iter().find(|(number, _, _)| *number == last) {
                Some((_, field_type, event)) => self.field(kind, *field_type, *event, depth)?,
                None => self.skip(kind, depth)?,
            }
        }
        layout.end.map_or(Ok(()), |event| (self.on_event)(event, 0))
    }

    fn field(&mut self, kind: u8, field_type: FieldType, event: Option<Event>, depth: usize) -> Checked<()> {
        let is = |expected: u8| {
            if kind == expected { Ok(()) } else { Err(ThriftError::Wrong("a field has another type")) }
        };
        let number = match field_type {
            FieldType::Boolean if BOOLEANS.contains(&kind) => return Ok(()),
            FieldType::Boolean => return Err(ThriftError::Wrong("a field has another type")),
            FieldType::I8 => is(I8).and_then(|()| self.byte()).map(i64::from)?,
            FieldType::I16 => is(I16).and_then(|()| self.signed(16))?,
            FieldType::I32 => is(I32).and_then(|()| self.signed(32))?,
            FieldType::I64 => is(I64).and_then(|()| self.signed(64))?,
            FieldType::Double => return is(DOUBLE).and_then(|()| self.skip_bytes(8)),
            FieldType::Binary => return is(BINARY).and_then(|()| self.binary()),
            FieldType::Struct(inner) => {
                is(STRUCT)?;
                return self.structure(inner, depth + 1);
            }
            FieldType::List(item) => {
                is(LIST)?;
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    self.field(kind, *item, None, depth + 1)?;
                }
                return Ok(());
            }
        };
        event.map_or(Ok(()), |event| (self.on_event)(event, number))
    }

    fn binary(&mut self) -> Checked<()> {
        let length =
            usize::try_from(self.unsigned()?).map_err(|_| ThriftError::Wrong("a text is too long"))?;
        self.skip_bytes(length)
    }

    /// Type and number of the items of a list.
    fn list(&mut self) -> Checked<(u8, usize)> {
        let head = self.byte()?;
        if head == 0 {
            return Ok((I8, 0));
        }
        let count = match head >> 4 {
            15 => usize::try_from(self.unsigned()?).unwrap_or(usize::MAX),
            count => usize::from(count),
        };
        if count > self.bytes.len() - self.at {
            return Err(ThriftError::Short);
        }
        if count > ITEMS_MAX {
            return Err(ThriftError::Wrong("a list is too long"));
        }
        Ok((head & 15, count))
    }

    /// Skips an unknown field.
    fn skip(&mut self, kind: u8, depth: usize) -> Checked<()> {
        match kind {
            1 | 2 => Ok(()),
            I8 => self.skip_bytes(1),
            I16 | I32 | I64 => self.unsigned().map(drop),
            DOUBLE => self.skip_bytes(8),
            BINARY => self.binary(),
            LIST => {
                let (kind, count) = self.list()?;
                if count > 0 && BOOLEANS.contains(&kind) || depth > DEPTH_MAX {
                    return Err(ThriftError::Wrong("a list has items that are not expected"));
                }
                (0..count).try_for_each(|_| self.skip(kind, depth + 1))
            }
            STRUCT => self.structure(&UNIT, depth + 1),
            _ => Err(ThriftError::Wrong("a field has a type that is not expected")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header of a page of 3 values: 40 bytes, 30 compressed.
    const HEADER: [u8; 15] = [0x15, 0, 0x15, 80, 0x15, 60, 0x2C, 0x15, 6, 0x15, 0, 0x15, 6, 0, 0];

    fn walk(bytes: &[u8]) -> Checked<(usize, Vec<(Event, i64)>)> {
        let mut events = Vec::new();
        let length = page_header(bytes, &mut |event, number| {
            events.push((event, number));
            Ok(())
        })?;
        Ok((length, events))
    }

    #[test]
    fn page_headers_have_sizes() {
        let expected = vec![
            (Event::PageType, 0),
            (Event::Uncompressed, 40),
            (Event::Compressed, 30),
            (Event::Values, 3),
            (Event::Header(0), 0),
        ];
        assert_eq!(walk(&HEADER), Ok((15, expected.clone())));
        assert_eq!(walk(&[&HEADER[..], b"and what follows"].concat()), Ok((15, expected)));
        for end in 0..HEADER.len() {
            assert_eq!(walk(&HEADER[..end]), Err(ThriftError::Short), "{end}");
        }
    }

    #[test]
    fn structures_that_the_library_misreads_are_rejected() {
        let check = |bytes: &[u8]| assert!(matches!(walk(bytes), Err(ThriftError::Wrong(_))), "{bytes:?}");
        // A text where a number is expected; a map; a list of booleans; an unterminated list of lists; a
        // field beyond the last.
        check(&[0x18, 1, 0, 0]);
        check(&[0x9B, 1, 0, 0]);
        check(&[0x99, 0x12, 1, 0]);
        check(&[&[0x99][..], &[0x19; 40]].concat());
        check(&[0x05, 0xFE, 0xFF, 0xFF, 0x03, 0, 0]);
        check(&[0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0]);
        check(&[0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0]);
        // A list with more items than bytes.
        assert_eq!(walk(&[0x99, 0xF3, 0xFF, 0xFF, 3, 0, 0]), Err(ThriftError::Short));
        // Unknown fields are valid.
        assert_eq!(walk(&[0x9C, 0x19, 0x25, 2, 4, 0, 0]), Ok((7, Vec::new())));
    }
}
