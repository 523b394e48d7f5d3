//! Resource limits for Parquet files, which the library lacks: a file of a few hundred bytes may declare 2^63
//! rows, or pages of 2 GiB each, and the library allocates what is declared.
//!
//! # Shape
//! [`Input`] provides bytes of the file to the library; `thrift` checks the header of a page before the
//! library reads it. [`CheckedPageReader`] is between the library's page reader and its decoders, and checks
//! the declarations inside pages. Both share one [`Budget`] per file.
//! # Invariants
//! 1. All columns together reserve at most [`PAGES_BYTES_MIN`] plus [`PAGES_TIMES_MAX`] times the file size
//!    in pages.
//! 2. The total of decompressed bytes, values and texts is at most [`WORK_TIMES_MAX`] times the file size.

use super::delta;
use super::error::refused;
use super::thrift::{self, Event, Fault};
use super::unpack::Unpacker;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of the footer of a Parquet file, in bytes: about 300,000 column chunks.
pub const FOOTER_BYTES_MAX: usize = 32 << 20;
/// Maximum number of elements of the schema of a Parquet file.
pub const ELEMENTS_MAX: usize = 16 << 10;
/// Maximum nesting depth of the schema of a Parquet file.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// Maximum number of row groups of a Parquet file.
pub const ROW_GROUPS_MAX: usize = 128 << 10;
/// Maximum size of a page of a Parquet file in bytes, decompressed. Most pages have 1 MiB.
pub const PAGE_BYTES_MAX: u64 = 256 << 20;
/// Constant part of the maximum size of pages that all columns of a Parquet file reserve at a time, in bytes;
/// the other part is [`PAGES_TIMES_MAX`] times the file size.
pub const PAGES_BYTES_MIN: u64 = 512 << 20;
/// See [`PAGES_BYTES_MIN`].
pub const PAGES_TIMES_MAX: u64 = 16;
/// Maximum total of decompressed pages, of texts, and of 64 bytes per value, as a multiple of the file size.
pub const WORK_TIMES_MAX: u64 = 16 << 10;
/// Maximum number of values of a page of lists, and of the lists of 256 consecutive rows.
pub const LIST_VALUES_MAX: u64 = 8 << 20;

/// Maximum size of a page header in bytes: some numbers, and minimum and maximum values.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// Type of pages that are skipped.
const INDEX_PAGE: i64 = 1;
/// Size of the first read; nearly all headers are shorter.
const HEADER_BYTES: usize = 1 << 10;
/// Work per value, in bytes: a file has at most 256 values per byte.
const VALUE_BYTES: u64 = 64;
/// Memory of the library for each value of a dictionary, or each length of a text.
const ENTRY_BYTES: u64 = 40;

/// The remaining budget of a file.
#[derive(Debug)]
pub(super) struct Budget {
    work_left: AtomicU64,
    pages_max: u64,
    pages: AtomicU64,
}

impl Budget {
    pub(super) fn new(file_bytes: u64) -> Self {
        Self {
            work_left: AtomicU64::new(file_bytes.saturating_mul(WORK_TIMES_MAX)),
            pages_max: PAGES_BYTES_MIN.saturating_add(file_bytes.saturating_mul(PAGES_TIMES_MAX)),
            pages: AtomicU64::new(0),
        }
    }

    /// Counts work on this many bytes.
    pub(super) fn work(&self, bytes: u64) -> io::Result<()> {
        // Relaxed: one thread reads a file; atomic because the library requires it.
        match self.work_left.load(Ordering::Relaxed).checked_sub(bytes) {
            Some(left) => {
                self.work_left.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => Err(io::Error::other(format!(
                "the content takes more work than {WORK_TIMES_MAX} times the file size (WORK_TIMES_MAX)"
            ))),
        }
    }

    /// Checks the budget for this many bytes of pages.
    fn check_room(&self, bytes: u64) -> io::Result<()> {
        if self.pages.load(Ordering::Relaxed).saturating_add(bytes) <= self.pages_max {
            return Ok(());
        }
        let limit = self.pages_max;
        let message =
            format!("the pages of its columns take more than {limit} bytes together (PAGES_BYTES_MIN)");
        Err(io::Error::other(message))
    }

    /// Reserves this many bytes of pages, and adds them to `held`.
    fn reserve(&self, bytes: u64, held: &mut u64) -> io::Result<()> {
        self.check_room(bytes)?;
        self.pages.fetch_add(bytes, Ordering::Relaxed);
        *held += bytes;
        Ok(())
    }

    fn release(&self, bytes: u64) {
        self.pages.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The storage of a file.
#[derive(Debug)]
pub(super) enum Store {
    File(Mutex<File>),
    Bytes(Bytes),
}

impl Store {
    /// `length` bytes from `start` on; fewer only at the end of the file, which has `size` bytes.
    fn read(&self, size: u64, start: u64, length: usize) -> io::Result<Bytes> {
        let left = usize::try_from(size.saturating_sub(start)).unwrap_or(usize::MAX);
        let length = length.min(left);
        match self {
            Self::Bytes(bytes) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(start..(start + length).min(bytes.len())))
            }
            Self::File(file) => {
                let mut buffer = vec![0; length];
                // A panic of the library during a read does not change the file.
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(start))?;
                file.read_exact(&mut buffer)?;
                Ok(buffer.into())
            }
        }
    }
}

/// The view of a file for one column. A clone shares its state.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) store: Arc<Store>,
    pub(super) size: u64,
    pub(super) budget: Arc<Budget>,
    /// Progress counter of read bytes.
    pub(super) count: Arc<AtomicU64>,
    /// Decompressed size of the page whose header was read last.
    unpacked: Arc<AtomicU64>,
}

impl Input {
    pub(super) fn new(store: Store, size: u64) -> Self {
        Self {
            store: Arc::new(store),
            size,
            budget: Arc::new(Budget::new(size)),
            count: Arc::default(),
            unpacked: Arc::default(),
        }
    }

    /// A view of the same file for another column.
    pub(super) fn for_column(&self) -> Self {
        Self { unpacked: Arc::default(), ..self.clone() }
    }

    /// Exactly `length` bytes from `start` on.
    pub(super) fn exactly(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.store.read(self.size, start, length)?;
        if bytes.len() == length { Ok(bytes) } else { Err(refused("the file ends too early")) }
    }

    /// The checked header of the page at `start`.
    fn header(&self, start: u64) -> io::Result<Bytes> {
        let mut bytes = self.store.read(self.size, start, HEADER_BYTES)?;
        loop {
            let (mut unpacked, mut packed, mut values) = (0, 0, 0_u64);
            let (mut page_type, mut headers) = (0, Vec::new());
            let passed = thrift::page_header(&bytes, &mut |event, number| {
                let number = u64::try_from(number).map_err(|_| Fault::Wrong("a size is negative"))?;
                match event {
                    Event::PageType => page_type = number.cast_signed(),
                    Event::Header(of) => headers.push(of),
                    Event::Uncompressed => unpacked = number,
                    Event::Compressed => packed = number,
                    Event::Values => values = values.max(number),
                    _ => {}
                }
                Ok(())
            });
            match passed {
                Ok(length) => {
                    // The library assumes that the header of its type is present.
                    if headers != [page_type] && page_type != INDEX_PAGE {
                        return Err(io::Error::other(
                            "the header of a page is damaged: it is of two types or of none",
                        ));
                    }
                    if unpacked.max(packed) > PAGE_BYTES_MAX {
                        return Err(io::Error::other(format!(
                            "a page has more than {PAGE_BYTES_MAX} bytes (PAGE_BYTES_MAX)"
                        )));
                    }
                    self.budget.work(unpacked + packed + values.saturating_mul(VALUE_BYTES))?;
                    self.budget.check_room(unpacked + packed)?;
                    self.unpacked.store(unpacked, Ordering::Relaxed);
                    return Ok(bytes.slice(..length));
                }
                Err(Fault::Wrong(message)) => {
                    return Err(io::Error::other(format!("the header of a page is damaged: {message}")));
                }
                Err(Fault::Short) => {
                    let longer = self.store.read(self.size, start, bytes.len().saturating_mul(8))?;
                    if longer.len() == bytes.len() || bytes.len() >= HEADER_BYTES_MAX {
                        return Err(io::Error::other("the header of a page is cut off"));
                    }
                    bytes = longer;
                }
            }
        }
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Input {
    type T = HeaderReader;

    /// The library reads a page header from this reader, or nothing if it already has the header.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(HeaderReader { input: self.clone(), start, header: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.exactly(start, length)?;
        // Relaxed: a sum for progress, which synchronizes no other memory.
        self.count.fetch_add(u64::try_from(length).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Reader of a checked page header.
pub(super) struct HeaderReader {
    input: Input,
    start: u64,
    header: Option<Cursor<Bytes>>,
}

impl Read for HeaderReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.header {
            Some(header) => header.read(buffer),
            header @ None => header.insert(Cursor::new(self.input.header(self.start)?)).read(buffer),
        }
    }
}

/// Checks a footer before the library decodes it.
pub(super) fn check_footer(bytes: &[u8]) -> std::result::Result<(), String> {
    // Declared children so far, and the missing children of each open group.
    let (mut children, mut declared, mut elements, mut row_groups) = (0_i64, 0_i64, 0_usize, 0_usize);
    let mut open: Vec<i64> = Vec::new();
    let walked = thrift::footer(bytes, &mut |event, number| {
        match event {
            Event::Children => children = number,
            Event::Element => {
                elements += 1;
                declared = declared.saturating_add(children.max(0));
                if elements > ELEMENTS_MAX || usize::try_from(declared).unwrap_or(usize::MAX) > ELEMENTS_MAX {
                    return Err(Fault::Wrong("the schema has too many elements (ELEMENTS_MAX)"));
                }
                if let Some(left) = open.last_mut() {
                    *left -= 1;
                }
                if children > 0 {
                    open.push(children);
                }
                children = 0;
                if open.len() > SCHEMA_DEPTH_MAX {
                    return Err(Fault::Wrong("the schema is nested too deeply (SCHEMA_DEPTH_MAX)"));
                }
                while open.last() == Some(&0) {
                    open.pop();
                }
            }
            Event::RowGroup => {
                row_groups += 1;
                if row_groups > ROW_GROUPS_MAX {
                    return Err(Fault::Wrong("it has too many row groups (ROW_GROUPS_MAX)"));
                }
            }
            _ => {}
        }
        Ok(())
    });
    match walked {
        Ok(()) => Ok(()),
        Err(Fault::Short) => Err("it is cut off".to_owned()),
        Err(Fault::Wrong(message)) => Err(message.to_owned()),
    }
}

/// Page reader of a column chunk, which checks each page before it is decoded.
pub(super) struct CheckedPageReader {
    pages: SerializedPageReader<Input>,
    input: Input,
    unpacker: Unpacker,
    kind: Type,
    type_length: u64,
    levels: [i16; 2],
    has_dictionary: bool,
    /// Sizes of the dictionary and the page that this column holds.
    dictionary_bytes: u64,
    page_bytes: u64,
    /// Number of list values in the pages since the start of the last batch.
    values: Arc<AtomicU64>,
}

impl CheckedPageReader {
    /// `values` counts list values; the reader of a batch resets it to 0.
    pub(super) fn new(
        input: &Input,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        values: Arc<AtomicU64>,
    ) -> Result<Self> {
        let unpacker = Unpacker::new(chunk.compression())?;
        let column = chunk.column_descr();
        let input = input.for_column();
        // The library returns compressed pages; this type decompresses them within its limits.
        let packed = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        let pages = SerializedPageReader::new(Arc::new(input.clone()), &packed, rows, None)?;
        Ok(Self {
            pages,
            input,
            unpacker,
            kind: column.physical_type(),
            type_length: if column.physical_type() == Type::FIXED_LEN_BYTE_ARRAY {
                u64::try_from(column.type_length()).unwrap_or(0)
            } else {
                0
            },
            levels: [column.max_rep_level(), column.max_def_level()],
            has_dictionary: false,
            dictionary_bytes: 0,
            page_bytes: 0,
            values,
        })
    }

    /// Decompresses a page.
    fn unpack(&mut self, page: &mut Page) -> Result<()> {
        if self.unpacker.is_identity() {
            return Ok(());
        }
        let (bytes, plain) = match page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0),
            Page::DataPageV2 { is_compressed: false, .. } => return Ok(()),
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                (buf, u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))
            }
        };
        let size = self.input.unpacked.load(Ordering::Relaxed);
        let (Ok(plain), Ok(size)) = (usize::try_from(plain), usize::try_from(size)) else {
            return Err(refused("a page is too long"));
        };
        if plain > bytes.len() || plain > size {
            return Err(refused("the levels of a page are longer than the page"));
        }
        let mut unpacked = Vec::with_capacity(size);
        unpacked.extend_from_slice(&bytes[..plain]);
        self.unpacker.unpack(&bytes[plain..], &mut unpacked, size - plain)?;
        *bytes = unpacked.into();
        Ok(())
    }

    /// Checks a page.
    fn check(&mut self, page: &Page) -> Result<()> {
        let bytes = page.buffer().len() as u64;
        let count = u64::from(page.num_values());
        let encoding = page.encoding();
        match page {
            Page::DictionaryPage { .. } => {
                let least = match self.kind {
                    Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
                    Type::INT64 | Type::DOUBLE => 8,
                    Type::INT96 => 12,
                    Type::FIXED_LEN_BYTE_ARRAY => self.type_length.max(1),
                    Type::BOOLEAN => return Err(refused("truth values have no dictionary")),
                };
                if count > bytes / least {
                    return Err(refused("a dictionary has more values than bytes"));
                }
                self.has_dictionary = true;
                self.input.budget.reserve(bytes + count * ENTRY_BYTES, &mut self.dictionary_bytes)?;
                return Ok(());
            }
            Page::DataPage { def_level_encoding, rep_level_encoding, .. } => {
                for (encoding, max) in [rep_level_encoding, def_level_encoding].into_iter().zip(self.levels) {
                    #[expect(deprecated, reason = "old files have it")]
                    if max > 0 && !matches!(encoding, Encoding::RLE | Encoding::BIT_PACKED) {
                        return Err(refused(format!("levels cannot be encoded as {encoding}")));
                    }
                }
            }
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                if u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len) > bytes {
                    return Err(refused("the levels of a page are longer than the page"));
                }
            }
        }
        if self.levels[0] > 0 {
            // The previous page is consumed.
            let before = self.values.fetch_add(count, Ordering::Relaxed);
            if before + count > LIST_VALUES_MAX {
                return Err(refused(format!(
                    "the lists of consecutive rows have more than {LIST_VALUES_MAX} values (LIST_VALUES_MAX)"
                )));
            }
        }
        let mut held = bytes;
        match encoding {
            Encoding::PLAIN | Encoding::RLE | Encoding::DELTA_BINARY_PACKED | Encoding::BYTE_STREAM_SPLIT => {
            }
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY if self.has_dictionary => {}
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                return Err(refused("a page needs a dictionary that is missing"));
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY => {
                let with_prefixes = encoding == Encoding::DELTA_BYTE_ARRAY;
                let most = count.min(PAGE_BYTES_MAX / ENTRY_BYTES);
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                let text_bytes =
                    delta::text_bytes(self.values_of(page)?, with_prefixes, most).map_err(refused)?;
                if text_bytes > PAGE_BYTES_MAX {
                    return Err(refused(format!(
                        "the texts of a page have more than {PAGE_BYTES_MAX} bytes (PAGE_BYTES_MAX)"
                    )));
                }
                self.input.budget.work(text_bytes)?;
                held += count.min(PAGE_BYTES_MAX / ENTRY_BYTES) * ENTRY_BYTES;
                if with_prefixes {
                    held += text_bytes;
                }
            }
            other => return Err(refused(format!("the encoding {other} is not supported"))),
        }
        Ok(self.input.budget.reserve(held, &mut self.page_bytes)?)
    }

    /// The part of a page after its levels.
    fn values_of<'p>(&self, page: &'p Page) -> Result<&'p [u8]> {
        let cut_off = || refused("the levels of a page are longer than the page");
        let mut rest = &page.buffer()[..];
        match page {
            Page::DataPage { num_values, def_level_encoding, rep_level_encoding, .. } => {
                for (encoding, max) in [rep_level_encoding, def_level_encoding].into_iter().zip(self.levels) {
                    if max == 0 {
                        continue;
                    }
                    let length = if *encoding == Encoding::RLE {
                        let (length, levels) = rest.split_first_chunk().ok_or_else(cut_off)?;
                        rest = levels;
                        u64::from(u32::from_le_bytes(*length))
                    } else {
                        let bits = u64::from(16 - max.unsigned_abs().leading_zeros());
                        (u64::from(*num_values) * bits).div_ceil(8)
                    };
                    let length = usize::try_from(length).map_err(|_| cut_off())?;
                    rest = rest.get(length..).ok_or_else(cut_off)?;
                }
            }
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                let length = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                let length = usize::try_from(length).map_err(|_| cut_off())?;
                rest = rest.get(length..).ok_or_else(cut_off)?;
            }
            Page::DictionaryPage { .. } => {}
        }
        Ok(rest)
    }
}

impl CheckedPageReader {
    /// Skips pages without values, which the library takes for the end of the column; returns the next page.
    fn pass_empty(&mut self) -> Result<Option<PageMetadata>> {
        loop {
            match self.pages.peek_next_page()? {
                Some(page) if !page.is_dict && page.num_levels == Some(0) => self.pages.skip_next_page()?,
                other => return Ok(other),
            }
        }
    }
}

impl Drop for CheckedPageReader {
    fn drop(&mut self) {
        self.input.budget.release(self.page_bytes + self.dictionary_bytes);
    }
}

impl Iterator for CheckedPageReader {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPageReader {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.input.budget.release(std::mem::take(&mut self.page_bytes));
        self.pass_empty()?;
        let mut page = self.pages.get_next_page()?;
        if let Some(page) = &mut page {
            self.unpack(page)?;
            if page.is_dictionary_page() && self.has_dictionary {
                return Err(refused("a column has two dictionaries"));
            }
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pass_empty()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}
