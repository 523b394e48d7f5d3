//! The documentation as a book: `docs/SUMMARY.md` lists its pages, mdBook builds it into `target/book`.
//!
//! The checks run before the build, and without it if `--check` is given:
//!
//! * every relative link resolves to a file, and its anchor to a heading of that file;
//! * every page of `docs` is in the summary;
//! * every `{{#include}}` names a file and an anchor in it;
//! * the chart of the README is the one for the current benchmark tables.
//!
//! Links between pages are paths in the repository, so they work there too. The build runs on a copy in
//! `target/book-pages`, in which links are relative to `docs`, and links to files outside the book become
//! text.

use crate::chart;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Pages outside of `docs` whose links are checked. The first three are part of the book.
const OTHER_PAGES: [&str; 6] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "page/README.md",
    "crates/server/tests/clients/README.md",
];
const BOOK_PAGES: &[&str] = OTHER_PAGES.split_at(3).0;

/// Checks the pages; unless `checks_only`, also builds the book, if `mdbook` is installed.
///
/// # Errors
/// The broken links and missing pages, one per line; a failed build.
pub(crate) fn book(checks_only: bool) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = read_pages(&root)?;
    let mut problems: Vec<String> = chart::problem(&root)?.into_iter().collect();
    problems.extend(broken_links(&root, &pages));
    problems.extend(missing_in_summary(&pages));
    problems.extend(broken_includes(&root, &pages));
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    println!("== book: {} pages, all links resolve", pages.len());
    if checks_only { Ok(()) } else { build(&root, &pages) }
}

/// Text of a page, by its path relative to the root, with `/`.
type Pages = BTreeMap<String, String>;

fn read_pages(root: &Path) -> Result<Pages, String> {
    let mut names: Vec<String> = OTHER_PAGES.map(str::to_owned).to_vec();
    files_below(root, "docs", &mut names)?;
    names.retain(|name| name.ends_with(".md"));
    names
        .into_iter()
        .map(|name| {
            fs::read_to_string(root.join(&name))
                .map(|text| (name.clone(), text))
                .map_err(|error| format!("could not read {name}: {error}"))
        })
        .collect()
}

fn files_below(root: &Path, folder: &str, names: &mut Vec<String>) -> Result<(), String> {
    let problem = |error| format!("could not list {folder}: {error}");
    for entry in fs::read_dir(root.join(folder)).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files_below(root, &name, names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}

fn broken_links(root: &Path, pages: &Pages) -> Vec<String> {
    let anchors: HashMap<&str, BTreeSet<String>> =
        pages.iter().map(|(name, text)| (name.as_str(), anchors(text))).collect();
    let mut problems = Vec::new();
    for (name, text) in pages {
        for link in links(text) {
            let target = &text[link.clone()];
            let line = 1 + text[..link.start].matches('\n').count();
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let Some(file) = resolve(name, path) else {
                problems.push(format!("{name}:{line}: {target} leaves the repository"));
                continue;
            };
            if !root.join(&file).exists() {
                problems.push(format!("{name}:{line}: {target}: there is no {file}"));
            } else if !anchor.is_empty()
                && !anchors.get(file.as_str()).is_some_and(|anchors| anchors.contains(anchor))
            {
                problems.push(format!("{name}:{line}: {target}: {file} has no heading #{anchor}"));
            }
        }
    }
    problems
}

fn missing_in_summary(pages: &Pages) -> Vec<String> {
    let Some(summary) = pages.get(SUMMARY) else { return vec![format!("there is no {SUMMARY}")] };
    let listed: BTreeSet<String> =
        links(summary).filter_map(|link| resolve(SUMMARY, &summary[link])).collect();
    let is_missing = |name: &&String| {
        (name.starts_with("docs/") && *name != SUMMARY || BOOK_PAGES.contains(&name.as_str()))
            && !listed.contains(*name)
    };
    pages.keys().filter(is_missing).map(|name| format!("{name} is missing in {SUMMARY}")).collect()
}

fn broken_includes(root: &Path, pages: &Pages) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, text) in pages {
        for include in includes(text) {
            let (path, anchor) = text[include.clone()].split_once(':').unwrap_or((&text[include], ""));
            let included = resolve(name, path).and_then(|file| fs::read_to_string(root.join(file)).ok());
            match included {
                None => problems.push(format!("{name}: cannot include {path}")),
                Some(text) if !text.contains(&format!("ANCHOR: {anchor}\n")) => {
                    problems.push(format!("{name}: {path} has no anchor {anchor}"));
                }
                Some(_) => {}
            }
        }
    }
    problems
}

/// `target`, relative to the folder of `page`, as a path relative to the root; `page` itself if empty.
/// `None` if it is outside the root.
fn resolve(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.to_owned());
    }
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Positions of relative link targets: of Markdown links and images, of `src`, `srcset` and `href`.
fn links(text: &str) -> impl Iterator<Item = Range<usize>> {
    let masked = without_code(text);
    let mut found = Vec::new();
    for (opening, closing) in [("](", ')'), (" src=\"", '"'), (" srcset=\"", '"'), (" href=\"", '"')] {
        for (at, _) in masked.match_indices(opening) {
            let start = at + opening.len();
            let Some(length) = masked[start..].find(closing) else { continue };
            let target = &masked[start..start + length];
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(start..start + length);
            }
        }
    }
    found.sort_by_key(|link| link.start);
    found.into_iter()
}

/// Positions of the arguments of `{{#include …}}`.
fn includes(text: &str) -> impl Iterator<Item = Range<usize>> {
    const OPENING: &str = "{{#include ";
    text.match_indices(OPENING).filter_map(|(at, _)| {
        let start = at + OPENING.len();
        text[start..].find("}}").map(|length| start..start + length)
    })
}

/// The text with code blocks and code spans replaced by blanks of the same length in bytes.
fn without_code(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let ticks = &trimmed[..trimmed.len() - trimmed.trim_start_matches('`').len()];
        let is_fence = ticks.len() >= 3;
        if fence.is_some() || is_fence {
            masked.push_str(&blank(line));
            match fence {
                None => fence = Some(ticks),
                Some(open) if is_fence && ticks.len() >= open.len() => fence = None,
                Some(_) => {}
            }
        } else {
            masked.push_str(line);
        }
    }
    // Code spans: a run of backticks up to the next run of the same length in the paragraph.
    let runs: Vec<Range<usize>> = runs_of_backticks(&masked);
    let mut rest = runs.as_slice();
    while let [open, after @ ..] = rest {
        rest = after;
        let close = after.iter().position(|run| run.len() == open.len());
        let Some((close, index)) = close.map(|index| (after[index].clone(), index)) else { continue };
        if !masked[open.end..close.start].contains("\n\n") {
            let span = blank(&masked[open.start..close.end]);
            masked.replace_range(open.start..close.end, &span);
            rest = &after[index + 1..];
        }
    }
    masked
}

fn runs_of_backticks(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

/// Anchors of the headings, as GitHub and mdBook name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let masked = without_code(text);
    // Code spans of headings count, code blocks do not.
    for (line, masked) in text.lines().zip(masked.lines()) {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') || !masked.starts_with('#') {
            continue;
        }
        let anchor = anchor(heading.trim());
        let mut numbered = anchor.clone();
        let mut number = 0;
        while !found.insert(numbered.clone()) {
            number += 1;
            numbered = format!("{anchor}-{number}");
        }
    }
    found
}

fn anchor(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    // `[text](target)` counts as its text.
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    });
    kept.flat_map(char::to_lowercase).collect()
}

fn build(root: &Path, pages: &Pages) -> Result<(), String> {
    if !Command::new("mdbook").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("== book: not built: there is no mdbook; install it with `cargo install mdbook`");
        return Ok(());
    }
    let copy = root.join("target/book-pages");
    let problem = |what: &Path, error| format!("could not write {}: {error}", what.display());
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|error| problem(&copy, error))?;
    }
    let write = |name: &str, bytes: &[u8]| {
        let file = copy.join(name);
        let folder = file.parent().unwrap_or(&copy);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, bytes))
            .map_err(|error| problem(&file, error))
    };
    for (name, text) in pages {
        if let Some(copied) = name_in_book(name) {
            write(copied, text_in_book(root, name, text).as_bytes())?;
        }
    }
    let mut names = Vec::new();
    files_below(root, "docs", &mut names)?;
    for name in names.iter().filter(|name| !name.ends_with(".md") && !name.ends_with(".json")) {
        let bytes = fs::read(root.join(name)).map_err(|error| format!("could not read {name}: {error}"))?;
        write(&name["docs/".len()..], &bytes)?;
    }
    let target: PathBuf = root.join("target/book");
    let status = Command::new("mdbook").arg("build").arg(&copy).arg("--dest-dir").arg(&target).status();
    if !status.map_err(|error| format!("could not start mdbook: {error}"))?.success() {
        return Err("failed: mdbook build".to_owned());
    }
    println!("== book: target/book/index.html");
    Ok(())
}

/// Name of a page in the book; `None` if it is not part of it.
fn name_in_book(name: &str) -> Option<&str> {
    name.strip_prefix("docs/").or_else(|| BOOK_PAGES.contains(&name).then_some(name))
}

/// The page with links and includes as they are in the book.
fn text_in_book(root: &Path, name: &str, text: &str) -> String {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for link in links(text) {
        let (path, anchor) = text[link.clone()].split_once('#').unwrap_or((&text[link.clone()], ""));
        let Some(file) = resolve(name, path).filter(|_| !path.is_empty()) else { continue };
        let is_page = file.starts_with("docs/") || BOOK_PAGES.contains(&file.as_str());
        if is_page && !file.ends_with(".json") {
            let up = name_in_book(name).unwrap_or(name).matches('/').count();
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            let mut target = name_in_book(&file).unwrap_or(&file).to_owned();
            if name != SUMMARY && target.ends_with("/README.md") {
                // mdBook renames it to the page of the folder, but adjusts only the links in the summary.
                target.replace_range(target.len() - "README.md".len().., "index.md");
            }
            edits.push((link, format!("{}{target}{anchor}", "../".repeat(up))));
        } else if let Some(start) = text[..link.start].rfind('[') {
            // A file that is not in the book: its link becomes text.
            let words = text[start + 1..link.start - 2].to_owned();
            edits.push((start..link.end + 1, words));
        }
    }
    for include in includes(text) {
        let (path, anchor) = text[include.clone()].split_once(':').unwrap_or((&text[include.clone()], ""));
        if let Some(file) = resolve(name, path) {
            let file = root.canonicalize().unwrap_or_else(|_| root.to_owned()).join(file);
            edits.push((include, format!("{}:{anchor}", file.display())));
        }
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut edited = text.to_owned();
    for (range, replacement) in edits.into_iter().rev() {
        edited.replace_range(range, &replacement);
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::{anchors, broken_links, links, missing_in_summary, resolve, text_in_book};
    use std::collections::BTreeMap;
    use std::path::Path;

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# The `vervet load` DB\n## Users & TLS\n## A [link](x.md), too\n```sh\n# comment\n```\n## A b\n## A b\n";
        let found: Vec<String> = anchors(text).into_iter().collect();
        assert_eq!(found, ["a-b", "a-b-1", "a-link-too", "the-vervet-load-db", "users--tls"]);
    }

    #[test]
    fn links_outside_of_code_are_found() {
        let text = "[a](b.md#c) `[x](y)` ``a ` [x](y)`` <img src=\"d.svg\"> [web](https://a/b)\n```\n[x](y)\n```\n[e](#f)";
        let found: Vec<&str> = links(text).map(|link| &text[link]).collect();
        assert_eq!(found, ["b.md#c", "d.svg", "#f"]);
    }

    #[test]
    fn paths_are_relative_to_the_page() {
        assert_eq!(resolve("docs/guides/a.md", "../b.md").as_deref(), Some("docs/b.md"));
        assert_eq!(resolve("README.md", "docs/./b.md").as_deref(), Some("docs/b.md"));
        assert_eq!(resolve("README.md", "../b.md"), None);
        assert_eq!(resolve("docs/a.md", "").as_deref(), Some("docs/a.md"));
    }

    fn pages(pages: &[(&str, &str)]) -> BTreeMap<String, String> {
        pages.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn broken_links_and_missing_pages_are_reported() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let pages = pages(&[
            (
                "README.md",
                "# A\n[good](docs/server.md#b) [bad](docs/server.md#c) [none](docs/none.md) [up](../x)",
            ),
            ("docs/SUMMARY.md", "[s](server.md)"),
            ("docs/server.md", "# B\n[good](../README.md#a) [bad](#a)"),
            ("docs/other.md", ""),
        ]);
        assert_eq!(
            broken_links(&root, &pages),
            [
                "README.md:2: docs/server.md#c: docs/server.md has no heading #c",
                "README.md:2: docs/none.md: there is no docs/none.md",
                "README.md:2: ../x leaves the repository",
                "docs/server.md:2: #a: docs/server.md has no heading #a",
            ]
        );
        assert_eq!(missing_in_summary(&pages), ["docs/other.md is missing in docs/SUMMARY.md"]);
    }

    #[test]
    fn links_of_the_book_stay_inside_it() {
        let text = "[a](../../ARCHITECTURE.md#x) [b](../server.md) [c](../../crates/cli/Cargo.toml) [d](#e)";
        let edited = text_in_book(Path::new("/"), "docs/guides/a.md", text);
        assert_eq!(edited, "[a](../ARCHITECTURE.md#x) [b](../server.md) c [d](#e)");
        let edited = text_in_book(Path::new("/"), "ARCHITECTURE.md", "[a](docs/server.md#x)");
        assert_eq!(edited, "[a](server.md#x)");
        let edited = text_in_book(Path::new("/"), "docs/server.md", "[a](benchmarks/README.md)");
        assert_eq!(edited, "[a](benchmarks/index.md)");
    }
}
