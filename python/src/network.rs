//! The native part of `vervet.networkx`: graphs for algorithms, and what these find.
//!
//! Vertices are numbered; Python has the list of their names, and results are lists by number.

use crate::call::Options;
use crate::run::{Attempt, Running, run_once};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString};
use rustc_hash::FxHashSet;
use std::sync::{Arc, OnceLock};
use vervet::{GraphSnapshot, Id, Result, Vertex};
use vervet_graph::algorithm::{
    Adjacency, BreadthFirst, Follow, Louvain, PowerIteration, Reached, ResourceLimits, betweenness,
    core_numbers, label_propagation, louvain, power_iteration, strong_components, triangles, weak_components,
};
use vervet_kernel::{Control, Limits};

/// A graph of numbered vertices, without parallel edges.
#[pyclass(frozen, name = "Network", module = "vervet._vervet")]
#[derive(Debug)]
pub(crate) struct Network {
    is_directed: bool,
    /// Of an undirected graph in both directions.
    outgoing: Adjacency,
    incoming: OnceLock<Adjacency>,
    symmetric: OnceLock<Adjacency>,
    names: Vec<String>,
    running: Arc<Running>,
    options: Options,
}

/// The limits of one attempt.
pub(crate) fn control(attempt: &Attempt, options: &Options) -> Control<'static> {
    let deadline = attempt.timeout.and_then(|timeout| Some((attempt.started.checked_add(timeout)?, timeout)));
    Control::new(Limits {
        cancelled: Some(attempt.cancel.flag()),
        deadline,
        memory_bytes: options.memory_limit_bytes(),
        reads: None,
    })
}

/// Threads of an algorithm.
fn threads(options: &Options) -> usize {
    options
        .threads()
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

impl Network {
    /// The vertices that a breadth-first search reaches, their steps and predecessors.
    fn reached(
        &self,
        py: Python<'_>,
        source: u32,
        target: Option<u32>,
        steps_max: Option<u32>,
        backwards: bool,
    ) -> PyResult<(Vec<u32>, Vec<u32>, Vec<u32>)> {
        self.check(source)?;
        let Reached { vertices, steps, parents } = self.run(py, |limits| {
            let graph = if backwards { self.incoming(limits)? } else { &self.outgoing };
            BreadthFirst::new(graph, limits)?.from(source, target, steps_max.unwrap_or(u32::MAX), limits)
        })?;
        Ok((vertices, steps, parents))
    }

    /// The edges with these labels and their ends (none: all edges, and all vertices), and the vertices with
    /// one of the labels `vertices`.
    ///
    /// # Errors
    /// Limits; damaged data.
    pub(crate) fn read(
        snapshot: &GraphSnapshot,
        labels: &[String],
        vertices: &[String],
        is_directed: bool,
        running: &Arc<Running>,
        attempt: &Attempt,
        options: &Options,
    ) -> Result<Self> {
        let control = control(attempt, options);
        let limits = ResourceLimits { control: &control, threads: threads(options) };
        let view = snapshot.as_snapshot();
        let network = vervet_graph::algorithm::Network::read(view, labels, Follow::Out, &limits)?;
        let mut wanted: FxHashSet<Id> = FxHashSet::default();
        for label in vertices {
            wanted.extend(snapshot.graph().vertices_with_label(label)?.into_iter().map(Vertex::id));
        }
        let has_all = labels.is_empty() && vertices.is_empty();
        let mut is_kept: Vec<bool> =
            network.vertices().iter().map(|id| has_all || wanted.contains(id)).collect();
        for vertex in 0..network.len() {
            let sources = network.sources(vertex);
            control.work(1 + sources.len())?;
            for source in sources {
                is_kept[*source as usize] = true;
                is_kept[vertex] = true;
            }
        }
        let mut numbers = vec![u32::MAX; network.len()];
        let mut names = Vec::new();
        let graph = snapshot.graph();
        for (at, id) in network.vertices().iter().enumerate().filter(|(at, _)| is_kept[*at]) {
            control.work(64)?;
            numbers[at] = u32::try_from(names.len()).unwrap_or(u32::MAX);
            let name = match Vertex::from_id(*id) {
                Some(vertex) => graph.external_id(vertex)?,
                None => String::new(),
            };
            control.grow(name.capacity() as u64 + size_of::<String>() as u64)?;
            names.push(name);
        }
        let mut arcs = Vec::with_capacity(network.arc_count());
        for vertex in 0..network.len() {
            control.work(1)?;
            arcs.extend(
                network.sources(vertex).iter().map(|source| [numbers[*source as usize], numbers[vertex]]),
            );
        }
        let outgoing = Adjacency::new(names.len(), &arcs, &limits)?;
        let outgoing = if is_directed { outgoing } else { outgoing.symmetric(&limits)? };
        Ok(Self::of(outgoing, is_directed, names, Arc::clone(running), options.clone()))
    }

    fn of(
        outgoing: Adjacency,
        is_directed: bool,
        names: Vec<String>,
        running: Arc<Running>,
        options: Options,
    ) -> Self {
        let (incoming, symmetric) = Default::default();
        Self { is_directed, outgoing, incoming, symmetric, names, running, options }
    }

    /// Runs an algorithm.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Fn(&ResourceLimits<'_>) -> Result<T> + Sync,
    ) -> PyResult<T> {
        run_once(py, &self.running, self.options.timeout(), |attempt| {
            let control = control(attempt, &self.options);
            work(&ResourceLimits { control: &control, threads: threads(&self.options) })
        })
    }

    /// Every arc reversed.
    fn incoming(&self, limits: &ResourceLimits<'_>) -> Result<&Adjacency> {
        if !self.is_directed {
            return Ok(&self.outgoing);
        }
        if let Some(found) = self.incoming.get() {
            return Ok(found);
        }
        let made = self.outgoing.reversed(limits)?;
        Ok(self.incoming.get_or_init(|| made))
    }

    /// Every arc in both directions.
    fn symmetric(&self, limits: &ResourceLimits<'_>) -> Result<&Adjacency> {
        if !self.is_directed {
            return Ok(&self.outgoing);
        }
        if let Some(found) = self.symmetric.get() {
            return Ok(found);
        }
        let made = self.outgoing.symmetric(limits)?;
        Ok(self.symmetric.get_or_init(|| made))
    }

    fn check(&self, vertex: u32) -> PyResult<()> {
        match (vertex as usize) < self.outgoing.len() {
            true => Ok(()),
            false => Err(PyValueError::new_err(format!("there is no vertex number {vertex}"))),
        }
    }

    /// A distribution has a number for each vertex.
    fn check_length(&self, numbers: Option<&Vec<f64>>) -> PyResult<()> {
        match numbers {
            Some(numbers) if numbers.len() != self.outgoing.len() => {
                Err(PyValueError::new_err("expected one number for each vertex"))
            }
            _ => Ok(()),
        }
    }
}

/// The numbers of a native array of 32 bits.
#[allow(clippy::host_endian_bytes, reason = "`array('I')` of Python has the byte order of the machine")]
fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect()
}

#[pymethods]
impl Network {
    /// A graph from the number of neighbours of each vertex and all neighbours, as bytes of `array("I")`.
    #[new]
    #[pyo3(signature = (degrees, neighbours, directed, options))]
    fn new(
        py: Python<'_>,
        degrees: &[u8],
        neighbours: &[u8],
        directed: bool,
        options: &Options,
    ) -> PyResult<Self> {
        let running = Arc::<Running>::default();
        let outgoing = run_once(py, &running, options.timeout(), |attempt| {
            let control = control(attempt, options);
            let limits = ResourceLimits { control: &control, threads: threads(options) };
            let (degrees, mut neighbours) = (numbers(degrees), numbers(neighbours).into_iter());
            let mut arcs = Vec::with_capacity(neighbours.len());
            for (vertex, degree) in (0..).zip(&degrees) {
                arcs.extend(neighbours.by_ref().take(*degree as usize).map(|other| [vertex, other]));
            }
            Adjacency::new(degrees.len(), &arcs, &limits)
        })?;
        Ok(Self::of(outgoing, directed, Vec::new(), running, options.clone()))
    }

    /// The number of vertices.
    fn __len__(&self) -> usize {
        self.outgoing.len()
    }

    /// The number of arcs; an undirected edge is two, a loop one.
    #[getter]
    fn arc_count(&self) -> usize {
        self.outgoing.arc_count()
    }

    /// The names of the vertices of a database: integers and texts.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let name = |name: &String| match name.parse::<i64>() {
            Ok(number) if number.to_string() == *name => Ok(number.into_pyobject(py)?.into_any()),
            _ => Ok(PyString::new(py, name).into_any()),
        };
        PyList::new(py, self.names.iter().map(name).collect::<PyResult<Vec<_>>>()?)
    }

    /// The neighbours of a vertex that its arcs lead to, ascending.
    fn neighbours(&self, vertex: u32) -> PyResult<Vec<u32>> {
        self.check(vertex)?;
        Ok(self.outgoing.neighbours(vertex as usize).to_vec())
    }

    /// The neighbours of a vertex whose arcs lead to it, ascending.
    fn predecessors(&self, py: Python<'_>, vertex: u32) -> PyResult<Vec<u32>> {
        self.check(vertex)?;
        self.run(py, |limits| Ok(self.incoming(limits)?.neighbours(vertex as usize).to_vec()))
    }

    /// PageRank; `None` if it does not converge.
    #[pyo3(signature = (alpha, rounds_max, tolerance, first, jumps, dangling))]
    #[allow(clippy::too_many_arguments, reason = "its caller has names for them")]
    fn page_rank(
        &self,
        py: Python<'_>,
        alpha: f64,
        rounds_max: u32,
        tolerance: f64,
        first: Option<Vec<f64>>,
        jumps: Option<Vec<f64>>,
        dangling: Option<Vec<f64>>,
    ) -> PyResult<Option<Vec<f64>>> {
        [&first, &jumps, &dangling]
            .into_iter()
            .try_for_each(|numbers| self.check_length(numbers.as_ref()))?;
        self.run(py, |limits| {
            let options = PowerIteration {
                alpha,
                rounds_max,
                tolerance,
                first: first.as_deref(),
                jumps: jumps.as_deref(),
                dangling: dangling.as_deref(),
            };
            power_iteration(&self.outgoing, self.incoming(limits)?, &options, limits)
        })
    }

    /// The number of the weak component of each vertex.
    fn weak_components(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.run(py, |limits| weak_components(self.symmetric(limits)?, limits))
    }

    /// The number of the strong component of each vertex.
    fn strong_components(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.run(py, |limits| strong_components(&self.outgoing, limits))
    }

    /// The vertices that a breadth-first search reaches, their steps and predecessors; from the targets of
    /// arcs to their sources if `backwards`.
    #[pyo3(signature = (source, target, steps_max, backwards))]
    fn search(
        &self,
        py: Python<'_>,
        source: u32,
        target: Option<u32>,
        steps_max: Option<u32>,
        backwards: bool,
    ) -> PyResult<(Vec<u32>, Vec<u32>, Vec<u32>)> {
        self.reached(py, source, target, steps_max, backwards)
    }

    /// The steps to each vertex that a breadth-first search reaches, by its node in `nodes`; see
    /// [`Network::search`].
    #[pyo3(signature = (nodes, source, steps_max, backwards))]
    fn lengths<'py>(
        &self,
        nodes: &Bound<'py, PyList>,
        source: u32,
        steps_max: Option<u32>,
        backwards: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = nodes.py();
        let (vertices, steps, _) = self.reached(py, source, None, steps_max, backwards)?;
        let lengths = PyDict::new(py);
        // Steps ascend, so each number becomes an object once.
        let mut last: Option<(u32, Bound<'py, PyInt>)> = None;
        for (vertex, steps) in vertices.into_iter().zip(steps) {
            let number = match last.take() {
                Some((of, number)) if of == steps => number,
                _ => PyInt::new(py, steps),
            };
            lengths.set_item(nodes.get_item(vertex as usize)?, &number)?;
            last = Some((steps, number));
        }
        Ok(lengths)
    }

    /// The core number of each vertex.
    fn core_numbers(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.run(py, |limits| core_numbers(self.symmetric(limits)?, limits))
    }

    /// The number of triangles with each vertex.
    fn triangles(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.run(py, |limits| triangles(self.symmetric(limits)?, limits))
    }

    /// The number of neighbours of each vertex other than itself.
    fn degrees(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.run(py, |limits| {
            let graph = self.symmetric(limits)?;
            let degree = |(number, vertex)| {
                let neighbours = graph.neighbours(vertex);
                neighbours.len() - usize::from(neighbours.binary_search(&number).is_ok())
            };
            Ok((0_u32..).zip(0..graph.len()).map(degree).collect())
        })
    }

    /// The sum of the dependencies of `sources` on each vertex.
    fn betweenness(&self, py: Python<'_>, sources: Vec<u32>, endpoints: bool) -> PyResult<Vec<f64>> {
        sources.iter().try_for_each(|source| self.check(*source))?;
        self.run(py, |limits| betweenness(&self.outgoing, &sources, endpoints, limits))
    }

    /// The community of each vertex at each level.
    #[pyo3(signature = (resolution, threshold, levels_max, seed))]
    fn louvain(
        &self,
        py: Python<'_>,
        resolution: f64,
        threshold: f64,
        levels_max: Option<u32>,
        seed: Option<u64>,
    ) -> PyResult<Vec<Vec<u32>>> {
        let options = Louvain { resolution, threshold, levels_max: levels_max.unwrap_or(u32::MAX), seed };
        self.run(py, |limits| louvain(self.symmetric(limits)?, &options, limits))
    }

    /// The label of each vertex.
    fn label_propagation(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.run(py, |limits| label_propagation(self.symmetric(limits)?, limits))
    }

    /// Cancels all calls under way; returns their number.
    fn cancel(&self) -> usize {
        self.running.cancel_all()
    }
}
