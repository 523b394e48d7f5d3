//! Reading a log: its records in order, and where it ends.
//!
//! # Shape
//! Files are chained by LSN: a file counts up to where the next one starts (what lies behind that was cut), and
//! must reach it. Reading starts in the last file that starts at or before `from`; older files are not looked at.
//! # A torn tail, or damage?
//! Let `b` be the first place without a valid frame. Whoever wrote the log wrote batch after batch, each beginning
//! with a mark that says how far the log was synced at that moment (`frame.rs`).
//!
//! * In a file that is not the last one, `b` is **damage**: a file is synced before the next one gets its name.
//! * If a valid mark behind `b` says that the log was synced beyond `b`, it is **damage**: these bytes have been
//!   acknowledged, and are gone.
//! * Else nothing says that the bytes at `b` ever were synced: a **torn tail**. Valid frames behind `b` do not
//!   contradict, for sectors of an unsynced write reach the medium in any order.
//!
//! So a loss of power is never taken for damage. Damage is taken for a torn tail only in the last synced batch
//! before a crash, where no bytes on the medium could tell the difference; a closed log ends with a mark,
//! and there all damage is told (but in that mark, where nothing is lost).
//! # Cost
//! One pass over mapped files, a hash of each record; on a bad place one more pass over the rest of that file.

use crate::files::{self, HEADER_BYTES, HeaderError};
use crate::frame::{self, Frame};
use crate::{LogId, Lsn, ReadOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use vervet_env::Environment;
use vervet_model::{Error, ErrorKind, Result};

/// How often a reader beside a writer looks again when a file has gone or does not verify.
const ATTEMPTS_MAX: u32 = 5;

/// What is called with each record: LSN, kind, payload. An error ends the reading.
pub type Visit<'a> = &'a mut dyn FnMut(Lsn, u8, &[u8]) -> Result<()>;

/// What [`read`] found.
#[derive(Debug)]
pub struct Found {
    /// How many records were visited.
    pub records: u64,
    /// How many bytes of payload they have.
    pub bytes: u64,
    /// Where the log ends: behind the last record (and the mark of a clean close, if there is one).
    pub end: Lsn,
    /// The id of the log; `None` if there is no log yet.
    pub id: Option<LogId>,
    /// What follows the end and does not count.
    pub cut: Option<Cut>,
    pub(crate) plan: Plan,
}

/// Bytes behind the end of a log that do not count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The file in which the log ends.
    pub file: PathBuf,
    /// Where in that file, in bytes.
    pub offset: u64,
    /// How many bytes follow, those of later files included.
    pub bytes: u64,
    /// How many valid records are among these bytes, if they follow damage; of a torn tail nobody counts them.
    pub records: u64,
    /// `None`: a torn tail, of which nothing was acknowledged as synced. Else what is damaged.
    pub damage: Option<String>,
}

/// How the log goes on; LSNs.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The files that count, ascending.
    pub(crate) files: Vec<u64>,
    /// Files behind the cut.
    pub(crate) remove: Vec<u64>,
    /// Everything before this is known to have been synced, or is no longer needed.
    pub(crate) proven: u64,
    pub(crate) beside_writer: bool,
}

/// Visits the records with LSNs greater than `from`, in order: LSN, kind, payload. Changes nothing.
///
/// `from` is 0 or the LSN of a record. A directory without a log, read from 0, is a log without records,
/// unless [`ReadOptions::id`] says that there is one.
///
/// # Errors
/// Those of `visit`. [`ErrorKind::Corrupt`]: a damaged or missing part with acknowledged records behind it (see
/// [`ReadOptions::cut_at_damage`]). [`ErrorKind::Unavailable`], beside a writer: files were removed
/// because a newer checkpoint holds their records; read that first. [`ErrorKind::Unsupported`]: the log of a
/// later version. [`ErrorKind::Io`].
pub fn read(
    environment: &Environment,
    directory: &Path,
    from: Lsn,
    options: &ReadOptions,
    visit: Visit<'_>,
) -> Result<Found> {
    let mut reader = Reader {
        environment,
        directory,
        options,
        visit,
        id: options.id,
        at: from.0,
        last: None,
        proven: from.0,
        records: 0,
        bytes: 0,
    };
    for attempt in 1.. {
        let files = files::list(environment, directory)?;
        match reader.chain(&files)? {
            End::Clean => return Ok(reader.found(files, None)),
            End::Torn(place) => return Ok(reader.found(files, Some((place, None)))),
            End::Damaged(..) if options.beside_writer && attempt < ATTEMPTS_MAX => {}
            End::Damaged(place, what) if options.cut_at_damage && !options.beside_writer => {
                return Ok(reader.found(files, Some((place, Some(what)))));
            }
            End::Damaged(place, what) => return Err(reader.damage(&place, &what, files.first())),
        }
    }
    Err(Error::internal("reading the log ended without an end"))
}

/// The id of the log in `directory`, as its oldest file with a sound header says; `None`: there is none.
///
/// # Errors
/// [`ErrorKind::Io`].
pub fn find_id(environment: &Environment, directory: &Path) -> Result<Option<LogId>> {
    for first in files::list(environment, directory)? {
        let path = files::path_of(directory, first);
        match environment.files.open(&path) {
            Ok(file) => {
                let mut header = Vec::with_capacity(HEADER_BYTES);
                // What cannot be read is told when the log is.
                let read = file.take(HEADER_BYTES as u64).read_to_end(&mut header);
                if read.is_ok()
                    && let Ok(id) = files::read_header(&header, first)
                {
                    return Ok(Some(id));
                }
            }
            // Removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(format_args!("read {}", path.display()), &error)),
        }
    }
    Ok(None)
}

/// A place in a file, in bytes from its start, and how many bytes it has behind it.
struct Place {
    file: PathBuf,
    offset: u64,
    rest: u64,
}

enum End {
    Clean,
    Torn(Place),
    Damaged(Place, String),
}

struct Reader<'a> {
    environment: &'a Environment,
    directory: &'a Path,
    options: &'a ReadOptions,
    visit: Visit<'a>,
    id: Option<LogId>,
    /// Where the next frame starts.
    at: u64,
    /// The last file with a valid header, and the LSN of its end, whatever lies there.
    last: Option<u64>,
    /// See [`Plan::proven`].
    proven: u64,
    records: u64,
    bytes: u64,
}

impl Reader<'_> {
    /// Reads from `self.at` to the end of the log.
    fn chain(&mut self, files: &[u64]) -> Result<End> {
        let started = files.partition_point(|first| *first <= self.at);
        let Some(index) = started.checked_sub(1) else {
            // A log whose id is known has files, if nothing but a header.
            if files.is_empty() && self.at == 0 && self.options.id.is_none() {
                return Ok(End::Clean);
            }
            let place = Place { file: files::path_of(self.directory, self.at), offset: 0, rest: 0 };
            return Ok(End::Damaged(place, format!("there is no file with LSN {}", Lsn(self.at))));
        };
        for (first, next) in files[index..].iter().zip(files[index + 1..].iter().map(Some).chain([None])) {
            match self.file(*first, next.copied())? {
                End::Clean => {}
                end => return Ok(end),
            }
        }
        Ok(End::Clean)
    }

    /// Reads the file that starts at `first`, up to `next` or, if it is the last one, to its end.
    fn file(&mut self, first: u64, next: Option<u64>) -> Result<End> {
        let path = files::path_of(self.directory, first);
        let file = match self.environment.files.map(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let place = Place { file: path, offset: 0, rest: 0 };
                return Ok(End::Damaged(place, "it is missing".to_owned()));
            }
            Err(error) => return Err(Error::io(format_args!("read {}", path.display()), &error)),
        };
        let place = |offset: usize| Place {
            file: path.clone(),
            offset: offset as u64,
            rest: file.len().saturating_sub(offset) as u64,
        };
        let id = match files::read_header(&file, first) {
            Ok(id) => id,
            Err(HeaderError::Damaged(what)) => return Ok(End::Damaged(place(0), what.to_owned())),
            Err(HeaderError::Version(version)) => {
                let what = format!("{} has version {version} of the log format", path.display());
                return Err(Error::new(ErrorKind::Unsupported, what)
                    .with_hint("open this database with the version of Vervet that wrote it"));
            }
        };
        if self.id.is_some_and(|expected| expected != id) {
            return Ok(End::Damaged(place(0), format!("it belongs to another log, {id}")));
        }
        self.id = Some(id);
        self.proven = self.proven.max(first);
        self.last = Some(first);

        let mut content = &file[HEADER_BYTES..];
        let length = next.map_or(content.len() as u64, |next| next - first);
        content = &content[..content.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
        let mut at = usize::try_from(self.at - first).unwrap_or(usize::MAX);
        while let Some(rest) = content.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(frame) = frame::decode(id, self.at, rest) else { break };
            at += frame.bytes();
            let start = self.at;
            self.at += frame.bytes() as u64;
            match frame {
                Frame::Mark { synced } if synced <= start => self.proven = self.proven.max(synced),
                Frame::Mark { .. } => {}
                Frame::Record { kind, payload } => {
                    self.records += 1;
                    self.bytes += payload.len() as u64;
                    (self.visit)(Lsn(self.at), kind, payload)?;
                }
            }
        }
        let offset = HEADER_BYTES.saturating_add(at);
        let rest = content.get(at..).unwrap_or_default();
        if let Some(next) = next {
            if self.at == next {
                return Ok(End::Clean);
            }
            let what = if rest.is_empty() {
                format!("it ends at LSN {}, the next file starts at {}", Lsn(self.at), Lsn(next))
            } else {
                "no valid record, but another file of the log follows".to_owned()
            };
            return Ok(End::Damaged(place(offset), what));
        }
        if rest.is_empty() {
            return Ok(End::Clean);
        }
        let synced = frame::synced_by_marks(id, self.at, rest);
        if synced > self.at {
            let what = format!("no valid record, but the log had been synced up to LSN {}", Lsn(synced));
            return Ok(End::Damaged(place(offset), what));
        }
        Ok(End::Torn(place(offset)))
    }

    fn found(&self, mut files: Vec<u64>, cut: Option<(Place, Option<String>)>) -> Found {
        let remove = files.split_off(files.partition_point(|first| Some(*first) <= self.last));
        let plan = Plan { proven: self.proven, beside_writer: self.options.beside_writer, files, remove };
        let cut = cut.map(|(place, damage)| {
            let length = |first: &u64| {
                let path = files::path_of(self.directory, *first);
                if path == place.file { 0 } else { self.environment.files.length(&path).unwrap_or(0) }
            };
            let later: u64 = plan.remove.iter().map(length).sum();
            let records = if damage.is_some() { self.records_behind(&place, &plan.remove) } else { 0 };
            Cut { file: place.file.clone(), offset: place.offset, bytes: place.rest + later, records, damage }
        });
        Found { records: self.records, bytes: self.bytes, end: Lsn(self.at), id: self.id, cut, plan }
    }

    /// How many valid records follow a place, in its file and in these.
    fn records_behind(&self, place: &Place, later: &[u64]) -> u64 {
        let Some(id) = self.id else { return 0 };
        let count = |path: &Path, offset: usize, lsn: u64| {
            let file = self.environment.files.map(path).ok();
            file.as_deref()
                .and_then(|file| file.get(offset..))
                .map_or(0, |rest| frame::records_in(id, lsn, rest))
        };
        let offset = usize::try_from(place.offset).unwrap_or(usize::MAX).max(HEADER_BYTES);
        let others = later.iter().map(|first| (files::path_of(self.directory, *first), *first));
        let others = others.filter(|(path, _)| *path != place.file);
        count(&place.file, offset, self.at)
            + others.map(|(path, first)| count(&path, HEADER_BYTES, first)).sum::<u64>()
    }

    fn damage(&self, place: &Place, what: &str, oldest: Option<&u64>) -> Error {
        if self.options.beside_writer && oldest.is_none_or(|oldest| *oldest > self.at) {
            return Error::new(
                ErrorKind::Unavailable,
                format!("the log no longer has the records behind LSN {}", Lsn(self.at)),
            )
            .with_hint("a newer checkpoint has them: open the database again");
        }
        let (file, offset) = (place.file.display(), place.offset);
        Error::corrupt(file, format_args!("{what} (byte {offset}, LSN {})", Lsn(self.at))).with_hint(format!(
            "restore a backup; or cut the log there, which loses every commit behind LSN {}: \
             `vervet recover {}` says how many",
            Lsn(self.at),
            self.directory.display()
        ))
    }
}
