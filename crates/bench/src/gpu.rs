//! Heavy queries on a GPU beside the CPU, and beside the paper's figures.
//!
//! Source of the latter: S. Wang et al., "Fast and Concurrent RDF Queries using RDMA-assisted GPU Graph
//! Exploration" (Wukong+G), USENIX ATC 2018, tables 3 and 5: a server with 10 threads and an NVIDIA K40m, on
//! LUBM-2560. Data here are those of our generator, made on the machine and loaded through a pipe.
//!
//! # Shape
//! Every query is prepared, and its time is that from the call to its last row in memory, as ids. The device
//! is opened before; the first run on it includes the allocation of its memory and the copies of all windows.
//! Rows of CPU and GPU are compared by a sum of hashes, which does not depend on their order.
//! # Not here
//! Times of device kernels, beside CUB; light queries beside heavy ones; several queries at a time.

use crate::measure::{Budget, measure, once};
use crate::table::{Table, figure};
use clap::{Args, ValueEnum};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::{BufWriter, Write, pipe};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::{Answer, Database, Format, LoadOptions, Placement, QueryOptions, Source};
use vervet_device::{Cuda, Device, KernelImage, Simulated, embedded_kernels};
use vervet_driver_gpu::{DeviceCounts, GpuDriver, GpuOptions};
use vervet_generate::{PowerLaw, generate_lubm, write_edges};
use vervet_model::{Error, ErrorKind, Result};

/// Memory of the simulated device.
const SIMULATED_BYTES: u64 = 64 << 20;
/// Share of windows in the memory of a driver, in percent.
const WINDOWS_PERCENT: u64 = 60;
/// Parts of the windows of a query that fit into the memory, in the sweep, in percent.
const SWEEP: [u64; 4] = [25, 50, 75, 100];

/// The command `gpu`.
#[derive(Args, Debug)]
pub struct GpuArguments {
    /// The device: gpu, simulated (its times mean nothing), or none
    #[arg(long, default_value = "gpu", value_name = "DEVICE")]
    device: DeviceName,
    /// Kernels of the GPU: a cubin or PTX (default: those in this program)
    #[arg(long, value_name = "FILE")]
    kernels: Option<PathBuf>,
    /// Universities of LUBM; 0: none
    #[arg(long, default_value_t = 40, value_name = "NUMBER")]
    universities: u32,
    /// Edges of a graph whose degrees follow a power law; 0: none
    #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
    edges: u32,
    /// Milliseconds for each figure
    #[arg(long, default_value_t = 500, value_name = "MILLISECONDS")]
    milliseconds: u64,
    /// Skip the runs with little memory
    #[arg(long)]
    without_sweep: bool,
    /// Also write the report to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum DeviceName {
    Gpu,
    Simulated,
    None,
}

/// Runs the command `gpu`; whether all rows are equal.
///
/// # Errors
/// As [`run`]; the report cannot be written.
pub fn command(arguments: &GpuArguments) -> Result<bool> {
    let options = GpuBenchOptions {
        device: match arguments.device {
            DeviceName::Gpu => BenchDevice::Gpu(arguments.kernels.clone()),
            DeviceName::Simulated => BenchDevice::Simulated,
            DeviceName::None => BenchDevice::None,
        },
        universities: arguments.universities,
        edges: arguments.edges,
        time: Duration::from_millis(arguments.milliseconds),
        sweep: !arguments.without_sweep,
    };
    let report = run(&options, &mut |line| eprintln!("{line}"))?;
    println!("{report}");
    if let Some(file) = &arguments.output {
        std::fs::write(file, report.to_string())
            .map_err(|error| Error::io(format!("write {}", file.display()), &error))?;
    }
    let verdict = if report.is_right() { "all rows are equal" } else { "rows differ" };
    println!("{} queries, {verdict}", report.query_count());
    Ok(report.is_right())
}

/// What is measured, on what.
#[derive(Clone, Debug)]
pub struct GpuBenchOptions {
    /// The device.
    pub device: BenchDevice,
    /// Universities of LUBM; 0: none.
    pub universities: u32,
    /// Edges of a graph whose degrees follow a power law; 0: none.
    pub edges: u32,
    /// Time for each figure.
    pub time: Duration,
    /// Whether to measure with less memory than the windows of a query need.
    pub sweep: bool,
}

/// A device to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BenchDevice {
    /// The CPU alone.
    None,
    /// The simulated device: its times mean nothing.
    Simulated,
    /// The first GPU, with a file of kernels, or those in the program.
    Gpu(Option<PathBuf>),
}

struct HeavyQuery {
    name: &'static str,
    text: &'static str,
    /// Milliseconds of Wukong+G and Wukong, for LUBM-2560.
    paper: Option<[u32; 2]>,
}

const LUBM: [HeavyQuery; 5] = [
    HeavyQuery { name: "Q1", text: include_str!("queries/q1.rq"), paper: Some([165, 992]) },
    HeavyQuery { name: "Q2", text: include_str!("queries/q2.rq"), paper: Some([31, 138]) },
    HeavyQuery { name: "Q3", text: include_str!("queries/q3.rq"), paper: Some([63, 340]) },
    HeavyQuery { name: "Q7", text: include_str!("queries/q7.rq"), paper: Some([100, 828]) },
    HeavyQuery {
        name: "courses by department",
        text: "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> \
               SELECT ?d (COUNT(*) AS ?n) { ?x ub:memberOf ?d . ?x ub:takesCourse ?c } GROUP BY ?d",
        paper: None,
    },
];

const POWER_LAW: [HeavyQuery; 5] = [
    HeavyQuery {
        name: "triangles",
        text: "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b . ?b <urn:e> ?c . ?a <urn:e> ?c }",
        paper: None,
    },
    HeavyQuery {
        name: "2-paths",
        text: "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b . ?b <urn:e> ?c }",
        paper: None,
    },
    HeavyQuery {
        name: "2-hops, distinct",
        text: "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?a ?c { ?a <urn:e> ?b . ?b <urn:e> ?c } }",
        paper: None,
    },
    HeavyQuery {
        name: "2-hops, by end",
        text: "SELECT ?c (COUNT(*) AS ?n) { ?a <urn:e> ?b . ?b <urn:e> ?c } GROUP BY ?c",
        paper: None,
    },
    HeavyQuery {
        name: "mutual edges",
        text: "SELECT (COUNT(*) AS ?n) { ?a <urn:e> ?b FILTER EXISTS { ?b <urn:e> ?a } FILTER(?a != ?b) }",
        paper: None,
    },
];

/// The figures of one query.
struct Figures {
    name: String,
    rows: u64,
    /// Milliseconds on one thread, on all threads, and of the first and of later runs on the device.
    ms: [Option<f64>; 4],
    counts: DeviceCounts,
    is_equal: bool,
    paper: Option<[u32; 2]>,
    /// Milliseconds with less memory, and whether the rows are equal: by [`SWEEP`].
    sweep: Vec<(f64, bool)>,
}

/// The report, as Markdown.
pub struct GpuReport {
    device: String,
    threads: usize,
    parts: Vec<(String, Vec<Figures>)>,
}

impl GpuReport {
    /// How many queries were measured.
    #[must_use]
    pub fn query_count(&self) -> usize {
        self.parts.iter().map(|(_, figures)| figures.len()).sum()
    }

    /// Whether all rows are equal.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let all = self.parts.iter().flat_map(|(_, figures)| figures);
        all.into_iter().all(|one| one.is_equal && one.sweep.iter().all(|(_, is_equal)| *is_equal))
    }
}

/// Makes the data and measures all queries. `say`: receives a line for each figure as it comes.
///
/// # Errors
/// The device cannot be opened; a query fails.
pub fn run(options: &GpuBenchOptions, say: &mut dyn FnMut(&str)) -> Result<GpuReport> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let device = open(&options.device)?.map_or_else(|| "none".to_owned(), |device| device.name());
    let mut report = GpuReport { device, threads, parts: Vec::new() };
    type Part<'p> = (&'static str, u32, &'p [HeavyQuery], fn(u32, &mut dyn Write) -> std::io::Result<()>);
    let parts: [Part<'_>; 2] = [
        ("LUBM", options.universities, &LUBM, |count, out| generate_lubm(count, 0, out).map(drop)),
        ("power law", options.edges, &POWER_LAW, |edges, out| {
            let graph = PowerLaw { vertices: (edges / 10).max(2), edges, ..PowerLaw::default() };
            write_edges(&graph.generate(), out)
        }),
    ];
    for (name, size, queries, generate) in parts {
        if size == 0 {
            continue;
        }
        let start = Instant::now();
        let database = load(move |out| generate(size, out), threads)?;
        let statements = database.snapshot().statement_count();
        let title = format!("{name}-{size}, {statements} statements");
        say(&format!("{title}, loaded in {:.1} s", start.elapsed().as_secs_f64()));
        let mut figures = Vec::new();
        for query in queries {
            let one = query_figures(&database, query, options, threads)?;
            say(&format!("{}: {:?} ms, equal: {}", one.name, one.ms, one.is_equal));
            figures.push(one);
        }
        report.parts.push((title, figures));
    }
    Ok(report)
}

/// A database with generated N-Triples.
fn load(
    generate: impl FnOnce(&mut dyn Write) -> std::io::Result<()> + Send + 'static,
    threads: usize,
) -> Result<Database> {
    let problem = |error: std::io::Error| Error::io("generate data", &error);
    let (reader, writer) = pipe().map_err(problem)?;
    let generator = std::thread::spawn(move || {
        let mut out = BufWriter::with_capacity(1 << 20, writer);
        generate(&mut out)?;
        out.flush()
    });
    let database = Database::in_memory();
    let options = LoadOptions { threads, format: Some(Format::NTriples), ..LoadOptions::default() };
    database.load(vec![Source::reader("generated", reader)], &options)?;
    match generator.join() {
        Ok(done) => done.map_err(problem)?,
        Err(_) => return Err(Error::internal("the generator panicked")),
    }
    Ok(database)
}

fn open(device: &BenchDevice) -> Result<Option<Box<dyn Device>>> {
    let failed = |message: String| Error::new(ErrorKind::Unavailable, message);
    Ok(match device {
        BenchDevice::None => None,
        BenchDevice::Simulated => Some(Box::new(Simulated::new(SIMULATED_BYTES, 1))),
        BenchDevice::Gpu(None) => {
            let images: &[KernelImage] = embedded_kernels();
            let gpu = Cuda::open_with(0, images).map_err(|error| failed(error.to_string()))?;
            Some(Box::new(gpu))
        }
        BenchDevice::Gpu(Some(file)) => {
            let kernels = std::fs::read(file).map_err(|error| Error::io("read the kernels", &error))?;
            let gpu = Cuda::open(0, &kernels).map_err(|error| failed(error.to_string()))?;
            Some(Box::new(gpu))
        }
    })
}

/// The same database with a device of its own, which is open but holds nothing yet.
fn with_device(
    database: &Database,
    device: &BenchDevice,
    memory_bytes: u64,
) -> Result<Option<(Database, Arc<GpuDriver>)>> {
    let Some(device) = open(device)? else { return Ok(None) };
    let options = GpuOptions { memory_bytes, force: true, ..GpuOptions::default() };
    let driver = Arc::new(GpuDriver::new(database.shared_driver(), device, options));
    driver.open();
    Ok(Some((database.with_driver(Arc::<GpuDriver>::clone(&driver)), driver)))
}

fn query_figures(
    database: &Database,
    query: &HeavyQuery,
    options: &GpuBenchOptions,
    threads: usize,
) -> Result<Figures> {
    let budget = Budget { time: options.time, repeats_min: 3, repeats_max: 20 };
    let on_cpu = |threads| QueryOptions { placement: Placement::Cpu, threads: Some(threads), ..unlimited() };
    let prepared = database.prepare_with(query.text, &on_cpu(threads))?;
    let expected = digest(&prepared.run_with(&on_cpu(threads))?);
    let mut figures = Figures {
        name: query.name.to_owned(),
        rows: expected.0,
        ms: [None; 4],
        counts: DeviceCounts::default(),
        is_equal: true,
        paper: query.paper,
        sweep: Vec::new(),
    };
    for (place, threads) in [1, threads].into_iter().enumerate() {
        let timing = measure(&budget, || prepared.run_with(&on_cpu(threads)))?;
        figures.ms[place] = Some(timing.median_ms);
    }
    let on_gpu = QueryOptions { placement: Placement::Gpu, ..unlimited() };
    let Some((on_device, driver)) = with_device(database, &options.device, u64::MAX)? else {
        return Ok(figures);
    };
    let prepared = on_device.prepare_with(query.text, &on_gpu)?;
    let (answer, first) = once(|| prepared.run_with(&on_gpu))?;
    figures.is_equal = digest(&answer) == expected;
    figures.counts = driver.counts();
    let timing = measure(&budget, || prepared.run_with(&on_gpu))?;
    figures.ms[2] = Some(first.median_ms);
    figures.ms[3] = Some(timing.median_ms);
    drop((prepared, on_device, driver));
    let is_swept = options.sweep && figures.counts.copied_bytes > 0;
    for percent in SWEEP.into_iter().filter(|_| is_swept) {
        let windows = figures.counts.copied_bytes / 100 * percent;
        let memory = (windows / WINDOWS_PERCENT * 100).max(1 << 20);
        let Some((on_device, _)) = with_device(database, &options.device, memory)? else { continue };
        let prepared = on_device.prepare_with(query.text, &on_gpu)?;
        let is_equal = digest(&prepared.run_with(&on_gpu)?) == expected;
        let few = Budget { repeats_min: 1, repeats_max: 3, ..budget };
        figures.sweep.push((measure(&few, || prepared.run_with(&on_gpu))?.median_ms, is_equal));
    }
    Ok(figures)
}

fn unlimited() -> QueryOptions {
    QueryOptions { timeout: None, memory_limit_bytes: None, ..QueryOptions::default() }
}

/// The number of rows, and a sum of their hashes.
fn digest(answer: &Answer) -> (u64, u64) {
    let Answer::Solutions(solutions) = answer else { return (0, 0) };
    let columns: Vec<_> = solutions.variables().iter().filter_map(|name| solutions.column(name)).collect();
    let hash = |row: usize| {
        let mut hasher = rustc_hash::FxBuildHasher.build_hasher();
        columns.iter().for_each(|column| column[row].hash(&mut hasher));
        hasher.finish()
    };
    let sum = (0..solutions.len()).fold(0_u64, |sum, row| sum.wrapping_add(hash(row)));
    (solutions.len() as u64, sum)
}

impl fmt::Display for GpuReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Device: {}; {} threads of the CPU. Times in ms.", self.device, self.threads)?;
        for (title, figures) in &self.parts {
            writeln!(f, "\n## {title}\n")?;
            let threads = format!("CPU, {}", self.threads);
            let headings = [
                "query",
                "rows",
                "CPU, 1",
                &threads,
                "GPU, first",
                "GPU",
                "CPU / GPU",
                "windows, MB",
                "launches",
                "strips on CPU",
                "equal",
                "Wukong+G",
                "Wukong",
            ];
            let mut table = Table::new(&headings);
            let time = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), figure);
            for one in figures {
                let [single, all, first, warm] = one.ms;
                let ratio = all.zip(warm).map(|(all, warm)| all / warm);
                let on_cpu = one.counts.strips_failed + one.counts.strips_unfit;
                let paper = one.paper.map(|times| times.map(|ms| ms.to_string()));
                let [with_gpu, without] = paper.unwrap_or_else(|| ["-".to_owned(), "-".to_owned()]);
                table.row(vec![
                    one.name.clone(),
                    one.rows.to_string(),
                    time(single),
                    time(all),
                    time(first),
                    time(warm),
                    time(ratio),
                    figure(one.counts.copied_bytes as f64 / 1e6),
                    one.counts.launches.to_string(),
                    on_cpu.to_string(),
                    if one.is_equal { "yes" } else { "NO" }.to_owned(),
                    with_gpu,
                    without,
                ]);
            }
            write!(f, "{table}")?;
            if figures.iter().all(|one| one.sweep.is_empty()) {
                continue;
            }
            writeln!(f, "\nWith memory for a part of the windows of the query:\n")?;
            let headings = SWEEP.map(|percent| format!("{percent} %"));
            let mut table = Table::new(&["query", &headings[0], &headings[1], &headings[2], &headings[3]]);
            for one in figures.iter().filter(|one| !one.sweep.is_empty()) {
                let cell = |(ms, is_equal): &(f64, bool)| {
                    format!("{}{}", figure(*ms), if *is_equal { "" } else { " NOT EQUAL" })
                };
                table.row(std::iter::once(one.name.clone()).chain(one.sweep.iter().map(cell)).collect());
            }
            write!(f, "{table}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole report on small data and the simulated device: rows are equal, also with little memory.
    #[test]
    fn the_report_is_right_on_the_simulated_device() {
        let options = GpuBenchOptions {
            device: BenchDevice::Simulated,
            universities: 0,
            edges: 120,
            time: Duration::ZERO,
            sweep: true,
        };
        let report = run(&options, &mut |_| {}).expect("it runs");
        let text = report.to_string();
        assert!(report.is_right() && text.contains("| triangles"), "{text}");
        let all = report.parts.iter().flat_map(|(_, figures)| figures);
        assert!(all.into_iter().all(|one| one.counts.queries_on_device > 0), "{text}");
    }
}
