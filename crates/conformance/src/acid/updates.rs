//! Anomalies of concurrent writers: lost updates (`LU`) and write skew (`WS`).

use super::test_environment::{
    TestEnvironment, TransactionFailure, count_up, integer, integers, person, set,
};
use vervet::{Isolation, Transaction};

const FRIENDS: &str = "<urn:acid:friends>";
const VALUE: &str = "<urn:acid:value>";

/// `LU`: every acknowledged friendship exists, and is counted.
pub(super) fn lost_update(environment: &TestEnvironment) -> Result<(), String> {
    const COUNT: &str = "SELECT (COUNT(*) AS ?n)
        { <urn:acid:person:1> <urn:acid:knows> ?friend . ?friend a <urn:acid:Person> }";
    let vertex = &person(1);
    environment.start(&format!("INSERT DATA {{ {vertex} a <urn:acid:Person> ; {FRIENDS} 0 }}"))?;
    let clients: Vec<u64> = (2..=201).collect();
    environment.run(&clients, |client, number| {
        client.write(|client, transaction| {
            let friend = person(number);
            transaction.update(&format!(
                "INSERT DATA {{ {friend} a <urn:acid:Person> . {vertex} <urn:acid:knows> {friend} }}"
            ))?;
            client.linger();
            transaction.update(&count_up(vertex, FRIENDS))?;
            Ok(())
        })
    })?;
    let (counted, [edges]) = environment.after(|transaction| {
        Ok((integer(transaction, vertex, FRIENDS)?, integers(transaction, COUNT, ["n"])?))
    })?;
    let commits = environment.tally().writer_commits;
    if usize::try_from(counted) == Ok(commits) && edges == counted {
        return Ok(());
    }
    Err(format!("{counted} friends counted, {edges} edges, after {commits} commits"))
}

const PAIRS: u64 = 10;
/// The sum of all pairs at the start.
const START: i64 = 1500;
const TAKEN: i64 = 100;

/// The two persons of a pair.
fn pair(number: u64) -> [String; 2] {
    [person(2 * number + 1), person(2 * number + 2)]
}

fn values(transaction: &Transaction, [one, two]: &[String; 2]) -> Result<[i64; 2], TransactionFailure> {
    let query = format!("SELECT ?a ?b {{ {one} {VALUE} ?a . {two} {VALUE} ?b }}");
    integers(transaction, &query, ["a", "b"])
}

/// `WS`: the sum of each pair stays positive. Under snapshot isolation, write skew must be possible.
pub(super) fn write_skew(environment: &TestEnvironment) -> Result<(), String> {
    let persons: String =
        (0..=PAIRS).map(pair).map(|[one, two]| format!("{one} {VALUE} 70 . {two} {VALUE} 80 . ")).collect();
    environment.start(&format!("INSERT DATA {{ {persons} }}"))?;
    let taken = environment.run(&[(); 50], |client, ()| {
        client.write(|client, transaction| {
            let pair = pair(client.below(PAIRS));
            let values = values(transaction, &pair)?;
            if values.iter().sum::<i64>() < TAKEN {
                return Ok(0);
            }
            client.sleep();
            let which = usize::from(client.below(2) == 1);
            transaction.update(&set(&pair[which], VALUE, values[which] - TAKEN))?;
            Ok(TAKEN)
        })
    })?;
    let taken: i64 = taken.into_iter().flatten().sum();
    let sums = environment.after(|transaction| {
        let sum = |number| Ok(values(transaction, &pair(number))?.iter().sum());
        (0..PAIRS).map(sum).collect::<Result<Vec<i64>, TransactionFailure>>()
    })?;
    let left: i64 = sums.iter().sum();
    if left != START - taken {
        return Err(format!("{left} left of {START} after {taken} were taken: lost updates"));
    }
    let skewed = sums.iter().filter(|sum| **sum <= 0).count();
    environment.note(&format!("write skew in {skewed} of {PAIRS} pairs"));
    let possible = skewed_by_force(environment)?;
    match environment.isolation {
        Isolation::Serializable if skewed > 0 => Err(format!("pairs with these sums: {sums:?}")),
        Isolation::Serializable if possible => Err("both of two skewed transactions commit".to_owned()),
        Isolation::Snapshot if !possible => {
            Err("a skewed transaction aborts, which snapshot isolation does not ask for".to_owned())
        }
        _ => Ok(()),
    }
}

/// Two transactions that certainly overlap, on a pair that no other client uses; returns whether both commit.
/// The first one always does.
fn skewed_by_force(environment: &TestEnvironment) -> Result<bool, String> {
    let pair = &pair(PAIRS);
    let run = || {
        let mut transactions = [environment.begin()?, environment.begin()?];
        for (transaction, which) in transactions.iter_mut().zip(0..) {
            let values: [i64; 2] = values(transaction, pair)?;
            transaction.update(&set(&pair[which], VALUE, values[which] - TAKEN))?;
        }
        let [first, second] = transactions;
        first.commit().map_err(|error| TransactionFailure::Failed(format!("the first one: {error}")))?;
        second.commit()?;
        Ok(())
    };
    match run() {
        Ok(()) => Ok(true),
        Err(TransactionFailure::Conflict) => Ok(false),
        Err(TransactionFailure::Failed(message)) => Err(message),
    }
}
