//! `Traversal` and `Run`: compilation, execution and results of a traversal.

use crate::Host;
use crate::analysis::path_needs;
use crate::compile::Compiler;
use crate::context::{Context, Settings, SideEffect};
use crate::graph::Names;
use crate::graph::batch::{Batch, ELEMENTS_MAX, is_element};
use crate::graph::detail::{Materialize, detailed, detailed_with};
use crate::memory::{Memory, Reservation};
use crate::step::Pipeline;
use crate::steps;
use crate::strategy::Strategies;
use crate::traverser::{Traverser, start_value};
use foldhash::HashMap as SeededMap;
use std::sync::Arc;
use std::time::Instant;
use vervet_algebra::Query;
use vervet_gremlin::{Bytecode, Metric, Metrics, Operator, Token, Value};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};
use vervet_model::{ReadCounts, describe_reads, sum_of_reads};

/// Maximum number of elements among the first results whose properties are looked up together; the first
/// result waits for the rest of its batch.
const BATCH_FIRST: usize = 16;

/// A compiled traversal.
pub struct Traversal {
    pipeline: Pipeline,
    settings: Settings,
    side_effects: SeededMap<Arc<str>, SideEffect>,
    mutates: bool,
    seed: Option<i64>,
    /// Whether the last step is `profile()`: the result is the metrics of the other steps.
    profiles: bool,
}

impl std::fmt::Debug for Traversal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traversal").field("mutates", &self.mutates).finish_non_exhaustive()
    }
}

impl Traversal {
    /// Compiles bytecode.
    ///
    /// # Errors
    /// [`ErrorKind::Query`]: an unknown step, or invalid arguments.
    pub fn new(bytecode: &Bytecode) -> Result<Self> {
        Self::new_with(bytecode, true)
    }

    /// As [`Traversal::new`]; without `kernels` every step runs as a step, with the same results.
    ///
    /// # Errors
    /// As [`Traversal::new`].
    pub fn new_with(bytecode: &Bytecode, kernels: bool) -> Result<Self> {
        Self::build(bytecode, kernels, false)
    }

    /// As [`Traversal::new_with`], for [`Traversal::explain`]: steps keep their text.
    ///
    /// # Errors
    /// As [`Traversal::new`].
    pub fn to_explain(bytecode: &Bytecode, kernels: bool) -> Result<Self> {
        Self::build(bytecode, kernels, true)
    }

    fn build(bytecode: &Bytecode, kernels: bool, texts: bool) -> Result<Self> {
        let mut settings = Settings::default();
        path_needs(bytecode, &mut settings);
        let mut side_effects: SeededMap<Arc<str>, SideEffect> = SeededMap::default();
        let mut strategies = Strategies::default();
        for instruction in &bytecode.source {
            let arguments = instruction.arguments.as_slice();
            match (&*instruction.name, arguments) {
                ("withSideEffect", [Value::String(key), value, rest @ ..]) => {
                    let side_effect = SideEffect { value: value.clone(), operator: operator(rest) };
                    side_effects.insert(key.clone(), side_effect);
                }
                ("withSack", [value, rest @ ..]) => {
                    settings.sack = Some(value.clone());
                    settings.sack_merge = operator(rest);
                }
                ("withBulk", [Value::Boolean(on)]) => settings.no_bulk = !on,
                ("withPath", []) => settings.paths = true,
                // OLAP steps run without a graph computer.
                ("withComputer", _) => strategies.computer = true,
                ("withStrategies" | "withoutStrategies", _) => {
                    strategies.take(&instruction.name, arguments, &mut settings)?;
                }
                ("with", _) => {}
                (name, _) => {
                    let message = format!("the source does not have {name}() with these arguments");
                    return Err(Error::new(ErrorKind::Query, message));
                }
            }
        }
        strategies.check_computer()?;
        let seed = strategies.seed;
        let (instructions, profiles) = match bytecode.steps.split_last() {
            Some((last, before)) if &*last.name == "profile" && last.arguments.is_empty() => (before, true),
            _ => (bytecode.steps.as_slice(), false),
        };
        let mut compiler = Compiler::new(steps::build, settings, strategies, texts || profiles);
        let mut pipeline = compiler.root(instructions, kernels)?;
        for (name, value) in compiler.side_effects.drain(..) {
            side_effects.entry(name).or_insert(SideEffect { value, operator: None });
        }
        if profiles {
            pipeline.nodes.iter_mut().for_each(|node| node.meter = Some(Box::default()));
        }
        Ok(Self {
            profiles,
            pipeline,
            settings: compiler.settings,
            side_effects,
            mutates: compiler.mutates,
            seed,
        })
    }

    /// Whether the traversal may change the graph.
    #[must_use]
    pub fn mutates(&self) -> bool {
        self.mutates
    }

    /// The executed steps, one per line; those that kernels run share the first line. Requires a traversal
    /// from [`Traversal::to_explain`]: steps of others have no text.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for (i, node) in self.pipeline.nodes.iter().enumerate() {
            let labels = match node.labels.len() {
                0 => String::new(),
                _ => format!(" as {}", node.labels.join(", ")),
            };
            text.push_str(&format!("{i:>3}  {}{labels}\n", node.text));
        }
        text
    }

    /// The query of the first line, if kernels run it. On a graph where it is not equivalent, the steps run
    /// one by one.
    pub fn query(&mut self) -> Option<&Query> {
        self.pipeline.nodes.first()?.step.query()
    }

    /// Starts the traversal.
    pub fn run<'a>(self, host: &'a mut dyn Host, control: &'a Control<'a>) -> Run<'a> {
        let seed = match self.seed {
            Some(seed) => seed.cast_unsigned(),
            None => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(1, |since| u64::from(since.subsec_nanos()) ^ since.as_secs()),
        };
        let mut start = Traverser::new(start_value());
        start.sack = self.settings.sack.clone().map(Box::new);
        let context = Context {
            host,
            names: Names::default(),
            side_effects: self.side_effects,
            groups: SeededMap::default(),
            collection_indexes: SeededMap::default(),
            control,
            memory: Memory::new(control),
            ahead: Reservation::default(),
            seed,
            random: None,
            settings: Arc::new(self.settings),
        };
        let profile = self.profiles.then(Instant::now);
        if self.profiles {
            // Those of earlier statements.
            drop(control.take_reads());
        }
        Run { pipeline: self.pipeline, context, start: Some(start), mutates: self.mutates, profile }
    }
}

fn operator(arguments: &[Value]) -> Option<Operator> {
    arguments.iter().rev().find_map(|argument| match argument {
        Value::Token(Token::Operator(operator)) => Some(*operator),
        _ => None,
    })
}

/// A running traversal.
pub struct Run<'a> {
    pipeline: Pipeline,
    context: Context<'a>,
    mutates: bool,
    /// The initial traverser, until the first result is pulled.
    start: Option<Traverser>,
    /// Start time of a profiled traversal, until its profile is returned.
    profile: Option<Instant>,
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

impl Run<'_> {
    /// The next result and its multiplicity. Elements in it have keys and no details.
    ///
    /// # Errors
    /// Limits; operations that the values do not support; conflicts and constraints of writes; damaged data.
    pub fn advance(&mut self) -> Result<Option<(Value, u64)>> {
        self.context.control.check()?;
        if let Some(start) = self.start.take() {
            self.pipeline.start(start, &self.context)?;
        }
        if let Some(began) = self.profile.take() {
            while self.pipeline.next(&mut self.context)?.is_some() {}
            return Ok(Some((self.metrics(began), 1)));
        }
        let next = self.pipeline.next(&mut self.context)?;
        let one_each = self.context.settings.no_bulk;
        Ok(next.map(|traverser| (traverser.value, if one_each { 1 } else { traverser.bulk.get() })))
    }

    /// The metrics of the steps.
    fn metrics(&self, began: Instant) -> Value {
        let nanoseconds = |time: u128| u64::try_from(time).unwrap_or(u64::MAX);
        let mut metrics = Metrics { nanoseconds: nanoseconds(began.elapsed().as_nanos()), steps: Vec::new() };
        let mut before = 0;
        for (i, node) in self.pipeline.nodes.iter().enumerate() {
            let Some(meter) = &node.meter else { continue };
            // Metrics are longs; larger counts saturate.
            let count = |count: u128| i64::try_from(count).unwrap_or(i64::MAX);
            let own = meter.nanoseconds.saturating_sub(before);
            before = meter.nanoseconds;
            let share = own as f64 * 100.0 / metrics.nanoseconds.max(1) as f64;
            metrics.steps.push(Metric {
                id: format!("{i}").into(),
                name: node.text.clone(),
                nanoseconds: own,
                counts: vec![
                    ("traverserCount".into(), count(meter.traversers.into())),
                    ("elementCount".into(), count(meter.elements)),
                ],
                annotations: vec![("percentDur".into(), Value::Double(share))],
                nested: Vec::new(),
            });
        }
        metrics.steps.extend(remote_reads(&self.context.control.take_reads()));
        Value::Metrics(Arc::new(metrics))
    }

    /// Calls `each` with every remaining result as [`Run::detailed`] returns it, and its multiplicity.
    /// Properties of elements are looked up in batches: 16 of the first results, up to 1,024 of later ones.
    ///
    /// # Errors
    /// As [`Run::advance`]: `each` receives the results before the error. An error of `each` ends the call.
    pub fn for_each(
        &mut self,
        how: Materialize,
        each: &mut dyn FnMut(Value, u64) -> Result<()>,
    ) -> Result<()> {
        let grows = !self.mutates && how == Materialize::All;
        let mut room = if grows { BATCH_FIRST } else { 1 };
        let mut results = Vec::new();
        loop {
            let mut end = None;
            while end.is_none() && results.len() < room {
                match self.advance() {
                    Ok(Some((value, count))) => {
                        // Only elements are batched: other results may be large.
                        let waits = is_element(&value);
                        results.push((value, count));
                        if !waits {
                            break;
                        }
                    }
                    Ok(None) => end = Some(Ok(())),
                    Err(error) => end = Some(Err(error)),
                }
            }
            let context = &mut self.context;
            let control = context.control;
            let batch = match end {
                _ if results.len() < 2 => Batch::default(),
                // An exceeded limit would end the look-up, too.
                Some(Err(_)) => Batch::default(),
                _ => context.read(|snapshot, names| {
                    Batch::read(results.iter().map(|(value, _)| value), snapshot, names, control)
                })?,
            };
            for (value, count) in results.drain(..) {
                each(detailed_with(context, value, how, &batch)?, count)?;
            }
            if let Some(end) = end {
                return end;
            }
            if grows {
                room = (room * 4).min(ELEMENTS_MAX);
            }
        }
    }

    /// Adds ids, labels and properties to the elements in a result.
    ///
    /// # Errors
    /// Damaged data.
    pub fn detailed(&mut self, value: Value, how: Materialize) -> Result<Value> {
        detailed(&mut self.context, value, how)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // The bytes of the steps are released with them.
        self.context.memory.close();
    }
}

/// The reads of other servers as one more metric, the steps of which are the servers; without traversers.
fn remote_reads(reads: &[(String, ReadCounts)]) -> Option<Metric> {
    let metric = |name: String, counts: ReadCounts| {
        let count = |name: &str, count: u64| (name.into(), i64::try_from(count).unwrap_or(i64::MAX));
        let counts = vec![
            count("requests", counts.requests),
            count("keys", counts.keys),
            count("bytesSent", counts.bytes_sent),
            count("bytesReceived", counts.bytes_received),
            count("kept", counts.kept),
        ];
        Metric { id: "reads".into(), name: name.into(), counts, ..Metric::default() }
    };
    let sum = sum_of_reads(reads);
    let servers = reads.iter().map(|(server, counts)| metric(format!("server {server}"), *counts)).collect();
    let line = describe_reads(reads)?;
    Some(Metric { nested: servers, ..metric(line, sum) })
}
