//! Random groups with equalities and inequalities between parts that share no variable, and optional parts of
//! which only unmatched rows remain: the planner makes join keys, conditions of joins and anti-joins of them,
//! the other engine tests the conditions on the product of the parts.

use crate::random_terms::{GRAPHS, LITERALS, Random, VARIABLES, object, predicate, vertex};
use std::fmt::Write;

/// Values that are equal to others of another type or form. Oxigraph returns them as they are written.
const VALUES: [&str; 14] = [
    "1",
    "2",
    "\"1\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
    "\"1\"^^<http://www.w3.org/2001/XMLSchema#double>",
    "\"1\"^^<http://www.w3.org/2001/XMLSchema#float>",
    "\"2.5\"^^<http://www.w3.org/2001/XMLSchema#double>",
    "\"NaN\"^^<http://www.w3.org/2001/XMLSchema#double>",
    "\"NaN\"^^<http://www.w3.org/2001/XMLSchema#float>",
    "\"INF\"^^<http://www.w3.org/2001/XMLSchema#double>",
    "\"INF\"^^<http://www.w3.org/2001/XMLSchema#float>",
    "\"2020-01-01T01:00:00+01:00\"^^<http://www.w3.org/2001/XMLSchema#dateTime>",
    "\"2020-01-01T00:00:00\"^^<http://www.w3.org/2001/XMLSchema#dateTime>",
    "\"2020-01-01\"^^<http://www.w3.org/2001/XMLSchema#date>",
    "\"y\"^^<urn:t>",
];

/// A predicate whose objects are all strings in most cases.
const NAME: &str = "<urn:name>";

/// Objects of [`NAME`] that are no strings.
const OTHERS: [&str; 4] = ["\"a\"@en", "1", "<urn:v1>", "\"y\"^^<urn:t>"];

/// More statements for the graph of a case: objects of [`VALUES`], and names.
pub(crate) fn statements(random: &mut Random) -> String {
    let mut text = String::new();
    let with_others = random.chance(30);
    for _ in 0..random.below(12) {
        let name = match with_others && random.chance(20) {
            true => random.pick(&OTHERS),
            false => random.pick(&["\"a\"", "\"b\"", "\"a longer string\"", "\"another long string\""]),
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{} {NAME} {name} .", vertex(random));
    }
    for _ in 0..random.below(12) {
        let statement = format!("{} <urn:p{}> {} .", vertex(random), random.below(2), random.pick(&VALUES));
        // Writing to a `String` cannot fail.
        let _ = if random.chance(20) {
            writeln!(text, "<urn:g{}> {{ {statement} }}", random.below(GRAPHS))
        } else {
            writeln!(text, "{statement}")
        };
    }
    text
}

/// A group, without its braces.
pub(crate) fn group(random: &mut Random) -> String {
    let mut generator = Generator { random, new_variables: 0 };
    let depth = 1 + generator.random.below(2);
    generator.group(depth, &[])
}

struct Generator<'r> {
    random: &'r mut Random,
    new_variables: usize,
}

/// The variables of a part.
type Own = Vec<String>;

impl Generator<'_> {
    fn one(&mut self, of: &[String]) -> String {
        of[self.random.below(of.len())].clone()
    }

    fn new_variable(&mut self) -> String {
        self.new_variables += 1;
        format!("?x{}", self.new_variables)
    }

    fn literal(&mut self) -> &'static str {
        if self.random.chance(50) { self.random.pick(&VALUES) } else { self.random.pick(&LITERALS) }
    }

    fn predicate(&mut self) -> String {
        if self.random.chance(20) { NAME.to_owned() } else { predicate(self.random) }
    }

    fn pattern(&mut self, own: &[String]) -> String {
        let predicate = if self.random.chance(6) { self.one(own) } else { self.predicate() };
        let subject = if self.random.chance(90) { self.one(own) } else { vertex(self.random) };
        let object = if self.random.chance(85) { self.one(own) } else { object(self.random, &predicate) };
        format!("{subject} {predicate} {object} .")
    }

    fn patterns(&mut self, own: &[String]) -> String {
        let first = format!("{} {} {} .", own[0], self.predicate(), own[1 % own.len()]);
        if self.random.chance(35) { format!("{first} {}", self.pattern(own)) } else { first }
    }

    /// An element of a sub-query whose variables need not be `own`.
    fn hidden(&mut self, own: &[String]) -> String {
        let mut names: Own = VARIABLES.iter().map(|&name| name.to_owned()).collect();
        names.extend_from_slice(own);
        let pattern = format!("{} {} {} .", self.one(own), self.predicate(), self.one(&names));
        match self.random.below(6) {
            0 => pattern,
            1 => format!("FILTER EXISTS {{ {pattern} }}"),
            2 => format!("OPTIONAL {{ {pattern} }}"),
            3 => format!("FILTER NOT EXISTS {{ {pattern} {} }}", self.pattern(&names)),
            _ => String::new(),
        }
    }

    /// A part whose variables are `own`.
    fn part(&mut self, own: &mut Own, depth: usize) -> String {
        let patterns = self.patterns(own);
        match self.random.below(if depth == 0 { 10 } else { 16 }) {
            6 => {
                let values: Vec<String> = (0..1 + self.random.below(4))
                    .map(|_| match self.random.chance(70) {
                        true => self.literal().to_owned(),
                        false => vertex(self.random),
                    })
                    .collect();
                format!("VALUES {} {{ {} }}", own[1 % own.len()], values.join(" "))
            }
            7 => {
                let new = self.new_variable();
                let of = self.one(own);
                let expression = match self.random.below(4) {
                    0 => format!("STR({of})"),
                    1 => format!("{of} + 1"),
                    2 => of,
                    _ => format!("COALESCE({of}, 1)"),
                };
                own.push(new.clone());
                format!("{patterns} BIND({expression} AS {new})")
            }
            8 | 9 => {
                let name = match self.random.chance(60) {
                    true => self.one(own),
                    false => format!("<urn:g{}>", self.random.below(GRAPHS)),
                };
                format!("GRAPH {name} {{ {patterns} }}")
            }
            10 => format!("{{ {patterns} }} UNION {{ {} }}", self.patterns(own)),
            11 => {
                let hidden = self.hidden(own);
                let distinct = if self.random.chance(50) { "DISTINCT " } else { "" };
                let columns = if self.random.chance(70) { own.join(" ") } else { self.one(own) };
                format!("{{ SELECT {distinct}{columns} {{ {patterns} {hidden} }} }}")
            }
            12 => {
                let (key, of, new) = (self.one(own), self.one(own), self.new_variable());
                own.push(new.clone());
                let aggregate = ["COUNT", "MAX", "SUM"][self.random.below(3)];
                // The standard leaves the order of values of different types open.
                let of = if aggregate == "MAX" { format!("STR({of})") } else { of };
                let hidden = self.hidden(&own[..own.len() - 1]);
                format!(
                    "{{ SELECT {key} ({aggregate}({of}) AS {new}) {{ {patterns} {hidden} }} GROUP BY {key} }}"
                )
            }
            13 => format!("{patterns} OPTIONAL {{ {} }}", self.pattern(own)),
            14 => format!("{{ {} }}", self.group(depth - 1, own)),
            15 => format!("{{ {patterns} MINUS {{ {} }} }}", self.pattern(own)),
            _ => patterns,
        }
    }

    fn equality(&mut self, parts: &[Own]) -> String {
        let first = self.random.below(parts.len());
        let second = match self.random.chance(92) {
            true => (first + 1 + self.random.below(parts.len().max(2) - 1)) % parts.len(),
            false => first,
        };
        let (a, b) = (self.one(&parts[first]), self.one(&parts[second]));
        match self.random.below(10) {
            0..=4 => format!("{a} = {b}"),
            5..=7 => format!("sameTerm({a}, {b})"),
            _ => self.inequality(&a, &b),
        }
    }

    fn inequality(&mut self, a: &str, b: &str) -> String {
        format!("{a} {} {b}", self.random.pick(&["<", "<=", ">", ">="]))
    }

    /// A condition of few conjuncts, most of them inequalities.
    fn ranges(&mut self, parts: &[Own]) -> String {
        let (a, b) = (self.one(&parts[0]), self.one(&parts[1]));
        let inequality = self.inequality(&a, &b);
        match self.random.below(6) {
            4 => {
                let third = self.random.below(parts.len());
                let (c, d) = (self.one(&parts[third]), self.one(&parts[(third + 1) % parts.len()]));
                format!("{inequality} && {}", self.inequality(&c, &d))
            }
            0 if self.random.chance(50) => self.band(parts),
            0 => format!("{inequality} && {}", self.equality(parts)),
            1 => format!("{} && {inequality}", self.equality(parts)),
            _ => inequality,
        }
    }

    /// A range of values of one part around a value of another.
    fn band(&mut self, parts: &[Own]) -> String {
        let (a, b) = (self.one(&parts[0]), self.one(&parts[1]));
        let (low, high) = (self.random.pick(&["<", "<="]), self.random.pick(&["<", "<="]));
        let distance = self.random.below(3);
        match self.random.below(3) {
            0 => format!("{a} - {distance} {low} {b} && {b} {high} {a} + {distance}"),
            1 => format!("{a} {low} {b} && {b} {high} {a} + {distance}"),
            _ => format!("STRLEN(STR({a})) {low} STRLEN(STR({b})) + {distance}"),
        }
    }

    fn condition(&mut self, parts: &[Own]) -> String {
        let equality = self.equality(parts);
        match self.random.below(12) {
            0..=2 => format!("{equality} && {}", self.equality(parts)),
            3 => format!("{equality} && {} && {}", self.equality(parts), self.equality(parts)),
            4 => format!("{equality} || {}", self.equality(parts)),
            5 => format!("!({equality})"),
            6 => {
                let of = &parts[self.random.below(parts.len())];
                format!("isIRI({}) && {equality}", self.one(of))
            }
            7 => format!("{equality} && COALESCE({}, true)", self.equality(parts)),
            _ => equality,
        }
    }

    /// Parts that mostly share no variable, equalities between them, and elements with further parts. Some
    /// variables of the first part are of `outer`.
    fn group(&mut self, depth: usize, outer: &[String]) -> String {
        let mut variables: Own = VARIABLES.iter().map(|&name| name.to_owned()).collect();
        for at in (1..variables.len()).rev() {
            variables.swap(at, self.random.below(at + 1));
        }
        let count = if self.random.chance(60) { 2 } else { 3 };
        let mut parts: Vec<Own> = variables.chunks(2).take(count).map(<[String]>::to_vec).collect();
        if !outer.is_empty() && self.random.chance(70) {
            parts[0][0] = self.one(outer);
        }
        let is_range = self.random.chance(35);
        if is_range && self.random.chance(15) {
            parts.push(vec![self.new_variable(), self.new_variable()]);
        }
        if self.random.chance(if is_range { 30 } else { 10 }) {
            parts[0][1] = parts[1][0].clone();
        }
        let mut texts: Vec<String> = parts.iter_mut().map(|own| self.part(own, depth)).collect();
        let condition = if is_range { self.ranges(&parts) } else { self.condition(&parts) };
        texts.push(format!("FILTER({condition})"));
        if self.random.chance(40) {
            texts.push(format!("FILTER({})", self.condition(&parts)));
        }
        if depth > 0 {
            for _ in 0..self.random.below(3) {
                texts.push(self.element(&parts, depth - 1));
            }
        }
        texts.join(" ")
    }

    fn element(&mut self, parts: &[Own], depth: usize) -> String {
        let all = parts.concat();
        let mut own: Own = vec![self.new_variable(), self.new_variable()];
        if self.random.chance(30) {
            own[0] = self.one(&all);
        }
        let kind = self.random.below(9);
        let mut inner = match self.random.chance(25) {
            true => self.group(depth, &own),
            false => self.part(&mut own, depth),
        };
        if kind != 7 {
            let across = [all.clone(), own.clone()];
            let condition = match self.random.chance(40) {
                true => self.ranges(&across),
                false => self.condition(&across),
            };
            let _ = write!(inner, " FILTER({condition})");
        }
        match kind {
            0 => format!("OPTIONAL {{ {inner} }}"),
            1 | 2 => format!("OPTIONAL {{ {inner} }} FILTER(!BOUND({}))", self.one(&own)),
            // By SPARQL 1.1 §18.6 a value of the row is substituted there as a term, see `random::exists`.
            3 | 4 if !inner.contains("MINUS") => format!("FILTER EXISTS {{ {inner} }}"),
            5 if !inner.contains("MINUS") => format!("FILTER NOT EXISTS {{ {inner} }}"),
            6 => format!("{{ {inner} }} UNION {{ {} }}", self.patterns(&own)),
            7 => format!("{inner} FILTER({})", self.equality(&[all, own])),
            _ => format!("MINUS {{ {inner} }}"),
        }
    }
}
