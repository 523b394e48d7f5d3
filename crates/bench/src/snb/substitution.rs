//! Parameter values of the social network: persons, messages, names and dates from the data.

use super::network::{input, milliseconds};
use serde_json::Value as Json;
use std::path::Path;
use vervet::Database;
use vervet_generate::Random;
use vervet_model::{Error, Result};

/// See the header of this file. No list is empty.
#[derive(Clone, Debug)]
pub(crate) struct SubstitutionParameters {
    /// The number of parameters of each operation.
    pub(super) count: usize,
    /// Persons with a friend.
    pub(crate) persons: Vec<i64>,
    /// Messages; posts and comments alternate.
    pub(super) messages: Vec<i64>,
    /// Frequent first names.
    pub(super) names: Vec<String>,
    /// The countries with the most messages.
    pub(super) countries: Vec<String>,
    /// Countries in which persons work.
    pub(super) work_countries: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) tag_classes: Vec<String>,
    /// A date after most messages.
    pub(super) until: i64,
    /// A longer and a shorter period: start and number of days.
    pub(super) long: (i64, i64),
    pub(super) short: (i64, i64),
}

const PREFIXES: &str = "PREFIX : <urn:vervet:key:> PREFIX l: <urn:vervet:label:> ";
const DAY_MS: i64 = 86_400_000;

impl SubstitutionParameters {
    /// Draws `count` of each from a network; persons, messages, names and dates in `file` take precedence.
    ///
    /// # Errors
    /// The network lacks a kind of values; the file cannot be read.
    pub(crate) fn new(database: &Database, file: Option<&Path>, count: usize) -> Result<Self> {
        let mut random = Random::new(5);
        let mut numbers = |pattern: &str, count: usize| -> Result<Vec<i64>> {
            let text = format!("{PREFIXES} SELECT ?id {{ {pattern} }} ORDER BY ?id");
            let mut all = Vec::new();
            for row in database.select(&text)?.rows() {
                all.extend(row.integer("id")?);
            }
            random.shuffle(&mut all);
            all.truncate(count);
            if all.is_empty() { Err(input(format!("the network has nothing of {pattern}"))) } else { Ok(all) }
        };
        let persons = numbers("?x a l:Person ; :id ?id FILTER EXISTS { ?x :knows|^:knows ?friend }", count)?;
        let posts = numbers("?x a l:Post ; :id ?id", count.div_ceil(2))?;
        let comments = numbers("?x a l:Comment ; :id ?id", count.div_ceil(2))?;
        let frequent = |pattern: &str, count: usize| -> Result<Vec<String>> {
            let text = format!(
                "{PREFIXES} SELECT ?n {{ {pattern} }} GROUP BY ?n ORDER BY DESC(COUNT(*)) ?n LIMIT {count}"
            );
            let mut all = Vec::new();
            for row in database.select(&text)?.rows() {
                all.extend(row.text("n")?);
            }
            if all.is_empty() { Err(input(format!("the network has nothing of {pattern}"))) } else { Ok(all) }
        };
        let times = database.select(&format!(
            "{PREFIXES} SELECT (MIN(?t) AS ?first) (MAX(?t) AS ?last) {{ ?x a l:Post ; :creationDate ?t }}"
        ))?;
        let row = times.rows().next().ok_or_else(|| input("the network has no posts"))?;
        let (first, last) = (row.integer("first")?.unwrap_or(0), row.integer("last")?.unwrap_or(0));
        let share = |tenths: i64| first + (last - first) / 10 * tenths;
        let days = |from: i64, to: i64| (from, ((to - from) / DAY_MS).max(1));
        let mut substitution = Self {
            count,
            persons,
            messages: posts.iter().zip(&comments).flat_map(|(post, comment)| [*post, *comment]).collect(),
            names: frequent("?x a l:Person ; :firstName ?n", 5)?,
            countries: frequent("?x :hasCreator ?creator ; :isLocatedIn/:name ?n", 2)?,
            work_countries: frequent("?x :workAt/:isLocatedIn/:name ?n", 5)?,
            tags: frequent("?x a l:Post ; :hasTag/:name ?n", 5)?,
            tag_classes: frequent("?x a l:Post ; :hasTag/:hasType/:name ?n", 5)?,
            until: share(8),
            long: days(share(4), share(6)),
            short: days(share(6), share(7)),
        };
        if let Some(file) = file {
            substitution.take(file)?;
        }
        Ok(substitution)
    }

    /// Takes the values from a file.
    fn take(&mut self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Error::io(format_args!("read {}", file.display()), &error))?;
        let wrong = |what: &str| input(format!("{}: {what}", file.display()));
        let json: Json = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        let texts = |name: &str| -> Vec<String> {
            let all = json[name].as_array().into_iter().flatten();
            all.filter_map(Json::as_str).map(str::to_owned).collect()
        };
        // A prefix denotes the kind: `pers933`, `comm962072733427`.
        let numbers = |name: &str| -> Vec<i64> {
            let number = |text: &String| text.trim_start_matches(char::is_alphabetic).parse().ok();
            texts(name).iter().filter_map(number).collect()
        };
        let date = |name: &str| json[name].as_str().and_then(milliseconds);
        for (list, found) in
            [(&mut self.persons, numbers("persons")), (&mut self.messages, numbers("messages"))]
        {
            if !found.is_empty() {
                *list = found;
                list.truncate(self.count);
            }
        }
        let names = texts("names");
        if !names.is_empty() {
            self.names = names;
        }
        if let (Some(first), Some(second)) = (json["c1"].as_str(), json["c2"].as_str()) {
            self.countries = vec![first.to_owned(), second.to_owned()];
        }
        let days = |from: i64, to: i64| (from, (to - from) / DAY_MS);
        if let (Some(from), Some(to)) = (date("s3"), date("e3")) {
            self.long = days(from, to);
        }
        if let (Some(from), Some(to)) = (date("s4"), date("e4")) {
            self.short = days(from, to);
        }
        self.until = date("ic2").unwrap_or(self.until);
        Ok(())
    }

    /// An element of a non-empty list, cyclically.
    pub(crate) fn of<T>(list: &[T], index: usize) -> &T {
        &list[index % list.len()]
    }
}
