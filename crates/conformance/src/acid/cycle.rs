//! Anomalies along a cycle of four persons whose versions are always incremented together.

use super::test_environment::{Client, THREADS, TestEnvironment, TransactionFailure, integers, person};
use vervet::Transaction;

/// The number of transactions of the only writer.
const WRITES: u32 = 100;
const PERSONS: u64 = 4;

#[derive(Clone, Copy)]
enum ClientRole {
    Writer { readers: u32 },
    Reader,
}

/// `OTV`: once a part of a transaction was seen, all of it stays visible.
pub(super) fn observed_transaction_vanishes(environment: &TestEnvironment) -> Result<(), String> {
    check(environment, 50, |first, second| first.iter().max() <= second.iter().min())
}

/// `FR`: a transaction is seen completely or not at all.
pub(super) fn fractured_read(environment: &TestEnvironment) -> Result<(), String> {
    check(environment, 100, |first, second| first == second)
}

fn check(
    environment: &TestEnvironment,
    readers: u32,
    allowed: impl Fn(&[i64; 4], &[i64; 4]) -> bool,
) -> Result<(), String> {
    let persons: String = (1..=PERSONS)
        .map(|number| {
            let (person, next) = (person(number), person(number % PERSONS + 1));
            format!("{person} <urn:acid:knows> {next} ; <urn:acid:version> 0 . ")
        })
        .collect();
    environment.start(&format!("INSERT DATA {{ {persons} }}"))?;
    let mut clients = vec![ClientRole::Writer { readers }];
    clients.extend((0..readers).map(|_| ClientRole::Reader));
    let seen = environment.run(&clients, |client, who| match who {
        ClientRole::Writer { readers } => write(environment, client, readers).map(|()| None),
        ClientRole::Reader => client.read(|client, transaction| {
            let first = versions(transaction, 1)?;
            client.sleep();
            Ok((first, versions(transaction, 1)?))
        }),
    })?;
    let seen: Vec<_> = seen.into_iter().flatten().collect();
    if let Some((first, second)) = seen.iter().find(|(first, second)| !allowed(first, second)) {
        return Err(format!("one transaction read versions {first:?} and later {second:?}"));
    }
    let mut states: Vec<_> = seen.iter().map(|(first, _)| first[0]).collect();
    states.sort_unstable();
    states.dedup();
    environment.note(&format!("{} states seen", states.len()));
    // Otherwise no write has overlapped with the readers.
    if states.len() < 3 { Err(format!("the readers saw versions {states:?} only")) } else { Ok(()) }
}

/// Writes while the readers run. One draw in five picks a person outside the cycle.
fn write(environment: &TestEnvironment, client: &mut Client<'_>, readers: u32) -> Result<(), String> {
    let others = u32::try_from(THREADS - 1).unwrap_or(1);
    let pause = environment.sleep * readers / others / WRITES;
    let mut counted = 0;
    for _ in 0..WRITES {
        let start = client.below(PERSONS + 1);
        let done = client.write(|_, transaction| {
            let person = person(start);
            transaction.update(&format!(
                "DELETE {{ {person} <urn:acid:version> ?a . ?p2 <urn:acid:version> ?b .
                           ?p3 <urn:acid:version> ?c . ?p4 <urn:acid:version> ?d }}
                 INSERT {{ {person} <urn:acid:version> ?a1 . ?p2 <urn:acid:version> ?b1 .
                           ?p3 <urn:acid:version> ?c1 . ?p4 <urn:acid:version> ?d1 }}
                 WHERE {{ {} BIND(?a + 1 AS ?a1) BIND(?b + 1 AS ?b1) BIND(?c + 1 AS ?c1) BIND(?d + 1 AS ?d1) }}",
                cycle(start)
            ))?;
            Ok(())
        })?;
        counted += i64::from(done.is_some() && start > 0);
        client.sleep_for(pause);
    }
    let end = environment.after(|transaction| versions(transaction, 1))?;
    if end == [counted; 4] { Ok(()) } else { Err(format!("versions {end:?} after {counted} commits")) }
}

/// The pattern of the cycle starting at a person, with all versions.
fn cycle(start: u64) -> String {
    let person = person(start);
    format!(
        "{person} <urn:acid:knows> ?p2 . ?p2 <urn:acid:knows> ?p3 . ?p3 <urn:acid:knows> ?p4 .
         ?p4 <urn:acid:knows> {person} . {person} <urn:acid:version> ?a . ?p2 <urn:acid:version> ?b .
         ?p3 <urn:acid:version> ?c . ?p4 <urn:acid:version> ?d ."
    )
}

fn versions(transaction: &Transaction, start: u64) -> Result<[i64; 4], TransactionFailure> {
    let query = format!("SELECT ?a ?b ?c ?d {{ {} }}", cycle(start));
    integers(transaction, &query, ["a", "b", "c", "d"])
}
