//! Property paths against relations as sets of pairs: random graphs, random paths, every binding of the ends.
//!
//! The model composes sets and computes closures to a fixed point; it has neither automata nor searches.
//! searches.

use std::collections::BTreeSet;
use vervet::{Answer, Database, Format, QueryOptions, Result, Solutions};

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % limit as u64).expect("the limit is small")
    }
}

const PREDICATES: usize = 3;

#[derive(Clone)]
enum Path {
    Step(usize),
    Except(Vec<usize>),
    Inverse(Box<Path>),
    Sequence(Box<Path>, Box<Path>),
    Either(Box<Path>, Box<Path>),
    Optional(Box<Path>),
    Star(Box<Path>),
    Plus(Box<Path>),
}

type Pairs = BTreeSet<(usize, usize)>;

impl Path {
    fn random(random: &mut Random, depth: usize) -> Self {
        if depth == 0 {
            return Self::Step(random.below(PREDICATES));
        }
        let inner = |random: &mut Random| Box::new(Self::random(random, depth - 1));
        match random.below(9) {
            8 => {
                // Up to this number of equal steps.
                let step = Self::Step(random.below(PREDICATES));
                let step = match random.below(3) {
                    0 => Self::Either(Box::new(step.clone()), Box::new(Self::Inverse(Box::new(step)))),
                    _ => step,
                };
                let chain = (0..1 + random.below(3)).fold(step.clone(), |rest, _| {
                    Self::Sequence(Box::new(step.clone()), Box::new(Self::Optional(Box::new(rest))))
                });
                if random.below(3) == 0 { Self::Optional(Box::new(chain)) } else { chain }
            }
            0 => Self::Inverse(inner(random)),
            1 => Self::Either(inner(random), inner(random)),
            2 => Self::Except(vec![random.below(PREDICATES)]),
            3 => Self::Optional(inner(random)),
            4 => Self::Star(inner(random)),
            5 => Self::Plus(inner(random)),
            _ => Self::Sequence(inner(random), inner(random)),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Step(predicate) => format!("<urn:p{predicate}>"),
            Self::Except(these) => {
                let these: Vec<_> = these.iter().map(|predicate| format!("<urn:p{predicate}>")).collect();
                format!("!({})", these.join("|"))
            }
            Self::Inverse(path) => format!("^({})", path.text()),
            Self::Sequence(a, b) => format!("({}/{})", a.text(), b.text()),
            Self::Either(a, b) => format!("({}|{})", a.text(), b.text()),
            Self::Optional(path) => format!("({})?", path.text()),
            Self::Star(path) => format!("({})*", path.text()),
            Self::Plus(path) => format!("({})+", path.text()),
        }
    }

    fn is_nullable(&self) -> bool {
        match self {
            Self::Step(_) | Self::Except(_) => false,
            Self::Inverse(path) | Self::Plus(path) => path.is_nullable(),
            Self::Sequence(a, b) => a.is_nullable() && b.is_nullable(),
            Self::Either(a, b) => a.is_nullable() || b.is_nullable(),
            Self::Optional(_) | Self::Star(_) => true,
        }
    }

    fn pairs(&self, edges: &[(usize, usize, usize)], nodes: &BTreeSet<usize>) -> Pairs {
        let of = |keep: &dyn Fn(usize) -> bool| {
            edges.iter().filter(|(_, predicate, _)| keep(*predicate)).map(|(s, _, o)| (*s, *o)).collect()
        };
        let none = || nodes.iter().map(|node| (*node, *node));
        match self {
            Self::Step(predicate) => of(&|other| other == *predicate),
            Self::Except(these) => of(&|other| !these.contains(&other)),
            Self::Inverse(path) => path.pairs(edges, nodes).into_iter().map(|(a, b)| (b, a)).collect(),
            Self::Sequence(a, b) => compose(&a.pairs(edges, nodes), &b.pairs(edges, nodes)),
            Self::Either(a, b) => a.pairs(edges, nodes).union(&b.pairs(edges, nodes)).copied().collect(),
            Self::Optional(path) => path.pairs(edges, nodes).into_iter().chain(none()).collect(),
            Self::Star(path) => closed(path.pairs(edges, nodes)).into_iter().chain(none()).collect(),
            Self::Plus(path) => closed(path.pairs(edges, nodes)),
        }
    }
}

fn compose(a: &Pairs, b: &Pairs) -> Pairs {
    a.iter().flat_map(|(x, y)| b.range((*y, 0)..=(*y, usize::MAX)).map(|(_, z)| (*x, *z))).collect()
}

fn closed(mut pairs: Pairs) -> Pairs {
    loop {
        let more: Pairs = compose(&pairs, &pairs).union(&pairs).copied().collect();
        if more.len() == pairs.len() {
            return pairs;
        }
        pairs = more;
    }
}

fn number(iri: Option<String>) -> usize {
    iri.and_then(|iri| iri.strip_prefix("urn:v")?.parse().ok()).expect("a vertex")
}

fn found(solutions: &Solutions, bound: [Option<usize>; 2]) -> Result<Pairs> {
    let pairs: Vec<(usize, usize)> = (solutions.rows())
        .map(|row| {
            let end = |name: &str, known: Option<usize>| -> Result<usize> {
                Ok(match known {
                    Some(known) => known,
                    None => number(row.text(name)?),
                })
            };
            Ok((end("x", bound[0])?, end("y", bound[1])?))
        })
        .collect::<Result<_>>()?;
    let set: Pairs = pairs.iter().copied().collect();
    assert_eq!(set.len(), pairs.len(), "each pair once");
    Ok(set)
}

#[test]
fn paths_are_closures_of_relations() -> Result<()> {
    for seed in 1..=60 {
        println!("seed {seed}");
        let random = &mut Random(seed);
        // Some graphs exceed the size up to which a search uses a hash set.
        let vertices = [5, 12, 40, 600][random.below(4)];
        let count = vertices + random.below(2 * vertices);
        let edges: Vec<(usize, usize, usize)> = (0..count)
            .map(|_| (random.below(vertices), random.below(PREDICATES), random.below(vertices)))
            .collect();
        let text: String =
            edges.iter().map(|(s, p, o)| format!("<urn:v{s}> <urn:p{p}> <urn:v{o}> .\n")).collect();
        let nodes: BTreeSet<usize> = edges.iter().flat_map(|(s, _, o)| [*s, *o]).collect();
        let database = Database::in_memory();
        database.load_text(Format::NTriples, &text)?;
        let closures = if vertices > 100 { 1 } else { 6 };
        for _ in 0..closures {
            let depth = if vertices > 100 { 0 } else { random.below(3) };
            let inner = Box::new(Path::random(random, depth));
            let path = match random.below(3) {
                0 => Path::Optional(inner),
                1 => Path::Star(inner),
                _ => Path::Plus(inner),
            };
            let pairs = path.pairs(&edges, &nodes);
            let ends = [random.below(vertices), random.below(vertices)];
            for bound in [[None, None], [Some(ends[0]), None], [None, Some(ends[1])], ends.map(Some)] {
                let slot = |name: &str, known: Option<usize>| match known {
                    Some(known) => format!("<urn:v{known}>"),
                    None => format!("?{name}"),
                };
                let query =
                    format!("SELECT * {{ {} {} {} }}", slot("x", bound[0]), path.text(), slot("y", bound[1]));
                let mut expected = pairs.clone();
                if path.is_nullable() {
                    // A term of the query has an empty path even if no statement mentions it.
                    expected.extend(bound.iter().flatten().map(|end| (*end, *end)));
                }
                expected.retain(|(x, y)| {
                    bound[0].is_none_or(|end| end == *x) && bound[1].is_none_or(|end| end == *y)
                });
                let context = format!("seed {seed}: {query}\n{text}");
                for optimize in [true, false] {
                    let options = QueryOptions { optimize, ..QueryOptions::default() };
                    let answer = database.query_with(&query, &options)?;
                    let solutions = answer.into_solutions().expect("a SELECT");
                    assert_eq!(found(&solutions, bound)?, expected, "{context}");
                }
                // Counted instead of listed.
                let counted =
                    format!("SELECT (COUNT(*) AS ?n) {{ {} }}", &query["SELECT * { ".len()..query.len() - 2]);
                let solutions = database.select(&counted)?;
                let count = solutions.rows().next().expect("one row").integer("n")?;
                assert_eq!(count, i64::try_from(expected.len()).ok(), "{context}");
            }
            // Both ends bound in every row: few of one end and many of the other share searches.
            let all: Vec<usize> = nodes.iter().copied().collect();
            let several = |random: &mut Random, count: usize| -> BTreeSet<usize> {
                (0..count).map(|_| all[random.below(all.len())]).collect()
            };
            let counts = [1 + random.below(4), 1 + random.below(60)];
            let swapped = random.below(2);
            let [starts, ends] = [several(random, counts[swapped]), several(random, counts[1 - swapped])];
            let list =
                |nodes: &BTreeSet<usize>| nodes.iter().map(|v| format!("<urn:v{v}> ")).collect::<String>();
            let [xs, ys, path] = [list(&starts), list(&ends), path.text()];
            let query = format!(
                "SELECT * {{ VALUES ?x {{ {xs} }} VALUES ?y {{ {ys} }} FILTER EXISTS {{ ?x {path} ?y }} }}"
            );
            let mut expected = pairs.clone();
            expected.retain(|(x, y)| starts.contains(x) && ends.contains(y));
            let solutions = database.select(&query)?;
            assert_eq!(found(&solutions, [None, None])?, expected, "seed {seed}: {query}\n{text}");
        }
    }
    Ok(())
}

/// Under set semantics an end that nothing mentions is only tested, single conjuncts merge into longer paths,
/// and bounded repetitions share what they have visited. The sets of single ends, with and without rows that
/// bind the other one, and counts of pairs.
#[test]
fn ends_are_tested_under_set_semantics() -> Result<()> {
    for seed in 1..=60 {
        println!("seed {seed}");
        let random = &mut Random(1_000 + seed);
        let vertices = [5, 12, 40, 400][random.below(4)];
        let count = vertices + random.below(2 * vertices);
        let edges: Vec<(usize, usize, usize)> = (0..count)
            .map(|_| (random.below(vertices), random.below(PREDICATES), random.below(vertices)))
            .collect();
        let text: String =
            edges.iter().map(|(s, p, o)| format!("<urn:v{s}> <urn:p{p}> <urn:v{o}> .\n")).collect();
        let nodes: BTreeSet<usize> = edges.iter().flat_map(|(s, _, o)| [*s, *o]).collect();
        let database = Database::in_memory();
        database.load_text(Format::NTriples, &text)?;
        for _ in 0..if vertices > 100 { 2 } else { 8 } {
            let depth = if vertices > 100 { 1 } else { 1 + random.below(2) };
            let inner = Box::new(Path::random(random, depth));
            let again = || Box::new(Path::Optional(inner.clone()));
            let path = match random.below(4) {
                0 => Path::Sequence(again(), Box::new(Path::Sequence(again(), again()))),
                1 => Path::Either(inner.clone(), Box::new(Path::Sequence(inner.clone(), inner.clone()))),
                2 => Path::Sequence(inner.clone(), again()),
                _ => *inner.clone(),
            };
            let pairs = path.pairs(&edges, &nodes);
            let predicate = random.below(PREDICATES);
            let (path, context) = (path.text(), format!("seed {seed}\n{text}"));
            let set = |query: &str, name: &str| -> Result<BTreeSet<usize>> {
                let solutions = database.select(query)?;
                let all: Vec<usize> =
                    (solutions.rows()).map(|row| Ok(number(row.text(name)?))).collect::<Result<_>>()?;
                let distinct: BTreeSet<usize> = all.iter().copied().collect();
                assert_eq!(distinct.len(), all.len(), "{query} lists each node once, {context}");
                Ok(distinct)
            };
            let starts: BTreeSet<usize> = pairs.iter().map(|(x, _)| *x).collect();
            let ends: BTreeSet<usize> = pairs.iter().map(|(_, y)| *y).collect();
            let having = |nodes: &BTreeSet<usize>| -> BTreeSet<usize> {
                let keys = edges.iter().filter(|(_, of, _)| *of == predicate).map(|(s, ..)| *s);
                keys.filter(|key| nodes.contains(key)).collect()
            };
            let of_x = format!("?x {path} ?y");
            let key = format!("?z <urn:p{predicate}> ?w");
            for (query, name, expected) in [
                (format!("SELECT DISTINCT ?x {{ {of_x} }}"), "x", starts.clone()),
                (format!("SELECT DISTINCT ?y {{ {of_x} }}"), "y", ends.clone()),
                (format!("SELECT DISTINCT ?z {{ {key} . ?z {path} ?y }}"), "z", having(&starts)),
                (format!("SELECT DISTINCT ?z {{ {key} . ?x {path} ?z }}"), "z", having(&ends)),
                (format!("SELECT DISTINCT ?x {{ {of_x} . ?x {path} ?v }}"), "x", starts.clone()),
            ] {
                assert_eq!(set(&query, name)?, expected, "{query}, {context}");
            }
            let ask = database.query(&format!("ASK {{ {of_x} }}"))?;
            let expected = !pairs.is_empty();
            assert!(
                matches!(ask, Answer::Boolean(found) if found == expected),
                "ASK {{ {of_x} }}, {context}"
            );
            let query = format!("SELECT (COUNT(*) AS ?n) {{ SELECT DISTINCT ?x ?y {{ {of_x} }} }}");
            let count = database.select(&query)?.rows().next().expect("one row").integer("n")?;
            assert_eq!(count, i64::try_from(pairs.len()).ok(), "{query}, {context}");
            let query = format!("SELECT (COUNT(DISTINCT ?y) AS ?n) {{ {of_x} }}");
            let count = database.select(&query)?.rows().next().expect("one row").integer("n")?;
            assert_eq!(count, i64::try_from(ends.len()).ok(), "{query}, {context}");
        }
    }
    Ok(())
}

/// Rows of several batches whose other end is only tested: by single searches first, then by one search from
/// all nodes.
#[test]
fn tested_ends_of_many_rows() -> Result<()> {
    let random = &mut Random(7);
    let vertices = 4_000;
    let edges: Vec<(usize, usize, usize)> = (0..9_000)
        .map(|_| (random.below(vertices), random.below(PREDICATES), random.below(vertices)))
        .collect();
    let text: String =
        edges.iter().map(|(s, p, o)| format!("<urn:v{s}> <urn:p{p}> <urn:v{o}> .\n")).collect();
    let nodes: BTreeSet<usize> = edges.iter().flat_map(|(s, _, o)| [*s, *o]).collect();
    let database = Database::in_memory();
    database.load_text(Format::NTriples, &text)?;
    let step = |predicate| Box::new(Path::Step(predicate));
    let back = |predicate| Box::new(Path::Inverse(Box::new(Path::Step(predicate))));
    let either = Box::new(Path::Either(step(1), Box::new(Path::Sequence(back(2), step(0)))));
    for path in [Path::Sequence(step(1), step(2)), Path::Sequence(back(1), either.clone()), *either] {
        let pairs = path.pairs(&edges, &nodes);
        let starts: BTreeSet<usize> = pairs.iter().map(|(x, _)| *x).collect();
        let ends: BTreeSet<usize> = pairs.iter().map(|(_, y)| *y).collect();
        let path = path.text();
        for (query, kept) in [
            (format!("SELECT DISTINCT ?x ?y {{ ?x <urn:p0> ?y . ?x {path} ?z }}"), &starts),
            (format!("SELECT DISTINCT ?x ?y {{ ?x <urn:p0> ?y . ?z {path} ?x }}"), &ends),
        ] {
            let of_edges = edges.iter().filter(|(x, p, _)| *p == 0 && kept.contains(x));
            let expected: Pairs = of_edges.map(|(x, _, y)| (*x, *y)).collect();
            let counted = format!("SELECT (COUNT(*) AS ?n) {{ {query} }}");
            assert_eq!(found(&database.select(&query)?, [None, None])?, expected, "{query}");
            let count = database.select(&counted)?.rows().next().expect("one row").integer("n")?;
            assert_eq!(count, i64::try_from(expected.len()).ok(), "{counted}");
        }
    }
    Ok(())
}

/// Searches from so many nodes that they share their work: closures of components, of trees and of graphs
/// without cycles, from all nodes, from the bound nodes of either end, between two bound ends, and counted.
#[test]
fn searches_from_many_nodes_share_their_work() -> Result<()> {
    for seed in 1..=24 {
        let random = &mut Random(9_000 + seed);
        let vertices = [60, 150, 300][random.below(3)];
        let form = random.below(3);
        let mut edges: Vec<(usize, usize, usize)> = (0..3 * vertices)
            .map(|_| {
                let (s, o) = (random.below(vertices), random.below(vertices));
                match form {
                    // Cycles; no cycles; components of up to ten nodes, and edges from each to later ones.
                    0 => (s, random.below(2), o),
                    1 => (s, random.below(2), s + 1 + o % 6),
                    _ if random.below(8) > 0 => (s, random.below(2), s / 10 * 10 + o % 10),
                    _ => (s.min(o), random.below(2), s.max(o)),
                }
            })
            .collect();
        edges.extend((0..vertices).map(|at| (at, 2, random.below(vertices))));
        let text: String =
            edges.iter().map(|(s, p, o)| format!("<urn:v{s}> <urn:p{p}> <urn:v{o}> .\n")).collect();
        let nodes: BTreeSet<usize> = edges.iter().flat_map(|(s, _, o)| [*s, *o]).collect();
        let database = Database::in_memory();
        database.load_text(Format::NTriples, &text)?;
        let step = |predicate| Box::new(Path::Step(predicate));
        let either = || Box::new(Path::Either(step(0), step(1)));
        let path = match random.below(7) {
            5 => Path::Optional(either()),
            6 => *either(),
            0 => Path::Plus(either()),
            1 => Path::Star(step(0)),
            2 => Path::Sequence(Box::new(Path::Star(step(0))), step(1)),
            3 => Path::Plus(Box::new(Path::Sequence(step(0), Box::new(Path::Optional(step(1)))))),
            _ => Path::Sequence(Box::new(Path::Optional(step(1))), Box::new(Path::Star(either()))),
        };
        let pairs = path.pairs(&edges, &nodes);
        let keyed = |keep: &dyn Fn(usize, usize) -> Option<(usize, usize)>| -> Pairs {
            edges.iter().filter(|(_, p, _)| *p == 2).filter_map(|(s, _, o)| keep(*s, *o)).collect()
        };
        // A sequence outside of a closure is a join of bags.
        let is_set = matches!(path, Path::Plus(_) | Path::Star(_) | Path::Optional(_));
        let (path, context) = (path.text(), format!("seed {seed}"));
        let all = match is_set {
            true => format!("?x {path} ?y"),
            false => format!("SELECT DISTINCT ?x ?y {{ ?x {path} ?y }}"),
        };
        for (query, expected) in [
            (format!("SELECT ?x ?y {{ {all} }}"), pairs.clone()),
            // Every node is the subject of one statement of the last predicate, but the last ones.
            (
                format!("SELECT DISTINCT ?x ?y {{ ?x <urn:p2> ?z . ?x {path} ?y }}"),
                pairs.iter().copied().filter(|(x, _)| *x < vertices).collect(),
            ),
            (
                format!("SELECT DISTINCT ?x ?y {{ ?y <urn:p2> ?z . ?x {path} ?y }}"),
                pairs.iter().copied().filter(|(_, y)| *y < vertices).collect(),
            ),
            (
                format!("SELECT DISTINCT ?x ?y {{ ?x <urn:p2> ?y FILTER EXISTS {{ ?x {path} ?y }} }}"),
                keyed(&|s, o| pairs.contains(&(s, o)).then_some((s, o))),
            ),
            (
                format!("SELECT DISTINCT ?x ?y {{ ?x <urn:p2> ?y FILTER NOT EXISTS {{ ?y {path} ?x }} }}"),
                keyed(&|s, o| (!pairs.contains(&(o, s))).then_some((s, o))),
            ),
        ] {
            for threads in [1, 2] {
                let options = QueryOptions { threads: Some(threads), ..QueryOptions::default() };
                let solutions = database.query_with(&query, &options)?.into_solutions().expect("a SELECT");
                assert_eq!(found(&solutions, [None, None])?, expected, "{query}, {context}\n{text}");
            }
        }
        for (query, key, of) in [
            (format!("SELECT ?x (COUNT(?y) AS ?n) {{ {all} }} GROUP BY ?x"), "x", 0),
            (format!("SELECT ?y (COUNT(?x) AS ?n) {{ {all} }} GROUP BY ?y"), "y", 1),
        ] {
            let mut expected: Vec<(usize, i64)> = Vec::new();
            let mut ends: Vec<usize> = pairs.iter().map(|pair| [pair.0, pair.1][of]).collect();
            ends.sort_unstable();
            for same in ends.chunk_by(|a, b| a == b) {
                expected.push((same[0], i64::try_from(same.len()).expect("few")));
            }
            let mut counts: Vec<(usize, i64)> = (database.select(&query)?.rows())
                .map(|row| Ok((number(row.text(key)?), row.integer("n")?.expect("a count"))))
                .collect::<Result<_>>()?;
            counts.sort_unstable();
            assert_eq!(counts, expected, "{query}, {context}\n{text}");
        }
        // Loops.
        let query = format!("SELECT DISTINCT ?x {{ ?x {path} ?x }}");
        let solutions = database.select(&query)?;
        let mut loops: Vec<usize> =
            solutions.rows().map(|row| Ok(number(row.text("x")?))).collect::<Result<_>>()?;
        loops.sort_unstable();
        let expected: Vec<usize> = pairs.iter().filter(|(x, y)| x == y).map(|(x, _)| *x).collect();
        assert_eq!(loops, expected, "{query}, {context}\n{text}");
        // The ends are joined with another path, which may start from the nodes of this one.
        let other = "(<urn:p2>/<urn:p1>?)";
        let of_other = Path::Sequence(step(2), Box::new(Path::Optional(step(1)))).pairs(&edges, &nodes);
        let query = format!("SELECT DISTINCT ?x ?y {{ ?x {path} ?y . ?x {other} ?y }}");
        let expected: Pairs = pairs.intersection(&of_other).copied().collect();
        assert_eq!(found(&database.select(&query)?, [None, None])?, expected, "{query}, {context}\n{text}");
        let query = format!(
            "SELECT DISTINCT ?x ?y {{ ?x {path} ?y . ?x {other} ?y FILTER(?x != ?y && ?y != <urn:v3>) }}"
        );
        let kept: Pairs = expected.iter().copied().filter(|(x, y)| x != y && *y != 3).collect();
        assert_eq!(found(&database.select(&query)?, [None, None])?, kept, "{query}, {context}\n{text}");
        // A condition on a variable that is not bound holds for nothing.
        let query = format!("SELECT ?x ?y {{ ?x {path} ?y . ?x {other} ?y FILTER(?y != ?unbound) }}");
        assert_eq!(found(&database.select(&query)?, [None, None])?, Pairs::new(), "{query}, {context}");
        let query =
            format!("SELECT ?x ?y (COUNT(*) AS ?n) {{ ?x {path} ?y . ?x {other} ?y }} GROUP BY ?x ?y");
        assert_eq!(found(&database.select(&query)?, [None, None])?, expected, "{query}, {context}\n{text}");
    }
    Ok(())
}
