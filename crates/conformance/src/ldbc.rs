//! The queries of the LDBC social network (Interactive: IS1 to IS7, IC1 to IC14) in Gremlin and in SPARQL,
//! against independently computed answers.
//!
//! # Shape
//! The query texts are ours, one file each below `ldbc/gremlin` and `ldbc/sparql` of this crate; the data and
//! the expected answers are external ([`crate::test_data`]). The loader reads the data as published (*names
//! from files*, docs/loading.md).
//!
//! * `query`: the queries and the contents of their columns. `parameters`: their values. `answer`: rows from
//!   any source. `data`: archives. `expected`: expected answers.
//!
//! A case is one set of parameters; its name is its number among those of its query, in the order of the
//! file. Gremlin runs twice, on kernels and with every step as a step, and both must be right.

mod answer;
mod data;
mod expected;
mod parameters;
mod query;

pub use answer::{Cell, Row};
pub use data::{Archive, load};
pub use parameters::{Parameter, Parameters};
pub use query::{QUERIES, Query, Sparql};

use crate::{Outcome, Report};
use std::path::Path;
use vervet::Database;
use vervet::gremlin::GremlinOptions;

/// A query language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// Gremlin.
    Gremlin,
    /// SPARQL.
    Sparql,
}

/// Data with expected answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Set {
    /// A whole network of 222 persons.
    Tiny,
    /// Scale factor 0.1 without message contents and forum memberships.
    Tenth,
}

/// Selects what to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only this query, such as `IC1`.
    pub only: Option<String>,
    /// On these data.
    pub sets: Vec<Set>,
    /// In these languages.
    pub languages: Vec<Language>,
    /// Callback for every case and its outcome.
    pub each: Option<fn(&str, &Outcome)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            only: None,
            sets: vec![Set::Tiny, Set::Tenth],
            languages: vec![Language::Gremlin, Language::Sparql],
            each: None,
        }
    }
}

impl Language {
    /// Its name in files and options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gremlin => "gremlin",
            Self::Sparql => "sparql",
        }
    }
}

impl Set {
    /// Its name in files and options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Tenth => "sf0.1",
        }
    }
}

/// Runs the queries; `root` is the folder that has `data/ldbc-snb`.
///
/// # Errors
/// Missing or malformed files; an unknown query.
pub fn run(root: &Path, options: &Options, report: &mut Report) -> Result<(), String> {
    if let Some(name) = &options.only
        && !QUERIES.iter().any(|query| query.name.eq_ignore_ascii_case(name))
    {
        return Err(format!("unknown query {name}: known are IS1 to IS7 and IC1 to IC14"));
    }
    let folder = root.join("data/ldbc-snb");
    for &set in &options.sets {
        let database = crate::partitions::database(set.name());
        let archive = match set {
            Set::Tiny => Archive::open(&folder.join("tiny.tar.zst"), "vanilla/")?,
            Set::Tenth => Archive::open(&folder.join("sf0.1-partial.tar.zst"), "")?.with_messages()?,
        };
        load(&database, archive)?;
        let database = crate::cluster::spread(database)?;
        let cases = expected::read(&folder.join(format!("expected-{}.jsonl", set.name())))?;
        for &language in &options.languages {
            let mut number = 0;
            let mut last = "";
            for case in &cases {
                number = if last == case.query.name { number + 1 } else { 1 };
                last = case.query.name;
                if options.only.as_ref().is_some_and(|only| !case.query.name.eq_ignore_ascii_case(only)) {
                    continue;
                }
                let outcome = outcome(&database, case, language);
                let category = format!("ldbc/{}/{}/{}", set.name(), language.name(), case.query.name);
                if let Some(each) = options.each {
                    each(&format!("{category}: {number}"), &outcome);
                }
                report.add_outcome(&category, &number.to_string(), outcome);
            }
        }
    }
    Ok(())
}

fn outcome(database: &Database, case: &expected::Case, language: Language) -> Outcome {
    let run = || -> Result<(), String> {
        match language {
            Language::Gremlin => [true, false].into_iter().try_for_each(|kernels| {
                let options = GremlinOptions { kernels, ..GremlinOptions::default() };
                let found = case
                    .query
                    .gremlin_rows(database, &case.parameters, options)
                    .map_err(|error| error.to_string())?;
                case.compare(&found).map_err(|difference| {
                    if kernels { difference } else { format!("with steps only: {difference}") }
                })
            }),
            Language::Sparql => {
                let found =
                    case.query.sparql_rows(database, &case.parameters).map_err(|error| error.to_string())?;
                case.compare(&found)
            }
        }
    };
    match case.query.sparql {
        Sparql::Inexpressible(why) if language == Language::Sparql => Outcome::LeftOut(why.to_owned()),
        _ => crate::guarded(run).map_or_else(Outcome::Failed, |()| Outcome::Passed),
    }
}
