//! Parallel loading of line formats: an idle thread cuts the next block and parses it; the calling thread
//! merges blocks in input order, and parses while no block is ready to merge.
//!
//! # Invariants
//! 1. At most `blocks_max` blocks exist between cutting and merging, so memory is bounded.
//! 2. Blocks are numbered when they are cut, under the lock of the input, and merged in that order, so the
//!    result does not depend on the number of threads.
//! 3. A thread that ends for any reason wakes the others, so no thread waits for one that has ended. The
//!    calling thread sleeps only while a worker holds the next block.

use crate::block::Block;
use crate::input::LineBlocks;
use crate::lines::LineParser;
use crate::merge::Merger;
use crate::target::Target;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use vervet_model::{Error, Result, lock};

/// The pipeline of blocks of one input.
struct BlockPipeline {
    input: Mutex<LineBlocks>,
    state: Mutex<PipelineState>,
    changed: Condvar,
    blocks_max: usize,
    with_graph: bool,
    stop_at_error: bool,
}

#[derive(Default)]
struct PipelineState {
    ready: BTreeMap<u64, Block>,
    /// Number of blocks that are being cut, being parsed, or ready.
    in_flight: usize,
    /// Whether the input has ended or no more blocks are needed.
    ended: bool,
    failed: Option<Error>,
    spare: Vec<Block>,
}

/// Parses and merges all of `input`.
pub(crate) fn load_lines<T: Target + ?Sized>(
    input: LineBlocks,
    with_graph: bool,
    merger: &mut Merger<'_, T>,
) -> Result<()> {
    let threads = merger.options.threads.max(1);
    let pipeline = BlockPipeline {
        input: Mutex::new(input),
        state: Mutex::default(),
        changed: Condvar::new(),
        blocks_max: 2 * threads + 2,
        with_graph,
        stop_at_error: !merger.options.skip_errors,
    };
    std::thread::scope(|scope| {
        let _end = EndGuard(&pipeline);
        for _ in 1..threads {
            scope.spawn(|| pipeline.run_worker());
        }
        pipeline.merge_all(merger)
    })
}

impl BlockPipeline {
    fn lock(&self) -> MutexGuard<'_, PipelineState> {
        // The state is consistent between any two statements that change it.
        lock(&self.state)
    }

    fn run_worker(&self) {
        let mut parser = self.parser();
        loop {
            let mut state = self.lock();
            while !state.ended && state.in_flight >= self.blocks_max {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.ended {
                return;
            }
            self.parse_one(state, &mut parser);
        }
    }

    fn merge_all<T: Target + ?Sized>(&self, merger: &mut Merger<'_, T>) -> Result<()> {
        let mut parser = self.parser();
        let mut next = 0;
        loop {
            let mut state = self.lock();
            if let Some(mut block) = state.ready.remove(&next) {
                state.in_flight -= 1;
                drop(state);
                self.changed.notify_all();
                merger.merge(&block)?;
                next += 1;
                block.recycle();
                self.lock().spare.push(block);
            } else if state.ended && state.in_flight == state.ready.len() {
                // No worker is active, so the next block will never be ready.
                return state.failed.take().map_or(Ok(()), Err);
            } else if !state.ended && state.in_flight < self.blocks_max {
                self.parse_one(state, &mut parser);
            } else {
                drop(self.changed.wait(state));
            }
        }
    }

    fn parser(&self) -> LineParser {
        LineParser::new(self.with_graph, self.stop_at_error)
    }

    /// Cuts one block and parses it. A read error or a parser panic ends the input.
    fn parse_one(&self, mut state: MutexGuard<'_, PipelineState>, parser: &mut LineParser) {
        state.in_flight += 1;
        let mut block = state.spare.pop().unwrap_or_default();
        drop(state);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let cut = lock(&self.input).next(&mut block.text);
            let Some(number) = cut? else { return Ok(None) };
            parser.parse(&mut block);
            Ok(Some(number))
        }))
        .unwrap_or_else(|_| Err(Error::internal("a parser of N-Triples panicked")));
        let mut state = self.lock();
        match outcome {
            Ok(Some(number)) => {
                // Blocks after a malformed line are not needed.
                state.ended |= self.stop_at_error && !block.malformed.is_empty();
                state.ready.insert(number, block);
            }
            Ok(None) => {
                state.ended = true;
                state.in_flight -= 1;
            }
            Err(error) => {
                state.ended = true;
                state.in_flight -= 1;
                state.failed.get_or_insert(error);
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// Ends the workers when the calling thread returns.
struct EndGuard<'a>(&'a BlockPipeline);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}
