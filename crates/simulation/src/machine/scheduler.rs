//! One thread at a time, and virtual time.
//!
//! # Shape
//! Every thread of the simulation has a gate, at which it waits until it is its turn. A thread that blocks,
//! ends or yields chooses the next one, at random among those that are ready, and opens its gate. When none
//! is ready, time moves on to the next event: the end of a wait, or what was planned ([`World::at`]).
//! # Nodes
//! A thread belongs to the node of the thread that has made it. When a node dies, its threads end where they
//! are, as those of a killed process, and what they own stays. A node that is
//! stopped runs on later. Each node has a clock of its own, which may run faster or slower than the others.
//! # Time
//! Only waits take time, but for [`LOOK_NS`] of each look at a clock, so that a loop that looks at the clock
//! ends.
//! # Invariants
//! 1. At most one thread of the simulation runs. So the state here is locked for no longer than an operation
//!    on it, and never fought over.
//! 2. Nothing depends on addresses, on the order of the operating system, or on real time.

use super::kernel::{end_thread, fail, wait_really, wake_really};
use super::sockets::Sockets;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What a look at a clock takes.
const LOOK_NS: u64 = 100;

/// One in so many threads that could run gets no core for a while,
const LATE_ONE_IN: u64 = 400;

/// for up to 2^this nanoseconds.
const LATE_BITS: u64 = 27;

/// After so many looks at a clock without a wait, other threads run.
const LOOKS_MAX: u32 = 10_000;

/// One in so many wakes lets another thread run at once.
const YIELD_ONE_IN: u64 = 16;

/// Number of a node; 0: the outside, where clients are.
pub(crate) type Node = usize;

/// A thread of the simulation. Never freed.
pub(super) struct Thread {
    number: usize,
    gate: AtomicU32,
    /// Looks at clocks, each of which uses a core for [`LOOK_NS`].
    looks: AtomicU64,
}

/// What a gate says: wait, run, or end at once, as a thread of a killed process does.
const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const KILLED: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Ready,
    Blocked,
    Ended,
}

/// Why a wait has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    Called,
    TimedOut,
}

struct Record {
    thread: &'static Thread,
    node: Node,
    state: State,
    /// Of its last wait.
    ticket: u64,
    key: Option<usize>,
    woken: Woken,
}

struct NodeRecord {
    is_dead: bool,
    is_stopped: bool,
    /// Threads that are ready while the node is stopped.
    held: Vec<usize>,
    /// Its clock: thousandths of the speed of time, and its value at time 0.
    rate: u64,
    offset: u64,
}

impl NodeRecord {
    fn local(&self, time: u64) -> u64 {
        self.offset + time / 1000 * self.rate + time % 1000 * self.rate / 1000
    }

    fn global(&self, local: u64) -> u64 {
        let local = local.saturating_sub(self.offset);
        (local / self.rate)
            .saturating_mul(1000)
            .saturating_add((local % self.rate * 1000).div_ceil(self.rate))
    }
}

pub(crate) type Call = Box<dyn FnOnce(&mut World) + Send>;

enum Event {
    /// The wait of a thread with this ticket ends.
    End(usize, u64),
    /// A thread that could run gets a core.
    Late(usize),
    Call(Call),
}

struct Timer {
    at: u64,
    order: u64,
    event: Event,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// The state of the simulation.
pub(crate) struct World {
    now: u64,
    random: u64,
    records: Vec<Record>,
    ready: Vec<usize>,
    timers: BinaryHeap<Reverse<Timer>>,
    order: u64,
    waiters: BTreeMap<usize, VecDeque<(usize, u64)>>,
    nodes: Vec<NodeRecord>,
    /// Threads by their numbers of the operating system.
    handles: BTreeMap<usize, usize>,
    trace: u64,
    switches: u64,
    keys: usize,
    /// Looks at a clock since the last switch.
    looks: u32,
    pub(super) sockets: Sockets,
}

thread_local! {
    static OWN: Cell<Option<&'static Thread>> = const { Cell::new(None) };
}

static LOCKED: AtomicBool = AtomicBool::new(false);
static mut WORLD: Option<World> = None;

/// The locked state.
pub(super) struct Guard(());

impl Deref for Guard {
    type Target = World;

    fn deref(&self) -> &World {
        let world = &raw const WORLD;
        // SAFETY: the lock is held, and the value is set before the first thread is one of the simulation.
        unsafe { (*world).as_ref().unwrap_unchecked() }
    }
}

impl DerefMut for Guard {
    fn deref_mut(&mut self) -> &mut World {
        let world = &raw mut WORLD;
        // SAFETY: as above.
        unsafe { (*world).as_mut().unwrap_unchecked() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        LOCKED.store(false, Ordering::Release);
    }
}

/// Locks the state. Only threads of the simulation do.
pub(super) fn world() -> Guard {
    while LOCKED.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::hint::spin_loop();
    }
    Guard(())
}

/// Whether the calling thread is one of the simulation.
pub(super) fn is_inside() -> bool {
    OWN.try_with(|own| own.get().is_some()).unwrap_or(false)
}

fn own() -> &'static Thread {
    match OWN.with(Cell::get) {
        Some(own) => own,
        None => fail("a thread that is not of the simulation"),
    }
}

/// Begins the simulation: the calling thread is its first one, at node 0.
pub(crate) fn begin(seed: u64) {
    let world = World {
        now: 0,
        random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        records: Vec::new(),
        ready: Vec::new(),
        timers: BinaryHeap::new(),
        order: 0,
        waiters: BTreeMap::new(),
        nodes: Vec::new(),
        handles: BTreeMap::new(),
        trace: 0xcbf2_9ce4_8422_2325,
        switches: 0,
        keys: 0,
        looks: 0,
        sockets: Sockets::default(),
    };
    let place = &raw mut WORLD;
    // SAFETY: no other thread of the simulation exists.
    unsafe { *place = Some(world) };
    let mut world = self::world();
    world.add_node(1000, 0);
    let thread = world.add_thread(0);
    world.records[thread.number].state = State::Running;
    drop(world);
    OWN.with(|own| own.set(Some(thread)));
}

impl World {
    /// A random number (splitmix64).
    pub(crate) fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Takes note of something that a repetition must do as well.
    pub(crate) fn trace(&mut self, what: u64) {
        self.trace = (self.trace ^ what).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    /// A number for all that was traced, and the number of switches.
    pub(crate) fn traced(&self) -> (u64, u64) {
        (self.trace, self.switches)
    }

    /// Nanoseconds since the beginning.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    fn add_node(&mut self, rate: u64, offset: u64) -> Node {
        self.nodes.push(NodeRecord { is_dead: false, is_stopped: false, held: Vec::new(), rate, offset });
        self.nodes.len() - 1
    }

    pub(super) fn add_thread(&mut self, node: Node) -> &'static Thread {
        let number = self.records.len();
        let thread =
            &*Box::leak(Box::new(Thread { number, gate: AtomicU32::new(0), looks: AtomicU64::new(0) }));
        let state = State::Blocked;
        self.records.push(Record { thread, node, state, ticket: 0, key: None, woken: Woken::Called });
        thread
    }

    pub(super) fn name_thread(&mut self, handle: usize, thread: &Thread) {
        self.handles.insert(handle, thread.number);
    }

    pub(super) fn node_of(&self, thread: &Thread) -> Node {
        self.records[thread.number].node
    }

    /// The node of the calling thread.
    pub(super) fn own_node(&self) -> Node {
        self.node_of(own())
    }

    pub(crate) fn is_dead(&self, node: Node) -> bool {
        self.nodes[node].is_dead
    }

    /// A key of its own: no address, and none of the network.
    pub(crate) fn new_key(&mut self) -> usize {
        self.keys += 1;
        self.keys << 4 | 11
    }

    /// Plans a call. It must not block.
    pub(crate) fn at(&mut self, time: u64, call: Call) {
        self.plan(time, Event::Call(call));
    }

    fn plan(&mut self, at: u64, event: Event) {
        let order = self.order;
        self.order += 1;
        self.timers.push(Reverse(Timer { at, order, event }));
    }

    /// A new thread may run from now on.
    pub(super) fn start_thread(&mut self, thread: &Thread) {
        self.make_ready(thread.number);
    }

    /// The thread can run, and does so soon, mostly.
    fn make_ready(&mut self, thread: usize) {
        let record = &mut self.records[thread];
        record.state = State::Ready;
        record.key = None;
        if self.draw().is_multiple_of(LATE_ONE_IN) {
            let bits = self.draw() % LATE_BITS;
            let at = self.now + (self.draw() & ((1 << bits) - 1));
            self.plan(at, Event::Late(thread));
        } else {
            self.queue(thread);
        }
    }

    fn queue(&mut self, thread: usize) {
        let node = &mut self.nodes[self.records[thread].node];
        // Of a node that died while it was stopped, too: its threads are no more.
        if node.is_dead {
            return;
        }
        if node.is_stopped { node.held.push(thread) } else { self.ready.push(thread) }
    }

    fn end_wait(&mut self, thread: usize, ticket: u64, woken: Woken) -> bool {
        let record = &self.records[thread];
        if record.state != State::Blocked || record.ticket != ticket || self.nodes[record.node].is_dead {
            return false;
        }
        let key = record.key;
        if woken == Woken::TimedOut
            && let Some(key) = key
            && let Some(waiters) = self.waiters.get_mut(&key)
        {
            waiters.retain(|waiter| *waiter != (thread, ticket));
            if waiters.is_empty() {
                self.waiters.remove(&key);
            }
        }
        self.records[thread].woken = woken;
        self.make_ready(thread);
        true
    }

    /// Ends the waits of up to `count` threads for a key, in their order; returns their number.
    pub(crate) fn wake(&mut self, key: usize, count: usize) -> usize {
        let mut woken = 0;
        while woken < count
            && let Some((thread, ticket)) = self.next_waiter(key)
        {
            woken += usize::from(self.end_wait(thread, ticket, Woken::Called));
        }
        woken
    }

    fn next_waiter(&mut self, key: usize) -> Option<(usize, u64)> {
        let waiters = self.waiters.get_mut(&key)?;
        let first = waiters.pop_front();
        if waiters.is_empty() {
            self.waiters.remove(&key);
        }
        first
    }

    /// Lets a node die. Its threads end where they wait, without a step more.
    pub(crate) fn kill(&mut self, node: Node) {
        self.nodes[node].is_dead = true;
        self.nodes[node].held.clear();
        let records = &mut self.records;
        self.ready.retain(|thread| records[*thread].node != node);
        for record in records.iter_mut().filter(|record| record.node == node && record.state != State::Ended)
        {
            record.state = State::Ended;
            open(record.thread, KILLED);
        }
    }

    /// Stops a node, or lets it go on.
    pub(crate) fn stop(&mut self, node: Node, is_stopped: bool) {
        let Self { nodes, records, ready, .. } = self;
        let node_record = &mut nodes[node];
        node_record.is_stopped = is_stopped && !node_record.is_dead;
        if node_record.is_stopped {
            node_record.held.extend(ready.extract_if(.., |thread| records[*thread].node == node));
        } else {
            ready.append(&mut node_record.held);
        }
    }

    /// The next thread to run. Moves the time.
    fn next(&mut self) -> usize {
        loop {
            while self.timers.peek().is_some_and(|Reverse(timer)| timer.at <= self.now) {
                self.fire();
            }
            if !self.ready.is_empty() {
                let at = usize::try_from(self.draw() % self.ready.len() as u64).unwrap_or(0);
                return self.ready.swap_remove(at);
            }
            match self.timers.peek() {
                Some(Reverse(timer)) => self.now = self.now.max(timer.at),
                None => fail("all threads wait, and for nothing that will come"),
            }
        }
    }

    fn fire(&mut self) {
        match self.timers.pop().map(|Reverse(timer)| timer.event) {
            Some(Event::End(thread, ticket)) => _ = self.end_wait(thread, ticket, Woken::TimedOut),
            Some(Event::Late(thread)) => self.queue(thread),
            Some(Event::Call(call)) => call(self),
            None => {}
        }
    }
}

impl Guard {
    /// Runs the next thread; returns when it is the turn of the calling one again. Its own state says when.
    fn switch(mut self) -> Guard {
        let own = own();
        let next = self.next();
        self.records[next].state = State::Running;
        self.switches += 1;
        self.looks = 0;
        let now = self.now;
        self.trace(next as u64 ^ now << 8);
        if next == own.number {
            return self;
        }
        let thread = self.records[next].thread;
        drop(self);
        open(thread, OPEN);
        wait(own);
        world()
    }

    /// Blocks the calling thread until [`World::wake`] with this key, or until a time.
    pub(super) fn block(mut self, key: Option<usize>, until: Option<u64>) -> (Guard, Woken) {
        let thread = own().number;
        let record = &mut self.records[thread];
        record.ticket += 1;
        (record.state, record.key, record.woken) = (State::Blocked, key, Woken::Called);
        let ticket = record.ticket;
        if let Some(key) = key {
            self.waiters.entry(key).or_default().push_back((thread, ticket));
        }
        if let Some(until) = until {
            self.plan(until, Event::End(thread, ticket));
        }
        let guard = self.switch();
        let woken = guard.records[thread].woken;
        (guard, woken)
    }

    /// Lets other threads run, if they are ready.
    pub(super) fn give_way(mut self) -> Guard {
        self.make_ready(own().number);
        self.switch()
    }

    /// Sometimes lets other threads run.
    pub(super) fn maybe_give_way(mut self) -> Guard {
        if self.draw().is_multiple_of(YIELD_ONE_IN) { self.give_way() } else { self }
    }
}

fn open(thread: &Thread, how: u32) {
    thread.gate.store(how, Ordering::Release);
    wake_really(&thread.gate);
}

fn wait(thread: &Thread) {
    loop {
        match thread.gate.swap(CLOSED, Ordering::Acquire) {
            CLOSED => wait_really(&thread.gate),
            OPEN => return,
            _ => end_thread(),
        }
    }
}

/// The first step of a new thread: it waits for its turn.
pub(super) fn enter(thread: &'static Thread) {
    OWN.with(|own| own.set(Some(thread)));
    wait(thread);
}

/// The last step of a thread.
pub(super) fn leave() {
    let own = own();
    let mut world = world();
    world.records[own.number].state = State::Ended;
    world.wake(end_key(own.number), usize::MAX);
    let next = world.next();
    world.records[next].state = State::Running;
    world.switches += 1;
    let thread = world.records[next].thread;
    OWN.with(|own| own.set(None));
    drop(world);
    open(thread, OPEN);
}

/// A key that is no address.
fn end_key(thread: usize) -> usize {
    thread << 3 | 1
}

/// Waits for the end of a thread, if it is one of the simulation.
pub(super) fn join(handle: usize) {
    let mut world = world();
    while let Some(thread) = world.handles.get(&handle).copied()
        && world.records[thread].state != State::Ended
    {
        (world, _) = world.block(Some(end_key(thread)), None);
    }
    world.handles.remove(&handle);
}

/// The clock of the node of the calling thread, in nanoseconds.
pub(super) fn local_time() -> u64 {
    own().looks.fetch_add(1, Ordering::Relaxed);
    let mut world = world();
    world.now += LOOK_NS;
    world.looks += 1;
    if world.looks > LOOKS_MAX {
        world = world.give_way();
    }
    let node = world.own_node();
    world.nodes[node].local(world.now)
}

/// Processor time of the calling thread, in nanoseconds: that of its looks at clocks.
pub(super) fn processor_time() -> u64 {
    _ = local_time();
    own().looks.load(Ordering::Relaxed) * LOOK_NS
}

impl World {
    /// The time at which the clock of the calling thread's node shows `local`.
    pub(super) fn global_time(&self, local: u64) -> u64 {
        self.nodes[self.own_node()].global(local)
    }

    /// The time when `nanoseconds` of the calling thread's clock have passed.
    pub(super) fn after_local(&self, nanoseconds: u64) -> u64 {
        let node = &self.nodes[self.own_node()];
        node.global(node.local(self.now).saturating_add(nanoseconds)).max(self.now + 1)
    }
}

/// Makes a node whose clock runs at `rate` thousandths of the speed of time.
pub(crate) fn add_node(rate: u64) -> Node {
    let mut world = world();
    let offset = world.draw() >> 20;
    world.add_node(rate, offset)
}

/// Runs `call` with the state.
pub(crate) fn with<T>(call: impl FnOnce(&mut World) -> T) -> T {
    call(&mut world())
}

/// Makes threads that the calling thread starts belong to another node, until the next call.
pub(crate) fn move_to(node: Node) {
    let thread = own().number;
    world().records[thread].node = node;
}

/// Waits for [`World::wake`] with this key, or for a while.
pub(crate) fn wait_for(key: usize, nanoseconds: u64) -> Woken {
    let world = world();
    let until = world.after_local(nanoseconds);
    world.block(Some(key), Some(until)).1
}
