//! A graph of dependencies between transactions, and its cycles.
//!
//! # Shape
//! Vertices are transactions, and points in time between them. An edge says that the first one precedes the
//! second one in every serial order that explains the history. A cycle is a proof that there is none.
//! # Cost
//! Linear in vertices and edges (Tarjan, "Depth-First Search and Linear Graph Algorithms", SIAM J. Comput.
//! 1972), and a breadth-first search for a short cycle where there is one.

use std::collections::VecDeque;
use std::fmt;

/// Why one transaction precedes another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dependency {
    /// The second one replaced a version of this key, or appended behind it, that the first one wrote.
    WriteWrite(u64),
    /// The second one read a version of this key that the first one wrote.
    WriteRead(u64),
    /// The first one read a version of this key that lacks a write of the second one.
    ReadWrite(u64),
    /// The first one had ended before the second one began.
    RealTime,
    /// Both read at one server, which shows no fewer commits later.
    Session,
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WriteWrite(key) => write!(f, "ww key {key}"),
            Self::WriteRead(key) => write!(f, "wr key {key}"),
            Self::ReadWrite(key) => write!(f, "rw key {key}"),
            Self::RealTime => f.write_str("real time"),
            Self::Session => f.write_str("same server"),
        }
    }
}

/// See the header of this file.
pub(super) struct Graph {
    edges: Vec<Vec<(usize, Dependency)>>,
}

/// A cycle: vertices, each with its edge to the next one; the last leads to the first.
pub(super) type Cycle = Vec<(usize, Dependency)>;

/// Cycles through so many vertices are compared for the shortest one.
const STARTS_MAX: usize = 64;

impl Graph {
    pub(super) fn new(vertices: usize) -> Self {
        Self { edges: vec![Vec::new(); vertices] }
    }

    /// Adds a vertex, and returns its number.
    pub(super) fn vertex(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    /// A transaction does not depend on itself: an edge to the same vertex is left out.
    pub(super) fn edge(&mut self, from: usize, to: usize, dependency: Dependency) {
        if from != to {
            self.edges[from].push((to, dependency));
        }
    }

    /// A short cycle; `None`: there is no cycle.
    pub(super) fn cycle(&self) -> Option<Cycle> {
        let component = self.component_with_cycle()?;
        let mut is_inside = vec![false; self.edges.len()];
        component.iter().for_each(|vertex| is_inside[*vertex] = true);
        let cycles = component.iter().take(STARTS_MAX).filter_map(|start| self.shortest(*start, &is_inside));
        cycles.min_by_key(Vec::len)
    }

    /// The first strongly connected component with more than one vertex.
    fn component_with_cycle(&self) -> Option<Vec<usize>> {
        const NEW: usize = usize::MAX;
        let count = self.edges.len();
        let (mut index, mut low, mut on_stack) = (vec![NEW; count], vec![0; count], vec![false; count]);
        let (mut stack, mut next_index) = (Vec::new(), 0);
        for root in 0..count {
            if index[root] != NEW {
                continue;
            }
            // Vertices on the path from the root, each with the number of edges that were followed.
            let mut path = vec![(root, 0)];
            while let Some((vertex, followed)) = path.last_mut() {
                let vertex = *vertex;
                if *followed == 0 {
                    (index[vertex], low[vertex], on_stack[vertex]) = (next_index, next_index, true);
                    next_index += 1;
                    stack.push(vertex);
                }
                if let Some(&(to, _)) = self.edges[vertex].get(*followed) {
                    *followed += 1;
                    if index[to] == NEW {
                        path.push((to, 0));
                    } else if on_stack[to] {
                        low[vertex] = low[vertex].min(index[to]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    low[*parent] = low[*parent].min(low[vertex]);
                }
                if low[vertex] == index[vertex] {
                    let at = stack.iter().rposition(|other| *other == vertex).unwrap_or(0);
                    let component = stack.split_off(at);
                    if component.len() > 1 {
                        return Some(component);
                    }
                    on_stack[vertex] = false;
                }
            }
        }
        None
    }

    /// A shortest cycle through `start`.
    fn shortest(&self, start: usize, is_inside: &[bool]) -> Option<Cycle> {
        let mut before: Vec<Option<(usize, Dependency)>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(vertex) = queue.pop_front() {
            for &(to, dependency) in &self.edges[vertex] {
                if !is_inside[to] || before[to].is_some() {
                    continue;
                }
                before[to] = Some((vertex, dependency));
                if to == start {
                    let mut cycle = Vec::new();
                    let mut at = start;
                    while let Some((vertex, dependency)) = before[at] {
                        cycle.push((vertex, dependency));
                        at = vertex;
                        if at == start {
                            break;
                        }
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                queue.push_back(to);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(vertices: usize, edges: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::new(vertices);
        edges.iter().for_each(|(from, to)| graph.edge(*from, *to, Dependency::RealTime));
        graph
    }

    #[test]
    fn a_graph_without_cycles_has_none() {
        assert!(graph(0, &[]).cycle().is_none());
        assert!(graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (2, 1)]).cycle().is_none());
        // A transaction does not precede itself.
        assert!(graph(1, &[(0, 0)]).cycle().is_none());
    }

    #[test]
    fn the_shortest_cycle_is_found() {
        let found = graph(6, &[(5, 0), (0, 1), (1, 2), (2, 3), (3, 0), (2, 1), (4, 5)]).cycle();
        let mut vertices: Vec<usize> = found.into_iter().flatten().map(|(vertex, _)| vertex).collect();
        vertices.sort_unstable();
        assert_eq!(vertices, [1, 2]);
    }

    #[test]
    fn a_long_path_needs_no_stack() {
        let edges: Vec<(usize, usize)> = (0..200_000).map(|vertex| (vertex, vertex + 1)).collect();
        assert!(graph(200_001, &edges).cycle().is_none());
    }
}
