//! Reading a log: visits its records in order and finds its end.
//!
//! # Shape
//! Files are chained by LSN: the content of a file counts up to the start of the next file (later bytes were
//! cut), and must reach it. Reading starts in the last file that starts at or before `from`; older files are
//! not read.
//! # A torn tail, or damage?
//! Let `b` be the first position without a valid frame. A writer writes batch after batch; each batch begins
//! with a mark that states how far the log was synced at that moment (`frame.rs`).
//!
//! * In a file that is not the last one, `b` is **damage**: a file is synced before the next one gets its
//!   name.
//! * If a valid mark after `b` states that the log was synced beyond `b`, it is **damage**: these bytes were
//!   acknowledged and are lost.
//! * Otherwise nothing proves that the bytes at `b` were ever synced: a **torn tail**. Valid frames after `b`
//!   are no contradiction, because sectors of an unsynced write reach the medium in any order.
//!
//! A loss of power is therefore never reported as damage. Damage is taken for a torn tail only in the last
//! synced batch before a crash, where no bytes on the medium can tell the difference. A closed log ends with
//! a mark, so there all damage is detected (except in that mark, where nothing is lost).
//!
//! Unreadable bytes are an error with their position; a cut at damage may cut there.
//! # Beside a writer
//! The files of a concurrent writer may hold bytes that are not synced yet and that a loss of power would
//! undo. A reader that has read such records syncs the file, and the names in the directory, before it
//! returns: no reader relies on, and no backup copies, records that the log itself could lose. (The
//! exception: after a failed sync of the writer, the reader's sync may succeed without having saved
//! anything.)
//! # Cost
//! One pass over the files (`stream.rs`) and a hash of each record; after an invalid position, one more pass
//! over the rest of that file.

use crate::files::{self, HEADER_BYTES, HeaderError};
use crate::frame::Frame;
use crate::stream::Stream;
use crate::{LogId, Lsn, RECORD_BYTES_MAX, ReadOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use vervet_env::Environment;
use vervet_model::{Error, ErrorKind, Result};

/// Maximum attempts of a reader beside a writer when a file has vanished or does not verify.
const ATTEMPTS_MAX: u32 = 5;

/// Visitor called with each record: LSN, kind, payload. An error ends the reading.
pub type Visit<'a> = &'a mut dyn FnMut(Lsn, u8, &[u8]) -> Result<()>;

/// Result of [`read`].
#[derive(Debug)]
pub struct RecoveryReport {
    /// Number of records visited.
    pub records: u64,
    /// Total payload of these records, in bytes.
    pub bytes: u64,
    /// End of the log: after the last record (and the mark of a clean close, if there is one).
    pub end: Lsn,
    /// The id of the log; `None` if there is no log yet.
    pub id: Option<LogId>,
    /// Bytes after the end that do not count.
    pub truncation: Option<Truncation>,
    pub(crate) plan: RecoveryPlan,
}

/// Bytes after the end of a log that do not count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// File in which the log ends.
    pub file: PathBuf,
    /// Position of the end in that file, in bytes.
    pub offset: u64,
    /// Number of bytes after that position, including later files.
    pub bytes: u64,
    /// Number of valid records among these bytes if they follow damage; not counted for a torn tail.
    pub records: u64,
    /// The damage; `None` for a torn tail, no byte of which was acknowledged as synced.
    pub damage: Option<String>,
}

/// How the log continues; positions are LSNs.
#[derive(Debug, Default)]
pub(crate) struct RecoveryPlan {
    /// Files to keep, ascending.
    pub(crate) files: Vec<u64>,
    /// Files after the cut.
    pub(crate) remove: Vec<u64>,
    /// LSN at which reading began; earlier records are not needed.
    pub(crate) from: u64,
    /// Everything before this is known to have been synced, or is no longer needed.
    pub(crate) proven: u64,
    pub(crate) beside_writer: bool,
}

/// Visits the records with LSNs greater than `from`, in order. Changes nothing.
///
/// `from` is 0 or the LSN of a record. A directory without a log, read from 0, is a log without records,
/// unless [`ReadOptions::id`] says that there is one.
///
/// # Errors
/// Those of `visit`. [`ErrorKind::Corrupt`]: a damaged or missing part with acknowledged records after it
/// (see [`ReadOptions::truncate_at_damage`]). [`ErrorKind::Unavailable`], beside a writer: files were removed
/// because a newer checkpoint holds their records; read that checkpoint first. [`ErrorKind::Unsupported`]:
/// the log of a later version. [`ErrorKind::Io`]: includes an unreadable position in a file, which may be cut
/// off as damage may.
pub fn read(
    environment: &Environment,
    directory: &Path,
    from: Lsn,
    options: &ReadOptions,
    visit: Visit<'_>,
) -> Result<RecoveryReport> {
    let mut reader = Reader {
        environment,
        directory,
        options,
        visit,
        id: options.id,
        from: from.0,
        at: from.0,
        last: None,
        proven: from.0,
        records: 0,
        bytes: 0,
    };
    for attempt in 1.. {
        let files = files::list(environment, directory)?;
        match reader.chain(&files)? {
            LogEnd::Clean => {
                reader.make_durable()?;
                return Ok(reader.found(files, None));
            }
            LogEnd::Torn(position) => {
                reader.make_durable()?;
                return Ok(reader.found(files, Some((position, None))));
            }
            LogEnd::Unreadable(..) if options.beside_writer && attempt < ATTEMPTS_MAX => {}
            LogEnd::Unreadable(position, error) if options.truncate_at_damage && !options.beside_writer => {
                return Ok(reader.found(files, Some((position, Some(format!("it cannot be read: {error}"))))));
            }
            LogEnd::Unreadable(position, error) => return Err(reader.unreadable(&position, &error)),
            LogEnd::Damaged(..) if options.beside_writer && attempt < ATTEMPTS_MAX => {}
            LogEnd::Damaged(position, what) if options.truncate_at_damage && !options.beside_writer => {
                return Ok(reader.found(files, Some((position, Some(what)))));
            }
            LogEnd::Damaged(position, what) => return Err(reader.damage(&position, &what, files.first())),
        }
    }
    Err(Error::internal("reading the log stopped without a result"))
}

/// The id of the log in `directory`, from its oldest file with a valid header; `None` without one.
///
/// # Errors
/// [`ErrorKind::Io`].
pub fn find_id(environment: &Environment, directory: &Path) -> Result<Option<LogId>> {
    for first in files::list(environment, directory)? {
        let path = files::path_of(directory, first);
        match environment.files.open(&path) {
            Ok(file) => {
                let mut header = Vec::with_capacity(HEADER_BYTES);
                // Reading the log reports unreadable bytes.
                let read = file.take(HEADER_BYTES as u64).read_to_end(&mut header);
                if read.is_ok()
                    && let Ok(id) = files::read_header(&header, first)
                {
                    return Ok(Some(id));
                }
            }
            // Removed after it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(format_args!("read {}", path.display()), &error)),
        }
    }
    Ok(None)
}

/// LSN at which the oldest file of the log in `directory` starts: where reading begins if nothing else says
/// so; 0 without a file.
///
/// # Errors
/// [`ErrorKind::Io`].
pub fn first_lsn(environment: &Environment, directory: &Path) -> Result<Lsn> {
    Ok(Lsn(files::list(environment, directory)?.first().copied().unwrap_or(0)))
}

/// A position in a file, in bytes from its start, and the number of bytes after it.
struct FilePosition {
    file: PathBuf,
    offset: u64,
    rest: u64,
}

enum LogEnd {
    Clean,
    Torn(FilePosition),
    Damaged(FilePosition, String),
    /// The operating system could not read this position.
    Unreadable(FilePosition, io::Error),
}

struct Reader<'a> {
    environment: &'a Environment,
    directory: &'a Path,
    options: &'a ReadOptions,
    visit: Visit<'a>,
    id: Option<LogId>,
    /// LSN at which reading began.
    from: u64,
    /// LSN of the next frame.
    at: u64,
    /// The last file with a valid header, and the LSN of its end, valid or not.
    last: Option<u64>,
    /// See [`RecoveryPlan::proven`].
    proven: u64,
    records: u64,
    bytes: u64,
}

impl Reader<'_> {
    /// Reads from `self.at` to the end of the log.
    fn chain(&mut self, files: &[u64]) -> Result<LogEnd> {
        let started = files.partition_point(|first| *first <= self.at);
        let Some(index) = started.checked_sub(1) else {
            // A log with a known id has at least one file, even if it holds only a header.
            if files.is_empty() && self.at == 0 && self.options.id.is_none() {
                return Ok(LogEnd::Clean);
            }
            let position = FilePosition { file: files::path_of(self.directory, self.at), offset: 0, rest: 0 };
            return Ok(LogEnd::Damaged(position, format!("there is no file with LSN {}", Lsn(self.at))));
        };
        for (first, next) in files[index..].iter().zip(files[index + 1..].iter().map(Some).chain([None])) {
            match self.file(*first, next.copied())? {
                LogEnd::Clean => {}
                end => return Ok(end),
            }
        }
        Ok(LogEnd::Clean)
    }

    /// Reads the file that starts at `first`, up to `next` or, if it is the last one, to its end.
    fn file(&mut self, first: u64, next: Option<u64>) -> Result<LogEnd> {
        let path = files::path_of(self.directory, first);
        let opened = self.environment.files.length(&path).and_then(|length| {
            let mut head = Stream::open(self.environment, &path, 0, HEADER_BYTES as u64)?;
            Ok((length, head.peek(HEADER_BYTES)?.to_vec()))
        });
        let (length, head) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let position = FilePosition { file: path, offset: 0, rest: 0 };
                return Ok(LogEnd::Damaged(position, "it is missing".to_owned()));
            }
            Err(error) => {
                return Ok(LogEnd::Unreadable(FilePosition { file: path, offset: 0, rest: 0 }, error));
            }
        };
        let position =
            |offset: u64| FilePosition { file: path.clone(), offset, rest: length.saturating_sub(offset) };
        let id = match files::read_header(&head, first) {
            Ok(id) => id,
            Err(HeaderError::Damaged(what)) => return Ok(LogEnd::Damaged(position(0), what.to_owned())),
            Err(HeaderError::Version(version)) => {
                let what = format!("{} has version {version} of the log format", path.display());
                return Err(Error::new(ErrorKind::Unsupported, what)
                    .with_hint("open this database with the version of Vervet that wrote it"));
            }
        };
        if self.id.is_some_and(|expected| expected != id) {
            return Ok(LogEnd::Damaged(position(0), format!("it belongs to another log, {id}")));
        }
        self.id = Some(id);
        self.proven = self.proven.max(first);
        self.last = Some(first);

        assert!(
            self.at >= first && next.is_none_or(|next| self.at < next),
            "the file was chosen for this LSN"
        );
        let offset = |at: u64| HEADER_BYTES as u64 + (at - first);
        let limit = next.map_or(u64::MAX, |next| next - self.at);
        let mut stream = match Stream::open(self.environment, &path, offset(self.at), limit) {
            Ok(stream) => stream,
            Err(error) => return Ok(LogEnd::Unreadable(position(offset(self.at)), error)),
        };
        loop {
            let frame = match stream.frame(id, self.at, RECORD_BYTES_MAX) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => return Ok(LogEnd::Unreadable(position(offset(self.at)), error)),
            };
            let start = self.at;
            let bytes = frame.bytes();
            self.at += bytes as u64;
            match frame {
                Frame::Mark { synced } if synced <= start => self.proven = self.proven.max(synced),
                Frame::Mark { .. } => {}
                Frame::Record { kind, payload } => {
                    self.records += 1;
                    self.bytes += payload.len() as u64;
                    (self.visit)(Lsn(self.at), kind, payload)?;
                }
            }
            stream.consume(bytes);
        }
        let has_rest = match stream.peek(1) {
            Ok(rest) => !rest.is_empty(),
            Err(error) => return Ok(LogEnd::Unreadable(position(offset(self.at)), error)),
        };
        if let Some(next) = next {
            if self.at == next {
                return Ok(LogEnd::Clean);
            }
            let what = if has_rest {
                "no valid record, but another file of the log follows".to_owned()
            } else {
                format!("it ends at LSN {}, the next file starts at {}", Lsn(self.at), Lsn(next))
            };
            return Ok(LogEnd::Damaged(position(offset(self.at)), what));
        }
        if !has_rest {
            return Ok(LogEnd::Clean);
        }
        match stream.synced_by_marks(id, self.at) {
            Ok(synced) if synced > self.at => {
                let what = format!("no valid record, but the log had been synced up to LSN {}", Lsn(synced));
                Ok(LogEnd::Damaged(position(offset(self.at)), what))
            }
            Ok(_) => Ok(LogEnd::Torn(position(offset(self.at)))),
            Err(error) => Ok(LogEnd::Unreadable(position(offset(self.at)), error)),
        }
    }

    /// Beside a writer: syncs records that were read and are not known to be durable. See the header.
    fn make_durable(&self) -> Result<()> {
        let Some(last) = self.last.filter(|_| self.options.beside_writer && self.proven < self.at) else {
            return Ok(());
        };
        let path = files::path_of(self.directory, last);
        let io = |path: &Path, error| Error::io(format_args!("sync {}", path.display()), &error);
        match self.environment.files.sync_file(&path) {
            // A checkpoint has removed the file, after it had synced its content.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            synced => synced.map_err(|error| io(&path, error))?,
        }
        self.environment.files.sync_dir(self.directory).map_err(|error| io(self.directory, error))
    }

    fn found(
        &self,
        mut files: Vec<u64>,
        truncation: Option<(FilePosition, Option<String>)>,
    ) -> RecoveryReport {
        let remove = files.split_off(files.partition_point(|first| Some(*first) <= self.last));
        assert!(self.proven <= self.at && self.from <= self.at, "what is proven has been read");
        let Self { from, proven, .. } = *self;
        let plan = RecoveryPlan { from, proven, beside_writer: self.options.beside_writer, files, remove };
        let truncation = truncation.map(|(position, damage)| {
            let length = |first: &u64| {
                let path = files::path_of(self.directory, *first);
                if path == position.file { 0 } else { self.environment.files.length(&path).unwrap_or(0) }
            };
            let later: u64 = plan.remove.iter().map(length).sum();
            let records =
                if damage.is_some() { self.count_records_after(&position, &plan.remove) } else { 0 };
            Truncation {
                file: position.file.clone(),
                offset: position.offset,
                bytes: position.rest + later,
                records,
                damage,
            }
        });
        RecoveryReport {
            records: self.records,
            bytes: self.bytes,
            end: Lsn(self.at),
            id: self.id,
            truncation,
            plan,
        }
    }

    /// Number of valid records after a position, in its file and in later files.
    fn count_records_after(&self, position: &FilePosition, later: &[u64]) -> u64 {
        let Some(id) = self.id else { return 0 };
        let count = |path: &Path, offset: u64, lsn: u64| {
            let stream = Stream::open(self.environment, path, offset, u64::MAX);
            stream.map_or(0, |mut stream| stream.count_records(id, lsn))
        };
        let others = later.iter().map(|first| (files::path_of(self.directory, *first), *first));
        let others = others.filter(|(path, _)| *path != position.file);
        count(&position.file, position.offset.max(HEADER_BYTES as u64), self.at)
            + others.map(|(path, first)| count(&path, HEADER_BYTES as u64, first)).sum::<u64>()
    }

    /// The error for an unreadable position.
    fn unreadable(&self, position: &FilePosition, error: &io::Error) -> Error {
        let (file, offset, lsn) = (position.file.display(), position.offset, Lsn(self.at));
        Error::io(format_args!("read {file} after byte {offset} (LSN {lsn})"), error).with_hint(format!(
            "if this persists, copy the directory to a sound disk, or restore a backup; or cut the log there, which loses every \
             commit after LSN {lsn}: `vervet recover {}` counts them",
            self.directory.display()
        ))
    }

    fn damage(&self, position: &FilePosition, what: &str, oldest: Option<&u64>) -> Error {
        if self.options.beside_writer && oldest.is_none_or(|oldest| *oldest > self.at) {
            return Error::new(
                ErrorKind::Unavailable,
                format!("the log no longer has the records after LSN {}", Lsn(self.at)),
            )
            .with_hint("a newer checkpoint contains them: open the database again");
        }
        let (file, offset) = (position.file.display(), position.offset);
        Error::corrupt(file, format_args!("{what} (byte {offset}, LSN {})", Lsn(self.at))).with_hint(format!(
            "restore a backup; or cut the log there, which loses every commit after LSN {}: \
             `vervet recover {}` counts them",
            Lsn(self.at),
            self.directory.display()
        ))
    }
}
