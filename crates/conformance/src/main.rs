//! `vervet-conformance SUITE`: runs a suite and prints counts by category, every failure with its reason,
//! and a last line `N passed, M failed`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use vervet_conformance::random::Verdict;
use vervet_conformance::server_faults::FaultKind;
use vervet_conformance::{
    Outcome, Report, acid, chaos, cluster, cluster_day, device, history, known, ldbc, lubm, namespaces,
    partitions, random, random_flow, random_gremlin, random_update, rdf, social_network, sparql, test_data,
    tinkerpop, tinkerpop_suite, voter_chaos, w3c_suites,
};

/// Runs the random case of a seed.
type Case = fn(u64) -> Result<Verdict, String>;

const USAGE: &str = "usage: vervet-conformance lubm [SCALE...] | sparql | rdf | random [CASES [FIRST-SEED]] [--delta] | \
                     random-update [CASES [FIRST-SEED]] | random-flow [CASES [FIRST-SEED]] | \
                     random-gremlin [CASES [FIRST-SEED]] [--delta] [--against tinkergraph] | \
                     tinkerpop [--only PART] [--configuration base|delta|steps] [--verbose] \
                     [--wire graphson|graphbinary [--python PATH]] | \
                     ldbc [--only QUERY] [--data tiny|sf0.1] [--language gremlin|sparql] [--verbose] | acid [--full] [SEED] | \
                     history [--transactions N] [--seed N] [--to FOLDER] [--dbcop PROGRAM] [--elle PROGRAM] \
                     [--cluster N [--faults all|none|kill,stop,delay,cut]] | \
                     cluster-chaos [--minutes N] [--rounds N] [--seed S] [--fault NAME] [--servers N] [--namespaces] | \
                     cluster-chaos --voters [--kills N] [--restarts N] [--stops N] [--seed S] [--clients N] | \
                     cluster-day [--seed S] [--rate N] [--pause SECONDS] [--copies 2|3] [--from PROGRAM]\n\
                     each with [--partitions P]: databases in memory consist of P partitions, a power of two\n\
                     lubm, sparql, random, random-gremlin, tinkerpop, ldbc with [--cluster N [--changes]]: graphs are spread over N processes, with changes of the writer\n\
                     acid with [--cluster N]: transactions over N processes; with [--faults all|none|kill,stop,delay,cut] they are voters, and have these faults\n\
                     suites over processes with [--replicas R]: R of them have each partition\n\
                     the same suites with [--device simulated | --device cuda --kernels FILE] [--faults N]: queries use a device, of which every N-th call fails";

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == [cluster::SERVER] {
        cluster::serve();
        return ExitCode::SUCCESS;
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--changes") {
        arguments.remove(at);
        if let Err(message) = cluster::choose_changes() {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    }
    // Everything that uses the network of a namespace runs in one from its beginning.
    if let Some(at) = arguments.iter().position(|argument| argument == "--namespaces") {
        if !namespaces::is_inside() {
            return namespaces::enter().unwrap_or_else(|message| {
                eprintln!("error: {message}");
                ExitCode::from(2)
            });
        }
        arguments.remove(at);
    }
    let chosen = take(&mut arguments, "--partitions", partitions::choose)
        .and_then(|()| take(&mut arguments, "--cluster", cluster::choose))
        .and_then(|()| take(&mut arguments, "--replicas", cluster::choose_replicas))
        .and_then(|()| choose_device(&mut arguments));
    match chosen.and_then(|()| run(&arguments)) {
        Ok(mut report) => {
            if let Some(used) = device::DeviceUse::so_far() {
                println!("{used}");
                if !used.is_any() {
                    report.add("device", "use", Err("no query had a part on the device".to_owned()));
                }
            }
            println!("{report}");
            // Known failures are shown and counted, but do not fail the run.
            if known::news(&report, &[]).is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Takes the options of the device out of the arguments, and chooses it for all cases.
fn choose_device(arguments: &mut Vec<String>) -> Result<(), String> {
    if arguments.first().is_some_and(|suite| suite == "history" || suite == "acid") {
        // They use no device; their `--faults` are those of servers.
        return Ok(());
    }
    let mut value = |option: &str| {
        let at = arguments.iter().position(|argument| argument == option)?;
        arguments.remove(at);
        Some(
            (at < arguments.len())
                .then(|| arguments.remove(at))
                .ok_or_else(|| format!("{option} needs a value")),
        )
    };
    let faults = value("--faults").transpose()?.map_or(Ok(0), |faults| number(&faults))?;
    let kernels = value("--kernels").transpose()?;
    match value("--device").transpose()? {
        Some(name) => device::choose(&name, kernels.as_deref(), faults),
        None if faults > 0 || kernels.is_some() => Err("--faults and --kernels need --device".to_owned()),
        None => Ok(()),
    }
}

/// Takes an option with a number out of the arguments, and chooses that number for all cases.
fn take(
    arguments: &mut Vec<String>,
    option: &str,
    choose: fn(usize) -> Result<(), String>,
) -> Result<(), String> {
    let Some(at) = arguments.iter().position(|argument| argument == option) else { return Ok(()) };
    let count = arguments.get(at + 1).ok_or_else(|| format!("{option} needs a number"))?;
    let count = count.parse().map_err(|_| format!("not a number: {count}"))?;
    arguments.drain(at..at + 2);
    choose(count)
}

fn number(text: &String) -> Result<u64, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

fn small(text: &String) -> Result<u32, String> {
    u32::try_from(number(text)?).map_err(|_| format!("a number that is too large: {text}"))
}

fn run(arguments: &[String]) -> Result<Report, String> {
    let mut report = Report::default();
    match arguments.split_first() {
        Some((suite, scales)) if suite == "lubm" => {
            let data = test_data().ok_or("the LUBM data is missing: set VERVET_TEST_DATA")?.join("data");
            let all = ["1", "10", "40"].map(str::to_owned);
            for scale in if scales.is_empty() { &all } else { scales } {
                let scale = u32::try_from(number(scale)?).map_err(|error| error.to_string())?;
                lubm::run(&data, scale, &partitions::database(scale), &mut report)?;
            }
        }
        Some((suite, [])) if suite == "sparql" || suite == "rdf" => {
            let root = w3c_suites().ok_or("the W3C's suites are missing: set VERVET_TEST_DATA")?;
            let run = if suite == "rdf" { rdf::run } else { sparql::run };
            run(&root, &mut report)?;
        }
        Some((suite, rest)) if suite == "random" || suite == "random-update" => {
            let (rest, case): (_, Case) = match rest.split_last() {
                _ if suite == "random-update" => (rest, random_update::case),
                Some((option, rest)) if option == "--delta" => (rest, random::changed_case),
                _ => (rest, random::case),
            };
            let cases = rest.first().map_or(Ok(20_000), number)?;
            let first = rest.get(1).map_or(Ok(1), number)?;
            let end = first.saturating_add(cases);
            println!("cases with seeds {first} to {}", end.saturating_sub(1));
            for seed in first..end {
                match case(seed) {
                    Ok(verdict) => report.add(verdict.name(), "", Ok(())),
                    Err(difference) => report.add("compared", &format!("seed {seed}"), Err(difference)),
                }
            }
        }
        Some((suite, rest)) if suite == "random-flow" => {
            let cases = rest.first().map_or(Ok(20_000), number)?;
            let first = rest.get(1).map_or(Ok(1), number)?;
            let end = first.saturating_add(cases);
            println!("cases with seeds {first} to {}", end.saturating_sub(1));
            let mut suite = random_flow::Suite::default();
            for seed in first..end {
                match suite.case(seed) {
                    Ok(verdict) => report.add(verdict.name(), "", Ok(())),
                    Err(difference) => report.add("compared", &format!("seed {seed}"), Err(difference)),
                }
            }
            for (name, (queries, rows)) in ["over", "without"].iter().zip(suite.counts()) {
                println!("{name} connections: {queries} runs at all servers moved {rows} rows");
            }
        }
        Some((suite, rest)) if suite == "random-gremlin" => random_gremlin(rest, &mut report)?,
        Some((suite, rest)) if suite == "tinkerpop" => {
            let root = tinkerpop_suite().ok_or("TinkerPop's suite is missing: set VERVET_TEST_DATA")?;
            let options = tinkerpop_options(rest)?;
            tinkerpop::run(&root, &options, &mut report)?;
        }
        Some((suite, rest)) if suite == "ldbc" => {
            let root = social_network().ok_or("the social network is missing: set VERVET_TEST_DATA")?;
            ldbc::run(&root, &ldbc_options(rest)?, &mut report)?;
        }
        Some((suite, rest)) if suite == "acid" && rest.iter().any(|option| option == "--faults") => {
            let count = cluster::chosen().ok_or("--faults needs --cluster")?;
            let mut options = acid::ServerOptions { servers: count, ..acid::ServerOptions::default() };
            let mut rest = rest.iter();
            while let Some(option) = rest.next() {
                let mut value = || rest.next().ok_or_else(|| format!("{option} needs a value"));
                match option.as_str() {
                    "--full" => options.form = acid::Form::FULL,
                    "--faults" => options.faults = FaultKind::parse(value()?)?,
                    seed => options.seed = number(&seed.to_owned())?,
                }
            }
            acid::run_over_servers(&options, &mut report)?;
        }
        Some((suite, rest)) if suite == "acid" => {
            let (form, rest) = match rest.split_first() {
                Some((first, rest)) if first == "--full" => (acid::Form::FULL, rest),
                _ => (acid::Form::SHORT, rest),
            };
            let seed = rest.first().map_or(Ok(1), number)?;
            let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
            acid::run(form, folder.path(), seed, &mut report);
        }
        Some((suite, rest)) if suite == "cluster-chaos" && rest.iter().any(|option| option == "--voters") => {
            let mut options = voter_chaos::Options::default();
            let mut rest = rest.iter().filter(|option| *option != "--voters");
            while let Some(option) = rest.next() {
                let value = rest.next().ok_or_else(|| format!("{option} needs a value"))?;
                match option.as_str() {
                    "--kills" => options.kills = small(value)? as usize,
                    "--restarts" => options.restarts = small(value)? as usize,
                    "--stops" => options.stops = small(value)? as usize,
                    "--seed" => options.seed = number(value)?,
                    "--clients" => options.clients = small(value)?.clamp(1, 256) as usize,
                    _ => return Err(USAGE.to_owned()),
                }
            }
            voter_chaos::run(&options, &mut report)?;
        }
        Some((suite, rest)) if suite == "cluster-day" => {
            let mut options = cluster_day::Options::default();
            let mut rest = rest.iter();
            while let Some(option) = rest.next() {
                let value = rest.next().ok_or_else(|| format!("{option} needs a value"))?;
                match option.as_str() {
                    "--seed" => options.seed = number(value)?,
                    "--rate" => options.rate = small(value)?.clamp(1, 10_000),
                    "--copies" => options.replicas = small(value)?.clamp(1, 3),
                    "--from" => options.from = Some(value.into()),
                    "--pause" => options.pause = Duration::from_secs(1).saturating_mul(small(value)?),
                    _ => return Err(USAGE.to_owned()),
                }
            }
            cluster_day::run(&options, &mut report)?;
        }
        Some((suite, rest)) if suite == "cluster-chaos" => {
            let mut options = chaos::Options::default();
            let mut rest = rest.iter();
            while let Some(option) = rest.next() {
                let value = rest.next().ok_or_else(|| format!("{option} needs a value"))?;
                match option.as_str() {
                    "--minutes" => options.time = Duration::from_secs(60).saturating_mul(small(value)?),
                    "--rounds" => options.rounds = number(value)?,
                    "--seed" => options.seed = number(value)?,
                    "--fault" => options.fault = Some(value.clone()),
                    "--servers" => options.servers = small(value)?.clamp(2, 16) as usize,
                    _ => return Err(USAGE.to_owned()),
                }
            }
            let data = test_data().ok_or("the LUBM data is missing: set VERVET_TEST_DATA")?.join("data");
            chaos::run(&options, &data, &mut report)?;
        }
        Some((suite, rest)) if suite == "history" => {
            let mut options = history::Options::default();
            let mut faults = None;
            let mut rest = rest.iter();
            while let Some(option) = rest.next() {
                let value = rest.next().ok_or_else(|| format!("{option} needs a value"))?;
                match option.as_str() {
                    "--transactions" => options.transactions = number(value)?,
                    "--seed" => options.seed = number(value)?,
                    "--to" => options.to = value.into(),
                    "--dbcop" => options.dbcop = Some(value.into()),
                    "--elle" => options.elle = Some(value.into()),
                    "--faults" => faults = Some(FaultKind::parse(value)?),
                    _ => return Err(USAGE.to_owned()),
                }
            }
            match (cluster::chosen(), faults) {
                (None, None) => history::run(&options, &mut report)?,
                (None, Some(_)) => return Err("--faults needs --cluster".to_owned()),
                (Some(count), faults) => {
                    let faults = faults.map_or_else(|| FaultKind::parse("all"), Ok)?;
                    history::run_over_servers(&options, count, &faults, &mut report)?;
                }
            }
        }
        _ => return Err(USAGE.to_owned()),
    }
    Ok(report)
}

fn random_gremlin(arguments: &[String], report: &mut Report) -> Result<(), String> {
    let (mut numbers, mut with_changes, mut peer) = (Vec::new(), false, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--delta" => with_changes = true,
            "--against" if rest.next().is_some_and(|peer| peer == "tinkergraph") => {
                peer = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/peers/tinkergraph/run.sh"));
            }
            "--against" => return Err(USAGE.to_owned()),
            _ => numbers.push(number(argument)?),
        }
    }
    let (cases, first) = (numbers.first().copied().unwrap_or(20_000), numbers.get(1).copied().unwrap_or(1));
    let end = first.saturating_add(cases);
    println!("cases with seeds {first} to {}", end.saturating_sub(1));
    let mut suite = random_gremlin::Suite::new(with_changes, peer.map(Path::new))?;
    for seed in first..end {
        match suite.case(seed) {
            Ok(verdict) => report.add(verdict.name(), "", Ok(())),
            Err(difference) => report.add("compared", &format!("seed {seed}"), Err(difference)),
        }
    }
    Ok(())
}

fn tinkerpop_options(arguments: &[String]) -> Result<tinkerpop::Options, String> {
    let mut options = tinkerpop::Options::default();
    let (mut format, mut python, mut configuration) = (None, "python3".to_owned(), None);
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(option) = rest.next() {
        match option {
            "--verbose" => options.each = Some(|name, outcome| println!("{name}: {outcome:?}")),
            "--only" => options.only = Some(rest.next().ok_or(USAGE)?.to_owned()),
            "--python" => rest.next().ok_or(USAGE)?.clone_into(&mut python),
            "--wire" => {
                format = Some(match rest.next() {
                    Some("graphson") => tinkerpop::WireFormat::GraphSon,
                    Some("graphbinary") => tinkerpop::WireFormat::GraphBinary,
                    _ => return Err(USAGE.to_owned()),
                });
            }
            "--configuration" => {
                configuration = Some(match rest.next() {
                    Some("base") => tinkerpop::Configuration::Base,
                    Some("delta") => tinkerpop::Configuration::Delta,
                    Some("steps") => tinkerpop::Configuration::Steps,
                    _ => return Err(USAGE.to_owned()),
                });
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    if let Some(format) = format {
        if configuration == Some(tinkerpop::Configuration::Steps) {
            return Err("a server chooses kernels itself: --wire needs base or delta".to_owned());
        }
        options.configurations = vec![tinkerpop::Configuration::Base, tinkerpop::Configuration::Delta];
        options.driver = Some(tinkerpop::Driver { format, python });
        // Scenarios that the driver cannot run are reported by name.
        options.each = options.each.or(Some(|name, outcome| {
            if let Outcome::LeftOut(reason) = outcome {
                println!("left out: {name}: {reason}");
            }
        }));
    }
    if let Some(configuration) = configuration {
        options.configurations = vec![configuration];
    }
    Ok(options)
}

fn ldbc_options(arguments: &[String]) -> Result<ldbc::Options, String> {
    let mut options = ldbc::Options::default();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(option) = rest.next() {
        match option {
            "--verbose" => options.each = Some(|name, outcome| println!("{name}: {outcome:?}")),
            "--only" => options.only = Some(rest.next().ok_or(USAGE)?.to_owned()),
            "--data" => {
                options.sets = match rest.next() {
                    Some("tiny") => vec![ldbc::Set::Tiny],
                    Some("sf0.1") => vec![ldbc::Set::Tenth],
                    _ => return Err(USAGE.to_owned()),
                };
            }
            "--language" => {
                options.languages = match rest.next() {
                    Some("gremlin") => vec![ldbc::Language::Gremlin],
                    Some("sparql") => vec![ldbc::Language::Sparql],
                    _ => return Err(USAGE.to_owned()),
                };
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}
