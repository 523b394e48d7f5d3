//! Type codes of GraphBinary 1.

pub(super) const INT: u8 = 0x01;
pub(super) const LONG: u8 = 0x02;
pub(super) const STRING: u8 = 0x03;
pub(super) const DATE: u8 = 0x04;
pub(super) const TIMESTAMP: u8 = 0x05;
pub(super) const CLASS: u8 = 0x06;
pub(super) const DOUBLE: u8 = 0x07;
pub(super) const FLOAT: u8 = 0x08;
pub(super) const LIST: u8 = 0x09;
pub(super) const MAP: u8 = 0x0a;
pub(super) const SET: u8 = 0x0b;
pub(super) const UUID: u8 = 0x0c;
pub(super) const EDGE: u8 = 0x0d;
pub(super) const PATH: u8 = 0x0e;
pub(super) const PROPERTY: u8 = 0x0f;
pub(super) const GRAPH: u8 = 0x10;
pub(super) const VERTEX: u8 = 0x11;
pub(super) const VERTEX_PROPERTY: u8 = 0x12;
pub(super) const BINDING: u8 = 0x14;
pub(super) const BYTECODE: u8 = 0x15;
pub(super) const LAMBDA: u8 = 0x1d;
pub(super) const P: u8 = 0x1e;
pub(super) const TRAVERSER: u8 = 0x21;
pub(super) const BIG_DECIMAL: u8 = 0x22;
pub(super) const BIG_INTEGER: u8 = 0x23;
pub(super) const BYTE: u8 = 0x24;
pub(super) const BYTES: u8 = 0x25;
pub(super) const SHORT: u8 = 0x26;
pub(super) const BOOLEAN: u8 = 0x27;
pub(super) const TEXT_P: u8 = 0x28;
pub(super) const STRATEGY: u8 = 0x29;
pub(super) const BULK_SET: u8 = 0x2a;
pub(super) const TREE: u8 = 0x2b;
pub(super) const METRICS: u8 = 0x2c;
pub(super) const TRAVERSAL_METRICS: u8 = 0x2d;
pub(super) const CHAR: u8 = 0x80;
pub(super) const DURATION: u8 = 0x81;
pub(super) const INET_ADDRESS: u8 = 0x82;
pub(super) const INSTANT: u8 = 0x83;
pub(super) const LOCAL_DATE: u8 = 0x84;
pub(super) const LOCAL_DATE_TIME: u8 = 0x85;
pub(super) const LOCAL_TIME: u8 = 0x86;
pub(super) const MONTH_DAY: u8 = 0x87;
pub(super) const OFFSET_DATE_TIME: u8 = 0x88;
pub(super) const OFFSET_TIME: u8 = 0x89;
pub(super) const PERIOD: u8 = 0x8a;
pub(super) const YEAR: u8 = 0x8b;
pub(super) const YEAR_MONTH: u8 = 0x8c;
pub(super) const ZONED_DATE_TIME: u8 = 0x8d;
pub(super) const ZONE_OFFSET: u8 = 0x8e;
pub(super) const CUSTOM: u8 = 0x00;
pub(super) const NULL: u8 = 0xfe;

/// The enumerations, with the names that both formats use.
const ENUMERATIONS: [(u8, &str); 13] = [
    (0x13, "Barrier"),
    (0x16, "Cardinality"),
    (0x17, "Column"),
    (0x18, "Direction"),
    (0x19, "Operator"),
    (0x1a, "Order"),
    (0x1b, "Pick"),
    (0x1c, "Pop"),
    (0x1f, "Scope"),
    (0x20, "T"),
    (0x2e, "Merge"),
    (0x2f, "DT"),
    (0x30, "GType"),
];

/// The name of the enumeration with this code.
pub(super) fn enumeration(code: u8) -> Option<&'static str> {
    ENUMERATIONS.iter().find(|(other, _)| *other == code).map(|(_, name)| *name)
}

/// The code of this enumeration.
pub(super) fn of_enumeration(name: &str) -> Option<u8> {
    ENUMERATIONS.iter().find(|(_, other)| *other == name).map(|(code, _)| *code)
}
