//! Data of other servers, for one that lacks files, or entries which no log has any more.
//!
//! # Shape
//! A request is [`FETCH`], and behind it nothing, [`LIST`], [`PLACES`], or three numbers of 8 bytes: a
//! position, the number of a file and an offset. Files are numbered in the order of
//! [`Generation::file_names`]. The answers:
//!
//! | request | answer |
//! | --- | --- |
//! | nothing | a text: the position of the newest data; a line for each file of the graph: length, name |
//! | [`LIST`] | a text: of all data a line (position, build); behind it their files: number, length, name |
//! | [`PLACES`] | a text: position and build of the newest data here, and of those that it reads; an index |
//! | numbers | the next bytes of that file |
//!
//! # Where this is right
//! All data of one build are one graph, whichever servers have their files, and the catalog, which each has,
//! says what is in them.

use crate::generation::{Generation, Unfinished, data_path};
use crate::peer_part::PeerPart;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use vervet::Environment;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_partition::Remote;
use vervet_peer::Protocol;
use xxhash_rust::xxh3::xxh3_64;

/// Kind of the requests: none of those of partitions, tasks, followers and voters.
pub(crate) const FETCH: u8 = 98;

/// The second byte of a request for what the server has.
const LIST: u8 = 1;
/// The second byte of a request for the positions of its data.
const PLACES: u8 = 2;

/// How often data are looked for that servers replace meanwhile.
const ATTEMPTS_MAX: usize = 5;

/// Most bytes of a file in an answer.
const PIECE_BYTES: u64 = 4 << 20;

fn failed(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |error| Error::io(what, &error)
}

/// Position and build of data: of two builds at one position, which two leaders have made, the one with the
/// greater number counts as the later one.
pub(crate) type DataPlace = (u64, u64);

/// What a server has, and reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Places {
    /// The newest data that it answers for.
    pub(crate) has: DataPlace,
    /// Those that it reads.
    pub(crate) reads: DataPlace,
    /// It reads partitions where they are as of this entry of the log ([`crate::members::Members::index`]).
    pub(crate) index: u64,
}

/// Answers a request, at the server in `directory`. `places`: `None`: all are the newest in its directory.
///
///
/// # Errors
/// Unavailable: it has other data by now. Corrupt: it is no such request.
pub(crate) fn answer(
    environment: &Environment,
    directory: &Path,
    places: Option<Places>,
    (request, protocol): (&[u8], Protocol),
    out: &mut Vec<u8>,
) -> Result<()> {
    match request.get(1..).unwrap_or_default() {
        [] => list_all(&Generation::open(environment, directory)?, environment, out),
        [LIST] => list_present(environment, directory, out),
        [PLACES] => {
            let newest = || -> Result<Places> {
                let newest = Generation::open(environment, directory)?.place();
                Ok(Places { has: newest, reads: newest, index: 0 })
            };
            let Places { has, reads, index } = places.map_or_else(newest, Ok)?;
            out.extend_from_slice(format!("{} {:x} {} {:x}", has.0, has.1, reads.0, reads.1).as_bytes());
            if protocol >= Protocol::LAYOUTS {
                out.extend_from_slice(format!(" {index}").as_bytes());
            }
            Ok(())
        }
        numbers => piece(environment, directory, numbers, out),
    }
}

/// All files of the graph, as servers of protocol 7 ask for them: each has all.
fn list_all(generation: &Generation, environment: &Environment, out: &mut Vec<u8>) -> Result<()> {
    let mut text = generation.checkpoint.position.to_string();
    for name in generation.file_names() {
        let path = generation.path.join(&name);
        let length = environment.files.length(&path).map_err(failed("read", &path))?;
        text.push_str(&format!("\n{length} {name}"));
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn list_present(environment: &Environment, directory: &Path, out: &mut Vec<u8>) -> Result<()> {
    let mut lines = Vec::new();
    for generation in Generation::all(environment, directory)? {
        lines.push(format!("{} {:016x}", generation.checkpoint.position, generation.files.build()));
        for (number, name) in generation.file_names().iter().enumerate() {
            let path = generation.path.join(name);
            if environment.files.exists(&path).map_err(failed("read", &path))? {
                let length = environment.files.length(&path).map_err(failed("read", &path))?;
                lines.push(format!("{number} {length} {name}"));
            }
        }
    }
    out.extend_from_slice(lines.join("\n").as_bytes());
    Ok(())
}

fn piece(environment: &Environment, directory: &Path, numbers: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let wrong = |damaged: Damaged| Error::corrupt("a request of another server", damaged.0);
    let mut reader = Reader::new(numbers);
    let (position, file) = (reader.u64().map_err(wrong)?, reader.u64().map_err(wrong)?);
    let offset = reader.u64().map_err(wrong)?;
    let replaced = || Error::new(ErrorKind::Unavailable, "this server does not have these data any more");
    let path = data_path(environment, directory, position);
    if !environment.files.exists(&path).map_err(failed("read", &path))? {
        return Err(replaced());
    }
    let names = Generation::open_at(environment, path.clone())?.file_names();
    let name = usize::try_from(file).ok().and_then(|file| names.get(file));
    let path = path.join(name.ok_or_else(replaced)?);
    if !environment.files.exists(&path).map_err(failed("read", &path))? {
        return Err(replaced());
    }
    let length = environment.files.length(&path).map_err(failed("read", &path))?;
    let mut opened = environment.files.open_at(&path, offset.min(length)).map_err(failed("read", &path))?;
    opened.by_ref().take(PIECE_BYTES).read_to_end(out).map_err(failed("read", &path))?;
    Ok(())
}

/// The files of some data that a server has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) place: DataPlace,
    /// By number: length and name.
    files: BTreeMap<u64, (u64, String)>,
}

impl Listed {
    /// Those of `count` partitions whose files are there.
    pub(crate) fn partitions(&self, count: usize) -> BTreeSet<usize> {
        (0..count).filter(|partition| self.files.contains_key(&(*partition as u64 + 1))).collect()
    }
}

/// Asks a server which files it has.
///
/// # Errors
/// Unavailable: it does not answer, or cannot tell.
pub(crate) fn list(source: &PeerPart) -> Result<Vec<Listed>> {
    let pending = source.peer().send_with(&|protocol| {
        let request: &[u8] = if protocol < Protocol::BUILDS { &[FETCH] } else { &[FETCH, LIST] };
        Ok(Cow::Borrowed(request))
    })?;
    let is_earlier = pending.protocol() < Protocol::BUILDS;
    let bytes = pending.receive()?;
    let text = std::str::from_utf8(&bytes).ok();
    let listed = match is_earlier {
        // A server of protocol 7 has the whole graph, in a build of its own.
        true => text.and_then(|text| Some(vec![read_all(text, xxh3_64(source.name().as_bytes()))?])),
        false => text.and_then(read_listed),
    };
    let damaged = || {
        let what = format_args!("an answer of server {}", source.name());
        Error::corrupt(what, "it does not say which files the server has")
    };
    listed.ok_or_else(damaged)
}

fn read_listed(text: &str) -> Option<Vec<Listed>> {
    let mut all: Vec<Listed> = Vec::new();
    for line in text.lines() {
        let (number, rest) = line.split_once(' ')?;
        if rest.contains(' ') {
            all.last_mut()?.files.insert(number.parse().ok()?, read_file(rest)?);
        } else {
            let build = u64::from_str_radix(rest, 16).ok()?;
            all.push(Listed { place: (number.parse().ok()?, build), files: BTreeMap::new() });
        }
    }
    Some(all).filter(|all| !all.is_empty())
}

/// What a server of protocol 7 says: all files, in their order.
fn read_all(text: &str, build: u64) -> Option<Listed> {
    let mut lines = text.lines();
    let position = lines.next()?.parse().ok()?;
    let files = (0..).zip(lines).map(|(number, line)| Some((number, read_file(line)?)));
    Some(Listed { place: (position, build), files: files.collect::<Option<_>>()? })
}

/// Length and name of a file.
fn read_file(line: &str) -> Option<(u64, String)> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let (length, name) = line.split_once(' ')?;
    let is_name = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain);
    is_name.then_some((length.parse().ok()?, name.to_owned()))
}

/// What a server has, and reads.
///
/// # Errors
/// Unavailable: it does not answer.
pub(crate) fn places(source: &PeerPart) -> Result<Places> {
    let bytes = source.send(&[FETCH, PLACES])?.receive()?;
    let places = std::str::from_utf8(&bytes).ok().and_then(read_places);
    let what = || format!("an answer of server {}", source.name());
    places.ok_or_else(|| Error::corrupt(what(), "it does not say which data the server has"))
}

fn read_places(text: &str) -> Option<Places> {
    let mut words = text.split(' ');
    let mut place = || -> Option<DataPlace> {
        Some((words.next()?.parse().ok()?, u64::from_str_radix(words.next()?, 16).ok()?))
    };
    let (has, reads) = (place()?, place()?);
    // For a server of protocol 8 partitions do not move.
    let index = words.next().map_or(Some(u64::MAX), |index| index.parse().ok())?;
    words.next().is_none().then_some(Places { has, reads, index })
}

/// What a server fetches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The build of the first data.
    pub(crate) origin: u64,
    /// These data, or later ones.
    pub(crate) least: DataPlace,
    /// Only data of which the servers that answer have all partitions.
    pub(crate) is_whole: bool,
    /// Ascending, of `count` in all.
    pub(crate) partitions: &'a [usize],
    pub(crate) count: usize,
}

impl Wanted<'_> {
    /// The numbers of the files: dictionary, partitions, catalog, checkpoint.
    fn files(&self) -> impl Iterator<Item = u64> {
        let partitions = self.partitions.iter().map(|partition| *partition as u64 + 1);
        let count = self.count as u64;
        [0].into_iter().chain(partitions).chain([count + 1, count + 2])
    }
}

/// Copies data of other servers that have changes up to `wanted.least` at least, as later data of the one in
/// `directory`: those that the others can go on with ([`in_order`]). `report`: gets the name of the server
/// that is asked first and the bytes in all, when it begins.
///
/// # Errors
/// Unavailable: no servers have such data, or none sends them. Corrupt: they are damaged. Io.
pub(crate) fn fetch(
    environment: &Environment,
    directory: &Path,
    wanted: Wanted<'_>,
    sources: &[Arc<PeerPart>],
    report: &dyn Fn(&str, u64),
) -> Result<Generation> {
    let nobody = format!(
        "no server that answers has the graph with the changes up to entry {} of their log",
        wanted.least.0
    );
    let mut failure = Error::new(ErrorKind::Unavailable, nobody);
    for _ in 0..ATTEMPTS_MAX {
        let lists = lists_of(sources, wanted, &mut failure);
        let data = in_order(&lists, wanted);
        let has_some = !data.is_empty();
        for (position, build) in data {
            let with: Vec<(&PeerPart, &Listed)> = lists
                .iter()
                .filter(|(_, listed)| listed.place == (position, build))
                .map(|(source, listed)| (*source, listed))
                .collect();
            match copy(environment, directory, wanted, position, &with, report) {
                copied @ Ok(_) => return copied,
                Err(error) => failure = error,
            }
        }
        // Servers may have replaced the data that they listed.
        if !has_some || failure.kind() != ErrorKind::Unavailable {
            break;
        }
    }
    Err(failure)
}

/// The data of these lists, those first that are to be copied: they are whole, or else all may wait for a
/// partition that no server has any more; a server reads them, so the others will not give them up; they are
/// the latest.
fn in_order(lists: &[(&PeerPart, Listed)], wanted: Wanted<'_>) -> Vec<DataPlace> {
    let mut partitions = BTreeMap::<DataPlace, BTreeSet<usize>>::new();
    for (_, listed) in lists {
        partitions.entry(listed.place).or_default().extend(listed.partitions(wanted.count));
    }
    let mut read = BTreeSet::new();
    if partitions.len() > 1 {
        let mut sources: Vec<&PeerPart> = lists.iter().map(|(source, _)| *source).collect();
        sources.dedup_by_key(|source| source.name());
        read.extend(sources.iter().filter_map(|source| Some(places(source).ok()?.reads)));
    }
    let is_whole = |place: &DataPlace| partitions[place].len() == wanted.count;
    let mut data: Vec<DataPlace> = partitions.keys().copied().collect();
    data.retain(|place| is_whole(place) || !wanted.is_whole);
    data.sort_by_key(|place| Reverse((is_whole(place), read.contains(place), *place)));
    data
}

/// What these servers have of what is wanted. `failure`: gets the error of one that does not answer.
fn lists_of<'s>(
    sources: &'s [Arc<PeerPart>],
    wanted: Wanted<'_>,
    failure: &mut Error,
) -> Vec<(&'s PeerPart, Listed)> {
    let mut lists = Vec::new();
    for source in sources {
        match list(source) {
            Ok(all) => {
                let is_wanted = |listed: &Listed| listed.place >= wanted.least;
                lists.extend(all.into_iter().filter(is_wanted).map(|listed| (&**source, listed)));
            }
            Err(error) => *failure = error,
        }
    }
    lists
}

fn copy(
    environment: &Environment,
    directory: &Path,
    wanted: Wanted<'_>,
    position: u64,
    sources: &[(&PeerPart, &Listed)],
    report: &dyn Fn(&str, u64),
) -> Result<Generation> {
    let mut copies = Vec::new();
    for number in wanted.files() {
        let with: Vec<_> = sources
            .iter()
            .filter_map(|(source, listed)| Some((*source, listed.files.get(&number)?)))
            .collect();
        let Some((_, (length, name))) = with.first() else {
            // The first data may be without a checkpoint: no changes, no constraints.
            if position == 0 && number > wanted.count as u64 + 1 {
                continue;
            }
            let what = match number.checked_sub(1).filter(|partition| *partition < wanted.count as u64) {
                Some(partition) => format!("no server that answers has partition {partition}"),
                None => "no server that answers has the files of the whole graph".to_owned(),
            };
            return Err(Error::new(ErrorKind::Unavailable, what));
        };
        let sources: Vec<&PeerPart> = with.iter().map(|(source, _)| *source).collect();
        copies.push((name.clone(), [position, number, *length], sources));
    }
    let first = sources.first().map_or("", |(source, _)| source.name());
    report(first, copies.iter().map(|(_, [.., length], _)| *length).sum());
    let unfinished = Unfinished::create(environment, directory, position)?;
    for (name, file, sources) in &copies {
        copy_from_any(sources, |source| unfinished.write(name, &mut |out| copy_file(source, *file, out)))?;
    }
    // Before older data go.
    let copied = Generation::open_at(environment, unfinished.path.clone())?;
    copied.verify(wanted.partitions)?;
    if (copied.origin, copied.checkpoint.position) != (wanted.origin, position) {
        let what = format_args!("data of server {first}");
        return Err(Error::corrupt(what, "they are not those that were asked for"));
    }
    unfinished.publish()
}

/// Copies from the first source that sends what is asked.
fn copy_from_any(sources: &[&PeerPart], copy: impl Fn(&PeerPart) -> Result<()>) -> Result<()> {
    let mut failure = Error::new(ErrorKind::Unavailable, "no server that answers has a file of the data");
    for source in sources {
        match copy(source) {
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Corrupt) => {
                failure = error;
            }
            copied => return copied,
        }
    }
    Err(failure)
}

/// Copies the partitions that the data of a server lack, from others that have the same data. The data have
/// them from then on; nothing of a call that fails counts.
///
/// # Errors
/// Unavailable: no server that answers has one of them. Corrupt: they are damaged. Io.
pub(crate) fn complete(
    environment: &Environment,
    generation: &Generation,
    partitions: &[usize],
    sources: &[Arc<PeerPart>],
) -> Result<()> {
    let (position, build) = (generation.checkpoint.position, generation.files.build());
    let names = generation.file_names();
    let mut lists = Vec::new();
    for partition in partitions {
        let number = *partition + 1;
        let path = generation.path.join(&names[number]);
        if environment.files.exists(&path).map_err(failed("read", &path))? {
            continue;
        }
        if lists.is_empty() {
            for source in sources {
                let all = list(source).unwrap_or_default();
                lists.extend(all.into_iter().map(|listed| (Arc::clone(source), listed)));
            }
        }
        let with: Vec<(&PeerPart, u64)> = lists
            .iter()
            .filter(|(_, listed)| listed.place == (position, build))
            .filter_map(|(source, listed)| Some((&**source, listed.files.get(&(number as u64))?.0)))
            .collect();
        let Some((_, length)) = with.first() else {
            let what = format!("no server that answers has partition {partition}");
            return Err(Error::new(ErrorKind::Unavailable, what));
        };
        let file = [position, number as u64, *length];
        let new = generation.path.join(format!("{}.tmp", names[number]));
        let sources: Vec<&PeerPart> = with.iter().map(|(source, _)| *source).collect();
        copy_from_any(&sources, |source| {
            let mut out = environment.files.create(&new).map_err(failed("write", &new))?;
            copy_file(source, file, &mut out)?;
            out.flush().and_then(|()| out.sync()).map_err(failed("write", &new))
        })?;
        environment.files.rename(&new, &path).map_err(failed("write", &path))?;
        generation.files.verify_files(&[*partition]).inspect_err(|_| {
            _ = environment.files.remove_file(&path);
        })?;
    }
    environment.files.sync_dir(&generation.path).map_err(failed("sync", &generation.path))
}

fn copy_file(source: &PeerPart, [position, number, length]: [u64; 3], file: &mut dyn Write) -> Result<()> {
    let mut offset = 0;
    while offset < length {
        ThreadLimits::check()?;
        let mut request = vec![FETCH];
        [position, number, offset].iter().for_each(|field| write_u64(*field, &mut request));
        let bytes = source.send(&request)?.receive()?;
        if bytes.is_empty() || bytes.len() as u64 > length - offset {
            let what = format_args!("file {number} of server {}", source.name());
            return Err(Error::corrupt(what, "it does not have the length that was said"));
        }
        file.write_all(&bytes).map_err(|error| Error::io("write a file of another server", &error))?;
        offset += bytes.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_with_wrong_names_are_refused() {
        let good = "5 00ff\n1 30 partition-0.vvs\n3 7 catalog.vvc";
        let files = [(1, (30, "partition-0.vvs".to_owned())), (3, (7, "catalog.vvc".to_owned()))];
        let five = Listed { place: (5, 255), files: files.into() };
        assert_eq!(read_listed(good), Some(vec![five.clone()]));
        let three = Listed { place: (3, 1), files: BTreeMap::new() };
        assert_eq!(read_listed(&format!("3 1\n{good}")), Some(vec![three, five]));
        let wrong = [
            "",
            "x",
            "5",
            "5 1\n30",
            "0 30 a",
            "5 1\n0 -1 a",
            "5 1\n0 30 ..",
            "5 1\n0 30 ../key.pem",
            "5 1\n0 30 /etc/x",
            "5 1\n0 30 .x",
        ];
        for text in wrong {
            assert_eq!(read_listed(text), None, "{text}");
        }
        let files = [(0, (30, "dictionary.vvd".to_owned())), (1, (7, "partition-0.vvs".to_owned()))];
        let good = "5\n30 dictionary.vvd\n7 partition-0.vvs";
        assert_eq!(read_all(good, 9), Some(Listed { place: (5, 9), files: files.into() }));
        assert_eq!(read_all("5\n30", 9), None);
        let places = |index| Some(Places { has: (7, 255), reads: (3, 0), index });
        assert_eq!(read_places("7 ff 3 0"), places(u64::MAX));
        assert_eq!(read_places("7 ff 3 0 12"), places(12));
        for text in ["", "7", "7 ff 3", "7 ff 3 0 x", "7 ff 3 0 1 2", "x ff 3 0", "7 g 3 0"] {
            assert_eq!(read_places(text), None, "{text}");
        }
    }

    #[test]
    fn files_are_numbered_like_their_names() {
        let wanted = Wanted { origin: 1, least: (0, 0), is_whole: false, partitions: &[1, 3], count: 4 };
        assert_eq!(wanted.files().collect::<Vec<_>>(), [0, 2, 4, 5, 6]);
    }
}
