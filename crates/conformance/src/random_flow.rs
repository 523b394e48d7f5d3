//! Random queries over servers: a database, servers in one process without connections (`twin.rs`), and
//! servers with connections, each with one thread and with three, answer alike.
//!
//! # Shape
//! A graph has more vertices than those of `random.rs`, so that each partition has some, and serves several
//! queries: those of `random.rs`; patterns with cycles, whose intersections read lists of several servers;
//! and values that steps compute, which move with their rows, with sub-queries and groups of them
//! (`random_computed.rs`).
//! Every step that can runs at all servers; in a third configuration, light queries read in place.

use crate::cluster::{directories, directories_with_replicas};
use crate::random;
use crate::random::Verdict;
use crate::random_computed;
use crate::random_outcome::Outcome;
use crate::random_path;
use crate::random_terms::{LITERALS, Random};
use crate::twin::Twin;
use std::fmt::Write;
use std::time::Duration;
use vervet::{Database, DatabaseOptions, Format, QueryOptions};
use vervet_cluster::Cluster;

/// Consecutive seeds with one graph.
const QUERIES_OF_GRAPH: u64 = 8;

/// Number of servers.
const SERVERS: usize = 3;

/// Partitions, so that each server has several.
const PARTITIONS: usize = 8;

/// Threads of a query at each server, and the time from which on it is heavy.
const CONFIGURATIONS: [(usize, Duration); 3] =
    [(1, Duration::ZERO), (3, Duration::ZERO), (1, vervet::HEAVY_FROM_DEFAULT)];

const PREDICATES: usize = 4;

fn predicate(random: &mut Random) -> String {
    format!("<urn:p{}>", random.below(PREDICATES))
}

/// A graph whose vertices have several neighbours, in a few triangles more than chance makes.
fn graph(random: &mut Random) -> String {
    let mut text = String::new();
    let vertices = 7 + random.below(34);
    let statements = 60 + random.below(400);
    for _ in 0..statements {
        let (subject, predicate) = (random.below(vertices), predicate(random));
        let object = match random.below(20) {
            0 | 1 => random.pick(&LITERALS).to_owned(),
            // A vertex with many entries.
            2 => "<urn:v0>".to_owned(),
            _ => format!("<urn:v{}>", random.below(vertices)),
        };
        let statement = format!("<urn:v{subject}> {predicate} {object} .");
        // Writing to a `String` cannot fail.
        let _ = match random.chance(10) {
            true => writeln!(text, "<urn:g{}> {{ {statement} }}", random.below(2)),
            false => writeln!(text, "{statement}"),
        };
    }
    for vertex in 0..vertices {
        let _ = writeln!(text, "<urn:v{vertex}> a <urn:C{}> .", random.below(3));
    }
    text
}

/// A pattern of three or four variables with a cycle, with parts before and behind it.
fn cycle(random: &mut Random) -> String {
    let names = ["?a", "?b", "?c", "?d"];
    let length = 3 + random.below(2);
    let mut parts = Vec::new();
    let mut edge = |random: &mut Random, from: &str, to: &str| {
        let predicate = predicate(random);
        parts.push(match random.chance(50) {
            true => format!("{from} {predicate} {to} ."),
            false => format!("{to} {predicate} {from} ."),
        });
    };
    for at in 0..length {
        edge(random, names[at], names[(at + 1) % length]);
    }
    if random.chance(40) {
        // A chord, or a second edge between the same variables.
        let from = random.below(length);
        let to = (from + 1 + random.below(length - 1)) % length;
        edge(random, names[from], names[to]);
    }
    if random.chance(50) {
        let of = names[random.below(length)];
        parts.push(format!("{of} a <urn:C{}> .", random.below(3)));
    }
    if random.chance(40) {
        let of = names[random.below(length)];
        parts.push(format!("{of} {} ?e .", predicate(random)));
    }
    if random.chance(20) {
        let of = names[random.below(length)];
        parts.push(format!("FILTER NOT EXISTS {{ {of} {} ?x . ?x a <urn:C0> }}", predicate(random)));
    }
    if random.chance(20) {
        let of = names[random.below(length)];
        parts.push(format!("OPTIONAL {{ {of} {} ?f . ?f {} ?b }}", predicate(random), predicate(random)));
    }
    if random.chance(15) {
        parts.push("FILTER(STR(?a) < STR(?b))".to_owned());
    }
    parts.join(" ")
}

/// The first rows of a pattern in an order of all that is projected, so that they are determined.
fn first_rows(random: &mut Random, inner: &str) -> String {
    let mut keys = ["?a", "?b", "?c"].map(|variable| match random.below(3) {
        0 => format!("DESC({variable})"),
        1 => format!("STRLEN(STR({variable})) {variable}"),
        _ => variable.to_owned(),
    });
    keys.rotate_left(random.below(3));
    let (offset, limit) = (random.below(2) * random.below(30), random.below(60));
    format!("SELECT ?a ?b ?c {{ {inner} }} ORDER BY {} OFFSET {offset} LIMIT {limit}", keys.join(" "))
}

/// A query, and whether `LIMIT` leaves the choice of rows open.
fn query(seed: u64) -> (String, bool) {
    let mut random = Random::new(seed ^ 0xF10E);
    if seed.is_multiple_of(2) {
        let inner = cycle(&mut random);
        match seed % 8 {
            2 => return (first_rows(&mut random, &inner), false),
            6 => return (random_computed::query(&mut random, PREDICATES), false),
            _ => {}
        }
        return random::query_of(&mut random, &inner);
    }
    let (text, limited) = random::query(&mut random);
    (random_path::for_vervet(&text), limited)
}

/// A graph in all its forms.
struct Forms {
    /// The number of the graph.
    number: u64,
    trig: String,
    embedded: Database,
    twin: Twin,
    servers: Vec<Cluster>,
    /// Two of them have each partition. With an odd graph, one is away.
    with_replicas: Vec<Cluster>,
    _folders: [tempfile::TempDir; 2],
}

impl Forms {
    fn new(number: u64) -> Result<Self, String> {
        let trig = graph(&mut Random::new(number));
        let failed = |error: &dyn std::fmt::Display| format!("graph {number}: {error}\n{trig}");
        let embedded = Database::in_memory();
        embedded.load_text(Format::TriG, &trig).map_err(|error| failed(&error))?;
        let twin = Twin::new(&embedded, SERVERS, PARTITIONS)?;
        let (folder, made) = directories(&embedded, SERVERS, PARTITIONS)?;
        let open = |directory: &std::path::PathBuf| Cluster::open(directory, &DatabaseOptions::default());
        let servers = made.iter().map(open).collect::<vervet::Result<_>>().map_err(|error| failed(&error))?;
        let (other_folder, mut made) = directories_with_replicas(&embedded, SERVERS, PARTITIONS, 2)?;
        if number % 2 == 1 {
            made.remove(usize::try_from(number / 2).unwrap_or(0) % SERVERS);
        }
        let opened = made.iter().map(open).collect::<vervet::Result<_>>();
        let with_replicas = opened.map_err(|error| failed(&error))?;
        let _folders = [folder, other_folder];
        Ok(Self { number, trig, embedded, twin, servers, with_replicas, _folders })
    }
}

/// Cases one after the other. Successive seeds share a graph.
#[derive(Default)]
pub struct Suite {
    forms: Option<Forms>,
    /// Queries that ran at all servers, and rows that moved between them, over connections and without.
    counts: [(u64, u64); 2],
}

impl Suite {
    /// Runs the case of `seed`.
    ///
    /// # Errors
    /// The graph, the query, and the differing answers.
    pub fn case(&mut self, seed: u64) -> Result<Verdict, String> {
        let number = seed / QUERIES_OF_GRAPH;
        if self.forms.as_ref().is_none_or(|forms| forms.number != number) {
            self.count();
            self.forms = Some(Forms::new(number)?);
        }
        let Some(Forms { trig, embedded, twin, servers, with_replicas, .. }) = &self.forms else {
            return Err("no graph".to_owned());
        };
        let (text, limited) = query(seed);
        let answer = |database: &Database, configuration| random::ours(database, &text, configuration, true);
        let expected = answer(embedded, CONFIGURATIONS[0]);
        let asked = |servers: &'_ [Cluster]| {
            let asked = servers.get(usize::try_from(seed).unwrap_or(0) % servers.len().max(1));
            asked.map(|server| server.database().clone()).ok_or_else(|| "no server".to_owned())
        };
        let (cluster, redundant) = (asked(servers)?, asked(with_replicas)?);
        for configuration in CONFIGURATIONS {
            for (name, database) in [
                ("without connections", twin.database()),
                ("over connections", &cluster),
                ("with replicas", &redundant),
            ] {
                let found = answer(database, configuration);
                let is_equal = match (&found, &expected) {
                    (Outcome::Rows(found), Outcome::Rows(expected)) if limited => {
                        found.len() == expected.len()
                    }
                    (Outcome::Refused(_), Outcome::Refused(_)) => true,
                    (found, expected) => found == expected,
                };
                if !is_equal {
                    let (threads, heavy_from) = configuration;
                    let options = QueryOptions { heavy_from, ..QueryOptions::default() };
                    let plan = database.explain(&text, &options).unwrap_or_else(|error| error.to_string());
                    let difference = random::difference(&found, &expected);
                    return Err(format!(
                        "seed {seed}, {SERVERS} servers {name}, {threads} threads\n{trig}\n{text}\n\
                         the first answer is of the servers, the second of a database\n{difference}\n{plan}"
                    ));
                }
            }
        }
        Ok(match expected {
            Outcome::Refused(_) => Verdict::RefusedByBoth,
            Outcome::NotSupported(_) => Verdict::NotSupported,
            _ => Verdict::Compared,
        })
    }

    /// Adds the counts of the current graph.
    fn count(&mut self) {
        let Some(forms) = &self.forms else { return };
        let of_servers = forms.servers.iter().map(|server| {
            let counts = server.query_counts();
            (counts.queries, counts.rows_moved)
        });
        let of_servers = of_servers.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        for (sum, one) in self.counts.iter_mut().zip([of_servers, forms.twin.counts()]) {
            *sum = (sum.0 + one.0, sum.1 + one.1);
        }
    }

    /// Queries that ran at all servers, and rows that moved between them: over connections, and without.
    pub fn counts(&mut self) -> [(u64, u64); 2] {
        self.count();
        self.forms = None;
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set VERVET_RANDOM_SEED to start elsewhere and VERVET_RANDOM_CASES to run more.
    #[test]
    fn servers_answer_random_queries_as_a_database() {
        let number = |name: &str, default: u64| {
            std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        let (first, cases) = (number("VERVET_RANDOM_SEED", 1), number("VERVET_RANDOM_CASES", 240));
        let mut suite = Suite::default();
        let mut compared = 0;
        for seed in first..first + cases {
            match suite.case(seed) {
                Ok(verdict) => compared += u64::from(verdict == Verdict::Compared),
                Err(difference) => panic!("{difference}"),
            }
        }
        let counts = suite.counts();
        assert!(compared > cases / 2, "{compared} of {cases} were compared");
        // Both ran at all servers, and rows moved.
        assert!(counts.iter().all(|(queries, moved)| *queries > cases / 2 && *moved > cases), "{counts:?}");
    }
}
