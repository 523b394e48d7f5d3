//! Source checks beyond lints: file headers, file size, width of comments, layering of crates, circles
//! between files, no loop over a bulk, features that only the tests enable.

use crate::{circles, features};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of lines of a source file. A longer file contains more than one concept.
const LINES_MAX: usize = 900;

/// Last column of a comment, in characters; rustfmt limits code.
const COMMENT_COLUMNS_MAX: usize = 110;

/// Crates from the lowest layer up. A crate may only depend on earlier crates.
const LAYERS: &[&str] = &[
    "vervet-model",
    "vervet-env",
    "vervet-codec",
    "vervet-device",
    "vervet-log",
    "vervet-peer",
    "vervet-raft",
    "vervet-snapshot",
    "vervet-testkit",
    "vervet-object",
    "vervet-algebra",
    "vervet-generate",
    "vervet-dictionary",
    "vervet-store",
    "vervet-partition",
    "vervet-delta",
    "vervet-txn",
    "vervet-expression",
    "vervet-results",
    "vervet-kernel",
    "vervet-planner",
    "vervet-driver-local",
    "vervet-driver-cluster",
    "vervet-driver-gpu",
    "vervet-sparql",
    "vervet-gremlin",
    "vervet-tinkerpop",
    "vervet-load",
    "vervet-graph",
    "vervet-traversal",
    "vervet",
    "vervet-cluster",
    "vervet-simulation",
    "vervet-server",
    "vervet-hostile",
    "vervet-cli",
    "vervet-python",
    "vervet-conformance",
    "vervet-bench",
];

/// Crates in which a bulk is the multiplicity of a traverser.
const BULK_CRATES: &[&str] = &[
    "crates/gremlin/",
    "crates/tinkerpop/",
    "crates/traversal/",
    "crates/vervet/",
    "crates/server/",
    "crates/cli/",
    "python/",
];

pub(crate) fn tidy() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for folder in ["crates", "python"] {
        collect(&root.join(folder), &mut files)?;
    }
    let mut sources = Vec::new();
    for file in &files {
        let check = match file.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => source,
            Some("toml") if file.ends_with("Cargo.toml") => manifest,
            _ => continue,
        };
        let text = fs::read_to_string(file)
            .map_err(|error| format!("could not read {}: {error}", file.display()))?;
        let name = file.strip_prefix(&root).unwrap_or(file).display().to_string();
        check(&name, &text, &mut problems);
        if name.ends_with(".rs") {
            sources.push((name, text));
        }
    }
    let list = fs::read_to_string(root.join("crates/xtask/circles.txt"))
        .map_err(|error| format!("could not read circles.txt: {error}"))?;
    circles::check(&sources, &list, &mut problems);
    features::check(&root, &mut problems)?;
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let problem = |error| format!("could not list {}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
            collect(&path, files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn source(name: &str, text: &str, problems: &mut Vec<String>) {
    // Inner attributes may precede the header.
    let first = text.lines().find(|line| !line.starts_with("#!["));
    if !first.is_some_and(|line| line.starts_with("//!")) {
        problems.push(format!("{name}: no header (a //! comment that lets a reader predict the code)"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        problems.push(format!("{name}: {lines} lines, more than {LINES_MAX}"));
    }
    for number in wide_comments(text) {
        problems.push(format!("{name}:{number}: a comment beyond column {COMMENT_COLUMNS_MAX}"));
    }
    if !BULK_CRATES.iter().any(|folder| name.starts_with(folder)) {
        return;
    }
    for (number, line) in text.lines().enumerate().filter(|(_, line)| counts_up_to_a_bulk(line)) {
        let number = number + 1;
        problems.push(format!("{name}:{number}: a loop over a bulk, which may be 2^60: {}", line.trim()));
    }
}

/// Line numbers of comments beyond the last column, except table rows and examples.
fn wide_comments(text: &str) -> Vec<usize> {
    let mut is_example = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_example = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        if comment.starts_with("```") {
            is_example = !is_example;
        } else if !is_example && !comment.starts_with('|') && line.chars().count() > COMMENT_COLUMNS_MAX {
            found.push(number + 1);
        }
    }
    found
}

/// Whether a line has a range that ends at a Gremlin bulk: `0..traverser.bulk`.
fn counts_up_to_a_bulk(line: &str) -> bool {
    line.split("..").skip(1).any(|end| {
        let end = end.trim_start_matches(['=', '*']);
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let path = end.split(|c| !is_path(c)).next().unwrap_or_default();
        path.split('.').any(|part| part == "bulk")
    })
}

fn manifest(name: &str, text: &str, problems: &mut Vec<String>) {
    let Some(package) = text.lines().find_map(|line| line.strip_prefix("name = ")) else { return };
    let package = package.trim_matches('"');
    let Some(layer) = LAYERS.iter().position(|other| *other == package) else {
        if package != "xtask" {
            problems.push(format!(
                "{name}: {package} is missing in the list of layers (crates/xtask/src/tidy.rs)"
            ));
        }
        return;
    };
    let dependencies =
        text.split("[dependencies]").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap_or("");
    for line in dependencies.lines() {
        let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if LAYERS.iter().position(|other| *other == dependency).is_some_and(|other| other >= layer) {
            problems.push(format!("{name}: {package} depends on {dependency}, which is above it"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMENT_COLUMNS_MAX, counts_up_to_a_bulk, wide_comments};

    #[test]
    fn comments_have_a_last_column() {
        let widest = format!("    //! {}", "ä".repeat(COMMENT_COLUMNS_MAX - 8));
        assert_eq!(widest.chars().count(), COMMENT_COLUMNS_MAX);
        let wide = format!("{widest}.");
        assert_eq!(wide_comments(&format!("{widest}\n{wide}\nlet text = \"// {wide}\";\n{wide}")), [2, 4]);
        let text = format!("//! ```text\n{wide}\n//! ```\n{wide}\n//! | {wide} |\n");
        assert_eq!(wide_comments(&text), [4]);
    }

    /// query B6: no loop runs over a bulk.
    #[test]
    fn b6_loops_over_bulks_are_found() {
        let written = |range: &str| format!("for _ in 0{range} {{");
        for range in ["..traverser.bulk", "..bulk", "..=bulk.get()", "..*bulk", "..self.bulk.get()"] {
            assert!(counts_up_to_a_bulk(&written(range)), "{range}");
        }
        for line in ["Traverser { bulk, ..traverser.clone() }", "for _ in 0..bulks", "let bulk = 0..9;"] {
            assert!(!counts_up_to_a_bulk(line), "{line}");
        }
    }
}
