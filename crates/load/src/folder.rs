//! Folders as sources of a load, and header files of Neo4j.
//!
//! A folder with `schema.cypher` and `copy.cypher` is an export of Kùzu ([`kuzu`]). Of any other folder the
//! files of known formats are loaded, in the order of their names.
//!
//! For `neo4j-admin database import` the header of several files can be in a file of its own:
//! `actors-header.csv` describes `actors.csv` and `actors-part1.csv`.

use crate::kuzu;
use crate::source::{Format, Layout, Source};
use crate::table::separator;
use csv::ReaderBuilder;
use std::path::{Path, PathBuf};
use vervet_model::{Error, ErrorKind, Result};

/// Maximum number of names in a message.
const NAMES_MAX: usize = 8;

/// Replaces folders by their files, and header files by the headers of their files. Remarks go to `notes`.
/// `is_known`: whether the format of all sources is known, so that folders need no file extensions.
pub(crate) fn expand(sources: Vec<Source>, is_known: bool, notes: &mut Vec<String>) -> Result<Vec<Source>> {
    let mut expanded = Vec::with_capacity(sources.len());
    for source in sources {
        match source.folder() {
            Some(folder) => expanded.extend(files(folder, is_known, notes)?),
            None => expanded.push(source),
        }
    }
    let mut headers = Vec::new();
    let mut files = Vec::with_capacity(expanded.len());
    for mut source in expanded {
        match header(&mut source)? {
            Some(layout) => headers.push((source, layout)),
            None => files.push(source),
        }
    }
    // The header of `a-b.csv` is `a-b-header.csv` rather than `a-header.csv`.
    headers.sort_by_key(|(header, _)| std::cmp::Reverse(header.stem().len()));
    for (header, layout) in headers {
        let prefix = prefix(header.stem());
        let mut count = 0;
        for file in &mut files {
            let is_csv = Format::from_file_name(file.name()) == Some(Format::Csv);
            let is_beside = parent(file.name()) == parent(header.name());
            if is_csv && is_beside && describes(prefix, file.stem()) && file.layout().is_none() {
                file.set_layout(layout.clone());
                count += 1;
            }
        }
        if count == 0 {
            let message = format!("{}: there is no file for this header", header.name());
            return Err(Error::new(ErrorKind::Input, message).with_hint(format!(
                "its rows must be in {prefix}.csv, or in files such as {prefix}-part1.csv"
            )));
        }
    }
    Ok(files)
}

/// The folder of a file name.
fn parent(name: &str) -> &str {
    name.rsplit_once(['/', '\\']).map_or("", |(parent, _)| parent)
}

/// The name of the files that a header file describes.
fn prefix(stem: &str) -> &str {
    let end = stem.len().saturating_sub("header".len());
    stem.get(..end).unwrap_or(stem).trim_end_matches(['-', '_', '.'])
}

/// Whether the file with this stem is `prefix`, or one of its parts.
fn describes(prefix: &str, stem: &str) -> bool {
    let Some(part) = stem.strip_prefix(prefix) else { return false };
    if !part.is_empty() && !part.starts_with(['-', '_', '.']) {
        return false;
    }
    let part = part.trim_start_matches(['-', '_', '.']).to_ascii_lowercase();
    let part = part.strip_prefix("part").unwrap_or(&part);
    part.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'_'))
}

/// The header in a file whose only line is a header of Neo4j.
fn header(source: &mut Source) -> Result<Option<Layout>> {
    let stem = source.stem().to_ascii_lowercase();
    let is_csv = Format::from_file_name(source.name()) == Some(Format::Csv);
    if !is_csv || !stem.ends_with("header") || prefix(&stem).is_empty() {
        return Ok(None);
    }
    source.buffer_stream()?;
    let head = source.head()?;
    let separator = separator(&head);
    let mut rows =
        ReaderBuilder::new().has_headers(false).delimiter(separator).flexible(true).from_reader(&head[..]);
    let mut rows = rows.records();
    let (Some(Ok(first)), None) = (rows.next(), rows.next()) else { return Ok(None) };
    let is_role = |field: &str| [":ID", ":START_ID", ":END_ID"].iter().any(|role| field.contains(role));
    if !first.iter().any(is_role) {
        return Ok(None);
    }
    let fields = first.iter().map(str::to_owned).collect();
    Ok(Some(Layout::Header { file: source.name().to_owned(), fields, separator }))
}

/// The files of a folder that a load reads.
fn files(folder: &Path, is_known: bool, notes: &mut Vec<String>) -> Result<Vec<Source>> {
    let failed = |error: &std::io::Error| Error::io(format!("list {}", folder.display()), error);
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| failed(&error))? {
        paths.push(entry.map_err(|error| failed(&error))?.path());
    }
    paths.sort_unstable();
    let has = |name: &str| paths.iter().any(|path| path.ends_with(name) && path.is_file());
    match (has(kuzu::SCHEMA), has(kuzu::COPY)) {
        (true, true) => return kuzu::sources(folder, notes),
        (true, false) | (false, true) => {
            let missing = if has(kuzu::SCHEMA) { kuzu::COPY } else { kuzu::SCHEMA };
            let message = format!("the export of Kùzu in {} has no file {missing}", folder.display());
            return Err(Error::new(ErrorKind::Input, message)
                .with_hint("copy all files of the export, or export the database again"));
        }
        (false, false) => {}
    }
    let is_read = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        path.is_file() && !name.starts_with('.') && (is_known || Format::from_file_name(&name).is_some())
    };
    let (read, other): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| is_read(path));
    if read.is_empty() {
        let message = format!("the folder {} has no file of a known format", folder.display());
        return Err(Error::new(ErrorKind::Input, message).with_hint(
            "name the files, with --format if their extensions say nothing; an export of Kùzu has schema.cypher and copy.cypher",
        ));
    }
    if !other.is_empty() {
        let names = other.iter().take(NAMES_MAX).filter_map(|path| path.file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        let more = if other.len() > NAMES_MAX { ", …" } else { "" };
        let names = names.join(", ");
        notes.push(format!("{}: not read, since the format is unknown: {names}{more}", folder.display()));
    }
    Ok(read.into_iter().map(Source::path).collect())
}
