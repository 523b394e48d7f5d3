//! Communities by the Louvain method: greedy moves of vertices that raise the modularity, then the same on
//! the graph of communities, until nothing is gained.
//! # Source
//! V. Blondel, J.-L. Guillaume, R. Lambiotte, E. Lefebvre, "Fast unfolding of communities in large networks",
//! J. Stat. Mech. P10008, 2008.

use super::{Adjacency, ResourceLimits};
use rustc_hash::FxHashMap;
use vervet_model::Result;

/// Options of [`louvain`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Louvain {
    /// Greater values give smaller communities.
    pub resolution: f64,
    /// Ends when a level raises the modularity by at most this.
    pub threshold: f64,
    /// The maximum number of levels.
    pub levels_max: u32,
    /// The seed of the order in which vertices move; `None`: by number.
    pub seed: Option<u64>,
}

impl Default for Louvain {
    fn default() -> Self {
        Self { resolution: 1.0, threshold: 1e-7, levels_max: u32::MAX, seed: None }
    }
}

/// A graph with weights: a level of the hierarchy.
struct Level {
    starts: Vec<usize>,
    arcs: Vec<(u32, f64)>,
    /// Twice the weight of the loop of each vertex.
    loops: Vec<f64>,
    /// Sum of the weights of the arcs, loops twice.
    degrees: Vec<f64>,
}

/// The communities of a symmetric graph, one list of vertices' communities for each level, the last being the
/// best. Communities are numbered by their least vertices.
///
/// # Cost
/// `O(arcs)` for each pass over the vertices, on the calling thread, as each move depends on those before; 40
/// bytes a vertex and 16 an arc.
///
/// # Errors
/// Limits.
pub fn louvain(graph: &Adjacency, options: &Louvain, limits: &ResourceLimits<'_>) -> Result<Vec<Vec<u32>>> {
    let bytes = 40 * graph.len() as u64 + 16 * graph.arc_count() as u64;
    limits.control.grow(bytes)?;
    let mut level = Level::of(graph, limits)?;
    let twice = level.degrees.iter().sum::<f64>();
    let mut of_vertex: Vec<u32> = (0..u32::try_from(graph.len()).unwrap_or(u32::MAX)).collect();
    let mut levels = Vec::new();
    if twice == 0.0 {
        limits.control.shrink(bytes);
        return Ok(vec![of_vertex]);
    }
    let mut random = options.seed;
    let mut before = level.modularity(&of_vertex, twice, options.resolution);
    for _ in 0..options.levels_max {
        let (community, has_moved) = level.moved(twice, options.resolution, &mut random, limits)?;
        let (community, count) = numbered(&community);
        of_vertex.iter_mut().for_each(|number| *number = community[*number as usize]);
        limits.control.grow(4 * graph.len() as u64)?;
        levels.push(numbered(&of_vertex).0);
        let after = level.modularity(&community, twice, options.resolution);
        if !has_moved || after - before <= options.threshold {
            break;
        }
        before = after;
        level = level.contracted(&community, count, limits)?;
    }
    limits.control.shrink(bytes + 4 * (graph.len() * levels.len()) as u64);
    Ok(levels)
}

/// The same groups, numbered in the order of their first members, and their number.
fn numbered(groups: &[u32]) -> (Vec<u32>, usize) {
    let mut names = vec![u32::MAX; groups.len()];
    let mut count = 0_u32;
    let numbers = groups.iter().map(|group| {
        let name = &mut names[*group as usize];
        if *name == u32::MAX {
            *name = count;
            count += 1;
        }
        *name
    });
    (numbers.collect(), count as usize)
}

impl Level {
    fn of(graph: &Adjacency, limits: &ResourceLimits<'_>) -> Result<Self> {
        let count = graph.len();
        let mut level = Self {
            starts: Vec::with_capacity(count + 1),
            arcs: Vec::with_capacity(graph.arc_count()),
            loops: vec![0.0; count],
            degrees: vec![0.0; count],
        };
        level.starts.push(0);
        for vertex in 0..count {
            let neighbours = graph.neighbours(vertex);
            limits.control.work(1 + neighbours.len())?;
            for &other in neighbours {
                match other as usize == vertex {
                    true => level.loops[vertex] = 2.0,
                    false => level.arcs.push((other, 1.0)),
                }
            }
            level.degrees[vertex] = (level.arcs.len() - level.starts[vertex]) as f64 + level.loops[vertex];
            level.starts.push(level.arcs.len());
        }
        Ok(level)
    }

    fn len(&self) -> usize {
        self.loops.len()
    }

    fn arcs(&self, vertex: usize) -> &[(u32, f64)] {
        &self.arcs[self.starts[vertex]..self.starts[vertex + 1]]
    }

    fn modularity(&self, community: &[u32], twice: f64, resolution: f64) -> f64 {
        let (mut within, mut degrees) = (0.0, vec![0.0_f64; self.len()]);
        for vertex in 0..self.len() {
            let own = community[vertex];
            within += self.loops[vertex];
            for (other, weight) in self.arcs(vertex) {
                if community[*other as usize] == own {
                    within += weight;
                }
            }
            degrees[own as usize] += self.degrees[vertex];
        }
        within / twice
            - resolution * degrees.iter().map(|degree| (degree / twice) * (degree / twice)).sum::<f64>()
    }

    /// The community of each vertex after greedy moves, and whether there were any.
    fn moved(
        &self,
        twice: f64,
        resolution: f64,
        random: &mut Option<u64>,
        limits: &ResourceLimits<'_>,
    ) -> Result<(Vec<u32>, bool)> {
        let count = u32::try_from(self.len()).unwrap_or(u32::MAX);
        let mut community: Vec<u32> = (0..count).collect();
        let mut totals = self.degrees.clone();
        let mut order = community.clone();
        if let Some(state) = random {
            for last in (1..order.len()).rev() {
                let at = splitmix(state) % (last as u64 + 1);
                order.swap(last, usize::try_from(at).unwrap_or(last));
            }
        }
        // Weights of the arcs to each community: those of `touched` are not 0.
        let mut weights = vec![0.0_f64; self.len()];
        let mut touched: Vec<u32> = Vec::new();
        let mut has_moved = false;
        loop {
            let mut moves = 0_usize;
            for &vertex in &order {
                let at = vertex as usize;
                let (arcs, degree, own) = (self.arcs(at), self.degrees[at], community[at]);
                limits.control.work(1 + arcs.len())?;
                for (other, weight) in arcs {
                    let of_other = community[*other as usize];
                    if weights[of_other as usize] == 0.0 {
                        touched.push(of_other);
                    }
                    weights[of_other as usize] += weight;
                }
                totals[own as usize] -= degree;
                let gain = |to: u32| weights[to as usize] - resolution * totals[to as usize] * degree / twice;
                let (mut best, mut most) = (own, gain(own));
                for &to in &touched {
                    let gain = gain(to);
                    if gain > most {
                        (best, most) = (to, gain);
                    }
                }
                totals[best as usize] += degree;
                touched.drain(..).for_each(|to| weights[to as usize] = 0.0);
                if best != own {
                    community[at] = best;
                    moves += 1;
                }
            }
            if moves == 0 {
                break;
            }
            has_moved = true;
        }
        Ok((community, has_moved))
    }

    /// The graph of the communities.
    fn contracted(&self, community: &[u32], count: usize, limits: &ResourceLimits<'_>) -> Result<Self> {
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (vertex, own) in (0_u32..).zip(community) {
            members[*own as usize].push(vertex);
        }
        let mut level = Self {
            starts: Vec::with_capacity(count + 1),
            arcs: Vec::new(),
            loops: vec![0.0; count],
            degrees: vec![0.0; count],
        };
        level.starts.push(0);
        for (own, members) in (0_u32..).zip(&members) {
            let mut weights: FxHashMap<u32, f64> = FxHashMap::default();
            for vertex in members {
                let arcs = self.arcs(*vertex as usize);
                limits.control.work(1 + arcs.len())?;
                level.loops[own as usize] += self.loops[*vertex as usize];
                level.degrees[own as usize] += self.degrees[*vertex as usize];
                for (other, weight) in arcs {
                    match community[*other as usize] {
                        other if other == own => level.loops[own as usize] += weight,
                        other => *weights.entry(other).or_default() += weight,
                    }
                }
            }
            let mut arcs: Vec<(u32, f64)> = weights.into_iter().collect();
            arcs.sort_unstable_by_key(|(other, _)| *other);
            level.arcs.append(&mut arcs);
            level.starts.push(level.arcs.len());
        }
        Ok(level)
    }
}

/// The next number of a generator. G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
