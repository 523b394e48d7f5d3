//! Counts of small patterns in a directed graph as loops: the reference for every engine.

use super::{Both, Csr};
use vervet_model::Result;

/// A directed graph with dense vertex numbers.
pub struct PatternLoops {
    edges: Both,
}

impl PatternLoops {
    /// The graph with these edges between the vertices `0..vertices`.
    ///
    /// # Errors
    /// There are more than 2^32 edges.
    pub fn new(vertices: usize, edges: Vec<(u32, u32)>) -> Result<Self> {
        Ok(Self { edges: Both::from_pairs(vertices, edges)? })
    }

    /// The number of edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.edges.outward.entries()
    }

    /// The vertex with the highest out-degree.
    #[must_use]
    pub fn largest(&self) -> u32 {
        // The first one if several are equal.
        let better = |best: (u32, usize), (vertex, out): (u32, &[u32])| {
            if out.len() > best.1 { (vertex, out.len()) } else { best }
        };
        self.adjacencies().fold((0, 0), better).0
    }

    /// The number of (a, b, c) with edges a→b, b→c, a→c.
    #[must_use]
    pub fn triangles(&self) -> u64 {
        let mut count = 0;
        for (_, seconds) in self.adjacencies() {
            for &second in seconds {
                common(seconds, self.out().of(second), |_| count += 1);
            }
        }
        count
    }

    /// The number of (a, b, c, d) with edges from each to every later one.
    #[must_use]
    pub fn cliques(&self) -> u64 {
        let mut count = 0;
        let mut thirds = Vec::new();
        for (_, seconds) in self.adjacencies() {
            for &second in seconds {
                thirds.clear();
                common(seconds, self.out().of(second), |third| thirds.push(third));
                for &third in &thirds {
                    common(&thirds, self.out().of(third), |_| count += 1);
                }
            }
        }
        count
    }

    /// The number of (a, b, c) with edges a→b, b→c.
    #[must_use]
    pub fn two_paths(&self) -> u64 {
        let inward = &self.edges.inward;
        self.adjacencies().map(|(vertex, out)| out.len() as u64 * inward.of(vertex).len() as u64).sum()
    }

    /// The number of (a, c) with at least one b such that a→b, b→c.
    #[must_use]
    pub fn two_hops(&self) -> u64 {
        // For each vertex, the last start vertex that reached it.
        let mut reached_by = vec![u32::MAX; self.out().keys()];
        let mut count = 0;
        for (vertex, seconds) in self.adjacencies() {
            for &second in seconds {
                for &third in self.out().of(second) {
                    if reached_by[third as usize] != vertex {
                        reached_by[third as usize] = vertex;
                        count += 1;
                    }
                }
            }
        }
        count
    }

    /// The number of vertices reachable from `start` by one or more edges.
    #[must_use]
    pub fn reach(&self, start: u32) -> u64 {
        if start as usize >= self.out().keys() {
            return 0;
        }
        let mut seen = vec![false; self.out().keys()];
        let mut front = vec![start];
        let mut count = 0;
        while let Some(vertex) = front.pop() {
            for &next in self.out().of(vertex) {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    count += 1;
                    front.push(next);
                }
            }
        }
        count
    }

    fn out(&self) -> &Csr {
        &self.edges.outward
    }

    fn adjacencies(&self) -> impl Iterator<Item = (u32, &[u32])> {
        (0u32..).zip(0..self.out().keys()).map(|(vertex, _)| (vertex, self.out().of(vertex)))
    }
}

/// Calls `each` with every number in both sorted lists.
#[inline]
fn common(one: &[u32], other: &[u32], mut each: impl FnMut(u32)) {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if long.len() / 16 > short.len() {
        let mut rest = long;
        for &number in short {
            rest = &rest[gallop(rest, number)..];
            if rest.first() == Some(&number) {
                each(number);
            }
        }
        return;
    }
    let (mut left, mut right) = (0, 0);
    while left < short.len() && right < long.len() {
        let (a, b) = (short[left], long[right]);
        if a == b {
            each(a);
        }
        left += usize::from(a <= b);
        right += usize::from(b <= a);
    }
}

/// The index of the first number that is not below `number`, by galloping search.
fn gallop(sorted: &[u32], number: u32) -> usize {
    let mut step = 1;
    while step < sorted.len() && sorted[step] < number {
        step *= 2;
    }
    let (from, to) = (step / 2, sorted.len().min(step + 1));
    from + sorted[from..to].partition_point(|other| *other < number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_generate::PowerLaw;

    /// The loops agree with the definitions, on a graph small enough for four nested loops.
    #[test]
    fn counts_follow_the_definitions() {
        let list = PowerLaw { vertices: 24, edges: 150, ..PowerLaw::default() }.generate();
        let edge = |a: u32, b: u32| list.binary_search(&(a, b)).is_ok();
        let (mut triangles, mut cliques, mut paths, mut hops) = (0, 0, 0, 0);
        for a in 0..24 {
            for c in 0..24 {
                hops += u64::from((0..24).any(|b| edge(a, b) && edge(b, c)));
                for b in 0..24 {
                    paths += u64::from(edge(a, b) && edge(b, c));
                    if edge(a, b) && edge(b, c) && edge(a, c) {
                        triangles += 1;
                        cliques +=
                            (0..24).filter(|d| edge(a, *d) && edge(b, *d) && edge(c, *d)).count() as u64;
                    }
                }
            }
        }
        let loops = PatternLoops::new(24, list.clone()).unwrap();
        assert_eq!(
            [loops.triangles(), loops.cliques(), loops.two_paths(), loops.two_hops()],
            [triangles, cliques, paths, hops]
        );
        assert!(triangles > 0 && cliques > 0);
    }

    #[test]
    fn reach_follows_edges_and_counts_the_start_only_in_a_circle() {
        let line = PatternLoops::new(5, vec![(0, 1), (1, 2), (3, 4)]).unwrap();
        assert_eq!(line.reach(0), 2);
        let circle = PatternLoops::new(4, vec![(0, 1), (1, 2), (2, 0), (2, 3)]).unwrap();
        assert_eq!(circle.reach(0), 4);
        assert_eq!(circle.largest(), 2);
        assert_eq!(circle.reach(9), 0);
    }

    #[test]
    fn lists_of_any_length_intersect() {
        let long: Vec<u32> = (0..1000).map(|number| number * 3).collect();
        for short in [vec![], vec![0], vec![2997], vec![1, 3, 4, 300, 2996, 2997, 5000]] {
            let mut found = Vec::new();
            common(&short, &long, |number| found.push(number));
            let expected: Vec<u32> =
                short.iter().copied().filter(|number| long.binary_search(number).is_ok()).collect();
            assert_eq!(found, expected);
        }
    }
}
