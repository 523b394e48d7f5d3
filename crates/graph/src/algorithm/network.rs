//! Network: a graph in compressed sparse row form, with densely numbered vertices.
//!
//! # Cost
//! 20 bytes a vertex and 4 an arc; during construction another 4 bytes for each vertex number and 8 for each
//! arc. Reading takes one batch expansion for each 4,096 sources of a predicate, on several threads, and a
//! counting sort.

use super::ResourceLimits;
use super::parallel_chunks::in_chunks;
use oxrdf::NamedNodeRef;
use std::borrow::Cow;
use vervet_model::vocab::{EDGE_ID, KEY_NAMESPACE, RDF_REIFIES, is_iri, name_iri};
use vervet_model::{Direction, Error, ErrorKind, Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment, Snapshot};

/// Number of keys listed and expanded at a time.
const KEYS: usize = 4096;

/// Direction in which edges are traversed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Follow {
    /// From source to target.
    #[default]
    Out,
    /// From target to source.
    In,
    /// Both directions: an edge is two arcs.
    Both,
}

/// A graph in compressed sparse row form.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Vertex ids, ascending.
    vertices: Vec<Id>,
    /// Offsets into `sources` of the incoming arcs of each vertex; one more than there are vertices.
    starts: Vec<usize>,
    sources: Vec<u32>,
    /// Number of outgoing arcs of a vertex.
    leaving: Vec<u32>,
}

impl Network {
    /// Reads all vertices of a graph (those with a type, a property or an edge) and an arc for each edge with
    /// one of these labels (none: any label).
    ///
    /// # Errors
    /// Limits; damaged data. [`ErrorKind::Unsupported`]: 2^32 vertices or more.
    pub fn read(
        snapshot: &dyn Snapshot,
        labels: &[impl AsRef<str>],
        follow: Follow,
        limits: &ResourceLimits<'_>,
    ) -> Result<Self> {
        let vertices = vertices(snapshot, limits)?;
        let mut numbers = vec![u32::MAX; usize::try_from(snapshot.vertex_count()).map_err(|_| too_many())?];
        limits.control.grow(4 * numbers.len() as u64 + 8 * vertices.len() as u64)?;
        for (number, vertex) in (0..).zip(&vertices) {
            if let Some(index) = index(*vertex).and_then(|index| numbers.get_mut(index)) {
                *index = number;
            }
        }
        let number = |id: Id| {
            let known = index(id).filter(|_| id.is_vertex()).and_then(|index| numbers.get(index)).copied();
            known.filter(|number| *number != u32::MAX)
        };
        let mut arcs: Vec<[u32; 2]> = Vec::new();
        for predicate in edge_predicates(snapshot, labels)? {
            let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { continue };
            if segment.statistics().literals_only {
                continue;
            }
            let keys = keys(segment, limits)?;
            let chunks = in_chunks(limits, keys.len(), KEYS, |chunk| {
                let mut found = Vec::new();
                let keys = &keys[chunk];
                let (mut cursor, mut expansion) = (Cursor::default(), Expansion::new(KEYS));
                while cursor.row < keys.len() {
                    expansion.clear();
                    segment.expand(keys, EntryFilter::ALL, &mut cursor, &mut expansion)?;
                    for (row, neighbour) in expansion.rows.iter().zip(&expansion.neighbours) {
                        if let (Some(source), Some(target)) =
                            (number(keys[*row as usize]), number(*neighbour))
                        {
                            found.push([source, target]);
                        }
                    }
                }
                limits.control.grow(8 * found.len() as u64)?;
                Ok(found)
            })?;
            for found in chunks {
                match follow {
                    Follow::Out => arcs.extend(found),
                    Follow::In => arcs.extend(found.into_iter().map(|[source, target]| [target, source])),
                    Follow::Both => {
                        limits.control.grow(8 * found.len() as u64)?;
                        let both = |[source, target]: [u32; 2]| [[source, target], [target, source]];
                        arcs.extend(found.into_iter().flat_map(both));
                    }
                }
            }
        }
        let numbered = 4 * numbers.len() as u64;
        drop(numbers);
        let bytes = 8 * (arcs.len() as u64 + vertices.len() as u64);
        let network = Self::new(vertices, &arcs, limits)?;
        limits.control.shrink(bytes + numbered);
        Ok(network)
    }

    /// A network of these vertices, ascending, and of arcs between their positions. Counts its memory.
    ///
    /// # Errors
    /// Limits. [`ErrorKind::Unsupported`]: 2^32 vertices or more. Internal: an arc to a position out of
    /// range.
    pub fn new(vertices: Vec<Id>, arcs: &[[u32; 2]], limits: &ResourceLimits<'_>) -> Result<Self> {
        if u32::try_from(vertices.len()).is_err() {
            return Err(too_many());
        }
        let count = vertices.len();
        limits.control.grow(20 * count as u64 + 4 * arcs.len() as u64)?;
        let mut starts = vec![0_usize; count + 1];
        let mut leaving = vec![0_u32; count];
        for &[source, target] in arcs {
            let (Some(leaving), Some(start)) =
                (leaving.get_mut(source as usize), starts.get_mut(target as usize + 1))
            else {
                return Err(Error::internal("an arc of a network has no target vertex"));
            };
            *leaving = leaving.checked_add(1).ok_or_else(too_many)?;
            *start += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        limits.control.check()?;
        let mut next = starts.clone();
        let mut sources = vec![0_u32; arcs.len()];
        for &[source, target] in arcs {
            let index = &mut next[target as usize];
            sources[*index] = source;
            *index += 1;
        }
        Ok(Self { vertices, starts, sources, leaving })
    }

    /// The vertices, ascending by number; results are in this order.
    #[must_use]
    pub fn vertices(&self) -> &[Id] {
        &self.vertices
    }

    /// Number of vertices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether the network has no vertex.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// Number of arcs.
    #[must_use]
    pub fn arc_count(&self) -> usize {
        self.sources.len()
    }

    /// The position of a vertex.
    #[must_use]
    pub fn index(&self, vertex: Id) -> Option<usize> {
        self.vertices.binary_search(&vertex).ok()
    }

    /// The sources of the incoming arcs of a vertex; parallel arcs repeat them.
    #[must_use]
    pub fn sources(&self, vertex: usize) -> &[u32] {
        self.sources.get(self.starts[vertex]..self.starts[vertex + 1]).unwrap_or_default()
    }

    /// Number of outgoing arcs of a vertex.
    #[must_use]
    pub fn leaving(&self, vertex: usize) -> u32 {
        self.leaving[vertex]
    }

    /// The transposed network: every arc reversed.
    pub(super) fn reversed(&self, limits: &ResourceLimits<'_>) -> Result<Self> {
        let count = self.len();
        limits.control.grow(20 * count as u64 + 4 * self.arc_count() as u64)?;
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0);
        let mut total = 0;
        for leaving in &self.leaving {
            total += *leaving as usize;
            starts.push(total);
        }
        let mut next = starts.clone();
        let mut sources = vec![0_u32; total];
        let mut arriving = Vec::with_capacity(count);
        for (number, vertex) in (0_u32..).zip(0..count) {
            let from = self.sources(vertex);
            arriving.push(u32::try_from(from.len()).map_err(|_| too_many())?);
            for source in from {
                let index = &mut next[*source as usize];
                sources[*index] = number;
                *index += 1;
            }
        }
        Ok(Self { vertices: self.vertices.clone(), starts, sources, leaving: arriving })
    }
}

fn too_many() -> Error {
    Error::new(ErrorKind::Unsupported, "an algorithm cannot run on so many vertices or edges of one vertex")
        .with_hint("the limit is 2^32 - 1 of each")
}

fn index(vertex: Id) -> Option<usize> {
    usize::try_from(vertex.payload()).ok()
}

/// The rank of each vertex by name, compared as in TinkerPop: by UTF-16 code units.
///
/// # Cost
/// `O(n log n)` comparisons; 4 bytes a vertex besides the names.
///
/// # Errors
/// Those of `name`; limits.
pub fn name_order(
    vertices: &[Id],
    name: &mut dyn FnMut(Id) -> Result<String>,
    limits: &ResourceLimits<'_>,
) -> Result<Vec<u32>> {
    let mut names = Vec::with_capacity(vertices.len());
    let mut bytes = 0;
    for (number, vertex) in (0_u32..).zip(vertices) {
        limits.control.work(64)?;
        let name = name(*vertex)?;
        let more = (name.capacity() + size_of::<(String, u32)>()) as u64;
        limits.control.grow(more)?;
        bytes += more;
        names.push((name, number));
    }
    // Fast path: texts without characters beyond 16 bits have the same order by bytes.
    if names.iter().all(|(name, _)| name.bytes().all(|byte| byte < 0xF0)) {
        names.sort_unstable();
    } else {
        names.sort_unstable_by(|(a, i), (b, j)| a.encode_utf16().cmp(b.encode_utf16()).then(i.cmp(j)));
    }
    limits.control.check()?;
    let mut order = vec![0_u32; names.len()];
    for (index, (_, number)) in (0_u32..).zip(&names) {
        order[*number as usize] = index;
    }
    limits.control.shrink(bytes);
    Ok(order)
}

/// The predicates of edges with these labels; without labels: all predicates that may be edge labels.
pub(super) fn edge_predicates(snapshot: &dyn Snapshot, labels: &[impl AsRef<str>]) -> Result<Vec<Id>> {
    if labels.is_empty() {
        return other_predicates(snapshot);
    }
    let mut found = Vec::with_capacity(labels.len());
    for label in labels {
        if let Some(id) = key(snapshot, label.as_ref())?
            && !found.contains(&id)
        {
            found.push(id);
        }
    }
    Ok(found)
}

/// The predicate of a key or label.
pub(super) fn key(snapshot: &dyn Snapshot, name: &str) -> Result<Option<Id>> {
    let iri = if is_iri(name) { Cow::Borrowed(name) } else { Cow::Owned(name_iri(KEY_NAMESPACE, name)) };
    snapshot.lookup(NamedNodeRef::new_unchecked(&iri).into())
}

/// All predicates except types, edge ids and reification.
fn other_predicates(snapshot: &dyn Snapshot) -> Result<Vec<Id>> {
    let mut passed_over = [snapshot.type_predicate(), None, None];
    for (slot, iri) in passed_over[1..].iter_mut().zip([EDGE_ID, RDF_REIFIES]) {
        *slot = snapshot.lookup(NamedNodeRef::new_unchecked(iri).into())?;
    }
    let all = snapshot.predicates().iter().map(|(predicate, _)| *predicate);
    Ok(all.filter(|predicate| !passed_over.contains(&Some(*predicate))).collect())
}

/// All keys of a segment that are vertices.
fn keys(segment: &dyn Segment, limits: &ResourceLimits<'_>) -> Result<Vec<Id>> {
    let (mut all, mut next) = (Vec::new(), Some(Id::vertex(0)));
    while let Some(from) = next {
        limits.control.check()?;
        next = segment.keys_up_to(from, Id::vertex(Id::PAYLOAD_MAX), KEYS, &mut all)?;
    }
    Ok(all)
}

/// All vertices, ascending: those with a type, a property or an edge.
fn vertices(snapshot: &dyn Snapshot, limits: &ResourceLimits<'_>) -> Result<Vec<Id>> {
    let words = usize::try_from(snapshot.vertex_count().div_ceil(64)).map_err(|_| too_many())?;
    let mut seen = vec![0_u64; words];
    let mut sources: Vec<(Id, Direction)> = Vec::new();
    sources.extend(snapshot.type_predicate().map(|types| (types, Direction::Out)));
    for predicate in other_predicates(snapshot)? {
        sources.extend(Direction::BOTH.map(|direction| (predicate, direction)));
    }
    let mut found = Vec::new();
    for (predicate, direction) in sources {
        let Some(segment) = snapshot.segment(predicate, direction)? else { continue };
        let mut next = Some(Id::vertex(0));
        while let Some(from) = next {
            limits.control.check()?;
            found.clear();
            next = segment.keys_up_to(from, Id::vertex(Id::PAYLOAD_MAX), KEYS, &mut found)?;
            for id in found.iter().filter(|id| id.is_vertex()) {
                if let Some(word) = seen.get_mut(usize::try_from(id.payload() / 64).unwrap_or(usize::MAX)) {
                    *word |= 1 << (id.payload() % 64);
                }
            }
        }
    }
    let mut all = Vec::new();
    for (index, mut word) in (0_u64..).zip(seen) {
        while word != 0 {
            all.push(Id::vertex(index * 64 + u64::from(word.trailing_zeros())));
            word &= word - 1;
        }
    }
    Ok(all)
}
