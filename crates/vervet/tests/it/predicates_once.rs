//! Patterns of which only the predicate remains under set semantics, against a model over statements.

use std::collections::BTreeSet;
use vervet::{Database, Format, QueryOptions, Result};

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

#[test]
fn predicates_of_many_vertices_are_found_once() -> Result<()> {
    for seed in 1..=20 {
        let random = &mut Random(seed);
        // Several batches of vertices in some graphs; predicates are vertices, too.
        let vertices = [8, 60, 3_000][random.below(3)];
        let predicates = 1 + random.below(12);
        const LITERAL: usize = 1 << 40;
        let name = |at: usize| match at {
            LITERAL.. => format!("\"{at}\""),
            _ if at < predicates => format!("<urn:p{at}>"),
            _ => format!("<urn:v{at}>"),
        };
        let statements: BTreeSet<(usize, usize, usize)> = (0..2 * vertices)
            .map(|_| {
                // Few subjects of some predicates.
                let predicate = random.below(predicates);
                (random.below(1 + vertices / (1 + predicate * predicate)), predicate, random.below(vertices))
            })
            // Predicates with literals only, and one with both.
            .chain((0..vertices / 4).map(|at| (at, predicates + at % 3, LITERAL + at % 5)))
            .chain([(1, predicates + 2, 2)])
            .collect();
        let text: String =
            statements.iter().map(|(s, p, o)| format!("{} <urn:p{p}> {} .\n", name(*s), name(*o))).collect();
        let database = Database::in_memory();
        database.load_text(Format::NTriples, &text)?;
        let chosen = random.below(predicates);
        let of_chosen: BTreeSet<usize> =
            statements.iter().filter(|(_, p, _)| *p == chosen).map(|(s, ..)| *s).collect();
        let start = format!("?x <urn:p{chosen}> ?z");
        let into = |set: &BTreeSet<usize>| -> BTreeSet<usize> {
            statements.iter().filter(|(.., o)| set.contains(o)).map(|(_, p, _)| *p).collect()
        };
        let out_of = |set: &BTreeSet<usize>| -> BTreeSet<usize> {
            statements.iter().filter(|(s, ..)| set.contains(s)).map(|(_, p, _)| *p).collect()
        };
        let same = |keep: &dyn Fn(usize, usize, usize) -> bool| -> BTreeSet<usize> {
            statements.iter().filter(|(s, p, o)| keep(*s, *p, *o)).map(|(_, p, _)| *p).collect()
        };
        let both = into(&of_chosen).union(&out_of(&of_chosen)).copied().collect();
        for (pattern, expected) in [
            ("?s ?p ?o".to_owned(), same(&|_, _, _| true)),
            (format!("{start} . ?s ?p ?x"), into(&of_chosen)),
            (format!("{start} . ?x ?p ?o"), out_of(&of_chosen)),
            (format!("{{ {start} . ?s ?p ?x }} UNION {{ {start} . ?x ?p ?o }}"), both),
            ("?p ?p ?o".to_owned(), same(&|s, p, _| s == p && p < predicates)),
            ("?s ?p ?p".to_owned(), same(&|_, p, o| p == o && p < predicates)),
            ("?s ?p ?s".to_owned(), same(&|s, _, o| s == o)),
        ] {
            let query = format!("SELECT DISTINCT ?p {{ {pattern} }}");
            for optimize in [true, false] {
                let options = QueryOptions { optimize, ..QueryOptions::default() };
                let solutions = database.query_with(&query, &options)?.into_solutions().expect("a SELECT");
                let mut found: Vec<String> =
                    solutions.rows().map(|row| Ok(row.text("p")?.expect("bound"))).collect::<Result<_>>()?;
                found.sort_unstable();
                let mut expected: Vec<String> = expected.iter().map(|at| format!("urn:p{at}")).collect();
                expected.sort_unstable();
                assert_eq!(found, expected, "seed {seed}: {query}");
            }
            // A bag has every statement.
            let counted = format!("SELECT (COUNT(DISTINCT ?p) AS ?n) {{ {pattern} }}");
            let count = database.select(&counted)?.rows().next().expect("one row").integer("n")?;
            assert_eq!(count, i64::try_from(expected.len()).ok(), "seed {seed}: {counted}");
        }
        let counted = format!("SELECT (COUNT(?p) AS ?n) {{ {start} . ?x ?p ?o }}");
        let degree = |of: usize| statements.iter().filter(|(s, ..)| *s == of).count();
        let all: usize = statements.iter().filter(|(_, p, _)| *p == chosen).map(|(s, ..)| degree(*s)).sum();
        let count = database.select(&counted)?.rows().next().expect("one row").integer("n")?;
        assert_eq!(count, i64::try_from(all).ok(), "seed {seed}: {counted}");
    }
    Ok(())
}
