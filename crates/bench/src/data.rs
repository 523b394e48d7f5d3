//! Locates and unpacks benchmark data.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use vervet_model::{Error, ErrorKind, Result};

/// An N-Triples file, unpacked if necessary; a temporary copy is removed on drop.
pub struct PlainFile {
    path: PathBuf,
    _copy: Option<NamedTempFile>,
}

impl PlainFile {
    /// `path` itself, or an unpacked copy if its name ends in `.zst`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        if path.extension().is_none_or(|extension| extension != "zst") {
            return Ok(Self { path: path.to_owned(), _copy: None });
        }
        let failed = |error: io::Error| Error::io(format_args!("unpack {}", path.display()), &error);
        let mut copy = Self::temporary().map_err(failed)?;
        let packed = File::open(path).map_err(failed)?;
        zstd::stream::copy_decode(packed, copy.as_file_mut()).map_err(failed)?;
        Ok(Self { path: copy.path().to_owned(), _copy: Some(copy) })
    }

    /// A temporary file with the output of `write`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn write(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Result<Self> {
        let made = || -> io::Result<Self> {
            let mut copy = Self::temporary()?;
            let mut writer = io::BufWriter::new(copy.as_file_mut());
            write(&mut writer)?;
            io::Write::flush(&mut writer)?;
            drop(writer);
            Ok(Self { path: copy.path().to_owned(), _copy: Some(copy) })
        };
        made().map_err(|error| Error::io("write a temporary file", &error))
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn temporary() -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix("vervet-bench-").suffix(".nt").tempfile()
    }
}

/// The queries `NAME.rq` in a folder, by name; templates (`NAME.template.rq`) are not queries.
///
/// # Errors
/// [`ErrorKind::Io`]; [`ErrorKind::Input`] if there are none.
pub fn queries(folder: &Path) -> Result<BTreeMap<String, String>> {
    let failed = |error: io::Error| Error::io(format_args!("read {}", folder.display()), &error);
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".rq"));
        if let Some(name) = name.filter(|name| !name.ends_with(".template")) {
            found.insert(name.to_owned(), read(&path)?);
        }
    }
    if found.is_empty() {
        return Err(Error::new(ErrorKind::Input, format!("{} holds no queries (*.rq)", folder.display())));
    }
    Ok(found)
}

/// A text file.
///
/// # Errors
/// [`ErrorKind::Io`].
pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::io(format_args!("read {}", path.display()), &error))
}

/// The edge lists `NAME/edges.csv` of an archive (`.tar.zst`), by name; further columns are ignored.
///
/// # Errors
/// [`ErrorKind::Io`]; [`ErrorKind::Input`] if a line does not start with two numbers.
pub fn edge_lists(archive: &Path) -> Result<BTreeMap<String, Vec<(u32, u32)>>> {
    let failed = |error: io::Error| Error::io(format_args!("read {}", archive.display()), &error);
    let packed = File::open(archive).map_err(failed)?;
    let mut archive = tar::Archive::new(zstd::Decoder::new(packed).map_err(failed)?);
    let mut lists = BTreeMap::new();
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let path = entry.path().map_err(failed)?.into_owned();
        if path.file_name().is_none_or(|name| name != "edges.csv") {
            continue;
        }
        let name = path
            .parent()
            .and_then(Path::file_name)
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut text = String::new();
        entry.read_to_string(&mut text).map_err(failed)?;
        lists.insert(name, parse_edges(&text, &path)?);
    }
    Ok(lists)
}

fn parse_edges(text: &str, path: &Path) -> Result<Vec<(u32, u32)>> {
    let parse = |(index, line): (usize, &str)| {
        let mut columns = line.split(',').map(str::parse);
        match (columns.next(), columns.next()) {
            (Some(Ok(source)), Some(Ok(target))) => Ok((source, target)),
            _ => {
                let what = format!("{}:{}: no edge in {line:?}", path.display(), index + 1);
                Err(Error::new(ErrorKind::Input, what))
            }
        }
    };
    let mut edges = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(parse)
        .collect::<Result<Vec<_>>>()?;
    edges.sort_unstable();
    edges.dedup();
    Ok(edges)
}

/// The folder of test data: `VERVET_TEST_DATA`, or `shared` beside the project; `None` if neither exists.
#[must_use]
pub fn test_data() -> Option<PathBuf> {
    let folder = std::env::var_os("VERVET_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    folder.join("data").is_dir().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_model::ErrorKind;

    #[test]
    fn edges_are_two_numbers_each_once() {
        let edges = parse_edges("2,1,9\n1,2\n\n1,2\n", Path::new("x")).unwrap();
        assert_eq!(edges, [(1, 2), (2, 1)]);
        let error = parse_edges("1,2\n1;2\n", Path::new("x")).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Input, "x:2: no edge in \"1;2\""));
    }

    #[test]
    fn real_edge_lists_are_read() {
        let Some(data) = test_data() else {
            println!("skipped: no test data beside the project nor at VERVET_TEST_DATA");
            return;
        };
        let lists = edge_lists(&data.join("data/snap/snap-edge-lists.tar.zst")).unwrap();
        assert_eq!(lists["wiki-Vote"].len(), 103_689);
        assert_eq!(lists.len(), 6);
    }
}
