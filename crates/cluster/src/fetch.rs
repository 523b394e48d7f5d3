//! Data of another server, for one that lacks entries which no log has any more.
//!
//! # Shape
//! A request is [`FETCH`] and numbers of 8 bytes: none, or a position, the number of a file and an offset.
//! The answer to the first is a text: the position of the newest data of the asked server, and of each of
//! their files a line with its length and its name. The answer to the second are the next bytes of that file.
//! # Where this is right
//! Every server has the whole graph, and all data of one position are one graph.

use crate::generation::{CHECKPOINT_FILE, Generation, Unfinished};
use crate::peer_part::PeerPart;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use vervet::Environment;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_partition::Remote;

/// Kind of the requests: none of those of partitions, tasks, followers and voters.
pub(crate) const FETCH: u8 = 98;

/// Most bytes of a file in an answer.
const PIECE_BYTES: u64 = 4 << 20;

fn file_names(generation: &Generation) -> Vec<String> {
    let all: Vec<usize> = (0..generation.files.partitioning().count()).collect();
    let mut names = generation.files.file_names(&all);
    names.push(CHECKPOINT_FILE.to_owned());
    names
}

fn failed(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |error| Error::io(what, &error)
}

/// Answers a request, at the server in `directory`.
///
/// # Errors
/// Unavailable: it has other data by now. Corrupt: it is no such request.
pub(crate) fn answer(
    environment: &Environment,
    directory: &Path,
    request: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let generation = Generation::open(environment, directory)?;
    let position = generation.checkpoint.position;
    let names = file_names(&generation);
    let mut reader = Reader::new(request.get(1..).unwrap_or_default());
    if request.len() == 1 {
        let mut text = position.to_string();
        for name in names {
            let path = generation.path.join(&name);
            let length = environment.files.length(&path).map_err(failed("read", &path))?;
            text.push_str(&format!("\n{length} {name}"));
        }
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    let wrong = |damaged: Damaged| Error::corrupt("a request of another server", damaged.0);
    let (asked, file) = (reader.u64().map_err(wrong)?, reader.u64().map_err(wrong)?);
    let offset = reader.u64().map_err(wrong)?;
    let name = usize::try_from(file).ok().and_then(|file| names.get(file)).filter(|_| asked == position);
    let replaced = || Error::new(ErrorKind::Unavailable, "this server has later data by now");
    let path = generation.path.join(name.ok_or_else(replaced)?);
    let length = environment.files.length(&path).map_err(failed("read", &path))?;
    let mut opened = environment.files.open_at(&path, offset.min(length)).map_err(failed("read", &path))?;
    opened.by_ref().take(PIECE_BYTES).read_to_end(out).map_err(failed("read", &path))?;
    Ok(())
}

/// Names and lengths of files.
type FileList = Vec<(String, u64)>;

/// The position of the newest data of a server, and their files.
fn list(source: &PeerPart) -> Result<(u64, FileList)> {
    let bytes = source.send(&[FETCH])?.receive()?;
    let list = std::str::from_utf8(&bytes).ok().and_then(read_list);
    let damaged = || {
        let what = format_args!("an answer of server {}", source.name());
        Error::corrupt(what, "it does not say which files the server has")
    };
    list.ok_or_else(damaged)
}

fn read_list(text: &str) -> Option<(u64, FileList)> {
    let mut lines = text.lines();
    let position = lines.next()?.parse().ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let file = |line: &str| {
        let (length, name) = line.split_once(' ')?;
        let is_name = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain);
        is_name.then_some((name.to_owned(), length.parse().ok()?))
    };
    Some((position, lines.map(file).collect::<Option<_>>()?))
}

/// Copies the newest data of a server that has changes up to `least` at least, as later data of the one in
/// `directory`, whose first data are of the build `origin`. `report`: gets the name of the server and the
/// bytes in all, when it begins.
///
/// # Errors
/// Unavailable: no server has such data, or none sends them. Corrupt: they are damaged. Io.
pub(crate) fn fetch(
    environment: &Environment,
    (directory, origin): (&Path, u64),
    sources: &[Arc<PeerPart>],
    least: u64,
    report: &dyn Fn(&str, u64),
) -> Result<Generation> {
    let nobody =
        format!("no server that answers has the graph with the changes up to entry {least} of their log");
    let mut failure = Error::new(ErrorKind::Unavailable, nobody);
    for source in sources {
        match list(source) {
            Ok((position, files)) if position >= least => {
                report(source.name(), files.iter().map(|(_, length)| *length).sum());
                match copy(environment, directory, source, (origin, position), &files) {
                    copied @ Ok(_) => return copied,
                    Err(error) => failure = error,
                }
            }
            Ok(_) => {}
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn copy(
    environment: &Environment,
    directory: &Path,
    source: &PeerPart,
    (origin, position): (u64, u64),
    files: &[(String, u64)],
) -> Result<Generation> {
    let unfinished = Unfinished::create(environment, directory, position)?;
    for (number, (name, length)) in files.iter().enumerate() {
        unfinished.write(name, &mut |file| copy_file(source, [position, number as u64, *length], file))?;
    }
    // Before older data go.
    let copied = Generation::open_at(environment, unfinished.path.clone())?;
    copied.verify()?;
    if (copied.origin, copied.checkpoint.position) != (origin, position) {
        let what = format_args!("data of server {}", source.name());
        return Err(Error::corrupt(what, "they are not those that were asked for"));
    }
    unfinished.publish()
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
        let good = "5\n30 partition-0.vvs\n7 catalog.vvc";
        let files = vec![("partition-0.vvs".to_owned(), 30), ("catalog.vvc".to_owned(), 7)];
        assert_eq!(read_list(good), Some((5, files)));
        let wrong = ["", "x", "5\n30", "5\n-1 a", "5\n30 ..", "5\n30 ../key.pem", "5\n30 /etc/x", "5\n30 .x"];
        for text in wrong {
            assert_eq!(read_list(text), None, "{text}");
        }
    }
}
