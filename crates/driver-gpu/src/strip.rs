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
//!
//! A filter may leave rows undecided. A second launch finds them, and they leave the strip at that step, with
//! the columns that it receives: see `result`. Nested pipelines are in `nested`.
//! # Invariants
//! After an error nothing of the strip has been handed over: the caller may run the same rows on the CPU.
//! # Cost
//! The host waits for each launch, some 10 µs: it needs the number of candidates before it can place the
//! output, and the bounds of the new column before it can load the windows of the next step.

use crate::arena::Arena;
use crate::cache::{WindowCache, WindowRange};
use crate::lower::{DevicePart, DeviceStep, LoweredLeg, LoweredStep, SegmentUse};
use crate::options::GpuOptions;
use crate::rest::Rest;
use crate::stop::Stop;
use crate::table::DeviceTable;
use std::time::Instant;
use vervet_algebra::Variable;
use vervet_device::{
    Address, Device, ITEMS, Intervals, Kernel, Leg, Locate, Operand, Produce, Relation, STATUS_WORDS, Status,
    TESTS_MAX, Test, Windows,
};
use vervet_expression::{IdRelation, IdTest};
use vervet_kernel::plan::{self, StepProfile};
use vervet_kernel::{Batch, Control};
use vervet_model::Id;

/// Maximum number of passes of a step for one table.
const PASSES_MAX: usize = 16;

/// The query of a strip.
pub(crate) struct Context<'c> {
    pub(crate) control: &'c Control<'c>,
    pub(crate) profile: bool,
    /// Counted bytes of the output.
    pub(crate) counted: &'c mut u64,
}

/// What a strip has found.
pub(crate) struct StripResult {
    /// Profile of each step.
    pub(crate) figures: Vec<StepProfile>,
    /// Rows behind the last step.
    pub(crate) out: Batch,
    /// Rows that the CPU runs on, by the position of their next step.
    pub(crate) exits: Vec<(usize, Batch)>,
}

/// A strip in execution.
pub(crate) struct Strip<'e, 'a> {
    pub(crate) device: &'e mut dyn Device,
    pub(crate) arena: &'e mut Arena,
    pub(crate) cache: &'e mut WindowCache,
    pub(crate) part: &'e DevicePart<'a>,
    pub(crate) options: &'e GpuOptions,
    pub(crate) control: &'e Control<'e>,
    pub(crate) profile: bool,
    pub(crate) figures: Vec<StepProfile>,
    pub(crate) out: Batch,
    pub(crate) exits: Vec<(usize, Batch)>,
    pub(crate) counted: &'e mut u64,
    /// Whether equal rows are combined before they leave the device.
    pub(crate) combines: bool,
    pub(crate) launches: &'e mut u64,
    pub(crate) passes: &'e mut u64,
}

/// A step, the tests that run in the same launch, and their windows.
pub(crate) struct Group<'r, 'a> {
    /// The step and all later ones.
    pub(crate) rest: Rest<'r, 'a>,
    /// Number of steps behind it whose tests run with it.
    pub(crate) fused: usize,
    /// Segments of the legs, then of the tests, each with its windows.
    pub(crate) needed: Vec<(SegmentUse<'a>, WindowRange)>,
    /// Their directories on the device.
    pub(crate) windows: Vec<Windows>,
    /// Intervals of the tests that have some, in their order.
    pub(crate) intervals: Vec<Intervals>,
    /// A test of marks, in place of those of steps.
    pub(crate) of_marks: Option<Test>,
    /// The generation of the cache for which the directories are valid.
    pub(crate) generation: Option<u64>,
}

impl<'r, 'a> Group<'r, 'a> {
    /// The step and the fused ones.
    fn steps(&self) -> &'r [DeviceStep<'a>] {
        &self.rest.steps[..1 + self.fused]
    }

    fn first(&self) -> &'r DeviceStep<'a> {
        &self.rest.steps[0]
    }

    /// Whether its last step may leave rows undecided.
    fn has_filter(&self) -> bool {
        self.of_marks.is_some() || matches!(self.steps()[self.fused].op, LoweredStep::Filter { .. })
    }
}

/// The output columns of a group.
pub(crate) struct Output {
    pub(crate) copied: Vec<usize>,
    pub(crate) target: Option<usize>,
    pub(crate) has_times: bool,
}

impl Output {
    pub(crate) fn row_words(&self) -> u64 {
        (self.copied.len() + usize::from(self.target.is_some()) + usize::from(self.has_times)).max(1) as u64
    }
}

impl<'a> Strip<'_, 'a> {
    /// Copies the columns of `input` that the steps read.
    pub(crate) fn upload(&mut self, input: &Batch) -> Result<DeviceTable, Stop> {
        let rows = input.rows as u64;
        let mut table = DeviceTable::new(rows, input.columns.len());
        let first = &self.part.steps[0];
        let needed: Vec<Variable> = match first.op.reads() {
            Some(reads) => [first.keep.as_slice(), &reads].concat(),
            None => (0..input.columns.len()).filter_map(|at| u16::try_from(at).ok()).map(Variable).collect(),
        };
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
    pub(crate) fn take(&mut self, words: u64) -> Result<Address, Stop> {
        self.device.suballocate()?;
        self.arena.take(words).ok_or(Stop::Rows)
    }

    /// Runs a table through the steps of `rest`.
    pub(crate) fn run_from(&mut self, rest: Rest<'_, 'a>, table: &DeviceTable) -> Result<(), Stop> {
        if table.rows == 0 {
            return Ok(());
        }
        self.control.check()?;
        let Some(step) = rest.steps.first() else { return self.end(rest.end, table) };
        self.figures[step.number].rows_in += table.rows;
        match &step.op {
            LoweredStep::Empty => Ok(()),
            LoweredStep::Unique => self.unique(rest, table),
            LoweredStep::Exists { inner, row, wanted } => self.exists(rest, table, inner, *row, *wanted),
            LoweredStep::Optional { inner, row } => self.optional(rest, table, inner, *row),
            LoweredStep::Union { branches } => self.union(rest, table, branches),
            LoweredStep::Expand { .. }
            | LoweredStep::Count { .. }
            | LoweredStep::Check { .. }
            | LoweredStep::Filter { .. } => self.with_windows(rest, table),
        }
    }

    /// Runs a step, with as many tests as possible, if its windows fit together; else in passes.
    fn with_windows(&mut self, rest: Rest<'_, 'a>, table: &DeviceTable) -> Result<(), Stop> {
        let mut fused = self.fusable(rest);
        loop {
            let needed = self.needed(rest, fused, table)?;
            // Without a window there is no such key, so no row has output.
            if needed.iter().any(|(_, range)| range.windows.is_empty()) {
                return Ok(());
            }
            let words: u64 = merged(&needed).iter().map(|range| self.cache.words(range)).sum();
            if words <= self.arena.windows.words() {
                return self.group(rest, fused, table, needed);
            }
            if fused == 0 {
                return self.passes(rest, table, &needed);
            }
            fused = 0;
        }
    }

    /// Number of checks and filters directly after a step that can be tests of its launch. A filter is the
    /// last of them, since the rows that it does not decide leave behind it.
    fn fusable(&self, rest: Rest<'_, 'a>) -> usize {
        let mut tests = match &rest.steps[0].op {
            // The rows between an intersection and a test are not counted.
            LoweredStep::Expand { legs, .. } if legs.len() > 1 && self.profile => return 0,
            LoweredStep::Expand { .. } => 0,
            LoweredStep::Check { .. } => 1,
            _ => return 0,
        };
        let mut fused = 0;
        for step in &rest.steps[1..] {
            let count = step.op.test_count();
            tests += count;
            if count == 0 || tests > TESTS_MAX {
                break;
            }
            fused += 1;
            if matches!(step.op, LoweredStep::Filter { .. }) {
                break;
            }
        }
        fused
    }

    /// The windows that a group may read.
    fn needed(
        &mut self,
        rest: Rest<'_, 'a>,
        fused: usize,
        table: &DeviceTable,
    ) -> Result<Vec<(SegmentUse<'a>, WindowRange)>, Stop> {
        let target = rest.steps[0].op.target();
        let mut legs = rest.steps[0].op.legs().to_vec();
        for step in &rest.steps[..=fused] {
            if let LoweredStep::Check { leg, .. } = &step.op {
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

    /// Runs a step whose windows do not fit together, in passes.
    fn passes(
        &mut self,
        rest: Rest<'_, 'a>,
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
            self.group(rest, 0, table, of_pass)?;
        }
        Ok(())
    }

    /// Runs a step with fused tests on a table.
    fn group(
        &mut self,
        rest: Rest<'_, 'a>,
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
        let mut intervals = Vec::new();
        for step in &rest.steps[..=fused] {
            let LoweredStep::Filter { tests } = &step.op else { continue };
            for test in tests {
                if let IdTest::Value { intervals: of_test, .. } = test {
                    let starts = of_test.iter().map(|(start, _)| start.bits());
                    let words: Vec<u64> =
                        starts.chain(of_test.iter().map(|(_, outcome)| *outcome as u64)).collect();
                    intervals.push(self.upload_intervals(&words)?);
                }
            }
        }
        let of_marks = None;
        let mut group = Group { rest, fused, needed, windows, intervals, of_marks, generation: None };
        match &group.first().op {
            LoweredStep::Expand { .. } => self.expand(&mut group, table)?,
            LoweredStep::Count { .. } => self.count(&mut group, table)?,
            _ => self.test(&mut group, table)?,
        }
        self.arena.release_to(mark);
        Ok(())
    }

    /// Copies intervals: their starts, then their outcomes.
    pub(crate) fn upload_intervals(&mut self, words: &[u64]) -> Result<Intervals, Stop> {
        let count = words.len() as u64 / 2;
        let starts = self.take(2 * count)?;
        self.device.upload(starts, words)?;
        Ok(Intervals { starts, outcomes: starts.plus_words(count), count })
    }

    /// Makes the windows of a group resident. Called before each launch, since later steps may evict them.
    fn load(&mut self, group: &mut Group<'_, 'a>) -> Result<(), Stop> {
        if group.needed.is_empty() {
            return Ok(());
        }
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
    pub(crate) fn budget(&self, rest: Rest<'_, 'a>) -> u64 {
        self.arena.work_free() / rest.depth().max(1) as u64
    }

    /// The output columns of a group.
    fn output(&self, group: &Group<'_, 'a>, table: &DeviceTable, has_factors: bool) -> Output {
        let target = group.first().op.target();
        let keep = &group.steps()[group.fused].keep;
        Output {
            copied: carried(keep, target, table),
            target: target.filter(|target| keep.contains(target)).map(Variable::index),
            has_times: has_factors || table.times != Address::NONE,
        }
    }

    /// The output columns of rows that the last step of a group does not decide: those that it receives.
    fn output_undecided(&self, group: &Group<'_, 'a>, table: &DeviceTable) -> Output {
        let target = group.first().op.target();
        let has_times = table.times != Address::NONE;
        match group.fused.checked_sub(1) {
            Some(before) => {
                let keep = &group.steps()[before].keep;
                let target = target.filter(|target| keep.contains(target)).map(Variable::index);
                Output { copied: carried(keep, group.first().op.target(), table), target, has_times }
            }
            None => Output { copied: table.carried(), target: None, has_times },
        }
    }

    /// Rows of a table with rows of `row_words` that fit into `words`, with the states of a launch.
    pub(crate) fn fitting(words: u64, row_words: u64) -> Result<u64, Stop> {
        let rows = words.saturating_sub(STATUS_WORDS as u64 + 2) / (row_words + 1);
        if rows == 0 { Err(Stop::Rows) } else { Ok(rows) }
    }

    fn expand(&mut self, group: &mut Group<'_, 'a>, table: &DeviceTable) -> Result<(), Stop> {
        let output = self.output(group, table, false);
        let budget = self.budget(group.rest);
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
            let located =
                self.launch(group.first().number, Kernel::Locate, slice.rows, |states, status| {
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

    fn count(&mut self, group: &mut Group<'_, 'a>, table: &DeviceTable) -> Result<(), Stop> {
        let output = self.output(group, table, true);
        let is_intersection = group.first().op.legs().len() > 1;
        let own_words = if is_intersection { 3 } else { 1 };
        let slice_rows = Self::fitting(self.budget(group.rest), own_words + output.row_words())?;
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
                let located = self.launch(group.first().number, Kernel::Locate, rows, |states, status| {
                    let legs = legs.clone();
                    Locate { rows, legs, starts, ends, factors: Address::NONE, states, status }.words()
                })?;
                self.device.clear(factors, rows)?;
                let last = located.candidates;
                if last > 0 {
                    self.launch(group.first().number, Kernel::Produce, last, |states, status| {
                        let (counts, legs) = (factors, legs.clone());
                        let none = Produce::default();
                        Produce { rows, last, starts, ends, legs, counts, states, status, ..none }.words()
                    })?;
                }
            } else {
                self.launch(group.first().number, Kernel::Locate, rows, |states, status| {
                    Locate { rows, legs: legs.clone(), factors, states, status, ..Locate::default() }.words()
                })?;
            }
            let produce = Produce { last: rows, factors, ..Produce::default() };
            self.produce(group, &slice, &output, produce)?;
            self.arena.release_to(mark);
        }
        Ok(())
    }

    /// Keeps the rows that the tests of a group accept.
    pub(crate) fn test(&mut self, group: &mut Group<'_, 'a>, table: &DeviceTable) -> Result<(), Stop> {
        let output = self.output(group, table, false);
        let chunk_rows = Self::fitting(self.budget(group.rest), output.row_words())?;
        let mut first = 0;
        while first < table.rows {
            let last = (first + chunk_rows).min(table.rows);
            self.produce(group, table, &output, Produce { first, last, ..Produce::default() })?;
            first = last;
        }
        Ok(())
    }

    /// Launches *produce* for some candidates, and runs the rows that it writes through the later steps, or
    /// hands those that ids do not decide to the CPU.
    fn produce(
        &mut self,
        group: &mut Group<'_, 'a>,
        table: &DeviceTable,
        output: &Output,
        parameters: Produce,
    ) -> Result<(), Stop> {
        let mark = self.arena.mark();
        let candidates = parameters.last - parameters.first;
        let (next, status) = self.produce_table(group, table, output, parameters.clone())?;
        self.count_rows(group, candidates, &status);
        self.run_from(group.rest.after(1 + group.fused), &next)?;
        self.arena.release_to(mark);
        if status.undecided && group.has_filter() {
            let output = self.output_undecided(group, table);
            // These rows may have more columns than those that the chunk was sized for.
            let chunk = Self::fitting(self.arena.work_free(), output.row_words())?;
            let mut first = parameters.first;
            while first < parameters.last {
                let last = (first + chunk).min(parameters.last);
                let parameters = Produce { first, last, undecided: true, ..parameters.clone() };
                let (rows, _) = self.produce_table(group, table, &output, parameters)?;
                self.undecided(group.rest.after(group.fused), &rows)?;
                self.arena.release_to(mark);
                first = last;
            }
        }
        Ok(())
    }

    /// Launches *produce* for some candidates. The table is on top of the arena.
    fn produce_table(
        &mut self,
        group: &mut Group<'_, 'a>,
        table: &DeviceTable,
        output: &Output,
        parameters: Produce,
    ) -> Result<(DeviceTable, Status), Stop> {
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
        let status = self.launch(group.first().number, Kernel::Produce, candidates, |states, status| {
            let produce = Produce {
                rows: table.rows,
                tests,
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
        next.rows = status.rows;
        if let Some(target) = output.target {
            next.bounds[target] = status.bounds;
        }
        Ok((next, status))
    }

    /// Adds to the profile of the steps of a group.
    fn count_rows(&mut self, group: &Group<'_, 'a>, candidates: u64, status: &Status) {
        let mut before = candidates;
        let mut tests = 0;
        for (at, step) in group.steps().iter().enumerate() {
            let count = step.op.test_count();
            let figures = &mut self.figures[step.number];
            // The input of the first step of a group is counted where the table enters it.
            if at > 0 {
                figures.rows_in += before;
            }
            if count == 0 {
                let all_pass = step.op.legs().len() == 1 && group.fused > 0;
                figures.rows_out += if all_pass { candidates } else { status.rows };
                continue;
            }
            tests += count;
            before = status.passed.get(tests - 1).copied().unwrap_or(status.rows);
            figures.rows_out += before;
        }
    }

    fn device_legs(&self, group: &Group<'_, 'a>, table: &DeviceTable) -> Vec<Leg> {
        let legs = group.first().op.legs().iter().zip(&group.windows);
        legs.map(|(leg, windows)| Leg { key: operand(leg.key, table, None), windows: *windows }).collect()
    }

    fn device_tests(&self, group: &Group<'_, 'a>, table: &DeviceTable) -> Vec<Test> {
        if let Some(test) = group.of_marks {
            return vec![test];
        }
        let target = group.first().op.target();
        let mut windows = group.windows[group.first().op.legs().len()..].iter();
        let mut intervals = group.intervals.iter();
        let value = |variable: usize| match u16::try_from(variable) {
            Ok(variable) => operand(plan::Operand::Variable(Variable(variable)), table, target),
            Err(_) => Operand::Constant(Id::UNBOUND.bits()),
        };
        let mut tests = Vec::new();
        for step in group.steps() {
            match &step.op {
                LoweredStep::Check { leg, neighbour } => tests.push(Test::Entry {
                    key: operand(leg.key, table, target),
                    neighbour: operand(*neighbour, table, target),
                    windows: windows.next().copied().unwrap_or_default(),
                }),
                LoweredStep::Filter { tests: of_ids } => {
                    tests.extend(of_ids.iter().filter_map(|test| {
                        Some(match test {
                            IdTest::Value { variable, .. } => {
                                Test::Interval { value: value(*variable), intervals: *intervals.next()? }
                            }
                            IdTest::Pair { relation, left, right, wanted } => Test::Pair {
                                relation: match relation {
                                    IdRelation::Same => Relation::Same,
                                    IdRelation::Equal => Relation::Equal,
                                    IdRelation::Less => Relation::Less,
                                },
                                left: value(*left),
                                right: value(*right),
                                wanted: *wanted,
                            },
                        })
                    }));
                }
                _ => {}
            }
        }
        tests
    }

    /// Launches a kernel for some rows or candidates and waits for it. `number`: its step. `words` makes the
    /// parameters, from the addresses of the states of tiles and of the status.
    pub(crate) fn launch(
        &mut self,
        number: usize,
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
            self.figures[number].nanoseconds += nanoseconds;
        }
        Ok(Status::from_words(found))
    }

    /// Launches a kernel without a status.
    pub(crate) fn launch_alone(&mut self, kernel: Kernel, rows: u64, words: &[u64]) -> Result<(), Stop> {
        self.control.check()?;
        let tiles = rows.div_ceil(ITEMS * u64::from(self.device.block_threads())).max(1);
        let blocks = u32::try_from(tiles).unwrap_or(u32::MAX).min(self.device.blocks_max());
        *self.launches += 1;
        Ok(self.device.launch(kernel, words, blocks)?)
    }
}

/// The columns of `keep` that a table has, without `target`.
fn carried(keep: &[Variable], target: Option<Variable>, table: &DeviceTable) -> Vec<usize> {
    let kept = keep.iter().filter(|variable| Some(**variable) != target).map(|variable| variable.index());
    kept.filter(|column| table.columns[*column] != Address::NONE).collect()
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
