//! Inputs of a load: origin of the bytes, format, decompression.
//!
//! The file extension determines the compression (`.gz`, `.zst`); without such an extension the magic bytes
//! do: no text format starts with those of gzip or zstd. A leading byte order mark is skipped in all formats,
//! and is not counted as a column.

use crate::dialect::Dialect;
use crate::header::Table;
use flate2::read::MultiGzDecoder;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_model::{Error, ErrorKind, Result};

/// Maximum number of bytes read to detect the format.
const HEAD_BYTES: usize = 1 << 16;

/// Formats of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// `.nt`
    NTriples,
    /// `.nq`
    NQuads,
    /// `.ttl`
    Turtle,
    /// `.trig`
    TriG,
    /// `.rdf`, `.xml`, `.owl`; an `.xml` whose first element is `graphml` is [`Format::GraphMl`].
    RdfXml,
    /// `.jsonld`
    JsonLd,
    /// `.graphml`: a property graph.
    GraphMl,
    /// `.graphson`, `.json`: a property graph in GraphSON 3; the reader also accepts GraphSON 2.
    GraphSon,
    /// GraphSON 2, which has no types for sets and maps; for reading, the same as [`Format::GraphSon`].
    GraphSon2,
    /// `.jsonl`: a property graph in the JSON of APOC for Neo4j; also a `.json` with elements of that form.
    ApocJson,
    /// `.csv`, `.tsv`: vertices or edges of a property graph; the separator is detected in the header.
    Csv,
    /// `.parquet`: vertices or edges of a property graph. Requires the feature `parquet`, which is on by
    /// default.
    Parquet,
}

impl Format {
    const NAMES: [(&'static str, Self); 24] = [
        ("nt", Self::NTriples),
        ("ntriples", Self::NTriples),
        ("n-triples", Self::NTriples),
        ("nq", Self::NQuads),
        ("nquads", Self::NQuads),
        ("n-quads", Self::NQuads),
        ("ttl", Self::Turtle),
        ("turtle", Self::Turtle),
        ("trig", Self::TriG),
        ("rdf", Self::RdfXml),
        ("xml", Self::RdfXml),
        ("owl", Self::RdfXml),
        ("rdfxml", Self::RdfXml),
        ("jsonld", Self::JsonLd),
        ("graphml", Self::GraphMl),
        ("graphson", Self::GraphSon),
        ("json", Self::GraphSon),
        ("graphson3", Self::GraphSon),
        ("graphson2", Self::GraphSon2),
        ("jsonl", Self::ApocJson),
        ("apoc-json", Self::ApocJson),
        ("csv", Self::Csv),
        ("tsv", Self::Csv),
        ("parquet", Self::Parquet),
    ];

    /// The format with this name or extension (without dot), case-insensitive.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, format)| format)
    }

    /// The format of a file name; a trailing `.gz` or `.zst` is ignored.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let (_, extension) = strip_compression(name).0.rsplit_once('.')?;
        Self::from_name(extension)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
}

fn strip_compression(name: &str) -> (&str, Option<Compression>) {
    match name.rsplit_once('.') {
        Some((rest, end)) if end.eq_ignore_ascii_case("gz") => (rest, Some(Compression::Gzip)),
        Some((rest, end)) if end.eq_ignore_ascii_case("zst") => (rest, Some(Compression::Zstd)),
        _ => (name, None),
    }
}

/// One input.
pub struct Source {
    name: String,
    origin: Origin,
    layout: Option<Layout>,
}

/// The columns of a table, known from another file.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// The columns in file order; a header only has other names for them.
    Columns(Box<(Table, Dialect)>),
    /// The header, in this file; the table itself has none.
    Header { file: String, fields: Vec<String>, separator: u8 },
}

pub(crate) enum Origin {
    Path(PathBuf),
    Bytes(Arc<[u8]>),
    Reader(Box<dyn Read + Send>),
}

impl Source {
    /// A file; errors name it by `path` as given. A folder is an export of Kùzu if it has the files
    /// `schema.cypher` and `copy.cypher`, else its files of known formats.
    #[must_use]
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { name: path.display().to_string(), origin: Origin::Path(path), layout: None }
    }

    /// Bytes in memory; errors contain `name`, and its extension determines format and compression.
    #[must_use]
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { name: name.into(), origin: Origin::Bytes(bytes.into()), layout: None }
    }

    /// A stream such as standard input; `name` as for [`Source::bytes`].
    #[must_use]
    pub fn reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> Self {
        Self { name: name.into(), origin: Origin::Reader(Box::new(reader)), layout: None }
    }

    /// The name in error messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder, if this is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Path(path) if path.is_dir() => Some(path),
            _ => None,
        }
    }

    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    pub(crate) fn set_layout(&mut self, layout: Layout) {
        self.layout = Some(layout);
    }

    pub(crate) fn with_layout(mut self, layout: Layout) -> Self {
        self.set_layout(layout);
        self
    }

    /// The origin of the bytes.
    #[cfg(feature = "parquet")]
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Size in bytes as stored, if known.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        match &self.origin {
            Origin::Path(path) => {
                path.metadata().ok().filter(std::fs::Metadata::is_file).map(|data| data.len())
            }
            Origin::Bytes(bytes) => u64::try_from(bytes.len()).ok(),
            Origin::Reader(_) => None,
        }
    }

    /// The last part of the name without directories, compression and extension.
    pub(crate) fn stem(&self) -> &str {
        let name = self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name);
        let name = strip_compression(name).0;
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// A second source of the same input; `None` for a stream.
    pub(crate) fn reopen(&self) -> Option<Self> {
        let origin = match &self.origin {
            Origin::Path(path) => Origin::Path(path.clone()),
            Origin::Bytes(bytes) => Origin::Bytes(Arc::clone(bytes)),
            Origin::Reader(_) => return None,
        };
        Some(Self { name: self.name.clone(), origin, layout: self.layout.clone() })
    }

    /// Permits repeated calls of [`Source::open`]: reads a stream into memory.
    pub(crate) fn buffer_stream(&mut self) -> Result<()> {
        if let Origin::Reader(reader) = &mut self.origin {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map_err(|error| read_error(&self.name, &error))?;
            self.origin = Origin::Bytes(bytes.into());
        }
        Ok(())
    }

    /// The start of the input, decompressed: at most [`HEAD_BYTES`] before decompression.
    pub(crate) fn head(&mut self) -> Result<Vec<u8>> {
        let mut head = vec![0; HEAD_BYTES];
        let length = match &mut self.origin {
            Origin::Path(path) => {
                let file =
                    File::open(&*path).map_err(|error| Error::io(format!("open {}", self.name), &error))?;
                read_full(&mut io::BufReader::new(file), &mut head)
            }
            Origin::Bytes(bytes) => read_full(&mut &bytes[..], &mut head),
            Origin::Reader(reader) => read_full(reader, &mut head),
        };
        head.truncate(length.map_err(|error| read_error(&self.name, &error))?);
        if let Origin::Reader(reader) = &mut self.origin {
            let rest = std::mem::replace(reader, Box::new(io::empty()));
            *reader = Box::new(io::Cursor::new(head.clone()).chain(rest));
        }
        let mut text = Vec::new();
        if let Ok(stream) = Self::bytes(self.name.clone(), head).open(&Arc::default()) {
            // A truncated stream is expected here; the decompressed part is used.
            let _ = stream.take(HEAD_BYTES as u64).read_to_end(&mut text);
        }
        Ok(text)
    }

    /// The decompressed bytes without a byte order mark; `count` grows by the bytes read from the input
    /// itself. A stream can be opened only once.
    pub(crate) fn open(&mut self, count: &Arc<AtomicU64>) -> Result<Box<dyn Read + Send>> {
        let input: Box<dyn Read + Send> = match &mut self.origin {
            Origin::Path(path) => {
                let file =
                    File::open(&*path).map_err(|error| Error::io(format!("open {}", self.name), &error))?;
                Box::new(file)
            }
            Origin::Bytes(bytes) => Box::new(io::Cursor::new(Arc::clone(bytes))),
            Origin::Reader(reader) => std::mem::replace(reader, Box::new(io::empty())),
        };
        let mut input = CountingReader { input, count: Arc::clone(count) };
        let mut head = [0; 4];
        let length = read_full(&mut input, &mut head).map_err(|error| read_error(&self.name, &error))?;
        let compression = strip_compression(&self.name).1.or(match head {
            [0x1F, 0x8B, ..] => Some(Compression::Gzip),
            [0x28, 0xB5, 0x2F, 0xFD] => Some(Compression::Zstd),
            _ => None,
        });
        if compression.is_some() && length == 0 {
            return Err(Error::new(
                ErrorKind::Input,
                format!("could not read {}: the file is empty", self.name),
            )
            .with_hint("a compressed file has a header even if it holds nothing; fetch the file again"));
        }
        let input = io::Cursor::new(head).take(u64::try_from(length).unwrap_or(0)).chain(input);
        Ok(match compression {
            None => Box::new(ByteOrderMarkSkipper::new(input)),
            Some(Compression::Gzip) => Box::new(ByteOrderMarkSkipper::new(MultiGzDecoder::new(
                io::BufReader::with_capacity(1 << 16, input),
            ))),
            Some(Compression::Zstd) => {
                let decoder = zstd::stream::read::Decoder::new(input)
                    .and_then(|mut decoder| decoder.window_log_max(31).map(|()| decoder));
                Box::new(ByteOrderMarkSkipper::new(decoder.map_err(|error| read_error(&self.name, &error))?))
            }
        })
    }
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Self {
        Self::path(path)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The error of a failed read: an input error for damaged or truncated compressed data, else an I/O error.
pub(crate) fn read_error(name: &str, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::new(ErrorKind::Input, format!("could not read {name}: the compressed data ends too early"))
                .with_hint("the file is truncated; fetch or compress it again")
        }
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            Error::new(ErrorKind::Input, format!("could not read {name}: {error}"))
                .with_hint("the file is damaged or has a wrong extension; fetch or compress it again")
        }
        _ => Error::io(format!("read {name}"), error),
    }
}

/// Reads until `buffer` is full or the input ends; returns the number of bytes.
pub(crate) fn read_full(input: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

struct CountingReader {
    input: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        // Relaxed: a sum for progress, which synchronizes no other memory.
        self.count.fetch_add(u64::try_from(read).unwrap_or(0), Ordering::Relaxed);
        Ok(read)
    }
}

/// The UTF-8 byte order mark.
const BYTE_ORDER_MARK: [u8; 3] = *b"\xEF\xBB\xBF";

/// A reader that skips a leading byte order mark.
struct ByteOrderMarkSkipper<R> {
    /// The first bytes after they are read, unless they are a mark.
    first: io::Cursor<Vec<u8>>,
    started: bool,
    input: R,
}

impl<R: Read> ByteOrderMarkSkipper<R> {
    fn new(input: R) -> Self {
        Self { first: io::Cursor::default(), started: false, input }
    }
}

impl<R: Read> Read for ByteOrderMarkSkipper<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.started {
            let mut first = [0; BYTE_ORDER_MARK.len()];
            let length = read_full(&mut self.input, &mut first)?;
            self.started = true;
            if first != BYTE_ORDER_MARK {
                self.first = io::Cursor::new(first[..length].to_vec());
            }
        }
        match self.first.read(buffer)? {
            0 => self.input.read(buffer),
            length => Ok(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_file_extension() {
        for (name, format) in [
            ("a.nt", Some(Format::NTriples)),
            ("dir.x/a.NQ.gz", Some(Format::NQuads)),
            ("a.ttl.zst", Some(Format::Turtle)),
            ("a.owl", Some(Format::RdfXml)),
            ("a.json.zst", Some(Format::GraphSon)),
            ("a.gz", None),
            ("nt", None),
        ] {
            assert_eq!(Format::from_file_name(name), format, "{name}");
        }
        assert_eq!(Source::path("/x/person_0_0.csv.gz").stem(), "person_0_0");
    }

    #[test]
    fn truncated_and_damaged_files_are_errors() {
        let text = "<http://a/b> <http://a/c> \"d\" .\n".repeat(1000);
        let zst = zstd::encode_all(text.as_bytes(), 3).unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        io::Write::write_all(&mut gz, text.as_bytes()).unwrap();
        let gz = gz.finish().unwrap();
        for (name, whole) in [("a.nt.zst", &zst), ("a.nt.gz", &gz), ("a.nt", &zst), ("a.nt", &gz)] {
            let read = |bytes: &[u8]| {
                let mut text = String::new();
                let mut input = Source::bytes(name, bytes).open(&Arc::default())?;
                input.read_to_string(&mut text).map_err(|error| read_error(name, &error))?;
                Ok::<_, Error>(text)
            };
            assert_eq!(read(whole).unwrap(), text);
            let lengths = if name == "a.nt" { 8..whole.len() } else { 0..whole.len() };
            for length in lengths {
                let error = read(&whole[..length]).expect_err("cut off");
                assert_eq!(error.kind(), ErrorKind::Input, "{error}");
            }
            if whole[0] == 0x1F {
                let mut damaged = whole.clone();
                damaged[whole.len() / 2] ^= 0x55;
                assert_eq!(read(&damaged).expect_err("damaged").kind(), ErrorKind::Input);
            }
        }
    }
}
