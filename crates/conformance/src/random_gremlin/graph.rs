//! A small random property graph, as Gremlin statements that create it.
//!
//! # Shape
//! 10 to 60 vertices with ids of one type, with one of three labels or none; up to twice as many edges, with
//! parallel edges and self-loops. Each key but `mixed` and `nums` has values of one type, so that results can
//! be ordered; `tag` and `nums` may have several values, and values of `tag` have meta-properties. One key is
//! also an edge label.
//!
//! *With changes*: first a part of it, with extra elements and values ([`Graph::staged`]); then the rest, and
//! the removal of the extras.

use crate::random_terms::Random;
use std::fmt::Write;

pub(super) const VERTEX_LABELS: [&str; 3] = ["person", "place", "thing"];
pub(super) const EDGE_LABELS: [&str; 3] = ["knows", "likes", "near"];
/// String literals that may be the value of any key.
pub(super) const TEXTS: [&str; 7] = ["'ann'", "'bob'", "'eve'", "'Ann'", "'a b'", "''", "'bobby'"];
pub(super) const INTS: [&str; 6] = ["0", "1", "2", "3", "5", "-1"];
pub(super) const LONGS: [&str; 5] = ["0L", "1L", "2L", "5000000000L", "-3L"];
pub(super) const DOUBLES: [&str; 6] = ["0.0d", "0.5d", "1.0d", "1.5d", "2.0d", "-2.5d"];
pub(super) const BOOLEANS: [&str; 2] = ["true", "false"];
pub(super) const MIXED: [&str; 10] = ["1", "1L", "1.0d", "2", "2.5d", "'1'", "'ann'", "true", "0", "3L"];
const NUMBERS: [&str; 6] = ["1", "1L", "1.0d", "2", "2.5d", "3L"];

/// A property with the meta-properties of its value.
struct Property {
    key: &'static str,
    value: &'static str,
    /// Whether the key may have several values.
    list: bool,
    meta: Vec<(&'static str, &'static str)>,
}

struct Vertex {
    id: String,
    label: Option<&'static str>,
    properties: Vec<Property>,
}

struct Edge {
    id: String,
    label: &'static str,
    ends: [usize; 2],
    properties: Vec<(&'static str, &'static str)>,
}

/// See the header of this file.
pub(super) struct Graph {
    vertices: Vec<Vertex>,
    edges: Vec<Edge>,
    /// Whether ids are Longs; otherwise strings.
    pub(super) numbered: bool,
}

fn of(random: &mut Random, values: &[&'static str]) -> &'static str {
    values[random.below(values.len())]
}

fn properties(random: &mut Random) -> Vec<Property> {
    let mut all = Vec::new();
    let single: [(&str, &[&'static str], usize); 7] = [
        ("name", &TEXTS, 90),
        ("age", &INTS, 70),
        ("big", &LONGS, 50),
        ("score", &DOUBLES, 50),
        ("flag", &BOOLEANS, 50),
        ("mixed", &MIXED, 60),
        ("near", &INTS, 30),
    ];
    for (key, values, percent) in single {
        if random.chance(percent) {
            all.push(Property { key, value: of(random, values), list: false, meta: Vec::new() });
        }
    }
    for _ in 0..random.below(4) {
        let mut meta = Vec::new();
        if random.chance(50) {
            meta.push(("since", of(random, &INTS)));
        }
        if random.chance(30) {
            meta.push(("note", of(random, &TEXTS)));
        }
        all.push(Property { key: "tag", value: of(random, &TEXTS), list: true, meta });
    }
    for _ in 0..random.below(3) {
        all.push(Property { key: "nums", value: of(random, &NUMBERS), list: true, meta: Vec::new() });
    }
    all
}

impl Graph {
    pub(super) fn new(random: &mut Random) -> Self {
        let numbered = random.chance(40);
        let more = if random.chance(25) { 51 } else { 10 };
        let count = 10 + random.below(more);
        let vertices = (0..count)
            .map(|index| Vertex {
                id: if numbered { format!("{index}L") } else { format!("'v{index}'") },
                label: random.chance(90).then(|| of(random, &VERTEX_LABELS)),
                properties: properties(random),
            })
            .collect();
        let edge_count = count + random.below(count);
        let mut edges: Vec<Edge> = Vec::new();
        for index in 0..edge_count {
            let from = random.below(count);
            let ends = match random.below(10) {
                0 => [from, from],
                1 => edges.last().map_or([from, from], |edge| edge.ends),
                _ => [from, random.below(count)],
            };
            let mut properties = Vec::new();
            for (key, values) in [("weight", &DOUBLES[..]), ("since", &INTS), ("mixed", &MIXED)] {
                if random.chance(60) {
                    properties.push((key, of(random, values)));
                }
            }
            let id = if numbered { format!("{}L", 1000 + index) } else { format!("'e{index}'") };
            edges.push(Edge { id, label: of(random, &EDGE_LABELS), ends, properties });
        }
        Self { vertices, edges, numbered }
    }

    /// The literal of a vertex id; sometimes of a missing vertex.
    pub(super) fn vertex_id(&self, random: &mut Random) -> String {
        match random.chance(3) {
            true if self.numbered => "777L".to_owned(),
            true => "'nobody'".to_owned(),
            false => self.vertices[random.below(self.vertices.len())].id.clone(),
        }
    }

    /// The literal of an id of an edge.
    pub(super) fn edge_id(&self, random: &mut Random) -> String {
        self.edges[random.below(self.edges.len())].id.clone()
    }

    /// The statements that create the graph.
    pub(super) fn statements(&self) -> Vec<String> {
        let vertices = self.vertices.iter().map(|vertex| {
            let properties: String = vertex.properties.iter().map(property).collect();
            new_vertex(vertex) + &properties
        });
        vertices.chain(self.edges.iter().map(|edge| self.new_edge(edge))).collect()
    }

    /// The statements for a part of the graph and extras, and those that turn it into the graph.
    pub(super) fn staged(&self, random: &mut Random) -> [Vec<String>; 2] {
        let (mut base, mut later) = (Vec::new(), Vec::new());
        let noise = |which: usize| match self.numbered {
            true => format!("{}L", 5000 + which),
            false => format!("'n{which}'"),
        };
        let mut in_base = Vec::new();
        for vertex in &self.vertices {
            let early = random.chance(70);
            in_base.push(early);
            let mut statement = new_vertex(vertex);
            for own in &vertex.properties {
                let at = format!("g.V({})", vertex.id);
                match (early, random.below(10)) {
                    (false, _) | (true, 0..6) => statement += &property(own),
                    // Another value, which the right one replaces.
                    (true, 6 | 7) if !own.list => {
                        let _ = write!(statement, ".property(single,'{}','other')", own.key);
                        later.push(at + &property(own));
                    }
                    (true, _) => later.push(at + &property(own)),
                }
            }
            if early {
                if random.chance(30) {
                    let key = random.pick(&["age", "tag", "extra"]);
                    if !vertex.properties.iter().any(|own| own.key == key && !own.list) {
                        let _ = write!(statement, ".property(list,'{key}','gone','since',4)");
                        later.push(format!("g.V({}).properties('{key}').hasValue('gone').drop()", vertex.id));
                    }
                }
                base.push(statement);
            } else {
                later.insert(0, statement);
            }
        }
        for edge in &self.edges {
            let early = edge.ends.iter().all(|&end| in_base[end]) && random.chance(70);
            let statement = self.new_edge(edge);
            if early && random.chance(15) {
                later.push(format!("g.E({}).drop()", edge.id));
                later.push(statement.clone());
            }
            (if early { &mut base } else { &mut later }).push(statement);
        }
        for which in 0..random.below(4) {
            let id = noise(which);
            base.push(format!(
                "g.addV('person').property(T.id,{id}).property('name','ann').property('age',1)"
            ));
            for (vertex, _) in self.vertices.iter().zip(&in_base).filter(|(_, there)| **there).take(3) {
                let label = of(random, &EDGE_LABELS);
                base.push(format!("g.V({}).addE('{label}').to(__.V({id}))", vertex.id));
            }
            later.push(format!("g.V({id}).drop()"));
        }
        [base, later]
    }

    fn new_edge(&self, edge: &Edge) -> String {
        let [from, to] = edge.ends.map(|end| &self.vertices[end].id);
        let mut text =
            format!("g.V({from}).addE('{}').to(__.V({to})).property(T.id,{})", edge.label, edge.id);
        for (key, value) in &edge.properties {
            let _ = write!(text, ".property('{key}',{value})");
        }
        text
    }
}

fn new_vertex(vertex: &Vertex) -> String {
    let label = vertex.label.map_or(String::new(), |label| format!("'{label}'"));
    format!("g.addV({label}).property(T.id,{})", vertex.id)
}

fn property(property: &Property) -> String {
    let cardinality = if property.list { "list" } else { "single" };
    let mut text = format!(".property({cardinality},'{}',{}", property.key, property.value);
    for (key, value) in &property.meta {
        let _ = write!(text, ",'{key}',{value}");
    }
    text + ")"
}
