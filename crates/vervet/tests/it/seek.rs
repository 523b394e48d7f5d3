//! Conditions that use a prefix or range seek, against the same conditions hidden from the planner (inside
//! `IF`), over random values of every kind that a prefix or a range can meet. A failure prints its seed and
//! query.

use std::collections::BTreeMap;
use std::fmt::Write;
use vervet::{Database, Format, LoadOptions, QueryOptions};

/// A linear congruential generator: the seed reproduces a failure.
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

    /// A term in SPARQL and Turtle notation.
    fn value(&mut self) -> String {
        let xsd = "http://www.w3.org/2001/XMLSchema#";
        let number = self.number();
        match self.below(22) {
            20 => {
                let digits =
                    self.pick(&["", "0000000000000000000", "0000000000000000000000000000000000000000"]);
                format!("{number}{digits}")
            }
            21 => {
                let zeros = self.pick(&["", "0000000000000000000", "00000000000000000000000000000000"]);
                let whole = self.pick(&["", "000000000000000000000"]);
                format!("{}{whole}.{zeros}{}", number % 1000, 1 + self.below(9))
            }
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

    /// A constant that is not a blank node.
    fn constant(&mut self) -> String {
        loop {
            let value = self.value();
            if !value.starts_with("_:") {
                return value;
            }
        }
    }

    /// A full-text search for words that [`Random::text`] generates.
    fn search(&mut self) -> String {
        let words = [
            "a", "b", "ab", "é", "日", "abc", "1", "aa", "abab", "é1", "zz*", "a*", "ab*", "\"a b\"",
            "\"b a*\"", "日日",
        ];
        let mut text = self.pick(&words).to_owned();
        for _ in 0..self.below(3) {
            let (before, word) = (self.pick(&[" ", " ", " -", " OR "]), self.pick(&words));
            text += &format!("{before}{word}");
        }
        text
    }

    fn condition(&mut self) -> String {
        let subject = self.pick(&["?o", "?o", "STR(?o)"]);
        let text = self.text();
        match self.below(15) {
            12.. => {
                let list: Vec<_> = (0..self.below(4)).map(|_| self.constant()).collect();
                let texts: Vec<_> = (0..self.below(4)).map(|_| format!("\"{}\"", self.text())).collect();
                format!("{subject} IN ({})", self.pick(&[&list, &texts]).join(", "))
            }
            10 | 11 => format!("<urn:vervet:text:matches>(?o, '{}')", self.search()),
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

/// Turns the word index on.
fn index_words(database: &Database) {
    let options = LoadOptions { text_index: true, ..LoadOptions::default() };
    database.load(Vec::new(), &options).expect("it loads nothing");
}

fn rows(database: &Database, query: &str) -> BTreeMap<String, usize> {
    rows_of(&database.select(query).unwrap_or_else(|error| panic!("{error}\n{query}")))
}

fn rows_of(solutions: &vervet::Solutions) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for row in solutions.rows() {
        let term = |name| row.get(name).expect("readable").map(|term| term.to_string()).unwrap_or_default();
        *all.entry(solutions.variables().iter().map(|name| term(name)).collect::<Vec<_>>().join(" "))
            .or_default() += 1;
    }
    all
}

/// A query with conditions, and the same query with the conditions hidden from the planner.
fn queries(random: &mut Random) -> (String, String) {
    let conditions: Vec<String> = (0..1 + random.below(2)).map(|_| random.condition()).collect();
    let predicate =
        random.pick(&["<http://e/p>", "<http://e/q>", "<http://e/r>", "?predicate", "?predicate"]);
    let (select, more) = random.pick(&[
        ("*", ""),
        ("?o", ""),
        ("DISTINCT ?s", ""),
        ("(COUNT(*) AS ?n)", ""),
        ("*", "?s <http://e/q> ?other ."),
        ("*", "?other <http://e/p> ?o ."),
        ("*", "?from <http://e/q> ?s ."),
        ("?from", "?from <http://e/p> ?s . ?from <http://e/r> ?other ."),
    ]);
    let query =
        |conditions: &str| format!("SELECT {select} {{ ?s {predicate} ?o . {more} FILTER({conditions}) }}");
    let hidden: Vec<String> = conditions.iter().map(|one| format!("IF(true, {one}, false)")).collect();
    (query(&conditions.join(" && ")), query(&hidden.join(" && ")))
}

/// Statements in Turtle and SPARQL notation.
fn statements(random: &mut Random, count: usize) -> String {
    let mut text = String::new();
    for _ in 0..count {
        let predicate = random.pick(&["p", "q", "r"]);
        let value = match predicate {
            "r" => format!("{}", random.number()),
            "q" if random.below(2) == 0 => format!("<http://e/s{}>", random.below(60)),
            _ => random.value(),
        };
        writeln!(text, "<http://e/s{}> <http://e/{predicate}> {value} .", random.below(60)).expect("text");
    }
    text
}

#[test]
fn seeking_changes_no_answer() {
    let (mut sought, mut implied) = (0, 0);
    for seed in 1..=12 {
        println!("seed {seed}");
        let random = &mut Random(seed);
        let database = Database::in_memory();
        if seed % 2 == 0 {
            index_words(&database);
        }
        database.load_text(Format::Turtle, &statements(random, 400)).expect("it loads");
        database.check().expect("whole");
        for _ in 0..60 {
            let (open, hidden) = queries(random);
            let plan = database.explain(&open, &QueryOptions::default()).expect("plan");
            sought += usize::from(plan.contains("seek"));
            implied += usize::from(plan.contains("?s in ("));
            implied += usize::from(plan.contains("?s in ("));
            assert!(!database.explain(&hidden, &QueryOptions::default()).expect("plan").contains("seek"));
            assert_eq!(rows(&database, &open), rows(&database, &hidden), "seed {seed}\n{open}");
        }
    }
    assert!(sought > 100, "only {sought} of 720 plans seek");
    assert!(implied > 5, "only {implied} of 720 plans have a condition on subjects");
}

/// The same over changing data: plans reused on other versions, old snapshots of transactions at both
/// isolation levels with their own changes, and merges in between.
#[test]
fn seeking_changes_no_answer_while_data_change() {
    let mut sought = 0;
    for seed in 1..=12 {
        println!("seed {seed}");
        let random = &mut Random(seed ^ 0xDE17A);
        let database = Database::in_memory();
        if random.below(2) > 0 {
            index_words(&database);
        }
        if random.below(3) > 0 {
            database.load_text(Format::Turtle, &statements(random, 150)).expect("it loads");
        }
        let mut open_transactions = Vec::new();
        let mut prepared: Vec<[vervet::Prepared; 2]> = Vec::new();
        for _ in 0..25 {
            match random.below(8) {
                0 => drop(database.checkpoint().expect("room")),
                1 => {
                    let isolation =
                        random.pick(&[vervet::Isolation::Serializable, vervet::Isolation::Snapshot]);
                    let options = vervet::TransactionOptions { isolation };
                    let mut transaction = database.begin_with(options).expect("begins");
                    let text = format!("INSERT DATA {{ {} }}", statements(random, 10));
                    transaction.update(&text).expect("it runs");
                    open_transactions.push(transaction);
                }
                2 => {
                    let number = random.below(60);
                    let text = format!("DELETE WHERE {{ <http://e/s{number}> ?p ?o }}");
                    database.update(&text).expect("it runs");
                }
                _ => {
                    let text = format!("INSERT DATA {{ {} }}", statements(random, 20));
                    database.update(&text).expect("it runs");
                }
            }
            for _ in 0..3 {
                let (open, hidden) = queries(random);
                sought += usize::from(
                    database.explain(&open, &QueryOptions::default()).expect("plan").contains("seek"),
                );
                assert_eq!(rows(&database, &open), rows(&database, &hidden), "seed {seed}\n{open}");
                for transaction in &open_transactions {
                    let rows = |query: &str| rows_of(&transaction.select(query).expect("it runs"));
                    assert_eq!(rows(&open), rows(&hidden), "seed {seed}, in a transaction\n{open}");
                }
                prepared.push([&open, &hidden].map(|query| database.prepare(query).expect("it parses")));
            }
            for [open, hidden] in &prepared {
                let rows = |prepared: &vervet::Prepared| {
                    rows_of(&prepared.run().expect("it runs").into_solutions().expect("a SELECT"))
                };
                assert_eq!(rows(open), rows(hidden), "seed {seed}");
            }
        }
    }
    assert!(sought > 100, "only {sought} of 900 plans seek");
}

/// Rows of a query, asserted equal to those of the same query with its condition hidden from the planner,
/// which then reads all objects.
fn rows_without_seek(database: &Database, pattern: &str, condition: &str) -> BTreeMap<String, usize> {
    let open = format!("SELECT * {{ {pattern} FILTER({condition}) }}");
    let plan = database.explain(&open, &QueryOptions::default()).expect("plan");
    assert!(plan.contains("seek "), "{open}\n{plan}");
    let hidden = format!("SELECT * {{ {pattern} FILTER(IF(true, {condition}, false)) }}");
    let plan = database.explain(&hidden, &QueryOptions::default()).expect("plan");
    assert!(!plan.contains("seek "), "{hidden}\n{plan}");
    let found = rows(database, &open);
    assert_eq!(found, rows(database, &hidden), "{open}");
    found
}

/// A word search in the values of any predicate starts from the index: in loaded statements, in later ones,
/// in named graphs, and in properties of edges.
#[test]
fn users_29_searches_of_any_predicate_are_seeks() {
    let database = Database::in_memory();
    index_words(&database);
    let mut text = String::new();
    for number in 0..2000 {
        let vertex = format!("<http://e/v{number}>");
        let next = format!("<http://e/v{}>", (number + 1) % 2000);
        write!(
            text,
            "{vertex} <http://e/name> \"A vertex with number {number}\" ; <http://e/code> \"c {number}\" ;
             <http://e/age> {number} ; <http://e/note{}> \"Note on {number}\"@en .
             {vertex} <http://e/knows> {next} {{| <http://e/why> \"Because of {number}\" |}} .\n",
            number % 7,
        )
        .expect("text");
    }
    database.load_text(Format::Turtle, &text).expect("it loads");
    let matches = |search: &str| format!("<urn:vervet:text:matches>(?t, '{search}')");
    // A name, a short code inline in its id, a note, and the reason of an edge.
    for (search, count) in [("1234", 4), ("note 77", 1), ("c 5", 1), ("because 9*", 111), ("absent", 0)] {
        let found = rows_without_seek(&database, "?s ?p ?t", &matches(search));
        assert_eq!(found.len(), count, "{search}: {found:?}");
    }
    let prefix = "STRSTARTS(?t, \"A vertex with number 199\")";
    assert_eq!(rows_without_seek(&database, "?s ?p ?t", prefix).len(), 11);
    // Bound on one side, in two patterns, with a join.
    rows_without_seek(&database, "?s ?p ?t . ?s <http://e/age> ?age", &matches("number 1234"));
    rows_without_seek(&database, "?s ?p ?t . ?other ?q ?s", &matches("number 1234"));

    let update = "INSERT DATA {
        <http://e/v1> <http://e/late> \"The late 1234 one\" , \"1234\" .
        GRAPH <http://e/g> { <http://e/v2> <http://e/name> \"In a graph 1234\" , \"A vertex with number 1234\" }
        GRAPH <http://e/h> { <http://e/v3> <http://e/other> \"1234\"@de } } ;
        DELETE DATA { <http://e/v1234> <http://e/code> \"c 1234\" }";
    database.update(update).expect("it runs");
    for round in ["delta", "base"] {
        let found = |pattern: &str| rows_without_seek(&database, pattern, &matches("1234")).len();
        assert_eq!(found("?s ?p ?t"), 5, "{round}");
        assert_eq!(found("GRAPH ?g { ?s ?p ?t }"), 3, "{round}");
        assert_eq!(found("GRAPH <http://e/g> { ?s ?p ?t }"), 2, "{round}");
        database.checkpoint().expect("room");
    }
    // A predicate added while a prepared query is kept.
    let query = format!("SELECT * {{ ?s ?p ?t FILTER({}) }}", matches("1234"));
    let prepared = database.prepare(&query).expect("it parses");
    let count = || prepared.run().expect("it runs").into_solutions().expect("a SELECT").len();
    assert_eq!(count(), 5);
    database
        .update("INSERT DATA { <http://e/x> <http://e/new> 'A new 1234' , '1234 too' }")
        .expect("it runs");
    assert_eq!(count(), 7);
}

/// New texts are found by a seek: the number of entries read does not grow with their number.
#[test]
fn new_literals_are_sought_too() {
    let database = Database::in_memory();
    let mut text = String::new();
    for number in 0..1000 {
        writeln!(text, "<http://e/s{number}> <http://e/name> \"Student number {number}\" .").expect("text");
    }
    database.load_text(Format::Turtle, &text).expect("it loads");
    for part in 0..10 {
        let mut text = String::from("INSERT DATA {");
        for number in part * 10_000..(part + 1) * 10_000 {
            write!(
                text,
                "<http://e/n{number}> <http://e/name> \"New student {number}\" ; <http://e/age> {number} ."
            )
            .expect("text");
        }
        database.update(&(text + "}")).expect("it runs");
    }
    let transaction = database.begin().expect("begins");
    for (condition, predicate, values, answers) in [
        ("STRSTARTS(?o, \"New student 123\")", "name", 111, 111),
        ("STRSTARTS(?o, \"New student 1234\") || false", "name", 0, 11),
        ("STRSTARTS(?o, \"Student number 12\")", "name", 11, 11),
        ("?o >= \"New student 99998\" && ?o < \"Q\"", "name", 2, 2),
        ("?o < 30003 && ?o >= 30001", "age", 3, 2),
    ] {
        let query = format!("SELECT ?s {{ ?s <http://e/{predicate}> ?o FILTER({condition}) }}");
        let plan = database.explain(&query, &QueryOptions::default()).expect("plan");
        let seeks = plan.contains(&format!("among {values} values"));
        assert_eq!(seeks, values > 0, "{query}\n{plan}");
        assert_eq!(database.select(&query).expect("it runs").len(), answers, "{query}");
        assert_eq!(transaction.select(&query).expect("it runs").len(), answers, "{query}");
    }
    let found = |search: &str| {
        let query =
            format!("SELECT ?s {{ ?s <http://e/name> ?o FILTER <urn:vervet:text:matches>(?o, '{search}') }}");
        (
            database.explain(&query, &QueryOptions::default()).expect("plan"),
            database.select(&query).expect("it runs").len(),
        )
    };
    assert!(!found("student 123").0.contains("among"));
    index_words(&database);
    for (search, values, answers) in [
        ("student 123", 2, 2),
        ("new 123", 1, 1),
        ("student number 999", 1, 1),
        ("9999* number", 1, 0),
        ("9999*", 11, 11),
        ("\"student 77\" OR 5", 3, 3),
    ] {
        let (plan, count) = found(search);
        assert_eq!(count, answers, "{search}");
        assert!(plan.contains("among"), "{search} {values}\n{plan}");
    }
    let query = "SELECT ?s { ?s <http://e/name> \"New student 77\" }";
    assert_eq!(database.select(query).expect("it runs").len(), 1);
}

/// A transaction that has read a range conflicts with insertions into it and removals from it, and with no
/// other changes.
#[test]
fn ranges_are_read_and_no_phantom_gets_in() {
    let database = Database::in_memory();
    let mut text = String::new();
    for number in 0..100 {
        writeln!(
            text,
            "<http://e/s{number}> <http://e/age> {number} ; <http://e/code> \"c{number}\" ;
             <http://e/name> \"Student number {number}\" ; <http://e/title> \"Student title {number}\" ."
        )
        .expect("text");
    }
    index_words(&database);
    database.load_text(Format::Turtle, &text).expect("it loads");
    let read =
        |condition: &str, key: &str| format!("SELECT ?s {{ ?s <http://e/{key}> ?o FILTER({condition}) }}");
    let age = read("?o > 5 && ?o < 9", "age");
    let code = read("STRSTARTS(?o, \"c7\")", "code");
    let name = read("STRSTARTS(?o, \"Student number 12\")", "name");
    let found = read("<urn:vervet:text:matches>(?o, 'student 12')", "title");
    let nobody = read("STRSTARTS(?o, \"Nobody has this\")", "name");
    let cases: [(&str, &str, bool); 28] = [
        (&found, "INSERT DATA { <http://e/x> <http://e/title> \"A student with the number 12\" }", true),
        (&found, "DELETE DATA { <http://e/s12> <http://e/title> \"Student title 12\" }", true),
        (&found, "INSERT DATA { <http://e/x> <http://e/title> \"Student number 12\"@en }", true),
        (&found, "INSERT DATA { <http://e/x> <http://e/title> \"A student with the number 13\" }", false),
        (&found, "DELETE DATA { <http://e/s13> <http://e/title> \"Student title 13\" }", false),
        (&found, "INSERT DATA { <http://e/x> <http://e/name> \"A student with the number 12\" }", false),
        (&age, "INSERT DATA { <http://e/x> <http://e/age> 7 }", true),
        (&age, "INSERT DATA { <http://e/x> <http://e/age> 6.5 }", true),
        (&age, "INSERT DATA { <http://e/x> <http://e/age> 6.5e0 }", true),
        (&age, "DELETE DATA { <http://e/s8> <http://e/age> 8 }", true),
        (&age, "INSERT DATA { <http://e/x> <http://e/age> 4 }", false),
        (&age, "INSERT DATA { <http://e/x> <http://e/age> 1000 }", false),
        (&age, "INSERT DATA { <http://e/x> <http://e/size> 7 }", false),
        (&age, "DELETE DATA { <http://e/s4> <http://e/age> 4 }", false),
        (&code, "INSERT DATA { <http://e/x> <http://e/code> \"c777\" }", true),
        (&code, "DELETE DATA { <http://e/s7> <http://e/code> \"c7\" }", true),
        (&code, "INSERT DATA { <http://e/x> <http://e/code> \"c8\" }", false),
        (&code, "INSERT DATA { <http://e/x> <http://e/code> \"c6\" }", false),
        (&name, "INSERT DATA { <http://e/x> <http://e/name> \"Student number 12 new\" }", true),
        (&name, "INSERT DATA { <http://e/x> <http://e/name> \"Student number 12\" }", true),
        (&name, "DELETE DATA { <http://e/s12> <http://e/name> \"Student number 12\" }", true),
        (&name, "INSERT DATA { <http://e/x> <http://e/name> \"Student number 13 new\" }", false),
        (&name, "INSERT DATA { <http://e/x> <http://e/name> \"Another long text\" }", false),
        (&name, "INSERT DATA { <http://e/x> <http://e/title> \"Student number 12 new\" }", false),
        (&name, "DELETE DATA { <http://e/s13> <http://e/name> \"Student number 13\" }", false),
        (&nobody, "INSERT DATA { <http://e/x> <http://e/name> \"Nobody has this name\" }", true),
        (&nobody, "INSERT DATA { <http://e/x> <http://e/name> \"Somebody has this name\" }", false),
        (&nobody, "INSERT DATA { <http://e/x> <http://e/title> \"Nobody has this title\" }", false),
    ];
    for (query, change, conflicts) in cases {
        // As loaded, then with changes of each predicate, then with new texts in and near the range.
        for before in [
            "",
            "INSERT DATA { <http://e/y> <http://e/age> 50 ; <http://e/code> \"c50\" ; <http://e/name> \"Zoe with a long name\" }",
            "INSERT DATA { <http://e/z> <http://e/age> 8 ; <http://e/name> \"Student number 12 and more\", \"Student number 14 and more\" }",
        ] {
            if !before.is_empty() {
                database.update(before).expect("it runs");
            }
            let backup = database.select("SELECT * { <http://e/x> ?p ?o }").expect("it runs").len();
            assert_eq!(backup, 0);
            let mut transaction = database.begin().expect("begins");
            transaction.select(query).expect("it runs");
            transaction.update("INSERT DATA { <http://e/w> <http://e/seen> true }").expect("it runs");
            database.update(change).expect("it runs");
            let committed = transaction.commit();
            assert_eq!(committed.is_err(), conflicts, "{query}\n{change}\n{before}\n{committed:?}");
            // Undone, so that the next case starts from the same state.
            let undo = match change.strip_prefix("INSERT") {
                Some(data) => format!("DELETE{data}"),
                None => change.replacen("DELETE", "INSERT", 1),
            };
            database.update(&undo).expect("it runs");
            database.update("DELETE WHERE { <http://e/w> ?p ?o }").expect("it runs");
        }
    }
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

/// A plan is reused after a commit; what it knows of the neighbours of constants must hold then.
#[test]
fn plans_that_are_used_again_know_of_new_neighbours() {
    let query = "PREFIX : <http://e/> SELECT ?m { ?m :at ?p . ?p :name ?n FILTER(?n IN (\"n1\", \"n2\")) }";
    for is_loaded in [false, true] {
        let database = Database::in_memory();
        let places: String = (1..=10)
            .map(|at| format!("<http://e/p{at}> <http://e/name> \"n{at}\" . <http://e/m{at}> <http://e/at> <http://e/p{at}> . "))
            .collect();
        if is_loaded {
            database.load_text(Format::Turtle, &places).expect("it loads");
            let plan = database.explain(query, &QueryOptions::default()).expect("plan");
            assert!(plan.contains("?p in ("), "{plan}");
        } else {
            database.update(&format!("INSERT DATA {{ {places} }}")).expect("it is written");
        }
        let prepared = database.prepare(query).expect("it is a query");
        for more in 0..4 {
            assert_eq!(rows(&database, query).len(), 2 + more, "after {more} commits");
            let kept = prepared.run().expect("it runs").into_solutions().expect("it is a SELECT");
            assert_eq!(kept.rows().count(), 2 + more, "prepared, after {more} commits");
            let update = format!(
                "INSERT DATA {{ <http://e/q{more}> <http://e/name> \"n1\" . <http://e/new{more}> <http://e/at> <http://e/q{more}> }}"
            );
            database.update(&update).expect("it is written");
        }
    }
}
