//! Jobs on several threads whose results are taken in the order of their inputs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use vervet_model::{Error, Result, lock};

/// Runs `job` on all `inputs` on several threads and passes the results to `accept` in their order.
pub(crate) fn in_order<T: Send, R: Send>(
    inputs: Vec<T>,
    threads: usize,
    job: &(dyn Fn(T) -> Result<R> + Sync),
    accept: &mut (dyn FnMut(R) -> Result<()> + Send),
) -> Result<()> {
    if threads <= 1 || inputs.len() <= 1 {
        return inputs.into_iter().try_for_each(|input| accept(job(input)?));
    }
    /// Results that are out of order and wait for an earlier one.
    struct Output<'a, R> {
        waiting: BTreeMap<usize, R>,
        next: usize,
        accept: &'a mut (dyn FnMut(R) -> Result<()> + Send),
        error: Option<Error>,
    }
    impl<R> Output<'_, R> {
        fn put(&mut self, index: usize, result: R) -> Result<()> {
            self.waiting.insert(index, result);
            while let Some(result) = self.waiting.remove(&self.next) {
                (self.accept)(result)?;
                self.next += 1;
            }
            Ok(())
        }
    }
    let count = inputs.len();
    let inputs: Vec<Mutex<Option<T>>> = inputs.into_iter().map(|input| Mutex::new(Some(input))).collect();
    let next = AtomicUsize::new(0);
    let output = Mutex::new(Output { waiting: BTreeMap::new(), next: 0, accept, error: None });
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                // Relaxed: no other data is shared through the number.
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = inputs.get(index) else { break };
                    let Some(input) = lock(slot).take() else {
                        break;
                    };
                    let result = job(input);
                    let mut output = lock(&output);
                    if output.error.is_some() {
                        break;
                    }
                    if let Err(error) = result.and_then(|result| output.put(index, result)) {
                        output.error = Some(error);
                        break;
                    }
                }
            });
        }
    });
    let output = output.into_inner().unwrap_or_else(PoisonError::into_inner);
    output.error.map_or(Ok(()), Err)
}
