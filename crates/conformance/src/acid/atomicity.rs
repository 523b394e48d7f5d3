//! Atomicity: a transaction takes effect as a whole (`C`) or not at all (`RB`).

use super::test_environment::{Client, TestEnvironment, TransactionFailure, integers, person};
use vervet::{Answer, Transaction};

/// Readers beside the writers: each read sees one of the two states.
const READERS: usize = 14;

const START: &str = "INSERT DATA {
    <urn:acid:person:1> a <urn:acid:Person> ; <urn:acid:name> 'Alice' ; <urn:acid:email> 'a' .
    <urn:acid:person:2> a <urn:acid:Person> ; <urn:acid:name> 'Bob' ; <urn:acid:email> 'b1', 'b2' }";

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientRole {
    Writer,
    BackToSavepoint,
    Reader,
}

/// Persons, persons with a name, emails.
fn counts(transaction: &Transaction) -> Result<[i64; 3], TransactionFailure> {
    let one = |of: &str| {
        let query = format!("SELECT (COUNT(*) AS ?n) {{ ?s {of} ?o }}");
        Ok::<_, TransactionFailure>(integers(transaction, &query, ["n"])?[0])
    };
    let persons = integers(transaction, "SELECT (COUNT(*) AS ?n) { ?p a <urn:acid:Person> }", ["n"])?[0];
    Ok([persons, one("<urn:acid:name>")?, one("<urn:acid:email>")?])
}

fn add_email(transaction: &mut Transaction, email: &str) -> Result<(), TransactionFailure> {
    transaction.update(&format!("INSERT DATA {{ {} <urn:acid:email> '{email}' }}", person(1)))?;
    Ok(())
}

/// Checks that the clients see only `allowed` states, and that the end state is the last of them.
fn check(
    environment: &TestEnvironment,
    clients: &[ClientRole],
    allowed: &[[i64; 3]],
    write: impl Fn(&mut Client<'_>, ClientRole) -> Result<(), String> + Sync,
) -> Result<(), String> {
    environment.start(START)?;
    let seen = environment.run(clients, |client, who| {
        if who != ClientRole::Reader {
            return write(client, who).map(|()| None);
        }
        client.sleep();
        client.read(|client, transaction| {
            let first = counts(transaction)?;
            client.sleep();
            let second = counts(transaction)?;
            if first == second {
                return Ok(first);
            }
            Err(TransactionFailure::Failed(format!("one transaction counts {first:?} and later {second:?}")))
        })
    })?;
    if let Some(wrong) = seen.iter().flatten().find(|seen| !allowed.contains(seen)) {
        return Err(format!("a reader counts {wrong:?}; whole are {allowed:?}"));
    }
    let end = environment.after(|transaction| counts(transaction))?;
    if Some(&end) == allowed.last() {
        return Ok(());
    }
    Err(format!("the end counts {end:?} in place of {:?}", allowed.last()))
}

/// `C`: committed data is visible.
pub(super) fn commit(environment: &TestEnvironment) -> Result<(), String> {
    let mut clients = vec![ClientRole::Reader; READERS];
    clients.insert(0, ClientRole::Writer);
    check(environment, &clients, &[[2, 2, 3], [3, 2, 4]], |client, _| {
        let done = client.write(|client, transaction| {
            add_email(transaction, "new")?;
            client.sleep();
            transaction.update(&format!("INSERT DATA {{ {} a <urn:acid:Person> }}", person(3)))?;
            client.sleep();
            transaction.update(
                "INSERT DATA { <urn:acid:person:1> <urn:acid:knows> <urn:acid:person:3> .
                   <urn:acid:edge:1> <urn:acid:from> <urn:acid:person:1> ;
                     <urn:acid:to> <urn:acid:person:3> ; <urn:acid:since> 2020 }",
            )?;
            Ok(())
        })?;
        done.ok_or_else(|| "the only writer aborted".to_owned())
    })
}

/// `RB`: rolled-back data is never visible.
pub(super) fn roll_back(environment: &TestEnvironment) -> Result<(), String> {
    let mut clients = vec![ClientRole::Reader; READERS];
    clients.splice(0..0, [ClientRole::Writer, ClientRole::BackToSavepoint]);
    check(environment, &clients, &[[2, 2, 3]], |client, who| {
        if who == ClientRole::BackToSavepoint {
            let done = client.write(|client, transaction| {
                let before = transaction.savepoint();
                add_email(transaction, "other")?;
                client.sleep();
                transaction.roll_back_to(&before)?;
                Ok(())
            })?;
            return done.ok_or_else(|| "a transaction without changes aborted".to_owned());
        }
        client.roll_back(|client, transaction| {
            add_email(transaction, "new")?;
            client.sleep();
            let ask = format!("ASK {{ {} a <urn:acid:Person> }}", person(2));
            match transaction.query(&ask)? {
                Answer::Boolean(true) => Ok(()),
                _ => Err(TransactionFailure::Failed("the second person is missing".to_owned())),
            }
        })
    })?;
    match environment.tally().rolled_back {
        1 => Ok(()),
        other => Err(format!("{other} transactions rolled back in place of one")),
    }
}
