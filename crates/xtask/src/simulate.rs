//! The simulation, and mutants of the sources that it must find: `cargo xtask simulate`.
//!
//! # Shape
//! A mutant is a change of one place of the sources that makes a cluster wrong ([`MUTANTS`]). Each one is
//! built in a copy of the tree, below `target/mutants`, and its simulation must fail.

use crate::command::{cargo, output};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A change of the sources.
struct Mutant {
    name: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

impl Mutant {
    /// Whether the sources have the place once.
    fn check(&self, text: &str) -> Result<(), String> {
        match text.matches(self.old).count() {
            1 => Ok(()),
            count => Err(format!("{}: {:?} is there {count} times", self.file, self.old)),
        }
    }
}

/// Transactions in which a mutant has to be found.
const TRANSACTIONS: &str = "400000";

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "an entry is acknowledged before it is synced",
        file: "crates/raft/src/store.rs",
        old: "            self.shared.log.wait(lsn)\n        };",
        new: "            Ok::<(), Error>(())\n        };",
    },
    Mutant {
        name: "a leader applies an entry before it has synced it",
        file: "crates/raft/src/position.rs",
        old: "let synced = self.store.wait_for_sync(last.index).await;",
        new: "let synced = Ok::<(), Error>(());",
    },
    Mutant {
        name: "a leader says that an entry is committed before it has synced it",
        file: "crates/raft/src/network.rs",
        old: "request.leader_commit = self.committed(&request).await;",
        new: "_ = self.committed(&request);",
    },
    Mutant {
        name: "a leader leads on after a restart",
        file: "crates/raft/src/store.rs",
        old: "vote.committed = false;",
        new: "_ = &vote;",
    },
    Mutant {
        name: "records are published before they are committed",
        file: "crates/raft/src/leadership.rs",
        old: "matches!(answer.await, Ok(Ok(ClientWriteResponse { data: Applied { is_void: false }, .. })));",
        new: "{ drop(answer); let _ = |one: ClientWriteResponse<Types>, other: Applied| (one, other); true };",
    },
    Mutant {
        name: "a strict read does not confirm the leadership",
        file: "crates/raft/src/replica.rs",
        old: "let confirmed = match raft.get_read_log_id().await {",
        new: "let own = raft.metrics().borrow().last_applied.map(|id| id.index);\n        \
              let confirmed = match Ok::<_, std::fmt::Error>((own.map(|index| openraft::LogId::<u64>::new(Default::default(), index)), ())) {",
    },
    Mutant {
        name: "data of a server that lacks entries are copied",
        file: "crates/cluster/src/fetch.rs",
        old: "listed.place >= wanted.least;",
        new: "(listed.place.0 + 1000, listed.place.1) >= wanted.least;",
    },
    Mutant {
        name: "the map has no partitions of a server that has begun anew",
        file: "crates/cluster/src/members.rs",
        old: "let known = || listed.iter().find(is_it).cloned().or_else(|| self.entry_at(number));",
        new: "let known = || self.entry_at(number).or_else(|| listed.iter().find(is_it).cloned());",
    },
    Mutant {
        name: "a server asks only those that it knows to be admitted",
        file: "crates/raft/src/replica.rs",
        old: "self.transport.call(leader, &sent_on, SEND_ON_MAX)?;",
        new: "drop((leader, sent_on, SEND_ON_MAX)); self.admit_asked(body)?;",
    },
    Mutant {
        name: "a strict read takes the graph of a leader that is none any more",
        file: "crates/cluster/src/voting.rs",
        old: "Some((leading, _)) => self.state.replica.role() != (Role::Leader { term: leading.term() }),",
        new: "Some((leading, _)) => leading.term() == 0,",
    },
    Mutant {
        name: "a server is ready before it has its vote",
        file: "crates/cluster/src/voting.rs",
        old: "progress.is_complete |= has_vote && has_all;",
        new: "progress.is_complete |= has_all || has_vote && has_all;",
    },
    Mutant {
        name: "a follower leaves out an entry",
        file: "crates/cluster/src/voting.rs",
        old: "self.follower.apply(&records).map_err(stop)?;",
        new: "if last % 97 != 0 { self.follower.apply(&records).map_err(stop)?; }",
    },
    Mutant {
        name: "requests for partitions of merged data are for the first data",
        file: "crates/cluster/src/serving.rs",
        old: "remote_parts(map, here, files.build(), may_change, &remote_of);",
        new: "remote_parts(map, here, generation.origin, may_change, &remote_of);",
    },
    Mutant {
        name: "a transaction is compared with all commits but the last one",
        file: "crates/txn/src/validation.rs",
        old: "let mut commits = head.commits_after(from).ok_or(AbortReason::TooOld)?;",
        new: "let mut commits = head.commits_after(Timestamp(from.0 + 1)).ok_or(AbortReason::TooOld)?;",
    },
];

/// Runs the simulation, or its mutants.
pub(crate) fn simulate(options: &[&str]) -> Result<(), String> {
    if let ["--mutants", names @ ..] = options {
        return mutants(names);
    }
    let mut run = cargo();
    run.args(["run", "--release", "--quiet", "-p", "vervet-simulation", "--"]).args(options);
    let status = run.status().map_err(|error| format!("could not start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the simulation has failed".to_owned()) }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Copies the files that git knows, those whose content differs.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let listed = output(Command::new("git").current_dir(from).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let (source, target) = (from.join(name), to.join(name));
        let Ok(content) = fs::read(&source) else { continue };
        if fs::read(&target).ok().as_ref() == Some(&content) {
            continue;
        }
        let written =
            target.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&target, &content));
        written.map_err(|error| format!("could not write {}: {error}", target.display()))?;
    }
    Ok(())
}

/// Builds each mutant whose name contains one of `names`, or each one, and simulates it.
fn mutants(names: &[&str]) -> Result<(), String> {
    let tree = root().join("target/mutants/tree");
    let (mut passed, mut failed) = (0, 0);
    for mutant in MUTANTS {
        if !names.is_empty() && !names.iter().any(|name| mutant.name.contains(name)) {
            continue;
        }
        copy(&root(), &tree)?;
        let path = tree.join(mutant.file);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("could not read {}: {error}", mutant.file))?;
        mutant.check(&text)?;
        fs::write(&path, text.replacen(mutant.old, mutant.new, 1)).map_err(|error| error.to_string())?;
        let mut build = cargo();
        build.current_dir(&tree).env("CARGO_TARGET_DIR", root().join("target/mutants/target"));
        build.args(["build", "--release", "--quiet", "-p", "vervet-simulation"]);
        if !build.status().map_err(|error| format!("could not start cargo: {error}"))?.success() {
            return Err(format!("{}: it cannot be built", mutant.name));
        }
        let mut run = Command::new(root().join("target/mutants/target/release/vervet-simulation"));
        let found = run.args(["--until-wrong", "--transactions", TRANSACTIONS]).output();
        let found = found.map_err(|error| format!("could not start the simulation: {error}"))?;
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        match text.lines().find(|line| line.starts_with("seed ") && !line.contains(": no verdict")) {
            Some(line) if !found.status.success() => {
                passed += 1;
                println!("{}: found, {line}", mutant.name);
            }
            _ => {
                failed += 1;
                println!("{}: not found in {TRANSACTIONS} transactions", mutant.name);
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { Ok(()) } else { Err(format!("{failed} mutants were not found")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They run seldom, so a change of the sources may leave one without its place.
    #[test]
    fn each_mutant_has_its_place() {
        for mutant in MUTANTS {
            let text = fs::read_to_string(root().join(mutant.file)).expect("a file");
            assert_eq!(mutant.check(&text), Ok(()), "{}", mutant.name);
        }
    }
}
