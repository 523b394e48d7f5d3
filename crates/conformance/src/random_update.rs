//! Random differential testing of updates against Oxigraph: after each operation both hold the same
//! statements.
//!
//! Graphs and patterns are those of `random`. Blank nodes are compared as `_:`; other tests check their
//! identity. Oxigraph keeps empty graphs and Vervet does not, so they are removed from Oxigraph; and graphs
//! are only copied if they exist.

use crate::random::{Verdict, group};
use crate::random_outcome::canonical;
use crate::random_path::{for_oxigraph, for_vervet};
use crate::random_terms::{GRAPHS, Random, graph, object, predicate, variable, vertex};
use crate::update::Model;
use oxigraph::sparql::SparqlEvaluator;
use oxigraph::store::Store;
use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term};
use vervet::ErrorKind;

/// Compares the engines on one request.
///
/// # Errors
/// A description of the difference.
pub fn case(seed: u64) -> Result<Verdict, String> {
    let random = &mut Random::new(seed);
    let trig = graph(random);
    let store = Store::new().map_err(|error| error.to_string())?;
    store
        .load_from_slice(oxigraph::io::RdfFormat::TriG, trig.as_bytes())
        .map_err(|error| format!("the graph of seed {seed} is malformed: {error}"))?;
    let mut model = Model::of(quads(&store)?);
    let mut verdict = Verdict::RefusedByBoth;
    let mut done = trig;
    for _ in 0..1 + random.below(4) {
        let operation = operation(random, &store)?;
        let operation_for_us = for_vervet(&operation);
        done += &format!("\n{operation_for_us}");
        let theirs = match SparqlEvaluator::new().parse_update(&for_oxigraph(&operation)) {
            Ok(update) => update.on_store(&store).execute().map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match (model.update(&operation_for_us, "urn:base"), theirs) {
            (Ok(()), Ok(())) => {}
            (Err(error), _) if error.kind() == ErrorKind::Unsupported => {
                return Ok(verdict.max(Verdict::NotSupported));
            }
            (Err(_), Err(_)) => return Ok(verdict),
            (ours, theirs) => {
                return Err(format!("seed {seed}: ours {ours:?}, theirs {theirs:?}\n{done}"));
            }
        }
        forget_empty_graphs(&store)?;
        let ours = lines(&model.dataset()?.iter().map(Quad::from).collect::<Vec<_>>());
        let theirs = lines(&quads(&store)?);
        if ours != theirs {
            let (ours, theirs) = (ours.join("\n"), theirs.join("\n"));
            return Err(format!("seed {seed}: after\n{done}\nours\n{ours}\ntheirs\n{theirs}"));
        }
        verdict = Verdict::Compared;
    }
    Ok(verdict)
}

fn operation(random: &mut Random, store: &Store) -> Result<String, String> {
    Ok(match random.below(12) {
        0 => format!("INSERT DATA {{ {} }}", data(random)),
        1 => format!("DELETE DATA {{ {} }}", data(random)),
        2 => format!("DELETE WHERE {{ {} }}", template(random, false)),
        3 => {
            let [word, target] = [
                random.pick(&["CLEAR", "DROP"]),
                random.pick(&["DEFAULT", "NAMED", "ALL", "GRAPH <urn:g0>", "GRAPH <urn:g1>"]),
            ];
            // Oxigraph treats a missing graph as an error.
            format!("{word} SILENT {target}")
        }
        4 => {
            let word = random.pick(&["ADD", "MOVE", "COPY"]);
            let names = ["DEFAULT", "<urn:g0>", "<urn:g1>", "<urn:g2>"];
            let (from, to) = (random.pick(&names), random.pick(&names));
            let iri = from.trim_matches(['<', '>']);
            let named =
                |quad: &Quad| matches!(&quad.graph_name, GraphName::NamedNode(node) if node.as_str() == iri);
            if from != "DEFAULT" && !quads(store)?.iter().any(named) {
                return Ok(format!("ADD DEFAULT TO {to}"));
            }
            format!("{word} {from} TO {to}")
        }
        _ => modify(random),
    })
}

fn modify(random: &mut Random) -> String {
    let mut text = String::new();
    if random.chance(20) {
        text += &format!("WITH {} ", graph_name(random));
    }
    let deletes = random.chance(60);
    if deletes {
        text += &format!("DELETE {{ {} }} ", template(random, false));
    }
    if !deletes || random.chance(50) {
        text += &format!("INSERT {{ {} }} ", template(random, true));
    }
    while random.chance(20) {
        let clause = format!("USING {}{} ", random.pick(&["", "NAMED "]), graph_name(random));
        // The merge of a graph with itself is that graph (SPARQL 1.1 Update §3.1.3); Oxigraph 0.5.13
        // duplicates it.
        if !text.contains(&clause) {
            text += &clause;
        }
    }
    let depth = random.below(2);
    text + &format!("WHERE {{ {} }}", group(random, depth, &mut 0))
}

fn graph_name(random: &mut Random) -> String {
    format!("<urn:g{}>", random.below(GRAPHS))
}

fn data(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(4) {
        let predicate = predicate(random);
        let statement = format!("{} {predicate} {}", vertex(random), object(random, &predicate));
        text += &match random.chance(30) {
            true => format!("GRAPH {} {{ {statement} }} ", graph_name(random)),
            false => format!("{statement} . "),
        };
    }
    text
}

fn template(random: &mut Random, blanks: bool) -> String {
    let mut text = String::new();
    for _ in 0..1 + random.below(2) {
        let subject = if random.chance(80) { variable(random).to_owned() } else { vertex(random) };
        let predicate = if random.chance(20) { variable(random).to_owned() } else { predicate(random) };
        let object = match random.below(10) {
            0 if blanks => "_:b".to_owned(),
            1..8 => variable(random).to_owned(),
            _ => object(random, &predicate),
        };
        let statement = format!("{subject} {predicate} {object}");
        text += &match random.below(10) {
            0 => format!("GRAPH {} {{ {statement} }} ", variable(random)),
            1 | 2 => format!("GRAPH {} {{ {statement} }} ", graph_name(random)),
            _ => format!("{statement} . "),
        };
    }
    text
}

fn quads(store: &Store) -> Result<Vec<Quad>, String> {
    store.iter().collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn forget_empty_graphs(store: &Store) -> Result<(), String> {
    let graphs: Result<Vec<NamedOrBlankNode>, _> = store.named_graphs().collect();
    for graph in graphs.map_err(|error| error.to_string())? {
        if store.quads_for_pattern(None, None, None, Some(graph.as_ref().into())).next().is_none() {
            store.remove_named_graph(&graph).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn lines(quads: &[Quad]) -> Vec<String> {
    let term = |term: Term| match term {
        Term::BlankNode(_) => "_:".to_owned(),
        term => canonical(&term),
    };
    let line = |quad: &Quad| {
        let subject = term(quad.subject.clone().into());
        format!("{subject} {} {} {}", quad.predicate, term(quad.object.clone()), quad.graph_name)
    };
    let mut lines: Vec<String> = quads.iter().map(line).collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::case;
    use crate::random::Verdict;

    /// Random requests on random graphs: the same statements as Oxigraph. Set VERVET_RANDOM_SEED to start
    /// elsewhere and VERVET_RANDOM_CASES to run more.
    #[test]
    fn random_updates_agree_with_oxigraph() {
        let number = |name: &str, default: u64| {
            std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        let start = number("VERVET_RANDOM_SEED", 1);
        let count = number("VERVET_RANDOM_CASES", 1000);
        println!("cases {start} to {}", start + count);
        let mut compared = 0_u64;
        for seed in start..start + count {
            match case(seed) {
                Ok(Verdict::Compared) => compared += 1,
                Ok(_) => {}
                Err(difference) => panic!("{difference}"),
            }
        }
        assert!(compared * 2 > count, "only {compared} of {count} cases compared anything");
    }
}
