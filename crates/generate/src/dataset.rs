//! Small random RDF datasets for differential tests of two engines.
//!
//! # Shape
//! Few vertices and few predicates, so that patterns join; literals of all kinds, including equal values in
//! different lexical forms and invalid ones, since engines differ on those.

use crate::Random;
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedNodeRef, NamedOrBlankNode, Quad, Term};

/// Size and composition of a random dataset.
///
/// ```
/// use vervet_generate::RandomDataset;
/// let quads = RandomDataset { named_graphs: 0, ..RandomDataset::default() }.generate(1);
/// assert!(quads.iter().all(|quad| quad.graph_name.is_default_graph()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomDataset {
    /// Number of vertices, from `http://example.org/v0`.
    pub vertices: u32,
    /// Number of blank nodes among the vertices.
    pub blank_nodes: u32,
    /// Number of predicates, from `http://example.org/p0`.
    pub predicates: u32,
    /// Number of named graphs besides the default graph, from `http://example.org/g0`.
    pub named_graphs: u32,
    /// Number of statements drawn; duplicates are removed.
    pub statements: u32,
    /// Percentage of literals among objects.
    pub literal_percent: u32,
}

impl Default for RandomDataset {
    fn default() -> Self {
        Self {
            vertices: 20,
            blank_nodes: 2,
            predicates: 4,
            named_graphs: 2,
            statements: 120,
            literal_percent: 30,
        }
    }
}

impl RandomDataset {
    /// The distinct quads determined by `seed`.
    #[must_use]
    pub fn generate(&self, seed: u64) -> Vec<Quad> {
        let mut random = Random::new(seed);
        let mut quads = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..self.statements {
            let object = if random.below(100) < self.literal_percent {
                literal(&mut random).into()
            } else {
                Term::from(self.vertex(&mut random))
            };
            let quad = Quad::new(
                self.vertex(&mut random),
                name("p", random.below(self.predicates)),
                object,
                self.graph(&mut random),
            );
            if seen.insert(quad.clone()) {
                quads.push(quad);
            }
        }
        quads
    }

    fn vertex(&self, random: &mut Random) -> NamedOrBlankNode {
        let number = random.below(self.vertices);
        if number < self.blank_nodes {
            BlankNode::new_unchecked(format!("b{number}")).into()
        } else {
            name("v", number).into()
        }
    }

    fn graph(&self, random: &mut Random) -> GraphName {
        // Half of the statements are in the default graph.
        match random.below(2 * self.named_graphs) {
            number if number < self.named_graphs => name("g", number).into(),
            _ => GraphName::DefaultGraph,
        }
    }
}

fn name(kind: &str, number: u32) -> NamedNode {
    NamedNode::new_unchecked(format!("http://example.org/{kind}{number}"))
}

/// A literal from a small pool, so that literals repeat.
fn literal(random: &mut Random) -> Literal {
    const TYPED: [(&str, NamedNodeRef<'_>); 24] = [
        ("1", xsd::INTEGER),
        ("01", xsd::INTEGER),
        ("+1", xsd::INTEGER),
        ("-5", xsd::INTEGER),
        ("1152921504606846976", xsd::INTEGER),
        ("many", xsd::INTEGER),
        ("1", xsd::INT),
        ("300", xsd::BYTE),
        ("1.0", xsd::DECIMAL),
        ("2.50", xsd::DECIMAL),
        ("0.1", xsd::DECIMAL),
        ("1.0E0", xsd::DOUBLE),
        ("1", xsd::DOUBLE),
        ("NaN", xsd::DOUBLE),
        ("-INF", xsd::DOUBLE),
        ("0.1", xsd::FLOAT),
        ("true", xsd::BOOLEAN),
        ("1", xsd::BOOLEAN),
        ("2020-02-29T12:00:00Z", xsd::DATE_TIME),
        ("2020-02-29T13:00:00+01:00", xsd::DATE_TIME),
        ("2020-02-29T12:00:00", xsd::DATE_TIME),
        ("2020-02-29", xsd::DATE),
        ("2019-02-29", xsd::DATE),
        ("x", NamedNodeRef::new_unchecked("http://example.org/datatype")),
    ];
    const TEXTS: [&str; 8] = ["", "a", "b", "abc", "seven77", "eight888", "ünï✓", "two\nlines \"quoted\"\t"];
    const LANGUAGES: [&str; 3] = ["en", "en-gb", "de"];
    match random.below(10) {
        0..=3 => Literal::new_typed_literal(random.below(10).to_string(), xsd::INTEGER),
        4..=6 => {
            let (text, datatype) = *random.pick(&TYPED);
            Literal::new_typed_literal(text, datatype)
        }
        7..=8 => Literal::new_simple_literal(*random.pick(&TEXTS)),
        _ => {
            let text = *random.pick(&TEXTS);
            Literal::new_language_tagged_literal_unchecked(text, *random.pick(&LANGUAGES))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_deterministic_by_seed() {
        let options = RandomDataset::default();
        assert_eq!(options.generate(3), options.generate(3));
        assert_ne!(options.generate(3), options.generate(4));
        let quads = options.generate(5);
        assert!(quads.iter().any(|quad| quad.object.is_literal()));
        assert!(quads.iter().any(|quad| quad.subject.is_blank_node()));
        assert!(quads.iter().any(|quad| quad.graph_name.is_named_node()));
        let empty = RandomDataset { statements: 0, ..options };
        assert!(empty.generate(1).is_empty());
    }
}
