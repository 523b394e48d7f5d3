//! Publications after the profile of SP2Bench, streamed as N-Triples.
//!
//! # Shape
//! Year after year from 1936: journals with articles, proceedings with papers, and a few books and theses.
//! Their numbers follow logistic curves, as fitted by the authors to DBLP. So a larger data set has later
//! years, not more of each. Authors are drawn from the persons so far, old ones more often, and new persons;
//! a paper cites earlier ones through an `rdf:Bag`, those already cited more often. Paul Erdoes writes ten
//! papers a year from 1940 to 1996.
//! # Invariants
//! 1. Names are unique among persons.
//! 2. Every year is complete, so the number of statements is somewhat above the requested one.
//! # Source
//! Schmidt, Hornung, Lausen, Pinkel, "SP2Bench: A SPARQL Performance Benchmark", ICDE 2009. Different:
//! constants are rounded, rare classes and properties are missing, titles are of made-up words. Not
//! comparable with published figures.

use crate::Random;
use crate::statements::{Prefixes, Statements, skewed, whole, word, words};
use std::io::{self, Write};

/// Prefixes of the data and the queries.
pub const SP2BENCH_PREFIXES: Prefixes = &[
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("swrc", "http://swrc.ontoware.org/ontology#"),
    ("bench", "http://localhost/vocabulary/bench/"),
    ("pub", "http://localhost/publications/"),
    ("person", "http://localhost/persons/"),
];

const ERDOES: &str = "person:Paul_Erdoes";
const FIRST_YEAR: u32 = 1936;
/// A limit of the time line, far above the year of a billion statements.
const LAST_YEAR: u32 = 2300;

/// Writes publications with about `statements` statements to `out`; returns the exact number of statements.
///
/// ```
/// let mut text = Vec::new();
/// let count = vervet_generate::generate_sp2bench(2_000, 0, &mut text)?;
/// assert!((2_000..6_000).contains(&count));
/// # std::io::Result::Ok(())
/// ```
///
/// # Errors
/// Those of `out`.
pub fn generate_sp2bench(statements: u64, seed: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut library = Library {
        out: Statements::new(SP2BENCH_PREFIXES, out),
        random: Random::for_part(seed, &[0x7370_3262]),
        persons: 0,
        documents: Vec::new(),
        cited: Vec::new(),
        bags: 0,
    };
    for class in ["Journal", "Article", "Proceedings", "Inproceedings", "Book", "PhDThesis"] {
        library.out.link(&format!("bench:{class}"), "rdfs:subClassOf", "foaf:Document")?;
    }
    library.out.link(ERDOES, "rdf:type", "foaf:Person")?;
    library.out.text(ERDOES, "foaf:name", "Paul Erdoes")?;
    for year in FIRST_YEAR..LAST_YEAR {
        library.year(year)?;
        if library.out.count() >= statements {
            break;
        }
    }
    library.out.finish()
}

/// `limit / (1 + start · ratio^years)`: the value of a logistic curve.
fn logistic(limit: f64, start: f64, ratio: f64, years: u32) -> f64 {
    let falling = (0..years).fold(1.0, |product, _| product * ratio);
    limit / (1.0 + start * falling)
}

struct Library<'w> {
    out: Statements<'w>,
    random: Random,
    /// Number of persons, besides Paul Erdoes.
    persons: u32,
    /// Documents that can be cited.
    documents: Vec<String>,
    /// Targets of citations so far, with repetitions.
    cited: Vec<u32>,
    bags: u32,
}

impl Library<'_> {
    fn year(&mut self, year: u32) -> io::Result<()> {
        let age = year - FIRST_YEAR;
        // Articles and papers grow by about 12 and 15 per cent a year in the beginning.
        let articles = whole(logistic(58_000.0, 1_600.0, 0.887, age)).max(4);
        let journals = (whole(logistic(740.0, 600.0, 0.887, age))).max(1);
        let papers = if year < 1950 { 0 } else { whole(logistic(337_000.0, 14_000.0, 0.861, age)) };
        let proceedings = papers.div_ceil(50);
        let mut erdoes = if (1940..=1996).contains(&year) { 10 } else { 0 };
        for number in 1..=journals {
            let journal = format!("pub:journals/Journal{number}/{year}");
            self.venue(&journal, "bench:Journal", &format!("Journal {number} ({year})"), year)?;
            let count = articles / journals + u32::from(number <= articles % journals);
            for index in 1..=count {
                let article = format!("pub:articles/Journal{number}/{year}/Article{index}");
                let by_erdoes = erdoes > 0 && index % 2 == 1;
                erdoes -= u32::from(by_erdoes);
                self.article(&article, &journal, year, by_erdoes)?;
            }
        }
        for number in 1..=proceedings {
            let name = format!("pub:procs/Proceeding{number}/{year}");
            self.venue(&name, "bench:Proceedings", &format!("Conference {number} ({year})"), year)?;
            for _ in 0..self.random.between(1..=3) {
                let editor = self.person()?;
                self.out.link(&name, "swrc:editor", &editor)?;
            }
            let count = papers / proceedings + u32::from(number <= papers % proceedings);
            for index in 1..=count {
                let paper = format!("pub:inprocs/Proceeding{number}/{year}/Inproceeding{index}");
                self.paper(&paper, &name, number, year)?;
            }
        }
        for index in 0..self.random.below(1 + age / 10) {
            let thesis = format!("pub:phd/{year}/Thesis{index}");
            self.document(&thesis, "bench:PhDThesis", year)?;
            let author = self.person()?;
            self.out.link(&thesis, "dc:creator", &author)?;
            self.out.text(&thesis, "swrc:isbn", &format!("{year}-{index}"))?;
        }
        Ok(())
    }

    fn venue(&mut self, name: &str, class: &str, title: &str, year: u32) -> io::Result<()> {
        self.out.link(name, "rdf:type", class)?;
        self.out.text(name, "dc:title", title)?;
        self.out.integer(name, "dcterms:issued", year)
    }

    fn document(&mut self, name: &str, class: &str, year: u32) -> io::Result<()> {
        self.out.link(name, "rdf:type", class)?;
        let length = self.random.between(4..=9);
        let title = words(&mut self.random, length);
        self.out.text(name, "dc:title", &title)?;
        self.out.integer(name, "dcterms:issued", year)
    }

    fn article(&mut self, name: &str, journal: &str, year: u32, by_erdoes: bool) -> io::Result<()> {
        self.document(name, "bench:Article", year)?;
        self.out.link(name, "swrc:journal", journal)?;
        self.authors(name, year, by_erdoes)?;
        self.pages(name, 926)?;
        if self.random.below(10_000) < 65 {
            let month = self.random.between(1..=12);
            self.out.integer(name, "swrc:month", month)?;
        }
        if self.random.below(100) < 92 {
            let number = self.random.between(1..=12);
            self.out.integer(name, "swrc:number", number)?;
        }
        self.out.integer(name, "swrc:volume", year - FIRST_YEAR + 1)?;
        self.home(name, 65)?;
        self.citations(name)
    }

    fn paper(&mut self, name: &str, venue: &str, number: u32, year: u32) -> io::Result<()> {
        self.document(name, "bench:Inproceedings", year)?;
        self.out.link(name, "dcterms:partOf", venue)?;
        self.out.text(name, "bench:booktitle", &format!("Conference {number}"))?;
        self.authors(name, year, false)?;
        self.pages(name, 945)?;
        self.home(name, 65)?;
        if self.random.below(100) < 3 {
            let text = words(&mut self.random, 60);
            self.out.text(name, "bench:abstract", &text)?;
        }
        self.citations(name)
    }

    fn pages(&mut self, name: &str, per_mille: u32) -> io::Result<()> {
        if self.random.below(1_000) < per_mille {
            let first = self.random.between(1..=400);
            let last = first + self.random.below(25);
            self.out.text(name, "swrc:pages", &format!("{first}-{last}"))?;
        }
        Ok(())
    }

    fn home(&mut self, name: &str, percent: u32) -> io::Result<()> {
        let local = name.rsplit_once(':').map_or(name, |(_, local)| local);
        if self.random.below(100) < percent {
            self.out.text(name, "rdfs:seeAlso", &format!("http://www.example.org/{local}"))?;
        }
        if self.random.below(100) < percent {
            self.out.text(name, "foaf:homepage", &format!("http://home.example.org/{local}"))?;
        }
        Ok(())
    }

    fn authors(&mut self, name: &str, year: u32, by_erdoes: bool) -> io::Result<()> {
        // The mean grows from one to about three authors.
        let most = 1 + (year - FIRST_YEAR) / 12;
        let count = 1 + (0..most).filter(|_| self.random.one_in(3)).count();
        let mut authors: Vec<String> = Vec::new();
        if by_erdoes {
            authors.push(ERDOES.to_owned());
        }
        while authors.len() < count {
            let author = self.person()?;
            if !authors.contains(&author) {
                authors.push(author);
            }
        }
        authors.iter().try_for_each(|author| self.out.link(name, "dc:creator", author))
    }

    /// A person so far, or a new one.
    fn person(&mut self) -> io::Result<String> {
        if self.persons > 10 && self.random.below(100) < 62 {
            return Ok(format!("_:p{}", skewed(&mut self.random, self.persons, 2)));
        }
        let number = self.persons;
        self.persons += 1;
        let name = format!("_:p{number}");
        let (given, family) = (word(number % 500), word(number / 500));
        self.out.link(&name, "rdf:type", "foaf:Person")?;
        self.out.text(&name, "foaf:name", &format!("{given} {family}"))?;
        Ok(name)
    }

    fn citations(&mut self, name: &str) -> io::Result<()> {
        if self.documents.len() > 20 && self.random.below(100) < 12 {
            let bag = format!("_:bag{}", self.bags);
            self.bags += 1;
            self.out.link(name, "dcterms:references", &bag)?;
            self.out.link(&bag, "rdf:type", "rdf:Bag")?;
            let count = 1 + skewed(&mut self.random, 40, 3);
            let mut targets: Vec<u32> = Vec::new();
            for _ in 0..count {
                let again = !self.cited.is_empty() && self.random.one_in(2);
                let target = if again {
                    let index = self.random.index(self.cited.len());
                    self.cited[index]
                } else {
                    skewed(&mut self.random, u32::try_from(self.documents.len()).unwrap_or(u32::MAX), 1)
                };
                if !targets.contains(&target) {
                    targets.push(target);
                    self.cited.push(target);
                    let member = format!("rdf:_{}", targets.len());
                    let document = self.documents[target as usize].clone();
                    self.out.link(&bag, &member, &document)?;
                }
            }
        }
        self.documents.push(name.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_are_deterministic_and_complete() {
        let generate = |statements, seed| {
            let mut text = Vec::new();
            let count = generate_sp2bench(statements, seed, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.lines().count() as u64, count);
            text
        };
        let text = generate(20_000, 1);
        assert_eq!(text, generate(20_000, 1));
        assert_ne!(text, generate(20_000, 2));
        let lines: std::collections::HashSet<&str> = text.lines().collect();
        assert_eq!(lines.len(), text.lines().count(), "no statement is repeated");
        for part in ["Journal 1 (1940)", "Paul Erdoes", "#Bag>", "#month>", "bench/Inproceedings>"] {
            assert!(text.contains(part), "{part}");
        }
        let names: Vec<&str> = text.lines().filter(|line| line.contains("foaf/0.1/name>")).collect();
        let distinct: std::collections::HashSet<&str> =
            names.iter().filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(distinct.len(), names.len(), "names are unique");
    }
}
