//! What goes wrong in an episode.

use crate::machine::{self, Node, with};
use crate::server::Server;
use crate::telling::tell;
use std::time::Duration;
use vervet_env::Fault;
use vervet_testkit::Random;

const MILLISECOND: u64 = 1_000_000;

/// Something that goes wrong now and is mended later.
enum Wrong {
    /// A server is dead, or about to be started again.
    Dead(usize),
    Stopped(Node),
    Links,
    /// The disk of a server.
    Disk(usize),
    /// A server whose log has failed: it has to be started again.
    Failed(usize),
    /// A server ends in order.
    Ending(usize),
}

/// Draws faults, one after another, sometimes two at a time.
pub(crate) struct Faults {
    random: Random,
    open: Vec<(u64, Wrong)>,
    next: u64,
    /// Of each kind, how often.
    pub(crate) counts: [u64; 8],
    /// When a leader died while nothing else was wrong.
    pub(crate) leader_deaths: Vec<u64>,
    /// Print what happens.
    pub(crate) tells: bool,
}

/// The kinds in the order of [`Faults::counts`].
pub(crate) const KINDS: [&str; 8] = [
    "kills",
    "losses of power",
    "stops",
    "cut links",
    "slow links",
    "slow disks",
    "failed disks",
    "restarts",
];

/// Starts a server again, unless the operator has it, or it has left.
fn restart(server: &mut Server) {
    if !server.is_held && !server.is_gone {
        server.kill(false, false);
        server.start();
    }
}

impl Faults {
    pub(crate) fn new(seed: u64, tells: bool) -> Self {
        let random = Random(seed.wrapping_mul(0x9e37_79b9) | 1);
        Self { random, open: Vec::new(), next: 0, counts: [0; 8], leader_deaths: Vec::new(), tells }
    }

    /// Does what is due. `leader`: the server that has taken the last change, if all other servers are there.
    pub(crate) fn step(&mut self, servers: &mut [Server], leader: Option<usize>) {
        let now = with(|world| world.now());
        while let Some(at) = self.open.iter().position(|(until, _)| *until <= now) {
            let (_, wrong) = self.open.swap_remove(at);
            self.mend(wrong, servers, now);
        }
        if self.next == 0 {
            // A cluster that has just begun elects its first leader.
            self.next = now + self.random.below(500) * MILLISECOND;
        }
        if now >= self.next {
            self.next = now + (20 + self.random.magnitude(11)) * MILLISECOND;
            self.draw(servers, leader, now);
        }
    }

    /// Whether the disk of a server fails, so that it may not start.
    pub(crate) fn has_failed(&self, server: usize) -> bool {
        self.open.iter().any(|(_, wrong)| matches!(wrong, Wrong::Failed(at) if *at == server))
    }

    /// Mends all.
    pub(crate) fn end(&mut self, servers: &mut [Server]) {
        with(machine::World::mend_links);
        for (_, wrong) in std::mem::take(&mut self.open) {
            self.mend(wrong, servers, 0);
        }
        for server in servers.iter_mut() {
            server.disk.mend();
            if server.life.is_none() && !server.is_held && !server.is_gone {
                server.start();
            }
        }
    }

    fn mend(&mut self, wrong: Wrong, servers: &mut [Server], now: u64) {
        match wrong {
            Wrong::Dead(at) => {
                if servers[at].life.is_none() {
                    restart(&mut servers[at]);
                }
                with(machine::World::reset_silent);
            }
            Wrong::Stopped(node) => with(|world| world.stop(node, false)),
            Wrong::Links => with(machine::World::mend_links),
            Wrong::Disk(at) => servers[at].disk.mend(),
            Wrong::Failed(at) => {
                servers[at].disk.mend();
                restart(&mut servers[at]);
            }
            Wrong::Ending(at) if now == 0 || servers[at].has_ended() => {
                restart(&mut servers[at]);
            }
            Wrong::Ending(at) => self.open.push((now + 100 * MILLISECOND, Wrong::Ending(at))),
        }
    }

    /// The other faults that are open may not have taken more than this one server with them, mostly.
    fn draw(&mut self, servers: &mut [Server], leader: Option<usize>, now: u64) {
        if self.open.len() >= 2 || !self.open.is_empty() && !self.random.one_in(3) {
            return;
        }
        let count = servers.len() as u64;
        let at = usize::try_from(self.random.below(count)).unwrap_or(0);
        let Some(life) = servers[at].life.clone() else { return };
        let kind = self.random.below(8);
        let until = now + (5 + self.random.magnitude(12)) * MILLISECOND;
        let nodes: Vec<Node> = servers.iter().filter_map(|server| Some(server.life.as_ref()?.node)).collect();
        let wrong = match kind {
            0 | 1 => {
                servers[at].kill(kind == 1, self.random.one_in(3));
                if Some(at) == leader && self.open.is_empty() {
                    self.leader_deaths.push(now);
                    // Nothing else goes wrong until there is another one.
                    self.next = now + 3_000 * MILLISECOND;
                }
                Wrong::Dead(at)
            }
            2 => {
                with(|world| world.stop(life.node, true));
                Wrong::Stopped(life.node)
            }
            3 => {
                // One direction between two servers, all that a server says, all that it hears, or both.
                let way = self.random.below(4);
                let other = self.random.pick(&nodes);
                with(|world| {
                    for node in nodes.iter().copied().filter(|node| *node != life.node) {
                        let is_it = way > 0 || node == other;
                        if is_it && way != 2 {
                            world.cut(life.node, node, true);
                        }
                        if is_it && way >= 2 {
                            world.cut(node, life.node, true);
                        }
                    }
                });
                Wrong::Links
            }
            4 => {
                let most = (1 + self.random.magnitude(9)) * MILLISECOND;
                with(|world| {
                    for node in nodes.iter().copied() {
                        world.delay(life.node, node, most);
                        world.delay(node, life.node, most);
                    }
                });
                Wrong::Links
            }
            5 => {
                servers[at].disk.set_sync_time(Duration::from_millis(1 + self.random.magnitude(9)));
                Wrong::Disk(at)
            }
            6 => {
                let fault = self.random.pick(&[Fault::Io, Fault::DiskFull, Fault::Power]);
                servers[at].disk.fail_write(self.random.magnitude(6), fault);
                Wrong::Failed(at)
            }
            _ => {
                servers[at].end();
                Wrong::Ending(at)
            }
        };
        let kind = usize::try_from(kind).unwrap_or(0);
        self.counts[kind] += 1;
        if self.tells {
            let seconds = |time: u64| time as f64 / 1e9;
            tell(&format!("{} at server {at} until {:.3}", KINDS[kind], seconds(until)));
        }
        self.open.push((until, wrong));
    }
}
