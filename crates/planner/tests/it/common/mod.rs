//! Shared test support: a small notation for patterns, test graphs, and two slow and simple evaluators, one
//! for the algebra and one for plans, which must agree.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "the example that measures planning uses it as well")]

pub mod algebra;
pub mod run;

use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};
use std::path::PathBuf;
use vervet_algebra::{Form, GraphSlot, Node, Pattern, Query, Slot, Variable};
use vervet_kernel::Control;
use vervet_planner::{PlanOptions, Prefix, explain, plan, validate};
use vervet_testkit::MemorySnapshot;

pub const UB: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";
pub const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
pub const PREFIXES: [Prefix<'static>; 3] = [("ub", UB), ("rdf", RDF), ("", "http://e/")];

/// Names of variables, numbered in order of appearance.
#[derive(Default)]
pub struct Names(pub Vec<String>);

impl Names {
    pub fn variable(&mut self, name: &str) -> Variable {
        let at = self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        Variable(u16::try_from(at).unwrap())
    }

    fn slot(&mut self, word: &str) -> Slot {
        match word.strip_prefix('?') {
            Some(name) => Slot::Variable(self.variable(name)),
            None => Slot::Constant(term(word)),
        }
    }

    /// `?x ub:p ?y . ?y a ub:C`
    pub fn patterns(&mut self, text: &str) -> Vec<Pattern> {
        let words: Vec<_> = text.split_whitespace().filter(|word| *word != ".").collect();
        words
            .chunks(3)
            .map(|words| Pattern {
                subject: self.slot(words[0]),
                predicate: self.slot(words[1]),
                object: self.slot(words[2]),
                graph: GraphSlot::Default,
                edge: None,
                parallel: false,
            })
            .collect()
    }

    pub fn node(&mut self, text: &str) -> Node {
        Node::Patterns(self.patterns(text))
    }

    pub fn select(self, columns: &[&str], root: Node) -> Query {
        let mut names = self;
        let columns = columns.iter().map(|name| names.variable(name)).collect();
        Query { form: Form::Select(columns), root, variables: names.0, parameters: Vec::new() }
    }
}

pub fn term(word: &str) -> Term {
    if let Some(text) = word.strip_prefix('"') {
        return Literal::new_simple_literal(text.trim_end_matches('"')).into();
    }
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return Literal::new_typed_literal(word, oxrdf::vocab::xsd::INTEGER).into();
    }
    if let Some(iri) = word.strip_prefix('<') {
        return NamedNode::new(iri.trim_end_matches('>')).unwrap().into();
    }
    let iri = match word {
        "a" => format!("{RDF}type"),
        _ => match word.split_once(':') {
            Some(("ub", local)) => format!("{UB}{local}"),
            Some(("rdf", local)) => format!("{RDF}{local}"),
            Some((_, local)) => format!("http://e/{local}"),
            None => format!("http://e/{word}"),
        },
    };
    NamedNode::new(iri).unwrap().into()
}

/// A graph from statements in the notation of [`Names::patterns`].
pub fn graph(text: &str) -> MemorySnapshot {
    let words: Vec<_> = text.split_whitespace().filter(|word| *word != ".").collect();
    MemorySnapshot::from_quads(words.chunks(3).map(|words| {
        let (Term::NamedNode(subject), Term::NamedNode(predicate)) = (term(words[0]), term(words[1])) else {
            panic!("{words:?}")
        };
        Quad::new(subject, predicate, term(words[2]), GraphName::DefaultGraph)
    }))
}

/// The text of a checked plan.
pub fn explained(query: &Query, snapshot: &MemorySnapshot) -> String {
    // As in a large graph, where the alternatives of a part are worth a comparison.
    let options = PlanOptions { compare_from_cost: 0.0, ..PlanOptions::default() };
    let plan = plan(query, snapshot, &options, &Control::default()).unwrap();
    let text = explain(&plan, snapshot, &PREFIXES);
    validate(&plan).unwrap_or_else(|error| panic!("{error}\n{text}"));
    text
}

/// The steps of a plan, without estimates.
pub fn shape(query: &Query, snapshot: &MemorySnapshot) -> Vec<String> {
    explained(query, snapshot)
        .lines()
        .skip(1)
        .map(|line| {
            let step = line.trim_end_matches(|c: char| c.is_ascii_digit() || ",.e".contains(c));
            step.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// The folder of test data.
pub fn data() -> Option<PathBuf> {
    let shared = std::env::var_os("VERVET_TEST_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    [shared.join("data"), shared].into_iter().find(|path| path.join("lubm/lubm-1.nt.zst").exists())
}

/// LUBM-1, if the data is present.
pub fn lubm() -> Option<MemorySnapshot> {
    let Some(data) = data() else {
        eprintln!("skipped: no test data; set VERVET_TEST_DATA to its folder");
        return None;
    };
    let file = std::fs::File::open(data.join("lubm/lubm-1.nt.zst")).unwrap();
    let text = std::io::BufReader::new(zstd::Decoder::new(file).unwrap());
    let triples = oxttl::NTriplesParser::new().for_reader(text);
    Some(MemorySnapshot::from_quads(triples.map(|triple| triple.unwrap().in_graph(GraphName::DefaultGraph))))
}

/// The text of one of the LUBM queries in the notation of [`Names::patterns`], and its columns.
pub fn lubm_query(name: &str) -> Query {
    let text = match name {
        "q1" => {
            "?Y a ub:University . ?X ub:undergraduateDegreeFrom ?Y . ?X a ub:GraduateStudent .
                 ?X ub:memberOf ?Z . ?Z ub:subOrganizationOf ?Y . ?Z a ub:Department"
        }
        "q2" => "?X a ub:Course . ?X ub:name ?Y",
        "q3" => {
            "?X ub:undergraduateDegreeFrom ?Y . ?X a ub:UndergraduateStudent . ?X ub:memberOf ?Z .
                 ?Z a ub:Department . ?Z ub:subOrganizationOf ?Y . ?Y a ub:University"
        }
        "q4" => {
            "?X ub:worksFor <http://www.Department0.University0.edu> . ?X a ub:FullProfessor .
                 ?X ub:name ?Y1 . ?X ub:emailAddress ?Y2 . ?X ub:telephone ?Y3"
        }
        "q5" => "?X ub:subOrganizationOf <http://www.Department0.University0.edu> . ?X a ub:ResearchGroup",
        "q6" => {
            "?Y ub:subOrganizationOf <http://www.University0.edu> . ?Y a ub:Department .
                 ?X ub:worksFor ?Y . ?X a ub:FullProfessor"
        }
        "q7" => {
            "?Y a ub:FullProfessor . ?X ub:advisor ?Y . ?X a ub:UndergraduateStudent .
                 ?X ub:takesCourse ?Z . ?Z a ub:Course . ?Y ub:teacherOf ?Z"
        }
        _ => panic!("{name}"),
    };
    let columns: &[&str] = match name {
        "q1" | "q3" | "q7" => &["X", "Y", "Z"],
        "q4" => &["X", "Y1", "Y2", "Y3"],
        "q5" => &["X"],
        _ => &["X", "Y"],
    };
    let mut names = Names::default();
    let root = names.node(text);
    names.select(columns, root)
}
