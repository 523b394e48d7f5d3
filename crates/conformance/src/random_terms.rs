//! The vocabulary of random cases: terms, variables and graphs.

use std::fmt::Write;

/// Splitmix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap_or(0)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const VERTICES: usize = 7;
const PREDICATES: usize = 4;
pub(crate) const GRAPHS: usize = 2;
pub(crate) const VARIABLES: [&str; 6] = ["?a", "?b", "?c", "?d", "?e", "?f"];
/// Canonical forms only: Oxigraph returns numbers in its own form, Vervet as they were written.
pub(crate) const LITERALS: [&str; 13] = [
    "1",
    "2",
    "10",
    "2.5",
    "\"1.5\"^^<http://www.w3.org/2001/XMLSchema#double>",
    "\"a\"",
    "\"b\"",
    "\"a longer string\"",
    "\"a\"@en",
    "\"b\"@de",
    "true",
    "\"2020-01-01T00:00:00Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime>",
    "\"x\"^^<urn:t>",
];

pub(crate) fn vertex(random: &mut Random) -> String {
    format!("<urn:v{}>", random.below(VERTICES))
}

pub(crate) fn predicate(random: &mut Random) -> String {
    if random.chance(20) {
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>".to_owned()
    } else {
        format!("<urn:p{}>", random.below(PREDICATES))
    }
}

pub(crate) fn object(random: &mut Random, predicate: &str) -> String {
    if predicate.ends_with("type>") {
        format!("<urn:C{}>", random.below(3))
    } else if random.chance(35) {
        random.pick(&LITERALS).to_owned()
    } else {
        vertex(random)
    }
}

/// A random graph as TriG.
pub(crate) fn graph(random: &mut Random) -> String {
    let mut text = String::new();
    let statements = random.below(40);
    for _ in 0..statements {
        let predicate = predicate(random);
        let statement = format!("{} {predicate} {} .", vertex(random), object(random, &predicate));
        // Writing to a `String` cannot fail.
        let _ = if random.chance(20) {
            writeln!(text, "<urn:g{}> {{ {statement} }}", random.below(GRAPHS))
        } else {
            writeln!(text, "{statement}")
        };
    }
    text
}

pub(crate) fn variable(random: &mut Random) -> &'static str {
    VARIABLES[random.below(VARIABLES.len())]
}
