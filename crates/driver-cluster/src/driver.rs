//! The server that asks a query: head and tail of the plan, and the tasks of all servers between them.

use crate::execution::{Execution, known_terms};
use crate::host::Host;
use crate::partial_groups::Columns;
use crate::parts::{is_placed, number_of, placements};
use crate::servers::Servers;
use crate::task::{
    Answered, ReceivedTask, Task, kind, read_delivered, read_delivery, write_delivered, write_delivery,
};
use oxrdf::Term;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_driver_local::{Driver, LocalDriver, Parallelism, is_heavy};
use vervet_expression::Evaluator;
use vervet_kernel::plan::{Pipeline, Plan, Profile, Sent, Step};
use vervet_kernel::{Batch, Control, Flow, Gate, Results, Run, Shared, ends_early, needs_one_thread};
use vervet_model::{ErrorKind, Result};
use vervet_snapshot::Snapshot;

/// Runs plans over the servers of a cluster: light ones here, reading the other servers, heavy ones at all
/// servers. See the header of this crate.
#[derive(Debug)]
pub struct ClusterDriver {
    local: LocalDriver,
    host: Host,
    counters: Counters,
    /// Whether the newest version has changes, so that queries run where they are asked: for notes.
    has_changes: OnceLock<Probe>,
}

/// How often a query begins at all servers while one does not answer whose partitions others have.
const ATTEMPTS_MAX: usize = 2;

/// A query that is asked here.
struct Asked<'q> {
    plan: &'q Plan,
    snapshot: &'q dyn Snapshot,
    evaluator: &'q Evaluator<'q>,
    control: &'q Control<'q>,
    parallelism: Parallelism,
    input: &'q Batch,
    profile: bool,
    /// The terms that ids of the plan stand for.
    computed: &'q [Term],
}

/// A question to the database whose queries the driver runs.
struct Probe(Box<dyn Fn() -> bool + Send + Sync>);

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Probe")
    }
}

#[derive(Debug, Default)]
struct Counters {
    queries: AtomicU64,
    tasks: AtomicU64,
    rows_moved: AtomicU64,
}

/// What a server has done for queries over all servers since it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClusterCounts {
    /// Queries that were asked here and ran at all servers.
    pub queries: u64,
    /// Tasks of other servers that were answered.
    pub tasks: u64,
    /// Rows that the tasks of queries that were asked here sent from server to server.
    pub rows_moved: u64,
}

impl ClusterDriver {
    /// A driver for queries that are asked at this server, and for the tasks of others. `seed`: random bits,
    /// so that this server does not take a delivery for a query that it has forgotten.
    #[must_use]
    pub fn new(local: LocalDriver, servers: Arc<Servers>, seed: u64) -> Self {
        let host = Host::new(servers, local.gate(), seed);
        Self { local, host, counters: Counters::default(), has_changes: OnceLock::new() }
    }

    /// From now on threads that run heavy tasks, and nothing else, call this first, to lower their priority.
    /// The first call counts.
    pub fn on_heavy_task(&self, call: fn()) {
        self.host.set_lower_priority(call);
    }

    /// Queries over the base of `servers`, which has data of another build than those before, or other
    /// partitions of them, run at them from now on.
    pub fn add_servers(&self, servers: Arc<Servers>) {
        self.host.add(servers);
    }

    /// Queries over all data but those that were added last run where they are asked from now on.
    pub fn keep_newest_servers(&self) {
        self.host.keep_newest();
    }

    /// From now on explanations ask `has_changes` whether the newest version has changes over the base of the
    /// servers: queries then run where they are asked. The first call counts.
    pub fn ask_for_changes(&self, has_changes: impl Fn() -> bool + Send + Sync + 'static) {
        _ = self.has_changes.set(Probe(Box::new(has_changes)));
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> ClusterCounts {
        // Relaxed: each is exact, they need not fit each other.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { queries, tasks, rows_moved } = &self.counters;
        ClusterCounts { queries: read(queries), tasks: read(tasks), rows_moved: read(rows_moved) }
    }

    /// Whether a request of another server is for [`ClusterDriver::answer`].
    #[must_use]
    pub fn is_request(request: &[u8]) -> bool {
        matches!(request.first(), Some(&(kind::TASK | kind::DELIVERY)))
    }

    /// Appends the answer to a request of another server, with the limits of the calling thread.
    ///
    /// # Errors
    /// Limits; damaged data; what other servers answer; the request is none.
    pub fn answer(&self, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match request.split_first() {
            Some((&kind::TASK, bytes)) => self.answer_task(bytes, out),
            Some((&kind::DELIVERY, bytes)) => {
                let (number, rows) = read_delivery(bytes)?;
                write_delivered(self.host.inboxes.deliver(number, rows)?, out);
                Ok(())
            }
            _ => Err(crate::wire::malformed("an unknown request")),
        }
    }

    fn answer_task(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let host = &self.host;
        let received = ReceivedTask::read(bytes, |job, number, fragment| {
            let behind = job.fragments.len().saturating_sub(fragment + 1) + job.behind;
            host.running.enter(job.origin, (job.query, number), behind)
        })?;
        let Some((received, entered)) = received else {
            Answered::Busy.write(out);
            return Ok(());
        };
        let ReceivedTask { number, job_bytes, job, fragment, partitions, rows } = &received;
        let number = *number;
        let servers = host.of_job(job)?;
        let answered = host.with_priority(job.is_heavy, || {
            let task = Task { number, job: job_bytes, fragment: *fragment, partitions, rows };
            host.run(&servers, job, &task, &entered, &|rows| {
                if job.origin == servers.own() {
                    return Ok(host.inboxes.deliver(number, rows)?.then(Sent::default));
                }
                let mut request = Vec::new();
                write_delivery(number, &rows, &mut request);
                let answer = servers.remote(job.origin)?.send(&request)?.receive()?;
                let sent = Sent { rows: rows.rows() as u64, bytes: request.len() as u64 };
                Ok(read_delivered(&answer)?.then_some(sent))
            })
        })?;
        self.counters.tasks.fetch_add(1, Ordering::Relaxed);
        answered.write(out);
        Ok(())
    }

    /// Where the steps of a pipeline run, and what was sent.
    fn note(
        &self,
        (servers, pipeline): (&Servers, &Pipeline),
        base: usize,
        plan: &Plan,
        parallelism: Parallelism,
        profile: Option<&Profile>,
        notes: &mut Vec<String>,
    ) {
        let line = |at: usize| base + number_of(pipeline, at) + 1;
        let sent = |at: usize| {
            let number = base + number_of(pipeline, at);
            let found = profile.and_then(|profile| profile.sent.iter().find(|(step, _)| *step == number));
            let (_, Sent { rows, bytes }) = found.copied()?;
            Some(format!(": {rows} rows sent, {bytes} bytes"))
        };
        for placement in placements(servers, pipeline, Columns::of(plan), parallelism, true) {
            let (first, last) = (line(placement.steps.start), line(placement.steps.end - 1));
            notes.push(format!("at all {} servers: steps {first} to {last}", servers.count()));
            for fragment in &placement.fragments {
                let at = placement.steps.start + fragment.steps.start;
                let how = match fragment.key {
                    None => format!("step {} reads the partitions of each server", line(at)),
                    Some(key) => {
                        let name = plan.variables.get(key.index()).map_or("", String::as_str);
                        let rows = if at == 0 { 1.0 } else { pipeline.steps[at - 1].rows };
                        format!(
                            "before step {} rows go to the owner of ?{name}: est. {rows:.0} rows",
                            line(at)
                        )
                    }
                };
                notes.push(format!("  {how}{}", sent(at).unwrap_or_default()));
            }
            let what = match pipeline.steps.get(placement.steps.end).map(|next| &next.step) {
                Some(Step::Order { limit: Some(limit), .. }) if placement.has_first_rows => {
                    format!("of each task the first {limit} rows in the order of step {} ", last + 1)
                }
                _ if placement.merge.is_some() => format!("of each task its groups of step {} ", last + 1),
                _ => String::new(),
            };
            match sent(placement.steps.end) {
                Some(back) => notes.push(format!("  {what}back to this server{back}")),
                None if !what.is_empty() => notes.push(format!("  {what}go back to this server")),
                None => {}
            }
        }
        for (number, step) in Shared::joins_of(&pipeline.steps) {
            for right in step.step.nested() {
                self.note((servers, right), base + number + 1, plan, parallelism, profile, notes);
            }
        }
    }

    /// Runs a query at all servers.
    fn attempt(
        &self,
        servers: &Servers,
        asked: &Asked<'_>,
        sink: &mut dyn FnMut(&Batch) -> Result<Flow>,
    ) -> Result<Profile> {
        let Asked { plan, snapshot, evaluator, control, parallelism, input, profile, computed } = *asked;
        let solutions = AtomicU64::new(0);
        let columns = Columns::of(plan);
        let run = Run::new(plan, snapshot, evaluator, control, &solutions, profile).with_columns(columns.all);
        let mut input = input.clone();
        input.columns.resize(run.variables(), Vec::new());
        let mut results = Results::new(plan, &run);
        let mut figures = Profile::new(&plan.pipeline);
        let execution = Execution {
            host: &self.host,
            servers,
            rows_moved: &self.counters.rows_moved,
            parallelism,
            columns,
            profile,
            computed,
            number: self.host.new_number(),
        };
        execution.pipeline(&plan.pipeline, 0, &run, &mut input, &mut figures, &mut |batch| {
            results.push(batch, control, sink)
        })?;
        Ok(if profile { figures } else { Profile::default() })
    }

    fn is_over_servers(&self, servers: &Servers, plan: &Plan, parallelism: Parallelism) -> bool {
        servers.count() > 1
            && (is_heavy(plan, parallelism) || !ends_early(plan))
            && !needs_one_thread(plan)
            && is_placed(servers, &plan.pipeline, Columns::of(plan), parallelism)
    }
}

impl Driver for ClusterDriver {
    fn gate(&self) -> Option<Arc<dyn Gate>> {
        self.local.gate()
    }

    fn threads(&self, plan: &Plan, parallelism: Parallelism) -> usize {
        self.local.threads(plan, parallelism)
    }

    fn steps_in_copies(&self, plan: &Plan, parallelism: Parallelism) -> Vec<bool> {
        self.local.steps_in_copies(plan, parallelism)
    }

    fn notes(&self, plan: &Plan, parallelism: Parallelism, profile: Option<&Profile>) -> Vec<String> {
        let mut notes = Vec::new();
        let has_changes = self.has_changes.get().is_some_and(|probe| probe.0());
        if !has_changes
            && let Ok(servers) = self.host.newest()
            && self.is_over_servers(&servers, plan, parallelism)
        {
            self.note((&servers, &plan.pipeline), 0, plan, parallelism, profile, &mut notes);
        }
        notes
    }

    fn execute(
        &self,
        plan: &Plan,
        snapshot: &dyn Snapshot,
        evaluator: &Evaluator<'_>,
        control: &Control<'_>,
        parallelism: Parallelism,
        input: &mut Batch,
        profile: bool,
        sink: &mut dyn FnMut(&Batch) -> Result<Flow>,
    ) -> Result<Profile> {
        // The other servers run their tasks on the base, and record no reads.
        let servers = snapshot.base_number().and_then(|number| self.host.of_base(number));
        let servers = servers.filter(|servers| self.is_over_servers(servers, plan, parallelism));
        let computed = if servers.is_some() { known_terms(evaluator)? } else { None };
        let (Some(servers), Some(computed)) = (servers, computed) else {
            return self.local.execute(plan, snapshot, evaluator, control, parallelism, input, profile, sink);
        };
        if is_heavy(plan, parallelism) {
            control.set_heavy();
        }
        self.counters.queries.fetch_add(1, Ordering::Relaxed);
        let asked =
            Asked { plan, snapshot, evaluator, control, parallelism, input, profile, computed: &computed };
        if !servers.has_assignments() {
            return self.attempt(&servers, &asked, sink);
        }
        let held_bytes = control.memory_bytes();
        let (mut avoided, mut is_begun) = (BTreeSet::new(), false);
        for _ in 0..ATTEMPTS_MAX {
            avoided.extend(servers.suspected());
            let ended = self.attempt(&servers.assigned(&avoided), &asked, &mut |batch| {
                is_begun = true;
                sink(batch)
            });
            match ended {
                // Others have the partitions of a server that does not answer, or they have moved.
                Err(error) if error.kind() == ErrorKind::Unavailable && !is_begun => {
                    control.shrink(control.memory_bytes().saturating_sub(held_bytes));
                    avoided.extend(servers.suspected());
                    servers.probe();
                    control.check()?;
                }
                ended => return ended,
            }
        }
        // Each of its requests finds a server that answers.
        self.local.execute(plan, snapshot, evaluator, control, parallelism, input, profile, sink)
    }
}
