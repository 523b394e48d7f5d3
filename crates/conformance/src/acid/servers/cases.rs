//! The twelve tests: see the header of [`acid`](crate::acid).

use super::environment::{Client, End, Environment, Stop, integer, integers, set, two_sessions};
use crate::wire_session::{Effect, RequestFailure, WireSession};
use std::collections::BTreeMap;

/// Name, whether writers collide, and the test.
pub(super) type Test = (&'static str, bool, for<'a> fn(&'a Environment<'a>) -> Result<(), String>);

pub(super) const TESTS: [Test; 12] = [
    ("C", false, commit),
    ("RB", false, roll_back),
    ("G0", true, dirty_write),
    ("G1a", false, aborted_read),
    ("G1b", true, intermediate_read),
    ("G1c", true, circular_information_flow),
    ("IMP", true, item_many_preceders),
    ("PMP", false, predicate_many_preceders),
    ("OTV", false, observed_transaction_vanishes),
    ("FR", false, fractured_read),
    ("LU", true, lost_update),
    ("WS", true, write_skew),
];

const VERSION: &str = "urn:acid:version";
const HISTORY: &str = "urn:acid:history";
const EMAIL: &str = "urn:acid:email";
const VALUE: &str = "urn:acid:value";

/// Readers beside the writer of `C` and `RB`.
const READERS: usize = 20;

/// Persons, names, and emails.
fn counts(session: &mut WireSession, label: &str) -> Result<Vec<i64>, Stop> {
    let mut counts = Vec::new();
    for of in ["", ".values('urn:acid:name')", ".values('urn:acid:email')"] {
        counts.extend(integers(session, &format!("g.V().hasLabel('{label}'){of}.count()"))?);
    }
    if counts == [0, 0, 0] { Err(Stop::Behind) } else { Ok(counts) }
}

/// Readers beside one writer see only `allowed` states. At the end one of the last `ends` of them is there.
fn check_states<'a>(
    environment: &'a Environment<'a>,
    allowed: &[[i64; 3]],
    write: impl Fn(&mut Client<'a>) -> Result<usize, String> + Sync,
) -> Result<(), String> {
    let (one, two) = (environment.name("person:1"), environment.name("person:2"));
    let label = environment.name("Person");
    environment.start(&format!(
        "<{one}> a <{label}> ; <urn:acid:name> 'Alice' ; <{EMAIL}> 'a' . \
         <{two}> a <{label}> ; <urn:acid:name> 'Bob' ; <{EMAIL}> 'b1', 'b2'"
    ))?;
    let mut roles = vec![None; READERS];
    roles.insert(0, Some(1));
    let seen = environment.run(&roles, |client, role| match role {
        Some(_) => write(client).map(|ends| (Some(ends), None)),
        None => {
            client.sleep();
            let both = client.read(|client, session| {
                let first = counts(session, &label)?;
                client.sleep();
                Ok((first, counts(session, &label)?))
            })?;
            Ok((None, both))
        }
    })?;
    for (first, second) in seen.iter().filter_map(|(_, both)| both.as_ref()) {
        if first != second || !allowed.iter().any(|allowed| allowed[..] == first[..]) {
            return Err(format!(
                "a transaction counts {first:?} and later {second:?}; whole are {allowed:?}"
            ));
        }
    }
    let ends = seen.iter().filter_map(|(ends, _)| *ends).next().unwrap_or(1);
    let end = environment.after(|session| counts(session, &label))?;
    if allowed.iter().rev().take(ends).any(|allowed| allowed[..] == end[..]) {
        return Ok(());
    }
    Err(format!("the end counts {end:?}; whole are {allowed:?}"))
}

/// `C`: a transaction shows as a whole.
fn commit<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    let (one, three) = (environment.name("person:1"), environment.name("person:3"));
    let label = environment.name("Person");
    check_states(environment, &[[2, 2, 3], [3, 2, 4]], |client| {
        let end = client.write(|client, session| {
            session.run(&format!("g.V('{one}').property(set, '{EMAIL}', 'new').iterate()"))?;
            client.sleep();
            session.run(&format!("g.addV('{label}').property(T.id, '{three}').iterate()"))?;
            client.sleep();
            session.run(&format!(
                "g.V('{one}').addE('urn:acid:knows').to(__.V('{three}')).property('urn:acid:since', 2020).iterate()"
            ))?;
            Ok(())
        })?;
        match end {
            End::Committed(()) => Ok(1),
            End::Unknown(()) => Ok(2),
            End::Aborted => Err("the only writer aborted".to_owned()),
        }
    })
}

/// `RB`: what is rolled back never shows.
fn roll_back<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    let (one, two) = (environment.name("person:1"), environment.name("person:2"));
    check_states(environment, &[[2, 2, 3]], |client| {
        client.roll_back(|client, session| {
            session.run(&format!("g.V('{one}').property(set, '{EMAIL}', 'new').iterate()"))?;
            client.sleep();
            match integers(session, &format!("g.V('{two}').count()"))?.as_slice() {
                [1] => Ok(()),
                [0] => Err(Stop::Behind),
                other => Err(Stop::Wrong(format!("{other:?} in place of the second person"))),
            }
        })?;
        Ok(1)
    })
}

fn text(session: &mut WireSession, vertex: &str) -> Result<String, Stop> {
    let values = session.run(&format!("g.V('{vertex}').values('{HISTORY}')"))?;
    match values.as_slice() {
        [one] => Ok(one.as_text().unwrap_or_default().to_owned()),
        [] => Err(Stop::Behind),
        other => Err(Stop::Wrong(format!("{other:?} in place of one text of {vertex}"))),
    }
}

/// `G0`: writers append their numbers to three texts, which then have the same order.
fn dirty_write<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    const WRITERS: i64 = 100;
    let vertices = [1, 2, 3].map(|number| environment.name(format!("person:{number}")));
    let start: String = vertices.iter().map(|vertex| format!("<{vertex}> <{HISTORY}> '0' . ")).collect();
    environment.start(&start)?;
    let roles: Vec<i64> = (1..=WRITERS).collect();
    let ends = environment.run(&roles, |client, number| {
        client.write(|client, session| {
            for vertex in &vertices {
                let old = text(session, vertex)?;
                set(session, vertex, HISTORY, format!("'{old},{number}'"))?;
            }
            if client.below(2) == 0 {
                client.sleep_for(std::time::Duration::from_millis(1));
            }
            Ok(number)
        })
    })?;
    let texts = environment.after(|session| {
        vertices.iter().map(|vertex| text(session, vertex)).collect::<Result<Vec<_>, _>>()
    })?;
    if texts.iter().any(|text| *text != texts[0]) {
        return Err(format!("the texts differ: {texts:?}"));
    }
    let listed: Vec<i64> = texts[0].split(',').filter_map(|number| number.parse().ok()).collect();
    let (mut must, mut may) = (Vec::new(), vec![0]);
    for end in ends {
        match end {
            End::Committed(number) => must.push(number),
            End::Unknown(number) => may.push(number),
            End::Aborted => {}
        }
    }
    let twice = (1..listed.len()).any(|at| listed[..at].contains(&listed[at]));
    let missing = must.iter().find(|number| !listed.contains(number));
    let too_many = listed.iter().find(|number| !must.contains(number) && !may.contains(number));
    match (twice, missing, too_many) {
        (false, None, None) => Ok(()),
        found => Err(format!("the text {} is not that of the committed {must:?}: {found:?}", texts[0])),
    }
}

fn start_version<'a>(environment: &'a Environment<'a>, version: i64) -> Result<String, String> {
    let vertex = environment.name("person:1");
    environment.start(&format!("<{vertex}> <{VERSION}> {version}"))?;
    Ok(vertex)
}

/// `G1a`: no read of data that is rolled back later.
fn aborted_read<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    let vertex = start_version(environment, 1)?;
    let seen = environment.run(&environment.writers_and_readers(5, 15), |client, role| match role {
        Some(_) => {
            client.roll_back(|client, session| {
                integer(session, &vertex, VERSION)?;
                client.sleep();
                set(session, &vertex, VERSION, 2)?;
                client.sleep();
                Ok(())
            })?;
            Ok(None)
        }
        None => {
            client.sleep();
            client.read(|_, session| integer(session, &vertex, VERSION))
        }
    })?;
    match seen.into_iter().flatten().find(|version| *version != 1) {
        Some(version) => Err(format!("a reader saw version {version}, which was never committed")),
        None => Ok(()),
    }
}

/// `G1b`: no read of data that its writer overwrites before the commit.
fn intermediate_read<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    let vertex = start_version(environment, 99)?;
    let seen = environment.run(&environment.writers_and_readers(10, 100), |client, role| match role {
        Some(number) => {
            client.write(|client, session| {
                set(session, &vertex, VERSION, 100 + 2 * number)?;
                client.sleep();
                set(session, &vertex, VERSION, 101 + 2 * number)
            })?;
            Ok(None)
        }
        None => {
            client.sleep();
            client.read(|_, session| integer(session, &vertex, VERSION))
        }
    })?;
    match seen.into_iter().flatten().find(|version| version % 2 == 0) {
        Some(version) => Err(format!("a reader saw version {version}, which is between two steps")),
        None => Ok(()),
    }
}

/// `G1c`: of two transactions at most one reads the other's writes.
fn circular_information_flow<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    let pair = [1, 2].map(|number| environment.name(format!("person:{number}")));
    environment.start(&format!("<{}> <{VERSION}> 0 . <{}> <{VERSION}> 0", pair[0], pair[1]))?;
    let roles: Vec<i64> = (1..=100).collect();
    let ends = environment.run(&roles, |client, number| {
        client.write(|client, session| {
            let (own, other) = if client.below(2) == 0 { (0, 1) } else { (1, 0) };
            set(session, &pair[own], VERSION, number)?;
            client.sleep_for(std::time::Duration::from_millis(1));
            Ok((number, integer(session, &pair[other], VERSION)?))
        })
    })?;
    let (mut read, mut may) = (BTreeMap::new(), Vec::new());
    for end in ends {
        match end {
            End::Committed((number, from)) => drop(read.insert(number, from)),
            End::Unknown((number, _)) => may.push(number),
            End::Aborted => {}
        }
    }
    for (number, from) in read.iter().filter(|(_, from)| **from != 0) {
        match read.get(from) {
            None if !may.contains(from) => {
                return Err(format!("transaction {number} read from {from}, which aborted"));
            }
            Some(back) if back == number => {
                return Err(format!("transactions {number} and {from} read from each other"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// `IMP`: repeated reads are equal.
fn item_many_preceders<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    let vertex = start_version(environment, 1)?;
    let seen = environment.run(&environment.writers_and_readers(20, 30), |client, role| match role {
        Some(_) => {
            client.sleep();
            client.write(|_, session| {
                let version = integer(session, &vertex, VERSION)?;
                set(session, &vertex, VERSION, version + 1)
            })?;
            Ok(None)
        }
        None => client.read(|client, session| {
            let first = integer(session, &vertex, VERSION)?;
            client.sleep();
            Ok((first, integer(session, &vertex, VERSION)?))
        }),
    })?;
    equal_reads(&seen)?;
    let last = environment.after(|session| integer(session, &vertex, VERSION))?;
    if environment.tally().allows(last - 1) {
        return Ok(());
    }
    Err(format!("version {last} after {}", environment.tally()))
}

fn equal_reads(seen: &[Option<(i64, i64)>]) -> Result<(), String> {
    match seen.iter().flatten().find(|(first, second)| first != second) {
        Some(both) => Err(format!("one transaction read {both:?}")),
        None => Ok(()),
    }
}

/// `PMP`: repeated counts are equal: no phantoms.
fn predicate_many_preceders<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    const WRITERS: i64 = 20;
    let post = environment.name("post:1");
    let person = |number: i64| environment.name(format!("person:{number}"));
    let persons: String =
        (1..=WRITERS).map(|number| format!("<{}> a <urn:acid:Person> . ", person(number))).collect();
    environment.start(&format!("{persons} <{post}> a <urn:acid:Post>"))?;
    let count = |session: &mut WireSession| {
        if integers(session, &format!("g.V('{post}').count()"))? == [0] {
            return Err(Stop::Behind);
        }
        Ok::<i64, Stop>(
            integers(session, &format!("g.V('{post}').in('urn:acid:likes').count()"))?.iter().sum(),
        )
    };
    let seen = environment.run(&environment.writers_and_readers(WRITERS, 30), |client, role| match role {
        Some(number) => {
            client.sleep();
            let person = person(number);
            client.write(|_, session| {
                session
                    .run(&format!("g.V('{person}').addE('urn:acid:likes').to(__.V('{post}')).iterate()"))?;
                Ok(())
            })?;
            Ok(None)
        }
        None => client.read(|client, session| {
            let first = count(session)?;
            client.sleep();
            Ok((first, count(session)?))
        }),
    })?;
    equal_reads(&seen)?;
    let last = environment.after(count)?;
    if environment.tally().allows(last) {
        return Ok(());
    }
    Err(format!("{last} edges after {}", environment.tally()))
}

/// `OTV`: once a part of a transaction was seen, all of it stays visible.
fn observed_transaction_vanishes<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    cycle(environment, |first, second| first.iter().max() <= second.iter().min())
}

/// `FR`: a transaction is seen completely or not at all.
fn fractured_read<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    cycle(environment, |first, second| first == second)
}

/// One writer increments the versions of four persons together; a reader reads all of them twice.
fn cycle<'a>(
    environment: &'a Environment<'a>,
    allowed: impl Fn(&[i64], &[i64]) -> bool,
) -> Result<(), String> {
    const WRITES: usize = 60;
    const READS: usize = 60;
    let persons = [1, 2, 3, 4].map(|number| environment.name(format!("person:{number}")));
    let start: String = persons.iter().map(|person| format!("<{person}> <{VERSION}> 0 . ")).collect();
    environment.start(&start)?;
    let names: Vec<String> = persons.iter().map(|person| format!("'{person}'")).collect();
    let text = format!("g.V({}).values('{VERSION}')", names.join(", "));
    let versions = |session: &mut WireSession| {
        let versions = integers(session, &text)?;
        match versions.len() {
            0 => Err(Stop::Behind),
            count if count == persons.len() => Ok(versions),
            _ => Err(Stop::Wrong(format!("versions {versions:?}"))),
        }
    };
    let mut roles = vec![None; READS];
    roles.insert(0, Some(()));
    let seen = environment.run(&roles, |client, role| match role {
        Some(()) => {
            for _ in 0..WRITES {
                client.write(|client, session| {
                    let version = versions(session)?[0];
                    let begin = usize::try_from(client.below(4)).unwrap_or(0);
                    for offset in 0..persons.len() {
                        set(session, &persons[(begin + offset) % persons.len()], VERSION, version + 1)?;
                    }
                    Ok(())
                })?;
                client.sleep_for(environment.sleep / 10);
            }
            Ok(None)
        }
        None => client.read(|client, session| {
            let first = versions(session)?;
            client.sleep();
            Ok((first, versions(session)?))
        }),
    })?;
    let seen: Vec<_> = seen.into_iter().flatten().collect();
    if let Some((first, second)) = seen.iter().find(|(first, second)| !allowed(first, second)) {
        return Err(format!("one transaction read versions {first:?} and later {second:?}"));
    }
    let end = environment.after(versions)?;
    if end.iter().all(|version| *version == end[0]) && environment.tally().allows(end[0]) {
        return Ok(());
    }
    Err(format!("versions {end:?} after {}", environment.tally()))
}

/// `LU`: every acknowledged friendship exists, and is counted.
fn lost_update<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    let vertex = environment.name("person:1");
    environment.start(&format!("<{vertex}> a <urn:acid:Person> ; <{VALUE}> 0"))?;
    let roles: Vec<i64> = (2..=101).collect();
    environment.run(&roles, |client, number| {
        let friend = environment.name(format!("person:{number}"));
        client.write(|client, session| {
            session.run(&format!(
                "g.V('{vertex}').as('a').addV('urn:acid:Person').property(T.id, '{friend}').as('b')\
                 .addE('urn:acid:knows').from('a').to('b').iterate()"
            ))?;
            client.sleep_for(std::time::Duration::from_millis(1));
            let friends = integer(session, &vertex, VALUE)?;
            set(session, &vertex, VALUE, friends + 1)
        })
    })?;
    let (counted, edges) = environment.after(|session| {
        let edges = integers(session, &format!("g.V('{vertex}').out('urn:acid:knows').count()"))?;
        Ok((integer(session, &vertex, VALUE)?, edges.iter().sum::<i64>()))
    })?;
    if counted == edges && environment.tally().allows(counted) {
        return Ok(());
    }
    Err(format!("{counted} friends counted, {edges} edges, after {}", environment.tally()))
}

const PAIRS: u64 = 10;
const TAKEN: i64 = 100;

/// `WS`: the sum of each pair stays positive.
fn write_skew<'a>(environment: &'a Environment<'a>) -> Result<(), String> {
    let pair = |number: u64| [1, 2].map(|side| environment.name(format!("person:{}", 2 * number + side)));
    let persons: String = (0..=PAIRS)
        .map(pair)
        .map(|[one, two]| format!("<{one}> <{VALUE}> 70 . <{two}> <{VALUE}> 80 . "))
        .collect();
    environment.start(&persons)?;
    let values = |session: &mut WireSession, pair: &[String; 2]| {
        Ok::<_, Stop>([integer(session, &pair[0], VALUE)?, integer(session, &pair[1], VALUE)?])
    };
    let ends = environment.run(&[(); 50], |client, ()| {
        client.write(|client, session| {
            let pair = pair(client.below(PAIRS));
            let values = values(session, &pair)?;
            if values.iter().sum::<i64>() < TAKEN {
                return Ok(0);
            }
            client.sleep();
            let side = usize::from(client.below(2) == 1);
            set(session, &pair[side], VALUE, values[side] - TAKEN)?;
            Ok(TAKEN)
        })
    })?;
    let (mut taken, mut perhaps) = (0, 0);
    for end in ends {
        match end {
            End::Committed(amount) => taken += amount,
            End::Unknown(amount) => perhaps += amount,
            End::Aborted => {}
        }
    }
    let sums = environment.after(|session| {
        (0..PAIRS)
            .map(|number| Ok(values(session, &pair(number))?.iter().sum()))
            .collect::<Result<Vec<i64>, Stop>>()
    })?;
    let gone = 150 * i64::try_from(PAIRS).unwrap_or(0) - sums.iter().sum::<i64>();
    if !(taken..=taken + perhaps).contains(&gone) {
        return Err(format!("{gone} are gone after {taken} were taken, and perhaps {perhaps}: lost updates"));
    }
    if sums.iter().any(|sum| *sum <= 0) {
        return Err(format!("pairs with these sums: {sums:?}"));
    }
    both_do_not_commit(environment, &pair(PAIRS))
}

/// Two transactions that certainly overlap, each on one side of a pair: not both commit.
fn both_do_not_commit<'a>(environment: &'a Environment<'a>, pair: &[String; 2]) -> Result<(), String> {
    let Some(mut sessions) = two_sessions(environment) else { return Ok(()) };
    let mut committed = 0;
    for (session, side) in sessions.iter_mut().zip(0..) {
        let values = [integer(session, &pair[0], VALUE), integer(session, &pair[1], VALUE)];
        let [Ok(one), Ok(two)] = values else { return Ok(()) };
        let value: i64 = if side == 0 { one } else { two };
        if set(session, &pair[side], VALUE, value - TAKEN).is_err() {
            return Ok(());
        }
    }
    for session in &mut sessions {
        match session.commit() {
            Ok(()) => committed += 1,
            Err(RequestFailure::Error { kind, message })
                if Effect::of(&kind, &message) == Effect::Unexpected =>
            {
                return Err(format!("{kind}: {message}"));
            }
            Err(_) => {}
        }
    }
    if committed < 2 { Ok(()) } else { Err("both of two skewed transactions commit".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::super::environment::Tally;

    #[test]
    fn unknown_outcomes_allow_both() {
        let tally = Tally { commits: 3, unknown: 2, ..Tally::default() };
        assert_eq!([2, 3, 5, 6].map(|commits| tally.allows(commits)), [false, true, true, false]);
        assert!(!tally.allows(-1));
    }
}
