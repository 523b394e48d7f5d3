//! The mixes of the LBV benchmark, as run by G-Tran (arXiv 2105.04449, Table 4 and §6): read-only, four reads
//! to one write, one read to four writes; all kinds of reads are equally frequent, as are all kinds of
//! writes.
//!
//! # Shape
//! Vertices, edges and values are drawn uniformly from those at the start; for one that has been removed
//! meanwhile, the operation is only the failed lookup. A read is a snapshot, since read-only transactions
//! need nothing else; a write is one transaction through the typed interface.

use super::clients::{self, Load, Outcome};
use super::graphs::{Data, StorageLocation};
use super::options::TransactionOptions;
use crate::sections::{Section, SectionReport};
use crate::table::figure;
use std::hint::black_box;
use vervet::{
    Database, Direction, Durability, Edge, Graph, Isolation, Literal, Term, Transaction,
    TransactionOptions as Begin, Vertex,
};
use vervet_generate::Random;
use vervet_model::{ErrorKind, Result};

/// The maximum number of edges and values that transactions draw from.
const DRAWN_MAX: usize = 200_000;
/// The figures of G-Tran for the three mixes, serializable, 20 threads on one machine, in transactions per
/// second.
const REPORTED: [f64; 3] = [12_000.0, 5_000.0, 2_900.0];

/// The parameters of all queries.
pub(crate) struct LbvMix {
    vertices: Vec<Vertex>,
    edges: Vec<Edge>,
    labels: Vec<String>,
    keys: Vec<String>,
    vertex_values: Vec<(String, Term)>,
    edge_values: Vec<(String, Term)>,
}

pub(super) fn run(data: &Data, options: &TransactionOptions, report: &mut SectionReport) -> Result<()> {
    let mut section = Section::new(
        "LBV mixes",
        "Throughput of reads and writes together, and the fraction of writes that were refused because of a \
         conflict and not repeated. `pre-read`: transactions begin with commits that are not yet on disk. G-Tran \
         reports 12,000, 5,000 and 2,900 transactions/s for the three mixes on 20 threads, serializable, in \
         memory.",
        &[
            "mix",
            "isolation",
            "log",
            "pre-read",
            "clients",
            "transactions/s",
            "p50 µs",
            "p99 µs",
            "writes refused, %",
        ],
    );
    let mixes = [("read-only", 100), ("80:20", 80), ("20:80", 20)];
    let mut serializable = None;
    for (mix, reads) in mixes {
        for isolation in [Isolation::Serializable, Isolation::Snapshot] {
            for (durability, pre_read) in
                [(Durability::None, true), (Durability::Sync, true), (Durability::Sync, false)]
            {
                // Isolation and durability do not affect reads.
                if reads == 100 && (isolation, durability) != (Isolation::Serializable, Durability::None) {
                    continue;
                }
                for &clients in &options.clients {
                    let made = data.database(StorageLocation::Directory(durability), |options| {
                        options.pre_read = pre_read
                    })?;
                    let drawn = LbvMix::new(data, &made.db)?;
                    let load = Load { clients, time: options.time, warm_up: 100 };
                    let outcome = clients::run(load, |client, number| {
                        let mut random = Random::for_part(7, &[client as u64, number]);
                        if random.below(100) < reads {
                            drawn.read(&made.db, &mut random)
                        } else {
                            drawn.write(&made.db, isolation, &mut random)
                        }
                    })?;
                    made.db.check()?;
                    let writes = (outcome.done + outcome.conflicts) as f64 * (1.0 - f64::from(reads) / 100.0);
                    let refused = 100.0 * outcome.conflicts as f64 / writes.max(1.0);
                    section.row(row(mix, isolation, durability, pre_read, clients, &outcome, refused));
                    if clients == 1 && durability == Durability::None {
                        targets(report, mix, isolation, &outcome, &mut serializable);
                    } else if mix == "20:80"
                        && isolation == Isolation::Serializable
                        && durability == Durability::None
                    {
                        let what = format!("writes refused, 20:80, serializable, {clients} clients, %");
                        report.target(what, refused, 1.0, true);
                    }
                }
            }
        }
    }
    report.push(section);
    Ok(())
}

fn row(
    mix: &str,
    isolation: Isolation,
    durability: Durability,
    pre_read: bool,
    clients: usize,
    outcome: &Outcome,
    refused: f64,
) -> Vec<String> {
    vec![
        mix.to_owned(),
        format!("{isolation:?}").to_lowercase(),
        durability.to_string(),
        if pre_read { "on" } else { "off" }.to_owned(),
        clients.to_string(),
        figure(outcome.rate()),
        figure(outcome.quantile_us(0.5)),
        figure(outcome.quantile_us(0.99)),
        figure(refused),
    ]
}

fn targets(
    report: &mut SectionReport,
    mix: &str,
    isolation: Isolation,
    outcome: &Outcome,
    serializable: &mut Option<f64>,
) {
    let reported = match mix {
        "read-only" => REPORTED[0],
        "80:20" => REPORTED[1],
        _ => REPORTED[2],
    };
    if isolation == Isolation::Serializable {
        let what =
            format!("{mix}, serializable, one client: transactions/s (reported by G-Tran on 20 threads)");
        report.target(what, outcome.rate(), reported, false);
        *serializable = Some(outcome.rate());
    } else if let Some(serializable) = serializable.take().filter(|_| mix == "80:20") {
        let cost = 100.0 * (1.0 - serializable / outcome.rate());
        report.target("80:20: serializable slower than snapshot isolation, %", cost, 15.0, true);
    }
}

impl LbvMix {
    pub(crate) fn new(data: &Data, db: &Database) -> Result<Self> {
        let (labels, keys) = (names(db, "isIRI")?, names(db, "isLiteral")?);
        let snapshot = db.snapshot();
        let graph = snapshot.graph();
        let mut vertices = Vec::new();
        for name in data.vertices(db)? {
            vertices.extend(graph.vertex(name.as_str())?);
        }
        let mut random = Random::new(3);
        let (mut edges, mut vertex_values, mut edge_values) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..(4 * vertices.len()).min(DRAWN_MAX / 4) {
            let vertex = *random.pick(&vertices);
            for direction in Direction::BOTH {
                for edge in graph.edges(vertex, random.pick(&labels).as_str(), direction)? {
                    edge_values.extend(graph.properties(edge)?);
                    edges.push(edge);
                }
            }
            vertex_values.extend(graph.properties(vertex)?);
        }
        edges.retain(|edge: &Edge| edge.id().is_some());
        for drawn in [&mut vertex_values, &mut edge_values] {
            random.shuffle(drawn);
            drawn.truncate(DRAWN_MAX);
        }
        random.shuffle(&mut edges);
        Ok(Self { vertices, edges, labels, keys, vertex_values, edge_values })
    }

    /// One of Q11 to Q15 and Q22 to Q27.
    pub(crate) fn read(&self, db: &Database, random: &mut Random) -> Result<()> {
        let snapshot = db.snapshot();
        let graph = snapshot.graph();
        let vertex = *random.pick(&self.vertices);
        let each_label = |direction| -> Result<()> {
            for label in &self.labels {
                black_box(graph.neighbours(vertex, label, direction)?);
            }
            Ok(())
        };
        let labels_of = |directions: &[Direction]| -> Result<()> {
            for (label, direction) in
                self.labels.iter().flat_map(|label| directions.iter().map(move |d| (label, *d)))
            {
                black_box(graph.degree(vertex, label, direction)? > 0);
            }
            Ok(())
        };
        match random.below(11) {
            0 => {
                if let Some((key, value)) = pick(&self.vertex_values, random) {
                    black_box(graph.vertices_with_property(key, value)?);
                }
            }
            1 => {
                if let Some((key, value)) = pick(&self.edge_values, random) {
                    black_box(graph.edges_with_property(key, value)?);
                }
            }
            2 => black_box_edges(graph, random.pick(&self.labels).as_str())?,
            3 => drop(black_box((graph.labels(vertex)?, graph.properties(vertex)?))),
            4 => {
                if let Some(edge) = pick(&self.edges, random) {
                    black_box(graph.properties(*edge)?);
                }
            }
            5 => each_label(Direction::In)?,
            6 => each_label(Direction::Out)?,
            7 => {
                for direction in Direction::BOTH {
                    black_box(graph.neighbours(vertex, random.pick(&self.labels).as_str(), direction)?);
                }
            }
            8 => labels_of(&[Direction::In])?,
            9 => labels_of(&[Direction::Out])?,
            _ => labels_of(&Direction::BOTH)?,
        }
        Ok(())
    }

    /// One of Q2 to Q7 and Q16 to Q21, as a transaction.
    pub(crate) fn write(&self, db: &Database, isolation: Isolation, random: &mut Random) -> Result<()> {
        let mut transaction = db.begin_with(Begin { isolation })?;
        match self.change(&mut transaction, random) {
            // Another client has removed it meanwhile.
            Err(error) if error.kind() == ErrorKind::Input => return Ok(()),
            changed => changed?,
        }
        transaction.commit().map(drop)
    }

    fn change(&self, transaction: &mut Transaction, random: &mut Random) -> Result<()> {
        let (from, to) = (*random.pick(&self.vertices), *random.pick(&self.vertices));
        let edge = pick(&self.edges, random).copied();
        let label = random.pick(&self.labels).as_str();
        let key = random.pick(&self.keys);
        let value = || Literal::from(i64::from(random.clone().below(1_000_000)));
        match random.clone().below(12) {
            0 => self.add_vertex(transaction, random).map(drop),
            1 => transaction.add_edge(from, label, to).map(drop),
            2 => {
                let edge = transaction.add_edge(from, label, to)?;
                transaction.set_property(edge, "weight", value())
            }
            3 | 6 => transaction.set_property(from, key, value()),
            4 | 7 => edge.map_or(Ok(()), |edge| transaction.set_property(edge, "weight", value())),
            5 => {
                let vertex = self.add_vertex(transaction, random)?;
                transaction.add_edge(vertex, label, to)?;
                transaction.add_edge(from, label, vertex).map(drop)
            }
            8 => transaction.remove_vertex(from).map(drop),
            9 => edge.map_or(Ok(0), |edge| transaction.remove_edge(edge)).map(drop),
            10 => transaction.remove_property(from, key).map(drop),
            _ => match edge {
                Some(edge) => {
                    let keys: Vec<String> =
                        self.edge_values.first().map(|(key, _)| key.clone()).into_iter().collect();
                    keys.iter().try_for_each(|key| transaction.remove_property(edge, key).map(drop))
                }
                None => Ok(()),
            },
        }
    }

    /// A vertex with two properties.
    fn add_vertex(&self, transaction: &mut Transaction, random: &mut Random) -> Result<Vertex> {
        let vertex = transaction.add_vertex(&["bench"])?;
        for _ in 0..2 {
            transaction.set_property(
                vertex,
                random.pick(&self.keys).as_str(),
                i64::from(random.below(1_000_000)),
            )?;
        }
        Ok(vertex)
    }
}

fn pick<'a, T>(all: &'a [T], random: &mut Random) -> Option<&'a T> {
    (!all.is_empty()).then(|| random.pick(all))
}

/// Q13: all edges with a label.
fn black_box_edges(graph: Graph<'_>, label: &str) -> Result<()> {
    graph.for_each_edge(label, &mut |edge| {
        black_box(edge);
    })
}

/// Predicates with objects of a kind, without `rdf:type`.
fn names(db: &Database, test: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let all = db.select("SELECT DISTINCT ?p { ?s ?p ?o }")?;
    for row in all.rows() {
        let Some(name) = row.text("p")? else { continue };
        let text = format!(
            "SELECT (COUNT(*) AS ?n) {{ {{ SELECT ?o {{ ?s <{name}> ?o }} LIMIT 1 }} FILTER({test}(?o)) }}"
        );
        let found = db.select(&text)?.rows().next().map(|row| row.integer("n")).transpose()?.flatten();
        if found == Some(1) && name != oxrdf::vocab::rdf::TYPE.as_str() {
            names.push(name);
        }
    }
    Ok(names)
}
