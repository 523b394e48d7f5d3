//! Conditions that start from a prefix or a range of values, against the same conditions hidden from the
//! planner (inside `IF`), over random values of every kind that a prefix or a range can meet. A failure
//! prints its seed and query.

use std::collections::BTreeMap;
use std::fmt::Write;
use vervet::{Database, Format, QueryOptions};

/// A linear congruential generator: the seed is all that a failure needs.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn text(&mut self) -> String {
        let pieces = ["a", "b", "ab", "é", "日", "\u{10FFFF}", " ", "abc", "http://e/", "1", "z"];
        (0..self.below(6)).map(|_| self.pick(&pieces)).collect()
    }

    fn number(&mut self) -> i64 {
        let near = i64::try_from(self.below(41)).expect("small") - 20;
        match self.below(12) {
            0 => near << 40,
            1 => (1 << 58) + near,
            2 => -(1 << 58) - near,
            3 => i64::from(i32::MAX) + near,
            _ => near,
        }
    }

    /// A term as SPARQL and Turtle write it.
    fn value(&mut self) -> String {
        let xsd = "http://www.w3.org/2001/XMLSchema#";
        let number = self.number();
        match self.below(20) {
            0..=7 => format!("\"{}\"", self.text()),
            8 | 9 => format!("\"{}\"@{}", self.text(), self.pick(&["en", "de"])),
            10 | 11 => format!("{number}"),
            12 => format!("\"{}\"^^<{xsd}int>", number % 1_000_000),
            13 => format!("\"{number}\"^^<{xsd}long>"),
            14 => format!("{}.{}", number % 1000, self.pick(&["0", "5", "25", "1000000001"])),
            15 => format!("{}e{}", self.pick(&["0", "-0", "1.5", "2.25", "-1.1", "9"]), self.below(4)),
            16 => format!("\"{}\"^^<{xsd}double>", self.pick(&["NaN", "INF", "-INF", "0.0E0", "07"])),
            17 => {
                let (month, hour) = (1 + self.below(12), self.below(24));
                let zone = self.pick(&["Z", "", "+05:00", "-03:00"]);
                format!("\"2010-{month:02}-15T{hour:02}:00:00{zone}\"^^<{xsd}dateTime>")
            }
            18 => format!("\"2010-{:02}-15{}\"^^<{xsd}date>", 1 + self.below(12), self.pick(&["", "Z"])),
            _ => self
                .pick(&["<http://e/a>", "<http://e/b>", "\"x\"^^<http://e/type>", "true", "_:b"])
                .to_owned(),
        }
    }

    /// A constant that is no blank node.
    fn constant(&mut self) -> String {
        loop {
            let value = self.value();
            if !value.starts_with("_:") {
                return value;
            }
        }
    }

    fn condition(&mut self) -> String {
        let subject = self.pick(&["?o", "?o", "STR(?o)"]);
        let text = self.text();
        match self.below(10) {
            0..=2 => format!("STRSTARTS({subject}, \"{text}\")"),
            3 => format!("STRSTARTS({subject}, \"{text}\"@en)"),
            4 => format!("REGEX({subject}, \"^{text}{}\")", self.pick(&["", "$", "*", "?", ".", "|z", "+b"])),
            5 => format!("REGEX({subject}, \"^{text}\", \"{}\")", self.pick(&["", "s", "i"])),
            6 => format!("{subject} = {}", self.constant()),
            7 => format!("{} {} {subject}", self.constant(), self.pick(&["<", "<=", ">", ">="])),
            _ => format!("{subject} {} {}", self.pick(&["<", "<=", ">", ">="]), self.constant()),
        }
    }
}

fn rows(database: &Database, query: &str) -> BTreeMap<String, usize> {
    let solutions = database.select(query).unwrap_or_else(|error| panic!("{error}\n{query}"));
    let mut all = BTreeMap::new();
    for row in solutions.rows() {
        let term = |name| row.get(name).expect("readable").map(|term| term.to_string()).unwrap_or_default();
        *all.entry(solutions.variables().iter().map(|name| term(name)).collect::<Vec<_>>().join(" "))
            .or_default() += 1;
    }
    all
}

#[test]
fn seeking_changes_no_answer() {
    let mut sought = 0;
    for seed in 1..=12 {
        println!("seed {seed}");
        let random = &mut Random(seed);
        let mut turtle = String::new();
        for _ in 0..400 {
            let predicate = random.pick(&["p", "q", "r"]);
            let value = if predicate == "r" { format!("{}", random.number()) } else { random.value() };
            writeln!(turtle, "<http://e/s{}> <http://e/{predicate}> {value} .", random.below(60))
                .expect("text");
        }
        let database = Database::in_memory();
        database.load_text(Format::Turtle, &turtle).expect("it loads");
        database.check().expect("whole");
        for _ in 0..60 {
            let conditions: Vec<String> = (0..1 + random.below(2)).map(|_| random.condition()).collect();
            let predicate = random.pick(&["p", "q", "r"]);
            let (select, more) = random.pick(&[
                ("*", ""),
                ("?o", ""),
                ("DISTINCT ?s", ""),
                ("(COUNT(*) AS ?n)", ""),
                ("*", "?s <http://e/q> ?other ."),
                ("*", "?other <http://e/p> ?o ."),
            ]);
            let query = |conditions: &str| {
                format!("SELECT {select} {{ ?s <http://e/{predicate}> ?o . {more} FILTER({conditions}) }}")
            };
            let open = query(&conditions.join(" && "));
            let hidden: Vec<String> =
                conditions.iter().map(|one| format!("IF(true, {one}, false)")).collect();
            let hidden = query(&hidden.join(" && "));
            sought += usize::from(
                database.explain(&open, &QueryOptions::default()).expect("plan").contains("seek"),
            );
            assert!(!database.explain(&hidden, &QueryOptions::default()).expect("plan").contains("seek"));
            assert_eq!(rows(&database, &open), rows(&database, &hidden), "seed {seed}\n{open}");
        }
    }
    assert!(sought > 100, "only {sought} of 720 plans seek");
}

#[test]
fn a_prefix_of_many_names_is_sought() {
    let mut text = String::new();
    for number in 0..3000 {
        writeln!(text, "<http://e/s{number}> <http://e/name> \"Student number {number}\" .").expect("text");
        writeln!(text, "<http://e/s{number}> <http://e/code> \"c{number}\" .").expect("text");
        writeln!(text, "<http://e/s{number}> <http://e/age> {} .", number % 100).expect("text");
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).expect("it loads");
    for (condition, predicate, values, answers) in [
        ("STRSTARTS(?o, \"Student number 12\")", "name", 111, 111),
        ("REGEX(?o, \"^Student number 299[0-4]\")", "name", 11, 5),
        ("?o >= \"Student number 2999\"", "name", 778, 778),
        ("STRSTARTS(?o, \"c299\")", "code", 11, 11),
        ("?o < 3 && ?o >= 1", "age", 3, 60),
    ] {
        let query = format!("SELECT ?s {{ ?s <http://e/{predicate}> ?o FILTER({condition}) }}");
        let plan = database.explain(&query, &QueryOptions::default()).expect("plan");
        assert!(plan.contains(&format!("among {values} values")), "{query}\n{plan}");
        assert_eq!(database.select(&query).expect("it runs").len(), answers, "{query}");
    }
}
