//! Round trips of TinkerPop's own samples, and of all other formats.
#![allow(clippy::unwrap_used, reason = "tests")]

mod graphs;
mod messages;
mod mutation;
mod samples;
mod values;

use std::path::PathBuf;

/// A folder of TinkerPop's test data; `None`, with a message, without test data.
fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("VERVET_TEST_DATA").map(PathBuf::from);
    let folder = root.map(|root| root.join("conformance/tinkerpop").join(name)).filter(|path| path.is_dir());
    if folder.is_none() {
        eprintln!("skipped: VERVET_TEST_DATA names no folder with conformance/tinkerpop/{name}");
    }
    folder
}

/// The files of a folder of samples, by name.
fn samples(name: &str) -> Vec<(String, Vec<u8>)> {
    let Some(folder) = folder(&format!("io-samples/{name}")) else { return Vec::new() };
    let mut samples: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    samples.sort();
    samples
}

/// JSON without white space between its tokens.
fn compact(text: &[u8]) -> String {
    let mut out = String::new();
    let (mut in_string, mut escaped) = (false, false);
    for c in std::str::from_utf8(text).unwrap().chars() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if c == '"' {
            in_string = true;
        } else if c.is_ascii_whitespace() {
            continue;
        }
        out.push(c);
    }
    out
}
