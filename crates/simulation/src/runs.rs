//! Many episodes, each in a process of its own.

use crate::episode::{self, Plan, Planted, Summary};
use crate::faults::KINDS;
use crate::machine::run_on;
use crate::merges::COUNTS;
use crate::operator::WORKS;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vervet_model::lock;

/// Transactions of an episode.
const EPISODE_TRANSACTIONS: u64 = 2_000;

/// Episodes in which a planted fault has to be found.
const PLANTED_EPISODES: u64 = 60;

/// Longest real time of an episode.
const EPISODE_TIME_MAX: Duration = Duration::from_secs(180);

const USAGE: &str = "usage: simulate [--transactions N] [--seed S] [--fault NAME | --fault all] [--jobs N] [--until-wrong]\n  faults: lying-disks, older-log, stale-reads, snapshot-isolation, repeated-changes";

struct Options {
    transactions: u64,
    seed: u64,
    faults: Vec<(&'static str, Planted)>,
    jobs: usize,
    tells: Option<tracing::Level>,
    traps: bool,
    /// End at the first wrong episode.
    until_wrong: bool,
    /// This process is the one of an episode.
    is_episode: bool,
    /// The core that it runs on.
    core: usize,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        transactions: 100_000,
        seed: 1,
        faults: Vec::new(),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        tells: None,
        traps: false,
        until_wrong: false,
        is_episode: false,
        core: 0,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, String> {
            let text = arguments.next().unwrap_or_default();
            text.parse().map_err(|_| format!("{argument} needs a number, not {text:?}\n{USAGE}"))
        };
        match argument.as_str() {
            "--transactions" => options.transactions = number()?,
            "--seed" => options.seed = number()?,
            "--jobs" => options.jobs = usize::try_from(number()?).unwrap_or(1).max(1),
            "--tell" => {
                let level = arguments.next().unwrap_or_default();
                options.tells = Some(level.parse().map_err(|_| format!("{level:?} is no level\n{USAGE}"))?);
            }
            "--trap" => options.traps = true,
            "--until-wrong" => options.until_wrong = true,
            "--core" => options.core = usize::try_from(number()?).unwrap_or(0),
            "--episode" => options.is_episode = true,
            "--fault" => {
                let name = arguments.next().unwrap_or_default();
                let found = Planted::ALL.into_iter().filter(|(known, _)| name == "all" || *known == name);
                options.faults.extend(found);
                if options.faults.is_empty() {
                    return Err(format!("there is no fault {name:?}\n{USAGE}"));
                }
            }
            _ => return Err(format!("{argument:?} is no option\n{USAGE}")),
        }
    }
    Ok(options)
}

pub(crate) fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    if options.is_episode {
        return in_process(&options);
    }
    let (passed, failed) = if options.faults.is_empty() { all(&options) } else { planted(&options) };
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A folder for the files of the servers, in memory where that is possible.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    // Of one length, so that texts with it have one length.
    parent.join(format!("vervet-simulation-{:010}", std::process::id()))
}

fn in_process(options: &Options) -> ExitCode {
    run_on(options.core);
    let folder = folder();
    // Of an episode that was killed; numbers of processes come again.
    _ = std::fs::remove_dir_all(&folder);
    let plan = Plan {
        seed: options.seed,
        transactions: options.transactions,
        planted: options.faults.first().map(|(_, planted)| *planted),
        tells: options.tells,
        traps: options.traps,
    };
    let ended = std::panic::catch_unwind(|| episode::run(plan, &folder));
    let (code, text) = match ended {
        Ok(Ok(summary)) => (0, line(&summary)),
        Ok(Err(why)) => (1, format!("wrong {why}")),
        Err(_) => (1, "wrong a thread of the episode has panicked".to_owned()),
    };
    // One line, whatever a panic says.
    println!("{}", text.replace('\n', " "));
    if options.tells.is_none() {
        _ = std::fs::remove_dir_all(&folder);
    }
    // Other threads still wait.
    std::process::exit(code)
}

fn line(summary: &Summary) -> String {
    let Summary { again, committed, refused, unknown, reads, milliseconds, trace, switches, .. } = summary;
    let Summary { faults, works, merges, .. } = summary;
    let faults = faults.iter().chain(works).chain(merges).chain(again);
    let faults: Vec<String> = faults.map(ToString::to_string).collect();
    format!(
        "right {committed} {refused} {unknown} {reads} {milliseconds} {switches} {trace:016x} {}",
        faults.join(" ")
    )
}

/// Sums of episodes.
#[derive(Clone, Debug, Default)]
struct Sums {
    episodes: u64,
    numbers: [u64; 6],
    /// Faults, works of operators and merges.
    faults: [u64; KINDS.len() + WORKS.len() + COUNTS.len()],
    /// Milliseconds until changes were taken again.
    again: Vec<u64>,
}

impl Sums {
    fn add(&mut self, line: &str) {
        self.episodes += 1;
        let mut words = line.split(' ').skip(1);
        for number in &mut self.numbers {
            *number += words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        }
        // Behind the trace.
        words.next();
        for number in &mut self.faults {
            *number += words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        }
        self.again.extend(words.filter_map(|word| word.parse::<u64>().ok()));
    }
}

/// Begins the reason of an episode that has come to no verdict.
const NO_VERDICT: &str = "no verdict: ";

/// The verdict of an episode: its line, or why it is wrong or there is none.
fn run(core: usize, seed: u64, transactions: u64, fault: Option<&str>) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    let [core, seed, transactions] = [core as u64, seed, transactions].map(|number| number.to_string());
    command.args(["--episode", "--core", &core, "--seed", &seed, "--transactions", &transactions]);
    if let Some(fault) = fault {
        command.args(["--fault", fault]);
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("{NO_VERDICT}the episode did not start: {error}"))?;
    let begun = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if begun.elapsed() > EPISODE_TIME_MAX {
            _ = child.kill();
            _ = child.wait();
            return Err(format!("{NO_VERDICT}it did not end within {} s", EPISODE_TIME_MAX.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last() {
        Some(line) if line.starts_with("right ") => Ok(line.to_owned()),
        Some(line) if line.starts_with("wrong ") => Err(line["wrong ".len()..].to_owned()),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{NO_VERDICT}{}", errors.lines().last().unwrap_or("it said nothing")))
        }
    }
}

/// Episodes until there were enough transactions. Returns the right and the wrong ones.
fn all(options: &Options) -> (u64, u64) {
    let begun = Instant::now();
    let next = AtomicU64::new(options.seed);
    let sums = Mutex::new((Sums::default(), 0_u64));
    let count = options.transactions.div_ceil(EPISODE_TRANSACTIONS);
    std::thread::scope(|scope| {
        for core in 0..options.jobs {
            let (next, sums) = (&next, &sums);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= options.seed + count {
                        return;
                    }
                    if options.until_wrong && lock(sums).1 > 0 {
                        return;
                    }
                    let left = options.transactions - (seed - options.seed) * EPISODE_TRANSACTIONS;
                    let verdict = run(core, seed, left.min(EPISODE_TRANSACTIONS), None);
                    let mut sums = lock(sums);
                    match verdict {
                        Ok(line) => sums.0.add(&line),
                        Err(why) => {
                            sums.1 += 1;
                            println!("seed {seed}: {why}");
                        }
                    }
                    let done = sums.0.episodes + sums.1;
                    if done.is_multiple_of((count / 20).max(1)) {
                        let seconds = begun.elapsed().as_secs();
                        println!("{done} of {count} episodes, {seconds} s");
                    }
                }
            });
        }
    });
    let (mut sums, failed) = sums.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let [committed, refused, unknown, reads, milliseconds, switches] = sums.numbers;
    println!(
        "{} episodes, seeds {} to {}: {} transactions ({committed} committed, {refused} refused, {unknown} \
         unknown), {reads} reads beside them; {} s of virtual time, {switches} switches of threads; {:.0} s",
        sums.episodes,
        options.seed,
        options.seed + count - 1,
        committed + refused + unknown,
        milliseconds / 1000,
        begun.elapsed().as_secs_f64()
    );
    let (faults, merges) = sums.faults.split_at(KINDS.len() + WORKS.len());
    let list = |names: &mut dyn Iterator<Item = &&str>, counts: &[u64]| {
        let named: Vec<String> = names.zip(counts).map(|(name, count)| format!("{count} {name}")).collect();
        named.join(", ")
    };
    println!("{}", list(&mut KINDS.iter().chain(&WORKS), faults));
    println!("servers with different partitions: {}", list(&mut COUNTS.iter(), merges));
    sums.again.sort_unstable();
    if let Some(most) = sums.again.last() {
        let share = |percent: usize| sums.again[(sums.again.len() - 1) * percent / 100];
        println!(
            "{} deaths of leaders while nothing else was wrong; changes were taken again after {} ms (median), {} \
             (p95), {most} (most) of virtual time",
            sums.again.len(),
            share(50),
            share(95)
        );
    }
    (sums.episodes, failed)
}

/// Each planted fault, until it is found.
fn planted(options: &Options) -> (u64, u64) {
    let (mut passed, mut failed) = (0, 0);
    for (name, _) in &options.faults {
        let next = AtomicU64::new(options.seed);
        let is_found = AtomicBool::new(false);
        let found = Mutex::new(None::<(u64, String)>);
        std::thread::scope(|scope| {
            for core in 0..options.jobs {
                let (next, is_found, found) = (&next, &is_found, &found);
                scope.spawn(move || {
                    while !is_found.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= options.seed + PLANTED_EPISODES {
                            return;
                        }
                        if let Err(why) = run(core, seed, EPISODE_TRANSACTIONS, Some(name)) {
                            if why.starts_with(NO_VERDICT) {
                                println!("{name}: seed {seed}: {why}");
                                continue;
                            }
                            is_found.store(true, Ordering::Relaxed);
                            let mut found = lock(found);
                            if found.as_ref().is_none_or(|(other, _)| seed < *other) {
                                *found = Some((seed, why));
                            }
                        }
                    }
                });
            }
        });
        match found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some((seed, why)) => {
                passed += 1;
                println!("{name}: found with seed {seed}: {why}");
            }
            None => {
                failed += 1;
                println!("{name}: not found in {PLANTED_EPISODES} episodes from seed {}", options.seed);
            }
        }
    }
    (passed, failed)
}
