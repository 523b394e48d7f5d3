//! The generated social network has the statistics of LDBC's: counts for each person and percentiles of
//! degrees are near those of SF0.1 (1,528 persons), and times are consistent. docs/benchmarks/snb-like.md has
//! the figures.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::rc::Rc;
use vervet_generate::{SnbStatistics, generate_snb};

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The rows of each file, split into cells, without headers.
struct Network {
    files: BTreeMap<String, Vec<Vec<String>>>,
    statistics: SnbStatistics,
}

fn texts(persons: u32, seed: u64) -> (BTreeMap<String, Vec<u8>>, SnbStatistics) {
    let mut files: Vec<(String, Shared)> = Vec::new();
    let statistics = generate_snb(persons, seed, &mut |name| {
        let file = Shared::default();
        files.push((name.to_owned(), file.clone()));
        Ok(Box::new(file))
    });
    let texts = files.into_iter().map(|(name, file)| (name, file.0.take())).collect();
    (texts, statistics.expect("writing to memory cannot fail"))
}

fn network(persons: u32) -> Network {
    let (texts, statistics) = texts(persons, 1);
    let cut = |text: Vec<u8>| {
        let text = String::from_utf8(text).expect("text");
        let columns = text.lines().next().expect("a header").split('|').count();
        let rows: Vec<Vec<String>> =
            text.lines().skip(1).map(|line| line.split('|').map(str::to_owned).collect()).collect();
        assert!(rows.iter().all(|row| row.len() == columns));
        rows
    };
    let name = |name: String| name.strip_suffix("_0_0.csv").expect("a name of LDBC").to_owned();
    Network { files: texts.into_iter().map(|(file, text)| (name(file), cut(text))).collect(), statistics }
}

impl Network {
    fn rows(&self, file: &str) -> &[Vec<String>] {
        self.files.get(file).unwrap_or_else(|| panic!("no file {file}"))
    }

    /// Number of occurrences of each value of a column.
    fn counts(&self, file: &str, columns: &[usize]) -> Vec<usize> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for row in self.rows(file) {
            for column in columns {
                *counts.entry(&row[*column]).or_default() += 1;
            }
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable();
        counts
    }

    /// One column indexed by another.
    fn column(&self, file: &str, key: usize, value: usize) -> HashMap<&str, &str> {
        self.rows(file).iter().map(|row| (row[key].as_str(), row[value].as_str())).collect()
    }
}

/// Rows of each file of SF0.1 for a person, counted in its files.
const ROWS: [(&str, f64); 17] = [
    ("person_knows_person", 9.21),
    ("person_hasInterest_tag", 23.2),
    ("person_studyAt_organisation", 0.79),
    ("person_workAt_organisation", 2.17),
    ("forum", 9.0),
    ("forum_hasMember_person", 65.1),
    ("forum_hasTag_tag", 31.2),
    ("post", 88.8),
    ("post_hasTag_tag", 33.5),
    ("comment", 98.8),
    ("comment_replyOf_post", 48.6),
    ("comment_replyOf_comment", 50.3),
    ("comment_hasTag_tag", 125.2),
    ("person_likes_post", 30.9),
    ("person_likes_comment", 40.7),
    ("post_hasCreator_person", 88.8),
    ("comment_hasCreator_person", 98.8),
];

/// File, columns, and the 25th, 50th, 75th and 90th percentile of the number of occurrences of a value in
/// SF0.1.
const DEGREES: [(&str, &[usize], [usize; 4]); 9] = [
    ("person_knows_person", &[0, 1], [5, 12, 27, 49]),
    ("person_hasInterest_tag", &[0], [3, 14, 40, 61]),
    ("forum_hasModerator_person", &[1], [1, 2, 17, 27]),
    ("forum_hasMember_person", &[0], [2, 5, 11, 20]),
    ("forum_hasMember_person", &[1], [13, 37, 90, 166]),
    ("forum_containerOf_post", &[0], [5, 10, 15, 19]),
    ("post_hasCreator_person", &[1], [7, 52, 175, 275]),
    ("comment_hasCreator_person", &[1], [16, 47, 128, 295]),
    ("comment_replyOf_post", &[1], [3, 5, 7, 9]),
];

#[test]
fn the_network_matches_the_measured_profile() {
    const PERSONS: u32 = 1_528;
    let network = network(PERSONS);
    let mut far = Vec::new();
    println!("| rows for each person | SF0.1 | here |\n| --- | ---: | ---: |");
    for (file, expected) in ROWS {
        let rows = network.rows(file).len() as f64 / f64::from(PERSONS);
        println!("| `{file}` | {expected} | {rows:.1} |");
        if !(expected * 0.75..=expected * 1.33).contains(&rows) {
            far.push(format!("{file}: {rows:.1} instead of {expected}"));
        }
    }
    println!("| degrees | SF0.1: 25, 50, 75, 90 % | here |\n| --- | --- | --- |");
    for (file, columns, expected) in DEGREES {
        let counts = network.counts(file, columns);
        let here = [25, 50, 75, 90].map(|percent| counts[counts.len() * percent / 100]);
        println!("| `{file}` {columns:?} | {expected:?} | {here:?} |");
        for (here, expected) in here.into_iter().zip(expected) {
            if here > expected * 2 + 2 || here * 2 + 2 < expected {
                far.push(format!("{file}: a degree of {here} instead of {expected}"));
            }
        }
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
    assert_eq!(network.rows("person").len(), PERSONS as usize);
    assert_eq!(network.rows("post").len() as u64, network.statistics.posts);
    assert_eq!(network.rows("comment").len() as u64, network.statistics.comments);
    assert_eq!(network.rows("tag").len(), 16_080);
}

#[test]
fn timestamps_respect_causality() {
    let network = network(300);
    let time = |text: &str| text.parse::<i64>().expect("milliseconds");
    let persons = network.column("person", 0, 5);
    let posts = network.column("post", 0, 2);
    let comments = network.column("comment", 0, 1);
    let forums = network.column("forum", 0, 2);
    let mut checked = 0;
    let mut check = |file: &str, later: &str, earlier: &str| {
        assert!(time(later) > time(earlier), "{file}: {later} is not after {earlier}");
        assert!(time(later) < 1_356_998_400_000);
        checked += 1;
    };
    for row in network.rows("person_knows_person") {
        check("knows", &row[2], persons[row[0].as_str()]);
        check("knows", &row[2], persons[row[1].as_str()]);
    }
    for row in network.rows("forum_hasMember_person") {
        check("member", &row[2], forums[row[0].as_str()]);
        check("member", &row[2], persons[row[1].as_str()]);
    }
    for row in network.rows("forum_hasModerator_person") {
        check("forum", forums[row[0].as_str()], persons[row[1].as_str()]);
    }
    for row in network.rows("forum_containerOf_post") {
        check("post", posts[row[1].as_str()], forums[row[0].as_str()]);
    }
    for (file, messages) in [("person_likes_post", &posts), ("person_likes_comment", &comments)] {
        for row in network.rows(file) {
            check(file, &row[2], messages[row[1].as_str()]);
            check(file, &row[2], persons[row[0].as_str()]);
        }
    }
    for (file, parents) in [("comment_replyOf_post", &posts), ("comment_replyOf_comment", &comments)] {
        for row in network.rows(file) {
            check(file, comments[row[0].as_str()], parents[row[1].as_str()]);
        }
    }
    for (file, messages) in [("post_hasCreator_person", &posts), ("comment_hasCreator_person", &comments)] {
        for row in network.rows(file) {
            check(file, messages[row[0].as_str()], persons[row[1].as_str()]);
        }
    }
    assert!(checked > 50_000, "{checked}");
}

/// Friends are similar: the share of pairs from one country is much larger among friends than among all
/// pairs.
#[test]
fn friends_correlate() {
    let network = network(1_000);
    let cities = network.column("person_isLocatedIn_place", 0, 1);
    let countries = network.column("place_isPartOf_place", 0, 1);
    let country = |person: &str| countries[cities[person]];
    let friends = network.rows("person_knows_person");
    let same = friends.iter().filter(|row| country(&row[0]) == country(&row[1])).count();
    let mut residents: HashMap<&str, f64> = HashMap::new();
    for person in cities.keys() {
        *residents.entry(country(person)).or_default() += 1.0;
    }
    let chance: f64 = residents.values().map(|count| (count / 1_000.0) * (count / 1_000.0)).sum();
    let share = same as f64 / friends.len() as f64;
    println!("{share:.2} of friends come from one country, {chance:.2} of all pairs do");
    assert!(share > 3.0 * chance, "{share} and {chance}");
    let mut seen = HashSet::new();
    for row in friends {
        assert!(row[0] != row[1] && seen.insert((&row[0], &row[1])) && !seen.contains(&(&row[1], &row[0])));
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert!(texts(60, 5) == texts(60, 5));
    assert_ne!(texts(60, 5).0["person_0_0.csv"], texts(60, 6).0["person_0_0.csv"]);
    for persons in 2..6 {
        assert_eq!(texts(persons, 0).0.len(), 31);
    }
}
