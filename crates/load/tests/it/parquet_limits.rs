//! Handwritten Parquet files of a few hundred bytes with excessive declarations: each fails with the name of
//! a limit, in little time and memory.

use vervet_load::testing::CountTarget;
use vervet_load::{LoadOptions, LoadReport, Source, load};
use vervet_model::Error;

const BOOLEAN: i64 = 0;
const INT32: i64 = 1;
const BYTE_ARRAY: i64 = 6;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const DELTA_LENGTH: i64 = 6;
const DELTA_TEXTS: i64 = 7;
const RLE_DICTIONARY: i64 = 8;
const MANY: i64 = i32::MAX as i64;

/// Structures of Thrift's compact protocol.
#[derive(Default, Clone)]
struct Thrift {
    bytes: Vec<u8>,
    last: u8,
}

impl Thrift {
    fn field(mut self, number: u8, kind: u8) -> Self {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
        self
    }

    fn i32(mut self, number: u8, value: i64) -> Self {
        self = self.field(number, 5);
        zigzag(&mut self.bytes, value);
        self
    }

    fn i64(mut self, number: u8, value: i64) -> Self {
        self = self.field(number, 6);
        zigzag(&mut self.bytes, value);
        self
    }

    fn text(mut self, number: u8, text: &str) -> Self {
        self = self.field(number, 8);
        self.bytes.push(u8::try_from(text.len()).expect("short"));
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    fn structure(mut self, number: u8, inner: Thrift) -> Self {
        self = self.field(number, 12);
        self.bytes.extend(inner.end());
        self
    }

    fn list(mut self, number: u8, kind: u8, items: &[Vec<u8>]) -> Self {
        self = self.field(number, 9);
        self.bytes.push(0xF0 | kind);
        varint(&mut self.bytes, items.len() as u64);
        self.bytes.extend(items.concat());
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7F {
        bytes.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7F) as u8);
}

fn zigzag(bytes: &mut Vec<u8>, number: i64) {
    varint(bytes, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

fn element(kind: i64, repetition: i64, name: &str) -> Vec<u8> {
    let element = Thrift::default().i32(1, kind).i32(3, repetition).text(4, name);
    if kind == BYTE_ARRAY { element.i32(6, 0).end() } else { element.end() }
}

fn group(repetition: Option<i64>, name: &str, children: i64) -> Vec<u8> {
    let mut element = Thrift::default();
    if let Some(repetition) = repetition {
        element = element.i32(3, repetition);
    }
    element.text(4, name).i32(5, children).end()
}

/// A data page whose values have no levels.
fn page(encoding: i64, values: i64, size: i64, body: &[u8]) -> Vec<u8> {
    let header = Thrift::default().i32(1, values).i32(2, encoding).i32(3, RLE).i32(4, RLE);
    let packed = body.len() as i64;
    let page = Thrift::default().i32(1, 0).i32(2, size).i32(3, packed).structure(5, header);
    [page.end(), body.to_vec()].concat()
}

fn dictionary(values: i64, body: &[u8]) -> Vec<u8> {
    let header = Thrift::default().i32(1, values).i32(2, PLAIN);
    let size = body.len() as i64;
    [Thrift::default().i32(1, 2).i32(2, size).i32(3, size).structure(7, header).end(), body.to_vec()].concat()
}

/// A column: its type, its name and its pages.
type Column<'a> = (i64, &'a str, &'a [u8]);

/// A file whose row groups have the same pages.
fn file(schema: &[Vec<u8>], columns: &[Column<'_>], rows: i64, row_groups: usize) -> Vec<u8> {
    let mut bytes = b"PAR1".to_vec();
    let mut chunks = Vec::new();
    for (kind, name, pages) in columns {
        let path = [&[u8::try_from(name.len()).expect("short")], name.as_bytes()].concat();
        let (start, size) = (bytes.len() as i64, pages.len() as i64);
        let column = Thrift::default()
            .i32(1, *kind)
            .list(2, 5, &[vec![0]])
            .list(3, 8, &[path])
            .i32(4, 0)
            .i64(5, rows)
            .i64(6, size)
            .i64(7, size)
            .i64(9, start);
        chunks.push(Thrift::default().i64(2, start).structure(3, column).end());
        bytes.extend_from_slice(pages);
    }
    let row_group = Thrift::default().list(1, 12, &chunks).i64(2, 0).i64(3, rows).end();
    let footer = Thrift::default()
        .i32(1, 1)
        .list(2, 12, schema)
        .i64(3, rows)
        .list(4, 12, &vec![row_group; row_groups])
        .end();
    let length = u32::try_from(footer.len()).expect("short").to_le_bytes();
    [&bytes[..], &footer, &length, b"PAR1"].concat()
}

/// A file with the required column `id`.
fn ids(kind: i64, pages: &[u8], rows: i64, row_groups: usize) -> Vec<u8> {
    file(&[group(None, "m", 1), element(kind, 0, "id")], &[(kind, "id", pages)], rows, row_groups)
}

fn read(bytes: Vec<u8>) -> Result<LoadReport, Error> {
    let source = Source::bytes("x.parquet", bytes);
    load(vec![source], &LoadOptions::default(), &mut CountTarget::default(), &mut std::io::sink())
}

#[track_caller]
fn check(bytes: Vec<u8>, part: &str) {
    let error = read(bytes).expect_err("it says too much").to_string();
    assert!(error.contains(part), "{error}");
}

/// `true`, run-length encoded, this many times.
fn run(values: u64) -> Vec<u8> {
    let mut run = Vec::new();
    varint(&mut run, values << 1);
    run.push(1);
    [&u32::try_from(run.len()).expect("short").to_le_bytes()[..], &run].concat()
}

#[test]
fn files_with_true_sizes_are_read() {
    let body = run(40);
    let report = read(ids(BOOLEAN, &page(RLE, 40, body.len() as i64, &body), 40, 3)).expect("it is whole");
    assert_eq!(report.statements, 120);
    let report = read(ids(INT32, &page(PLAIN, 2, 8, &[1, 0, 0, 0, 2, 0, 0, 0]), 2, 1)).expect("it is whole");
    assert_eq!(report.statements, 2);
}

#[test]
fn rows_and_values_without_bytes_are_limited() {
    let body = run(1 << 31);
    let pages = page(RLE, MANY, body.len() as i64, &body);
    check(ids(BOOLEAN, &pages, 1 << 40, 1), "WORK_TIMES_MAX");
    check(ids(BOOLEAN, &pages.repeat(100), MANY * 100, 1), "WORK_TIMES_MAX");
    // Row groups that share their pages.
    let body = run(50_000);
    let pages = page(RLE, 50_000, body.len() as i64, &body);
    check(ids(BOOLEAN, &pages, 50_000, 40), "WORK_TIMES_MAX");
    check(ids(BOOLEAN, &pages, -1, 1), "negative number of rows");
}

#[test]
fn declared_page_sizes_are_not_trusted() {
    check(ids(INT32, &page(PLAIN, 1, MANY, &[0; 4]), 1, 1), "PAGE_BYTES_MAX");
    check(ids(INT32, &page(PLAIN, 1, -1, &[0; 4]), 1, 1), "negative");
    check(ids(INT32, &page(PLAIN, MANY, 4, &[0; 4]), MANY, 1), "WORK_TIMES_MAX");
    let indices = page(RLE_DICTIONARY, 1, 3, &[1, 2, 0]);
    let pages = [dictionary(100, &[0; 4]), indices.clone()].concat();
    check(ids(INT32, &pages, 1, 1), "a dictionary has more values than bytes");
    check(ids(INT32, &indices, 1, 1), "a dictionary that is missing");
    let twice = [dictionary(1, &[0; 4]), dictionary(1, &[0; 4]), indices].concat();
    check(ids(INT32, &twice, 1, 1), "two dictionaries");
}

#[test]
fn declared_text_lengths_are_not_trusted() {
    // A block of 2^31 values, whose lengths are all 0.
    let mut zeros = Vec::new();
    for number in [1 << 31, 1, 1 << 31, 0, 0, 0] {
        varint(&mut zeros, number);
    }
    check(
        ids(BYTE_ARRAY, &page(DELTA_LENGTH, 100, zeros.len() as i64, &zeros), 100, 1),
        "more lengths of texts",
    );
    // Prefix-compressed texts: each starts with the whole previous one; first all prefix, then no suffix.
    let long = 200_000_u64;
    let texts = |count: u64| {
        let mut body = Vec::new();
        for (first, least, first_bits, bits) in
            [(0, 0, long, 0), (2 * long, -i64::try_from(long).expect("small"), 0, long)]
        {
            for number in [2048, 1, count, first] {
                varint(&mut body, number);
            }
            zigzag(&mut body, least);
            body.push(18);
            let mut packed = vec![0_u8; 18 * 2048 / 8];
            for at in 0..usize::try_from(count).expect("small") - 1 {
                let value = if at == 0 { first_bits } else { bits };
                for bit in (0..18).filter(|bit| value >> bit & 1 == 1) {
                    packed[(at * 18 + bit) / 8] |= 1 << ((at * 18 + bit) % 8);
                }
            }
            body.extend(packed);
        }
        body.resize(body.len() + usize::try_from(long).expect("small"), b'x');
        let count = i64::try_from(count).expect("small");
        ids(BYTE_ARRAY, &page(DELTA_TEXTS, count, body.len() as i64, &body), count, 1)
    };
    assert_eq!(read(texts(20)).expect("4 MB of texts").statements, 20);
    check(texts(2000), "the texts of a page have more than");
}

#[test]
fn unbounded_lists_are_limited() {
    let list = |values: i64| {
        // One row that contains all values; its repetition levels and definition levels.
        let levels = |counts: &[(i64, u8)]| {
            let mut levels = Vec::new();
            for (count, level) in counts {
                varint(&mut levels, count.cast_unsigned() << 1);
                levels.push(*level);
            }
            [&u32::try_from(levels.len()).expect("short").to_le_bytes()[..], &levels].concat()
        };
        let values_there = run(values.cast_unsigned());
        let body = [levels(&[(1, 0), (values - 1, 1)]), levels(&[(values, 1)]), values_there].concat();
        page(RLE, values, body.len() as i64, &body)
    };
    let with_ids = |pages: &[u8]| {
        let schema = [group(None, "m", 2), element(INT32, 0, "id"), element(BOOLEAN, 2, "list")];
        // Long enough that the work limit alone would pass.
        let id = [page(PLAIN, 1, 4, &[7, 0, 0, 0]), vec![0; 60_000]].concat();
        file(&schema, &[(INT32, "id", &id), (BOOLEAN, "list", pages)], 1, 1)
    };
    assert_eq!(read(with_ids(&list(1000))).expect("it is whole").statements, 1001);
    check(with_ids(&list(9 << 20)), "LIST_VALUES_MAX");
    check(with_ids(&[list(5 << 20), list(5 << 20)].concat()), "LIST_VALUES_MAX");
    check(ids(BOOLEAN, &list(1 << 30), 1, 1), "WORK_TIMES_MAX");
}

#[test]
fn declared_schemas_are_not_trusted() {
    let deep = |depth: usize| {
        let mut schema = vec![group(None, "m", 1)];
        schema.extend((0..depth).map(|_| group(Some(1), "g", 1)));
        schema.push(element(INT32, 0, "id"));
        file(&schema, &[(INT32, "id", &[])], 0, 0)
    };
    check(deep(10), "neither the id of vertices");
    check(deep(100), "SCHEMA_DEPTH_MAX");
    check(deep(10_000), "SCHEMA_DEPTH_MAX");
    let wide = [group(None, "m", MANY), element(INT32, 0, "id")];
    check(file(&wide, &[(INT32, "id", &[])], 0, 0), "ELEMENTS_MAX");
    let mut many = vec![group(None, "m", 1)];
    many.extend((0..20_000).map(|_| element(INT32, 0, "id")));
    check(file(&many, &[(INT32, "id", &[])], 0, 0), "ELEMENTS_MAX");
    // Row groups of nothing.
    let footer = Thrift::default().list(4, 12, &vec![vec![0]; 200_000]).end();
    let length = u32::try_from(footer.len()).expect("short").to_le_bytes();
    check([&b"PAR1"[..], &footer, &length, b"PAR1"].concat(), "ROW_GROUPS_MAX");
}
