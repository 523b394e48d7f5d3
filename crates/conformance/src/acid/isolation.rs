//! Anomalies with one or two vertices: dirty writes, dirty and circular reads, non-repeatable reads.

use super::test_environment::{TestEnvironment, count_up, integer, integers, person, set, text};
use std::collections::BTreeMap;

const VERSION: &str = "<urn:acid:version>";
const HISTORY: &str = "<urn:acid:history>";
/// The vertex of the edge of `G0`.
const EDGE: &str = "<urn:acid:edge:1>";

#[derive(Clone, Copy)]
enum ClientRole {
    Writer(i64),
    Reader,
}

impl TestEnvironment {
    /// Writers (numbered from 1) and readers, in random order.
    fn writers_and_readers(&self, writers: i64, readers: usize) -> Vec<ClientRole> {
        let mut clients: Vec<ClientRole> = (1..=writers).map(ClientRole::Writer).collect();
        clients.extend(std::iter::repeat_n(ClientRole::Reader, readers));
        self.shuffled(clients)
    }
}

/// `G0`: writers append their numbers to three lists; all lists must have the same order.
pub(super) fn dirty_write(environment: &TestEnvironment) -> Result<(), String> {
    const WRITERS: u64 = 200;
    let lists = [person(1), person(2), EDGE.to_owned()];
    let [one, two, edge] = &lists;
    environment.start(&format!(
        "INSERT DATA {{ {one} <urn:acid:knows> {two} ; {HISTORY} '0' . {two} {HISTORY} '0' .
           {edge} <urn:acid:from> {one} ; <urn:acid:to> {two} ; {HISTORY} '0' }}"
    ))?;
    let clients: Vec<u64> = (1..=WRITERS).collect();
    let committed = environment.run(&clients, |client, number| {
        client.write(|client, transaction| {
            transaction.update(&format!(
                "DELETE {{ ?x {HISTORY} ?old }} INSERT {{ ?x {HISTORY} ?new }}
                 WHERE {{ VALUES ?x {{ {one} {two} {edge} }} ?x {HISTORY} ?old
                   BIND(CONCAT(?old, ',{number}') AS ?new) }}"
            ))?;
            client.linger();
            Ok(number)
        })
    })?;
    let [first, others @ ..] = environment.after(|transaction| {
        Ok([
            text(transaction, one, HISTORY)?,
            text(transaction, two, HISTORY)?,
            text(transaction, edge, HISTORY)?,
        ])
    })?;
    if let Some(other) = others.iter().find(|other| **other != first) {
        return Err(format!("the lists differ in order or content: {first} and {other}"));
    }
    // Acknowledged writes are not lost, and aborted ones are not there.
    let mut expected: Vec<u64> = committed.into_iter().flatten().chain([0]).collect();
    let mut listed = first.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>().unwrap_or_default();
    expected.sort_unstable();
    listed.sort_unstable();
    if listed == expected {
        return Ok(());
    }
    Err(format!("the list {first} is not that of the committed {expected:?}"))
}

/// `G1a`: no read of data that is rolled back later.
pub(super) fn aborted_read(environment: &TestEnvironment) -> Result<(), String> {
    const EACH: usize = 5;
    let vertex = &person(1);
    environment.start(&format!("INSERT DATA {{ {vertex} {VERSION} 1 }}"))?;
    let clients = environment.writers_and_readers(5, EACH);
    let seen = environment.run(&clients, |client, who| {
        let ClientRole::Writer(_) = who else {
            client.sleep();
            return client.read(|_, transaction| integer(transaction, vertex, VERSION));
        };
        client.roll_back(|client, transaction| {
            integer(transaction, vertex, VERSION)?;
            client.sleep();
            transaction.update(&set(vertex, VERSION, 2))?;
            client.sleep();
            Ok(())
        })?;
        Ok(None)
    })?;
    let rolled_back = environment.tally().rolled_back;
    match seen.into_iter().flatten().find(|version| *version != 1) {
        Some(version) => Err(format!("a reader saw version {version}, which was never committed")),
        None if rolled_back == EACH => Ok(()),
        None => Err(format!("{rolled_back} transactions rolled back in place of {EACH}")),
    }
}

/// `G1b`: no read of data that its writer overwrites before the commit.
pub(super) fn intermediate_read(environment: &TestEnvironment) -> Result<(), String> {
    let vertex = &person(1);
    environment.start(&format!("INSERT DATA {{ {vertex} {VERSION} 99 }}"))?;
    let clients = environment.writers_and_readers(10, 100);
    let seen = environment.run(&clients, |client, who| match who {
        ClientRole::Writer(number) => client.write(|client, transaction| {
            transaction.update(&set(vertex, VERSION, 100 + 2 * number))?;
            client.sleep();
            transaction.update(&set(vertex, VERSION, 101 + 2 * number))?;
            Ok(99)
        }),
        ClientRole::Reader => {
            client.sleep();
            client.read(|_, transaction| integer(transaction, vertex, VERSION))
        }
    })?;
    match seen.into_iter().flatten().find(|version| version % 2 == 0) {
        Some(version) => Err(format!("a reader saw version {version}, which is between two steps")),
        None => Ok(()),
    }
}

/// `G1c`: of two transactions at most one reads the other's writes.
pub(super) fn circular_information_flow(environment: &TestEnvironment) -> Result<(), String> {
    let pair = [person(1), person(2)];
    environment.start(&format!("INSERT DATA {{ {} {VERSION} 0 . {} {VERSION} 0 }}", pair[0], pair[1]))?;
    let clients: Vec<i64> = (1..=100).collect();
    let read = environment.run(&clients, |client, number| {
        client.write(|client, transaction| {
            let (own, other) = if client.below(2) == 0 { (0, 1) } else { (1, 0) };
            transaction.update(&set(&pair[own], VERSION, number))?;
            client.linger();
            Ok((number, integer(transaction, &pair[other], VERSION)?))
        })
    })?;
    let read: BTreeMap<i64, i64> = read.into_iter().flatten().collect();
    for (number, from) in read.iter().filter(|(_, from)| **from != 0) {
        match read.get(from) {
            None => return Err(format!("transaction {number} read from {from}, which aborted")),
            Some(back) if back == number => {
                return Err(format!("transactions {number} and {from} read from each other"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// `IMP`: repeated reads are equal.
pub(super) fn item_many_preceders(environment: &TestEnvironment) -> Result<(), String> {
    let vertex = &person(1);
    environment.start(&format!("INSERT DATA {{ {vertex} {VERSION} 1 }}"))?;
    let clients = environment.writers_and_readers(10, 10);
    let seen = environment.run(&clients, |client, who| match who {
        ClientRole::Writer(_) => {
            client.sleep();
            client.write(|_, transaction| Ok(transaction.update(&count_up(vertex, VERSION)).map(|_| None)?))
        }
        ClientRole::Reader => client.read(|client, transaction| {
            let first = integer(transaction, vertex, VERSION)?;
            client.sleep();
            Ok(Some([first, integer(transaction, vertex, VERSION)?]))
        }),
    })?;
    if let Some(seen) = seen.into_iter().flatten().flatten().find(|[first, second]| first != second) {
        return Err(format!("one transaction read versions {seen:?}"));
    }
    let (last, commits) = (
        environment.after(|transaction| integer(transaction, vertex, VERSION))?,
        environment.tally().writer_commits,
    );
    if usize::try_from(last - 1) == Ok(commits) {
        return Ok(());
    }
    Err(format!("version {last} after {commits} commits"))
}

/// `PMP`: repeated counts are equal: no phantoms.
pub(super) fn predicate_many_preceders(environment: &TestEnvironment) -> Result<(), String> {
    const COUNT: &str =
        "SELECT (COUNT(*) AS ?n) { ?p a <urn:acid:Person> ; <urn:acid:likes> <urn:acid:post:1> }";
    const WRITERS: i64 = 10;
    let persons: String = (0..=WRITERS.unsigned_abs())
        .map(|number| format!("{} a <urn:acid:Person> . ", person(number)))
        .collect();
    environment.start(&format!("INSERT DATA {{ {persons} <urn:acid:post:1> a <urn:acid:Post> }}"))?;
    let clients = environment.writers_and_readers(WRITERS, 10);
    let seen = environment.run(&clients, |client, who| match who {
        ClientRole::Writer(number) => {
            client.sleep();
            let person = person(number.unsigned_abs());
            client.write(|_, transaction| {
                transaction.update(&format!(
                    "INSERT {{ {person} <urn:acid:likes> ?post }}
                     WHERE {{ {person} a <urn:acid:Person> . ?post a <urn:acid:Post> }}"
                ))?;
                Ok(None)
            })
        }
        ClientRole::Reader => client.read(|client, transaction| {
            let first = integers(transaction, COUNT, ["n"])?;
            client.sleep();
            Ok(Some([first, integers(transaction, COUNT, ["n"])?]))
        }),
    })?;
    if let Some(seen) = seen.into_iter().flatten().flatten().find(|[first, second]| first != second) {
        return Err(format!("one transaction counted {seen:?}"));
    }
    let [last] = environment.after(|transaction| integers(transaction, COUNT, ["n"]))?;
    let commits = environment.tally().writer_commits;
    if usize::try_from(last) == Ok(commits) {
        Ok(())
    } else {
        Err(format!("{last} edges after {commits} commits"))
    }
}
