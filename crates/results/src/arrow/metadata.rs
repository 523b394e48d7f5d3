//! The metadata of messages: `Message.fbs` and `Schema.fbs` of Arrow, with the numbers of their members.

use super::flatbuffer::{Builder, Member, Reference};
use crate::scalar::ColumnType;
use Member::{Byte, Int, Long, Reference as Offset, Short};

/// The key of the number of rows in the metadata of a schema.
pub const ROWS_KEY: &str = "vervet.rows";

/// The first bytes of a message, and of the end of a stream.
pub(crate) const CONTINUATION: [u8; 4] = [0xff; 4];

/// `MetadataVersion.V5`.
const VERSION: i16 = 4;
/// `MessageHeader.Schema` and `MessageHeader.RecordBatch`.
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;

/// The bytes after a buffer of this length.
pub(crate) fn padding(length: usize) -> usize {
    length.next_multiple_of(8) - length
}

/// A message, to whose header the reference refers.
fn message(header: u8, body_bytes: usize) -> (Builder, Reference) {
    let (mut builder, root) = Builder::new();
    // version, header_type, header, bodyLength
    let message = builder.table(root, &[Short(VERSION), Byte(header), Offset, Long(long(body_bytes))]);
    let header = message.reference(2);
    (builder, header)
}

fn long(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The metadata of a schema.
pub(crate) fn schema(columns: &[(&str, ColumnType)], row_count: u64) -> Vec<u8> {
    let (mut builder, header) = message(SCHEMA, 0);
    // endianness (little), fields, custom_metadata
    let schema = builder.table(header, &[Short(0), Offset, Offset]);
    let fields = builder.references(schema.reference(1), columns.len());
    for (reference, (name, kind)) in fields.into_iter().zip(columns) {
        field(&mut builder, reference, name, *kind);
    }
    for reference in builder.references(schema.reference(2), 1) {
        // key, value
        let pair = builder.table(reference, &[Offset, Offset]);
        builder.string(pair.reference(0), ROWS_KEY);
        builder.string(pair.reference(1), &row_count.to_string());
    }
    builder.finish()
}

fn field(builder: &mut Builder, from: Reference, name: &str, kind: ColumnType) {
    // The number of the type in the union `Type`, and its members.
    let (number, members): (u8, &[Member]) = match kind {
        // Int: bitWidth, is_signed
        ColumnType::Integer => (2, &[Int(64), Byte(1)]),
        // FloatingPoint: precision (double)
        ColumnType::Float => (3, &[Short(2)]),
        ColumnType::Boolean => (6, &[]),
        // Decimal: precision, scale, bitWidth
        ColumnType::Decimal(whole, scale) => {
            (7, &[Int(i32::from((whole + scale).max(1))), Int(i32::from(scale)), Int(128)])
        }
        // Date: unit (day)
        ColumnType::Date => (8, &[Short(0)]),
        // Timestamp: unit (microsecond), timezone
        ColumnType::DateTime(false) => (10, &[Short(2)]),
        ColumnType::DateTime(true) => (10, &[Short(2), Offset]),
        // LargeUtf8
        ColumnType::Unknown | ColumnType::Text => (20, &[]),
    };
    // name, nullable, type_type, type, dictionary, children
    let field = builder.table(from, &[Offset, Byte(1), Byte(number), Offset, Member::None, Offset]);
    builder.string(field.reference(0), name);
    let kind_table = builder.table(field.reference(3), members);
    if kind == ColumnType::DateTime(true) {
        builder.string(kind_table.reference(1), "UTC");
    }
    // Readers demand the vector, even empty.
    builder.references(field.reference(5), 0);
}

/// The metadata of a batch with these numbers of nulls and these buffers.
pub(crate) fn batch(row_count: usize, nulls: &[usize], buffers: &[&[u8]]) -> Vec<u8> {
    let nodes: Vec<(i64, i64)> = nulls.iter().map(|nulls| (long(row_count), long(*nulls))).collect();
    let mut places = Vec::with_capacity(buffers.len());
    let mut body_bytes = 0;
    for buffer in buffers {
        places.push((long(body_bytes), long(buffer.len())));
        body_bytes += buffer.len() + padding(buffer.len());
    }
    let (mut builder, header) = message(RECORD_BATCH, body_bytes);
    // length, nodes, buffers
    let batch = builder.table(header, &[Long(long(row_count)), Offset, Offset]);
    builder.pairs(batch.reference(1), &nodes);
    builder.pairs(batch.reference(2), &places);
    builder.finish()
}
