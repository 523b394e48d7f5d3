//! Known failures, each with its reason: `known-failures.txt`.
//!
//! A line is `category: name | reason`; empty lines and lines that begin with `#` are ignored.

use crate::Report;

const LIST: &str = include_str!("../known-failures.txt");

/// The unexpected results of a report: failures that are not in the list, and entries of the list that start
/// with one of `folders` and did not fail.
#[must_use]
pub fn news(report: &Report, folders: &[&str]) -> Vec<String> {
    compare(LIST, report, folders)
}

fn compare(list: &str, report: &Report, folders: &[&str]) -> Vec<String> {
    let known: Vec<&str> = list
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| line.split(" | ").next().unwrap_or(line))
        .collect();
    let mut news: Vec<String> = report
        .failures()
        .filter(|(name, _)| !known.contains(name))
        .map(|(name, reason)| format!("{name} fails: {reason}"))
        .collect();
    for name in known {
        let folder = name.strip_prefix("unapproved ").unwrap_or(name);
        let here = folders.iter().any(|start| folder.starts_with(start));
        if here && report.failures().all(|(failed, _)| failed != name) {
            news.push(format!("{name} does not fail any more: take it out of known-failures.txt"));
        }
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_failures_are_news() {
        let mut report = Report::default();
        report.add("a/x", "one", Err("broken".to_owned()));
        report.add("a/x", "two", Err("broken".to_owned()));
        let list = "# reasons\n\na/x: one | it is hard\nunapproved a/y: three | it was hard\nb/z: four | elsewhere\n";
        let news = compare(list, &report, &["a/"]);
        assert_eq!(news.len(), 2, "{news:?}");
        assert!(news[0].starts_with("a/x: two fails"));
        assert!(news[1].starts_with("unapproved a/y: three does not fail any more"));
    }
}
