//! `vervet cluster rebalance`, `drain` and `move`: partitions go to other servers.

use crate::arguments::{ClusterMoveArguments, ClusterRebalanceArguments};
use crate::interrupt;
use crate::output::{Outcome, Output};
use crate::table::Table;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use vervet_cluster::{Rebalance, RebalanceEvent, RebalancePlan, plan_rebalance};
use vervet_model::ThreadLimits;

pub(crate) fn rebalance(arguments: &ClusterRebalanceArguments) -> Outcome {
    let replicas = arguments.replicas.map(usize::from);
    run(&arguments.directory, &Rebalance::Evenly { replicas }, arguments.dry_run, "")
}

pub(crate) fn drain(directory: &Path, name: &str, dry_run: bool) -> Outcome {
    let next = format!("server {name} can be removed: vervet cluster remove {} {name}", directory.display());
    run(directory, &Rebalance::Drain { server: name.to_owned() }, dry_run, &next)
}

pub(crate) fn move_partitions(arguments: &ClusterMoveArguments) -> Outcome {
    let ClusterMoveArguments { directory, partitions, to, from, dry_run } = arguments;
    let of = Rebalance::Move { partitions: partitions.clone(), from: from.clone(), to: to.clone() };
    run(directory, &of, *dry_run, "")
}

/// `next`: what to do behind it.
fn run(directory: &Path, of: &Rebalance, dry_run: bool, next: &str) -> Outcome {
    let mut out = Output::standard();
    if dry_run {
        let plan = plan_rebalance(directory, of)?;
        print(&plan, &mut out)?;
        return out.finish();
    }
    let running = interrupt::start();
    let limits = ThreadLimits { cancelled: Some(running.token.flag()), ..ThreadLimits::default() };
    let _limits = limits.enter();
    let plan = vervet_cluster::rebalance(directory, of, &mut |event| match event {
        RebalanceEvent::Copies { server, partitions: 1 } => eprintln!("server {server} copies a partition"),
        RebalanceEvent::Copies { server, partitions } => {
            eprintln!("server {server} copies {partitions} partitions");
        }
        RebalanceEvent::Has { server } => eprintln!("server {server} has them"),
    })?;
    running.finish();
    print(&plan, &mut out)?;
    if !plan.is_empty() {
        eprintln!("the log says so from now on; all servers read partitions there within seconds");
    }
    if !next.is_empty() {
        eprintln!("{next}");
    }
    out.finish()
}

fn print(plan: &RebalancePlan, out: &mut Output) -> Outcome {
    if plan.is_empty() {
        writeln!(out, "Nothing is to be moved: each partition is at {} of the servers.", plan.replicas)?;
        return Ok(());
    }
    let of = |all: Vec<(String, Vec<usize>)>| all.into_iter().collect::<BTreeMap<_, _>>();
    let (gains, losses) = (of(plan.gains()), of(plan.losses()));
    let mut table = Table::new(&["server", ">before", ">after", "gets", "gives away"]);
    for (before, after) in plan.before.iter().zip(&plan.after) {
        let list = |of: &BTreeMap<String, Vec<usize>>| of.get(&before.name).map(|list| ranges(list));
        table.row([
            before.name.clone(),
            before.partitions.len().to_string(),
            after.partitions.len().to_string(),
            list(&gains).unwrap_or_default(),
            list(&losses).unwrap_or_default(),
        ]);
    }
    table.write("", out)?;
    Ok(())
}

/// Ascending numbers, those that follow each other as the first and the last.
fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let text = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}–{last}") }
    };
    parts.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn consecutive_numbers_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0–2, 5, 7–8");
        assert_eq!(ranges(&[]), "");
    }
}
