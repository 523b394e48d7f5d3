//! Waits of threads that end on time, also while the runtime of openraft waits for the disk: that of tokio
//! has its timers in the threads of the runtime.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The result of a future, or `None` after `time_max`. Blocks. The future must not need a runtime.
pub(crate) fn within<T>(time_max: Duration, future: impl Future<Output = T>) -> Option<T> {
    let end = Instant::now().checked_add(time_max);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return Some(result);
        }
        match end.map(|end| end.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return None,
            Some(left) => std::thread::park_timeout(left),
            None => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::watch;

    #[test]
    fn waits_end_with_the_result_or_on_time() {
        let (sender, mut receiver) = watch::channel(0);
        assert_eq!(within(Duration::ZERO, receiver.changed()).map(drop), None);
        assert_eq!(within(Duration::from_millis(2), receiver.changed()).map(drop), None);
        let other = std::thread::spawn(move || sender.send(7));
        let seen = within(Duration::MAX, receiver.wait_for(|number| *number == 7));
        assert_eq!(seen.and_then(Result::ok).map(|number| *number), Some(7));
        other.join().expect("no panic").expect("there is a receiver");
    }
}
