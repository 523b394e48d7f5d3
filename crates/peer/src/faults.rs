//! Faults that tests add to the connections of a peer, at its client's end: settable while requests run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The chance of a fault that always happens.
pub const ALWAYS: u32 = 1_000_000;

/// Which faults happen. Chances are of a million.
#[derive(Clone, Default, Debug)]
pub struct FaultPlan {
    /// Delay of each frame, in each direction. Requests to several peers are delayed together.
    pub delay: Duration,
    /// The request is not sent; the server sees a silent connection.
    pub dropped_requests: u32,
    /// The request is answered, and the answer does not arrive.
    pub dropped_answers: u32,
    /// No connection can be made; connections that exist go on.
    pub refused_connections: u32,
    /// The connection is cut in the middle of a request.
    pub cut_requests: u32,
    /// The connection is cut in the middle of an answer.
    pub cut_answers: u32,
    /// Random bytes are sent in place of a request.
    pub garbage_requests: u32,
    /// Random bytes arrive in place of an answer.
    pub garbage_answers: u32,
    /// Of the chances and the random bytes.
    pub seed: u64,
}

/// The faults of one peer; see the header of this file.
#[derive(Default, Debug)]
pub struct Faults {
    is_active: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    plan: FaultPlan,
    random: u64,
}

/// What happens to one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    DroppedRequest,
    DroppedAnswer,
    CutRequest,
    CutAnswer,
    GarbageRequest(u64),
    GarbageAnswer(u64),
}

impl Faults {
    /// Replaces the plan. [`FaultPlan::default`] has no fault.
    pub fn set(&self, plan: FaultPlan) {
        let chances = [
            plan.dropped_requests,
            plan.dropped_answers,
            plan.refused_connections,
            plan.cut_requests,
            plan.cut_answers,
            plan.garbage_requests,
            plan.garbage_answers,
        ];
        let is_active = !plan.delay.is_zero() || chances.iter().any(|&chance| chance > 0);
        let mut state = self.lock();
        *state = State { random: plan.seed, plan };
        // Relaxed: a request that begins meanwhile may have either plan.
        self.is_active.store(is_active, Ordering::Relaxed);
    }

    /// Delay and fault of the next request.
    pub(crate) fn next_request(&self) -> (Duration, Option<Fault>) {
        if !self.is_active.load(Ordering::Relaxed) {
            return (Duration::ZERO, None);
        }
        let mut state = self.lock();
        let plan = state.plan.clone();
        let seed = state.next();
        let all = [
            (plan.dropped_requests, Fault::DroppedRequest),
            (plan.dropped_answers, Fault::DroppedAnswer),
            (plan.cut_requests, Fault::CutRequest),
            (plan.cut_answers, Fault::CutAnswer),
            (plan.garbage_requests, Fault::GarbageRequest(seed)),
            (plan.garbage_answers, Fault::GarbageAnswer(seed)),
        ];
        let fault = all.into_iter().find(|&(chance, _)| state.happens(chance)).map(|(_, fault)| fault);
        (plan.delay, fault)
    }

    pub(crate) fn refuses_connection(&self) -> bool {
        if !self.is_active.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.lock();
        let chance = state.plan.refused_connections;
        state.happens(chance)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> u64 {
        next(&mut self.random)
    }

    fn happens(&mut self, chance: u32) -> bool {
        chance > 0 && self.next() % u64::from(ALWAYS) < u64::from(chance)
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Some random bytes, at least a header's.
pub(crate) fn garbage(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let words = 2 + next(&mut state) % 64;
    (0..words).flat_map(|_| next(&mut state).to_le_bytes()).collect()
}
