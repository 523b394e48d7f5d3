//! A strip: some input rows that run through all steps of a device part.
//!
//! # Shape
//! Execution is depth-first. A step takes its input table in slices and its candidates in chunks whose size
//! depends on the free memory; the rows of a chunk run through all later steps before the next chunk starts.
//! So any number of candidates, and a vertex of any degree, needs a bounded amount of memory. Checks that
//! follow an expansion are tests of the same launch.
//!
//! Each launch names the windows that it reads. If those of a step do not fit into memory together, the step
//! runs in *passes*, one for each combination of groups of windows. A key is in one window, so each result
//! belongs to one pass.
//! # Invariants
//! After an error nothing of the strip has been handed over: the caller may run the same rows on the CPU.
//! # Cost
//! The host waits for each launch, some 10 µs: it needs the number of candidates before it can place the
//! output, and the bounds of the new column before it can load the windows of the next step.

use crate::arena::Arena;
use crate::cache::{WindowCache, WindowRange};
use crate::lower::{DevicePart, LoweredLeg, LoweredStep, SegmentUse};
use crate::options::GpuOptions;
use crate::stop::Stop;
use crate::table::DeviceTable;
use std::time::Instant;
use vervet_algebra::Variable;
use vervet_device::{
    Address, Device, DeviceError, DeviceErrorKind, ITEMS, Kernel, Leg, Locate, Operand, Produce,
    STATUS_WORDS, Status, TESTS_MAX, Test, Windows,
};
use vervet_kernel::plan::{self, StepProfile};
use vervet_kernel::{Batch, Control};
use vervet_model::{Id, Multiplicity};

/// Maximum number of passes of a step for one table.
const PASSES_MAX: usize = 16;

/// A device with its memory and windows.
#[derive(Debug)]
pub(crate) struct Engine {
    device: Box<dyn Device>,
    arena: Option<Arena>,
    pub(crate) cache: WindowCache,
    /// Set when the device does not answer any more.
    pub(crate) is_lost: bool,
    pub(crate) launches: u64,
    /// Steps whose windows did not fit together.
    pub(crate) passes: u64,
}

impl Engine {
    pub(crate) fn new(device: Box<dyn Device>) -> Self {
        Self { device, arena: None, cache: WindowCache::default(), is_lost: false, launches: 0, passes: 0 }
    }

    pub(crate) fn name(&self) -> String {
        self.device.name()
    }

    /// Runs a strip. `out` receives the rows, `figures` the profile of each step, `counted` the bytes of
    /// `out`.
    pub(crate) fn run(
        &mut self,
        part: &DevicePart<'_>,
        input: &Batch,
        options: &GpuOptions,
        context: Context<'_>,
        out: &mut Batch,
    ) -> Result<Vec<StepProfile>, Stop> {
        if self.is_lost {
            return Err(DeviceError::new(DeviceErrorKind::Lost, "the device is lost").into());
        }
        let result = self.run_on_device(part, input, options, context, out);
        if let Err(Stop::Device(DeviceError { kind: DeviceErrorKind::Lost, .. })) = &result {
            self.is_lost = true;
        }
        if let Some(arena) = &mut self.arena {
            arena.release_all();
        }
        result
    }

    fn run_on_device(
        &mut self,
        part: &DevicePart<'_>,
        input: &Batch,
        options: &GpuOptions,
        context: Context<'_>,
        out: &mut Batch,
    ) -> Result<Vec<StepProfile>, Stop> {
        let arena = match &mut self.arena {
            Some(arena) => arena,
            none => {
                let bytes = options.memory_bytes.min(self.device.memory_bytes() / 10 * 9);
                none.insert(Arena::new(&mut *self.device, bytes)?)
            }
        };
        let mut strip = Strip {
            device: &mut *self.device,
            arena,
            cache: &mut self.cache,
            part,
            options,
            control: context.control,
            profile: context.profile,
            figures: vec![StepProfile::default(); part.steps.len()],
            out,
            counted: context.counted,
            launches: &mut self.launches,
            passes: &mut self.passes,
        };
        let table = strip.upload(input)?;
        strip.run_from(0, &table)?;
        Ok(strip.figures)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(arena) = &self.arena {
            self.device.free(arena.base());
        }
    }
}

/// The query of a strip.
pub(crate) struct Context<'c> {
    pub(crate) control: &'c Control<'c>,
    pub(crate) profile: bool,
    /// Counted bytes of the output.
    pub(crate) counted: &'c mut u64,
}

/// A strip in execution.
struct Strip<'e, 'a> {
    device: &'e mut dyn Device,
    arena: &'e mut Arena,
    cache: &'e mut WindowCache,
    part: &'e DevicePart<'a>,
    options: &'e GpuOptions,
    control: &'e Control<'e>,
    profile: bool,
    figures: Vec<StepProfile>,
    out: &'e mut Batch,
    counted: &'e mut u64,
    launches: &'e mut u64,
    passes: &'e mut u64,
}

/// A step, the checks that run in the same launch, and their windows.
struct Group<'a> {
    /// Position of the step.
    at: usize,
    /// Number of checks behind it that run with it.
    fused: usize,
    /// Segments of the legs, then of the tests, each with its windows.
    needed: Vec<(SegmentUse<'a>, WindowRange)>,
    /// Their directories on the device.
    windows: Vec<Windows>,
    /// The generation of the cache for which the directories are valid.
    generation: Option<u64>,
}

/// The output columns of a group.
struct Output {
    copied: Vec<usize>,
    target: Option<usize>,
    has_times: bool,
}

impl Output {
    fn row_words(&self) -> u64 {
        (self.copied.len() + usize::from(self.target.is_some()) + usize::from(self.has_times)).max(1) as u64
    }
}

impl<'a> Strip<'_, 'a> {
    /// Copies the columns of `input` that the steps read.
    fn upload(&mut self, input: &Batch) -> Result<DeviceTable, Stop> {
        let rows = input.rows as u64;
        let mut table = DeviceTable::new(rows, input.columns.len());
        let mut needed: Vec<Variable> = self.part.pipeline.steps[0].keep.clone();
        let operands = match &self.part.steps[0] {
            LoweredStep::Empty => Vec::new(),
            LoweredStep::Expand { legs, .. } | LoweredStep::Count { legs } => {
                legs.iter().map(|leg| leg.key).collect()
            }
            LoweredStep::Check { leg, neighbour } => vec![leg.key, *neighbour],
        };
        needed.extend(operands.iter().filter_map(|operand| match operand {
            plan::Operand::Variable(variable) => Some(*variable),
            plan::Operand::Constant(_) => None,
        }));
        for column in needed.into_iter().map(Variable::index) {
            let ids = input.columns.get(column).filter(|ids| !ids.is_empty());
            let Some(ids) = ids.filter(|_| table.columns[column] == Address::NONE) else { continue };
            let words: Vec<u64> = ids.iter().map(|id| id.bits()).collect();
            let least = words.iter().copied().min().unwrap_or(0);
            table.bounds[column] = (least, words.iter().copied().max().unwrap_or(0));
            table.columns[column] = self.take(rows)?;
            self.device.upload(table.columns[column], &words)?;
        }
        if !input.multiplicity.is_empty() {
            let times: Option<Vec<u64>> =
                input.multiplicity.iter().map(|times| u64::try_from(times.get()).ok()).collect();
            table.times = self.take(rows)?;
            self.device.upload(table.times, &times.ok_or(Stop::Overflow)?)?;
        }
        Ok(table)
    }

    /// Takes words for a table.
    fn take(&mut self, words: u64) -> Result<Address, Stop> {
        self.device.suballocate()?;
        self.arena.take(words).ok_or(Stop::Rows)
    }

    /// Runs a table through the steps from `at` on.
    fn run_from(&mut self, at: usize, table: &DeviceTable) -> Result<(), Stop> {
        if table.rows == 0 {
            return Ok(());
        }
        self.control.check()?;
        let Some(step) = self.part.steps.get(at) else { return self.collect(table) };
        self.figures[at].rows_in += table.rows;
        if matches!(step, LoweredStep::Empty) {
            return Ok(());
        }
        let mut fused = self.fusable(at);
        loop {
            let needed = self.needed(at, fused, table)?;
            // Without a window there is no such key, so no row has output.
            if needed.iter().any(|(_, range)| range.windows.is_empty()) {
                return Ok(());
            }
            let words: u64 = merged(&needed).iter().map(|range| self.cache.words(range)).sum();
            if words <= self.arena.windows.words() {
                return self.group(at, fused, table, needed);
            }
            if fused == 0 {
                return self.passes(at, table, &needed);
            }
            fused = 0;
        }
    }

    /// Number of checks directly after a step that can be tests of its launch.
    fn fusable(&self, at: usize) -> usize {
        let tests = match &self.part.steps[at] {
            // The rows between an intersection and a test are not counted.
            LoweredStep::Expand { legs, .. } if legs.len() > 1 && self.profile => return 0,
            LoweredStep::Expand { .. } => TESTS_MAX,
            LoweredStep::Check { .. } => TESTS_MAX - 1,
            LoweredStep::Count { .. } | LoweredStep::Empty => return 0,
        };
        let is_check = |step: &&LoweredStep<'_>| matches!(step, LoweredStep::Check { .. });
        self.part.steps[at + 1..].iter().take_while(is_check).take(tests).count()
    }

    /// The steps of the tests of a group: the step itself if it is a check, and the fused ones.
    fn tests(&self, at: usize, fused: usize) -> std::ops::Range<usize> {
        let is_check = matches!(self.part.steps[at], LoweredStep::Check { .. });
        at + usize::from(!is_check)..at + 1 + fused
    }

    /// The windows that a group may read.
    fn needed(
        &mut self,
        at: usize,
        fused: usize,
        table: &DeviceTable,
    ) -> Result<Vec<(SegmentUse<'a>, WindowRange)>, Stop> {
        let target = self.target(at);
        let mut legs = self.legs(at);
        for test in self.tests(at, fused) {
            if let LoweredStep::Check { leg, .. } = &self.part.steps[test] {
                legs.push(*leg);
            }
        }
        let mut needed = Vec::new();
        for LoweredLeg { key, used } in legs {
            let bounds = match key {
                plan::Operand::Constant(id) => (id.bits(), id.bits()),
                plan::Operand::Variable(variable) if Some(variable) == target => (0, u64::MAX),
                plan::Operand::Variable(variable) => table.bounds[variable.index()],
            };
            let bytes = self.options.window_bytes;
            needed.push((used, self.cache.range(&used, bounds, bytes, self.arena, self.control)?));
        }
        Ok(needed)
    }

    fn legs(&self, at: usize) -> Vec<LoweredLeg<'a>> {
        match &self.part.steps[at] {
            LoweredStep::Expand { legs, .. } | LoweredStep::Count { legs } => legs.clone(),
            LoweredStep::Check { .. } | LoweredStep::Empty => Vec::new(),
        }
    }

    fn target(&self, at: usize) -> Option<Variable> {
        match &self.part.steps[at] {
            LoweredStep::Expand { target, .. } => Some(*target),
            _ => None,
        }
    }

    /// Runs a step whose windows do not fit together, in passes.
    fn passes(
        &mut self,
        at: usize,
        table: &DeviceTable,
        needed: &[(SegmentUse<'a>, WindowRange)],
    ) -> Result<(), Stop> {
        let budget = self.arena.windows.words() / needed.len().max(1) as u64;
        let mut groups = Vec::new();
        for (_, range) in needed {
            groups.push(self.cache.split(range, budget, PASSES_MAX).ok_or(Stop::Windows)?);
        }
        let count = groups.iter().try_fold(1_usize, |count, group| count.checked_mul(group.len()));
        let count = count.filter(|count| *count <= PASSES_MAX).ok_or(Stop::Windows)?;
        *self.passes += 1;
        for mut pass in 0..count {
            let mut of_pass = Vec::new();
            for ((used, _), group) in needed.iter().zip(&groups) {
                of_pass.push((*used, group[pass % group.len()].clone()));
                pass /= group.len();
            }
            self.group(at, 0, table, of_pass)?;
        }
        Ok(())
    }

    /// Runs a step with fused checks on a table.
    fn group(
        &mut self,
        at: usize,
        fused: usize,
        table: &DeviceTable,
        needed: Vec<(SegmentUse<'a>, WindowRange)>,
    ) -> Result<(), Stop> {
        let mark = self.arena.mark();
        let mut windows = Vec::new();
        for (_, range) in &needed {
            let count = range.windows.len() as u64;
            let last_keys = self.take(2 * count)?;
            windows.push(Windows { last_keys, addresses: last_keys.plus_words(count), count });
        }
        let mut group = Group { at, fused, needed, windows, generation: None };
        match &self.part.steps[at] {
            LoweredStep::Expand { .. } => self.expand(&mut group, table)?,
            LoweredStep::Count { .. } => self.count(&mut group, table)?,
            LoweredStep::Check { .. } => self.check(&mut group, table)?,
            LoweredStep::Empty => {}
        }
        self.arena.release_to(mark);
        Ok(())
    }

    /// Makes the windows of a group resident. Called before each launch, since later steps may evict them.
    fn load(&mut self, group: &mut Group<'a>) -> Result<(), Stop> {
        let needed: Vec<_> = group.needed.iter().map(|(used, range)| (used, range.clone())).collect();
        self.cache.load(&needed, self.device, self.arena, self.control)?;
        if group.generation != Some(self.cache.generation) {
            for ((_, range), windows) in needed.iter().zip(&group.windows) {
                let words = self.cache.directory(range, self.arena)?;
                self.device.upload(windows.last_keys, &words)?;
            }
            group.generation = Some(self.cache.generation);
        }
        Ok(())
    }

    /// Words that the tables of one step may take: an equal share of the free ones for each step left.
    fn budget(&self, at: usize) -> u64 {
        self.arena.work_free() / (self.part.steps.len() - at) as u64
    }

    /// The output columns of a group.
    fn output(&self, group: &Group<'a>, table: &DeviceTable, has_factors: bool) -> Output {
        let target = self.target(group.at).map(Variable::index);
        let keep = &self.part.pipeline.steps[group.at + group.fused].keep;
        let kept = keep.iter().map(|variable| variable.index());
        let is_copied = |column: &usize| Some(*column) != target && table.columns[*column] != Address::NONE;
        Output {
            copied: kept.clone().filter(is_copied).collect(),
            target: target.filter(|target| kept.clone().any(|column| column == *target)),
            has_times: has_factors || table.times != Address::NONE,
        }
    }

    /// Rows of a table with rows of `row_words` that fit into `words`, with the states of a launch.
    fn fitting(words: u64, row_words: u64) -> Result<u64, Stop> {
        let rows = words.saturating_sub(STATUS_WORDS as u64 + 2) / (row_words + 1);
        if rows == 0 { Err(Stop::Rows) } else { Ok(rows) }
    }

    fn expand(&mut self, group: &mut Group<'a>, table: &DeviceTable) -> Result<(), Stop> {
        let output = self.output(group, table, false);
        let budget = self.budget(group.at);
        let slice_rows = Self::fitting(budget / 3, 2)?;
        let chunk_rows = Self::fitting(budget / 3 * 2, output.row_words())?;
        let mut start = 0;
        while start < table.rows {
            let slice = table.slice(start, slice_rows);
            start += slice.rows;
            let mark = self.arena.mark();
            let (starts, ends) = (self.take(slice.rows)?, self.take(slice.rows)?);
            self.load(group)?;
            let legs = self.device_legs(group, &slice);
            let located = self.launch(group.at, Kernel::Locate, slice.rows, |states, status| {
                let (rows, factors, legs) = (slice.rows, Address::NONE, legs.clone());
                Locate { rows, legs, starts, ends, factors, states, status }.words()
            })?;
            let mut first = 0;
            while first < located.candidates {
                let last = (first + chunk_rows).min(located.candidates);
                let produce = Produce { first, last, starts, ends, legs: legs.clone(), ..Produce::default() };
                self.produce(group, &slice, &output, produce)?;
                first = last;
            }
            self.arena.release_to(mark);
        }
        Ok(())
    }

    fn count(&mut self, group: &mut Group<'a>, table: &DeviceTable) -> Result<(), Stop> {
        let output = self.output(group, table, true);
        let is_intersection = self.legs(group.at).len() > 1;
        let own_words = if is_intersection { 3 } else { 1 };
        let slice_rows = Self::fitting(self.budget(group.at), own_words + output.row_words())?;
        let mut start = 0;
        while start < table.rows {
            let slice = table.slice(start, slice_rows);
            start += slice.rows;
            let mark = self.arena.mark();
            let rows = slice.rows;
            let factors = self.take(rows)?;
            self.load(group)?;
            let legs = self.device_legs(group, &slice);
            if is_intersection {
                let (starts, ends) = (self.take(rows)?, self.take(rows)?);
                let located = self.launch(group.at, Kernel::Locate, rows, |states, status| {
                    let legs = legs.clone();
                    Locate { rows, legs, starts, ends, factors: Address::NONE, states, status }.words()
                })?;
                self.device.clear(factors, rows)?;
                let last = located.candidates;
                if last > 0 {
                    self.launch(group.at, Kernel::Produce, last, |states, status| {
                        let (counts, legs) = (factors, legs.clone());
                        let none = Produce::default();
                        Produce { rows, last, starts, ends, legs, counts, states, status, ..none }.words()
                    })?;
                }
            } else {
                self.launch(group.at, Kernel::Locate, rows, |states, status| {
                    Locate { rows, legs: legs.clone(), factors, states, status, ..Locate::default() }.words()
                })?;
            }
            let produce = Produce { last: rows, factors, ..Produce::default() };
            self.produce(group, &slice, &output, produce)?;
            self.arena.release_to(mark);
        }
        Ok(())
    }

    fn check(&mut self, group: &mut Group<'a>, table: &DeviceTable) -> Result<(), Stop> {
        let output = self.output(group, table, false);
        let chunk_rows = Self::fitting(self.budget(group.at), output.row_words())?;
        let mut first = 0;
        while first < table.rows {
            let last = (first + chunk_rows).min(table.rows);
            self.produce(group, table, &output, Produce { first, last, ..Produce::default() })?;
            first = last;
        }
        Ok(())
    }

    /// Launches *produce* for some candidates and runs the rows that it writes through the later steps.
    fn produce(
        &mut self,
        group: &mut Group<'a>,
        table: &DeviceTable,
        output: &Output,
        parameters: Produce,
    ) -> Result<(), Stop> {
        let mark = self.arena.mark();
        let candidates = parameters.last - parameters.first;
        let mut next = DeviceTable::new(0, table.columns.len());
        next.bounds.clone_from(&table.bounds);
        let mut columns = Vec::new();
        for &column in &output.copied {
            next.columns[column] = self.take(candidates)?;
            columns.push((table.columns[column], next.columns[column]));
        }
        if let Some(target) = output.target {
            next.columns[target] = self.take(candidates)?;
        }
        if output.has_times {
            next.times = self.take(candidates)?;
        }
        self.load(group)?;
        let tests = self.device_tests(group, table);
        let status = self.launch(group.at, Kernel::Produce, candidates, |states, status| {
            let produce = Produce {
                rows: table.rows,
                tests: tests.clone(),
                times: table.times,
                times_to: next.times,
                values_to: output.target.map_or(Address::NONE, |target| next.columns[target]),
                columns,
                capacity: candidates,
                states,
                status,
                ..parameters
            };
            produce.words()
        })?;
        if status.overflow {
            return Err(Stop::Overflow);
        }
        self.count_rows(group, candidates, &status);
        next.rows = status.rows;
        if let Some(target) = output.target {
            next.bounds[target] = status.bounds;
        }
        self.run_from(group.at + 1 + group.fused, &next)?;
        self.arena.release_to(mark);
        Ok(())
    }

    /// Adds to the profile of the steps of a group.
    fn count_rows(&mut self, group: &Group<'a>, candidates: u64, status: &Status) {
        let tests = self.tests(group.at, group.fused);
        if tests.start > group.at {
            let all_pass = self.legs(group.at).len() == 1 && group.fused > 0;
            self.figures[group.at].rows_out += if all_pass { candidates } else { status.rows };
        }
        let mut before = candidates;
        for (step, passed) in tests.zip(status.passed) {
            // The input of the first step of a group is counted where the table enters it.
            if step > group.at {
                self.figures[step].rows_in += before;
            }
            self.figures[step].rows_out += passed;
            before = passed;
        }
    }

    fn device_legs(&self, group: &Group<'a>, table: &DeviceTable) -> Vec<Leg> {
        let legs = self.legs(group.at).into_iter().zip(&group.windows);
        legs.map(|(leg, windows)| Leg { key: operand(leg.key, table, None), windows: *windows }).collect()
    }

    fn device_tests(&self, group: &Group<'a>, table: &DeviceTable) -> Vec<Test> {
        let target = self.target(group.at);
        let windows = &group.windows[self.legs(group.at).len()..];
        let steps = self.part.steps[self.tests(group.at, group.fused)].iter();
        let test = |(step, windows): (&LoweredStep<'_>, &Windows)| match step {
            LoweredStep::Check { leg, neighbour } => Some(Test {
                key: operand(leg.key, table, target),
                neighbour: operand(*neighbour, table, target),
                windows: *windows,
            }),
            _ => None,
        };
        steps.zip(windows).filter_map(test).collect()
    }

    /// Launches a kernel for some rows or candidates and waits for it. `words` makes the parameters, from the
    /// addresses of the states of tiles and of the status.
    fn launch(
        &mut self,
        at: usize,
        kernel: Kernel,
        items: u64,
        words: impl FnOnce(Address, Address) -> Vec<u64>,
    ) -> Result<Status, Stop> {
        self.control.check()?;
        let start = self.profile.then(Instant::now);
        let mark = self.arena.mark();
        let tiles = items.div_ceil(ITEMS * u64::from(self.device.block_threads())).max(1);
        let (states, status) = (self.take(tiles)?, self.take(STATUS_WORDS as u64)?);
        self.device.clear(states, tiles)?;
        self.device.upload(status, &Status::CLEARED)?;
        let blocks = u32::try_from(tiles).unwrap_or(u32::MAX).min(self.device.blocks_max());
        *self.launches += 1;
        self.device.launch(kernel, &words(states, status), blocks)?;
        let mut found = [0; STATUS_WORDS];
        self.device.download(status, &mut found)?;
        self.arena.release_to(mark);
        if let Some(start) = start {
            let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.figures[at].nanoseconds += nanoseconds;
        }
        Ok(Status::from_words(found))
    }

    /// Copies the rows of a table to the output.
    fn collect(&mut self, table: &DeviceTable) -> Result<(), Stop> {
        let rows = usize::try_from(table.rows).map_err(|_| Stop::Rows)?;
        if self.out.rows + rows > self.options.result_rows_max {
            return Err(Stop::Rows);
        }
        let columns = table.columns.iter().enumerate().filter(|(_, column)| **column != Address::NONE);
        let has_times = self.out.rows == 0 && table.times != Address::NONE;
        let has_times = has_times || !self.out.multiplicity.is_empty();
        let bytes = rows as u64 * (8 * columns.clone().count() as u64 + if has_times { 16 } else { 0 });
        if !self.control.has_room(2 * bytes) {
            return Err(Stop::Rows);
        }
        let mut words = vec![0; rows];
        for (at, column) in columns {
            self.device.download(*column, &mut words)?;
            self.out.columns[at].extend(words.iter().map(|bits| Id::from_bits(*bits)));
        }
        if table.times != Address::NONE {
            self.device.download(table.times, &mut words)?;
            self.out.multiplicity.extend(words.iter().map(|times| Multiplicity::new(*times)));
        }
        self.out.rows += rows;
        self.control.recount(self.counted, self.out.size_bytes())?;
        Ok(())
    }
}

/// An operand of a step in a table. `target`: the variable of the candidates.
fn operand(operand: plan::Operand, table: &DeviceTable, target: Option<Variable>) -> Operand {
    match operand {
        plan::Operand::Constant(id) => Operand::Constant(id.bits()),
        plan::Operand::Variable(variable) if Some(variable) == target => Operand::Candidate,
        plan::Operand::Variable(variable) => match table.columns[variable.index()] {
            Address::NONE => Operand::Constant(Id::UNBOUND.bits()),
            column => Operand::Column(column),
        },
    }
}

/// The windows of all ranges, those of one segment as one range.
fn merged(needed: &[(SegmentUse<'_>, WindowRange)]) -> Vec<WindowRange> {
    let mut merged: Vec<WindowRange> = Vec::new();
    for (_, range) in needed {
        match merged.iter_mut().find(|other| other.variant == range.variant) {
            Some(other) => {
                let (start, end) = (other.windows.start, other.windows.end);
                other.windows = start.min(range.windows.start)..end.max(range.windows.end);
            }
            None => merged.push(range.clone()),
        }
    }
    merged
}
