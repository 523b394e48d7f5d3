//! Faults of servers that elect a leader, one after the other, while something else runs.
//!
//! # Shape
//! A thread ([`Injector::run`]) draws a fault and a server, half of the time the leader: its process is
//! killed and started again (`kill`), or stopped for a while (`stop`); what it sends and receives takes
//! longer (`delay`); what it sends to one other server, or to all, or what they send to it, does not arrive
//! (`cut`). Every third fault of a process comes with a delay of another server. Between two faults all
//! servers are up and connected for a while, so that a majority exists again and again.

use crate::voter_processes::{Http, PATIENCE, Servers};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vervet_testkit::Random;

/// A kind of fault. See the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultKind {
    /// SIGKILL, and a new start.
    Kill,
    /// SIGSTOP, and SIGCONT.
    Stop,
    /// Slow links.
    Delay,
    /// Links that lose what goes in one direction.
    Cut,
}

impl FaultKind {
    /// All kinds, with their names.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Kill, "kill"), (Self::Stop, "stop"), (Self::Delay, "delay"), (Self::Cut, "cut")];

    /// The kinds in a list of names with commas, `all`, or `none`.
    ///
    /// # Errors
    /// Another name.
    pub fn parse(names: &str) -> Result<Vec<Self>, String> {
        match names {
            "all" => return Ok(Self::ALL.map(|(kind, _)| kind).to_vec()),
            "none" => return Ok(Vec::new()),
            _ => {}
        }
        let kind = |name: &str| {
            let found = Self::ALL.iter().find(|(_, other)| *other == name);
            found
                .map(|(kind, _)| *kind)
                .ok_or_else(|| format!("`{name}` is none of the faults kill, stop, delay, cut"))
        };
        names.split(',').map(kind).collect()
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// Longest wait for the state of a server.
const STATUS_MAX: Duration = Duration::from_secs(2);

/// Time without a fault, in milliseconds, at least and at most.
const PAUSE_MS: (u64, u64) = (300, 1_500);
/// How long a killed server is away before its new start.
const AWAY_MS: (u64, u64) = (0, 2_500);
/// How long a process is stopped, or a link is cut or slow.
const DURATION_MS: (u64, u64) = (300, 4_000);
/// How much longer messages over a slow link take.
const DELAY_MS: (u64, u64) = (5, 250);
/// Time between two looks whether the faults shall end.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Numbers of faults, of all servers and of the server that led.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<FaultKind, (u64, u64)>);

impl Figures {
    /// All faults.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().map(|(all, _)| all).sum()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} faults", self.count())?;
        self.0.iter().try_for_each(|(kind, (all, leader))| {
            write!(f, ", {} {all} (of the leader {leader})", kind.name())
        })
    }
}

/// See the header of this file.
pub struct Injector<'a> {
    servers: &'a Servers,
    kinds: &'a [FaultKind],
    /// Position of the server that leads, as far as it is known.
    leader: &'a AtomicUsize,
    http: Http,
    random: Random,
    figures: Figures,
}

impl<'a> Injector<'a> {
    /// Draws from `kinds`. Delays and cuts need servers with links.
    #[must_use]
    pub fn new(
        servers: &'a Servers,
        kinds: &'a [FaultKind],
        leader: &'a AtomicUsize,
        random: Random,
    ) -> Self {
        let http = Http::new(STATUS_MAX);
        Self { servers, kinds, leader, http, random, figures: Figures::default() }
    }

    /// Injects faults until `is_over`. Then all servers are up, ready and connected.
    ///
    /// # Errors
    /// A server does not become ready after a new start.
    pub fn run(mut self, is_over: &AtomicBool) -> Result<Figures, String> {
        while !is_over.load(Ordering::SeqCst) {
            self.wait(PAUSE_MS, is_over);
            self.find_leader();
            if self.kinds.is_empty() || is_over.load(Ordering::SeqCst) {
                continue;
            }
            let kind = self.random.pick(self.kinds);
            let count = self.servers.servers.len();
            let leader = self.leader.load(Ordering::SeqCst) % count;
            let victim = if self.random.one_in(2) { leader } else { self.server() };
            let figures = self.figures.0.entry(kind).or_default();
            (figures.0, figures.1) = (figures.0 + 1, figures.1 + u64::from(victim == leader));
            let with_delay = self.kinds.contains(&FaultKind::Delay) && self.random.one_in(3);
            if with_delay && matches!(kind, FaultKind::Kill | FaultKind::Stop) {
                let other = (victim + 1) % count;
                self.slow(other);
            }
            let done = self.inject(kind, victim, is_over);
            self.servers.relays().into_iter().for_each(crate::relay::Relays::heal);
            done?;
        }
        Ok(self.figures)
    }

    /// Asks a server which one leads: all take changes, so no refusal tells the clients.
    fn find_leader(&mut self) {
        let asked = self.server();
        let servers = &self.servers.servers;
        let Ok((200, text)) = self.http.get(&servers[asked].address, "/cluster") else { return };
        let status: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let name = status["changes"]["voters"]["leader"].as_str();
        if let Some(at) = servers.iter().position(|server| Some(server.name.as_str()) == name) {
            self.leader.store(at, Ordering::SeqCst);
        }
    }

    fn inject(&mut self, kind: FaultKind, victim: usize, is_over: &AtomicBool) -> Result<(), String> {
        match kind {
            FaultKind::Kill => {
                self.servers.kill(victim);
                self.wait(AWAY_MS, is_over);
                // Nothing else is wrong while a server gets what it lacks.
                self.servers.relays().into_iter().for_each(crate::relay::Relays::heal);
                return self.servers.start_again(victim);
            }
            FaultKind::Stop => {
                self.servers.signal(victim, "STOP")?;
                self.wait(DURATION_MS, is_over);
                return self.servers.signal(victim, "CONT");
            }
            FaultKind::Delay => self.slow(victim),
            FaultKind::Cut => self.cut(victim),
        }
        self.wait(DURATION_MS, is_over);
        Ok(())
    }

    /// All links of a server become slow.
    fn slow(&mut self, server: usize) {
        let delay = Duration::from_millis(self.between(DELAY_MS));
        let Some(relays) = self.servers.relays() else { return };
        for other in (0..self.servers.servers.len()).filter(|other| *other != server) {
            relays.set_delay(server, other, delay);
            relays.set_delay(other, server, delay);
        }
    }

    /// Cuts the link to one other server, or to all, or from all of them.
    fn cut(&mut self, server: usize) {
        let Some(relays) = self.servers.relays() else { return };
        let count = self.servers.servers.len();
        let one = (server + 1 + position(self.random.below(count as u64 - 1))) % count;
        let way = self.random.below(3);
        for other in (0..count).filter(|other| *other != server) {
            match way {
                0 if other != one => {}
                0 | 1 => relays.set_cut(server, other, true),
                _ => relays.set_cut(other, server, true),
            }
        }
    }

    fn server(&mut self) -> usize {
        position(self.random.below(self.servers.servers.len() as u64))
    }

    fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        least + self.random.below(most - least + 1)
    }

    /// Waits for a random time, or until the end.
    fn wait(&mut self, range: (u64, u64), is_over: &AtomicBool) {
        let (begun, time) = (Instant::now(), Duration::from_millis(self.between(range)).min(PATIENCE));
        while begun.elapsed() < time && !is_over.load(Ordering::SeqCst) {
            sleep(LOOK_INTERVAL.min(time));
        }
    }
}

fn position(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::FaultKind;

    #[test]
    fn names_of_faults_are_read() {
        assert_eq!(FaultKind::parse("kill,cut"), Ok(vec![FaultKind::Kill, FaultKind::Cut]));
        assert_eq!(FaultKind::parse("all").map(|kinds| kinds.len()), Ok(4));
        assert_eq!(FaultKind::parse("none"), Ok(vec![]));
        assert!(FaultKind::parse("kill,fire").is_err());
    }
}
