//! Weighted arcs for path searches: the trait [`ArcSource`], and its implementation on segments.

use super::Follow;
use super::network::{edge_predicates, key};
use crate::{Edge, Vertex};
use oxrdf::{NamedNodeRef, vocab::xsd};
use vervet_model::{Direction, Error, ErrorKind, Id, Inline, LiteralKind, Result, TermParts};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment, Snapshot, successor};

/// Number of entries read at a time.
const CHUNK: usize = 1024;

/// An arc of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WeightedArc {
    /// Target.
    pub to: Id,
    /// Its edge; possibly without id if edges are not requested.
    pub edge: Edge,
    /// Length.
    pub distance: f64,
}

/// Provider of the arcs of vertices.
pub trait ArcSource {
    /// Calls `add` with every outgoing arc of `vertices`, and the position of its vertex.
    ///
    /// # Errors
    /// Errors of the implementation; a distance that is not a number.
    fn arcs(&mut self, vertices: &[Id], add: &mut dyn FnMut(usize, WeightedArc)) -> Result<()>;
}

/// The arcs of a graph for its edges with certain labels.
pub struct SegmentArcs<'s> {
    snapshot: &'s dyn Snapshot,
    predicates: Vec<Id>,
    follow: Follow,
    /// Whether edge ids are read, not only targets.
    edges: bool,
    /// Key of the distance, and the segment of its values.
    distance: Option<(String, Option<&'s dyn Segment>)>,
}

impl<'s> SegmentArcs<'s> {
    /// Arcs for the edges with one of these labels (none: any label). `distance`: key of the distance;
    /// `None`: each arc is 1; an edge without a value of that key has the distance 0. With `edges`, arcs have
    /// edge ids.
    ///
    /// # Errors
    /// Damaged data.
    pub fn new(
        snapshot: &'s dyn Snapshot,
        labels: &[impl AsRef<str>],
        follow: Follow,
        distance: Option<&str>,
        edges: bool,
    ) -> Result<Self> {
        let distance = match distance {
            None => None,
            Some(name) => {
                let segment = match key(snapshot, name)? {
                    Some(key) => snapshot.segment(key, Direction::Out)?,
                    None => None,
                };
                Some((name.to_owned(), segment))
            }
        };
        let predicates = edge_predicates(snapshot, labels)?;
        let edges = edges || distance.is_some();
        Ok(Self { snapshot, predicates, follow, edges, distance })
    }

    fn distance(&self, edge: Id) -> Result<f64> {
        let Some((name, segment)) = &self.distance else { return Ok(1.0) };
        let (Some(segment), true) = (segment, edge.is_bound()) else { return Ok(0.0) };
        let mut values = Vec::new();
        segment.neighbours(edge, EntryFilter::ALL, &mut values)?;
        let Some(first) = values.first() else { return Ok(0.0) };
        number(self.snapshot, *first)?.ok_or_else(|| {
            Error::new(ErrorKind::Query, format!("an edge has a value of {name} that is no number"))
                .with_hint("a distance is a number")
        })
    }
}

impl ArcSource for SegmentArcs<'_> {
    fn arcs(&mut self, vertices: &[Id], add: &mut dyn FnMut(usize, WeightedArc)) -> Result<()> {
        let directions: &[Direction] = match self.follow {
            Follow::Out => &[Direction::Out],
            Follow::In => &[Direction::In],
            Follow::Both => &Direction::BOTH,
        };
        for &label in &self.predicates {
            for &direction in directions {
                let Some(segment) = self.snapshot.segment(label, direction)? else { continue };
                let mut one = |row: usize, to: Id, id: Id| -> Result<()> {
                    let (Some(from), Some(other)) =
                        (vertices.get(row).copied().and_then(Vertex::from_id), Vertex::from_id(to))
                    else {
                        return Ok(());
                    };
                    let (source, target) = match direction {
                        Direction::Out => (from, other),
                        Direction::In => (other, from),
                    };
                    let edge = Edge::from_ids(source, label, target, id);
                    add(row, WeightedArc { to, edge, distance: self.distance(id)? });
                    Ok(())
                };
                if self.edges && segment.statistics().has_edges {
                    each_entry(segment, vertices, &mut one)?;
                    continue;
                }
                let (mut cursor, mut found) = (Cursor::default(), Expansion::new(CHUNK));
                while cursor.row < vertices.len() {
                    found.clear();
                    segment.expand(vertices, EntryFilter::ALL, &mut cursor, &mut found)?;
                    for (row, to) in found.rows.iter().zip(&found.neighbours) {
                        one(*row as usize, *to, Id::UNBOUND)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Calls `visit` with the position of the key, the neighbour and the edge id of all entries, including those
/// without an edge id.
fn each_entry(
    segment: &dyn Segment,
    keys: &[Id],
    visit: &mut dyn FnMut(usize, Id, Id) -> Result<()>,
) -> Result<()> {
    let mut found = Vec::new();
    for (row, key) in keys.iter().enumerate() {
        let mut from = [Id::UNBOUND; 3];
        loop {
            found.clear();
            segment.entries(*key, from, CHUNK, &mut found)?;
            for &[neighbour, _, edge] in &found {
                visit(row, neighbour, edge)?;
            }
            match found.last() {
                Some(last) if found.len() >= CHUNK => from = successor(*last),
                _ => break,
            }
        }
    }
    Ok(())
}

/// The value of a literal as a number; `None`: not a number.
fn number(snapshot: &dyn Snapshot, id: Id) -> Result<Option<f64>> {
    if let Some(inline) = Inline::from_id(id) {
        return Ok(match inline {
            Inline::Integer(number) | Inline::Long(number) => Some(number as f64),
            Inline::Int(number) => Some(f64::from(number)),
            Inline::Double(number) => Some(number),
            Inline::Decimal { .. } => {
                let mut text = String::new();
                inline.write_lexical(&mut text);
                text.parse().ok()
            }
            _ => None,
        });
    }
    let mut number = None;
    if id.is_stored_literal() {
        snapshot.read_term(id, &mut String::new(), &mut |parts| {
            if let TermParts::Literal { head, tail, kind: LiteralKind::Typed(datatype) } = parts
                && is_number(NamedNodeRef::new_unchecked(datatype))
            {
                number = match format!("{head}{tail}").as_str() {
                    "INF" | "+INF" => Some(f64::INFINITY),
                    "-INF" => Some(f64::NEG_INFINITY),
                    text => text.parse().ok(),
                };
            }
        })?;
    }
    Ok(number)
}

fn is_number(datatype: NamedNodeRef<'_>) -> bool {
    [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::FLOAT, xsd::LONG, xsd::INT, xsd::SHORT, xsd::BYTE]
        .contains(&datatype)
}
