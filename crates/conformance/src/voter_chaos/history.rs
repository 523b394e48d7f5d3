//! The check of what a server shows against what the clients know.
//!
//! # Shape
//! Client `C` of `n` writes tokens 1, 2, 3, … one after another: it sends a token until it is acknowledged,
//! and then the next one. A transaction adds `<urn:client:C> <urn:token> SEQ` and increments the object of
//! `<urn:client:C> <urn:count> ?n`, unless the token exists. The graph begins with token 0 and count 1.
//! # Why a summary is enough
//! Tokens of a client are distinct integers and become visible in order. So in each version of the graph
//! they are exactly `0..=last`, which holds if the least is 0 and their number is `last + 1`; the count is
//! that number. A smaller number is a lost token, a greater count is an update that was done twice. A version
//! may lack the last acknowledged tokens only as long as a server has not caught up.

/// What a client knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Known {
    /// The last acknowledged token, before the server was asked.
    pub(super) acknowledged: u64,
    /// The last token that was sent, after the server has answered.
    pub(super) sent: u64,
}

/// The state of a right answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Shown {
    /// It has every acknowledged token.
    All,
    /// It lacks the last acknowledged tokens of a client, which the message names.
    Behind(String),
}

/// What a server shows of one client.
struct Row {
    client: usize,
    count: u64,
    tokens: u64,
    first: u64,
    last: u64,
}

/// The initial graph, as an update.
pub(super) fn initial_graph(clients: usize) -> String {
    let client =
        |client| format!("<urn:client:{client}> <urn:count> 1 . <urn:client:{client}> <urn:token> 0 . ");
    format!("INSERT DATA {{ {} }}", (0..clients).map(client).collect::<String>())
}

/// The update that writes a token. Its second execution changes nothing.
pub(super) fn update(client: usize, token: u64) -> String {
    format!(
        "DELETE {{ <urn:client:{client}> <urn:count> ?n }} \
         INSERT {{ <urn:client:{client}> <urn:count> ?more ; <urn:token> {token} }} \
         WHERE {{ <urn:client:{client}> <urn:count> ?n BIND(?n + 1 AS ?more) \
         FILTER NOT EXISTS {{ <urn:client:{client}> <urn:token> {token} }} }}"
    )
}

/// The query whose answer, as CSV, [`check`] takes.
pub(super) const SUMMARY: &str = "SELECT ?c ?n (COUNT(?t) AS ?tokens) (MIN(?t) AS ?first) (MAX(?t) AS ?last) \
     { ?c <urn:count> ?n ; <urn:token> ?t } GROUP BY ?c ?n";

/// The query whose answer, as CSV, [`counts`] takes.
pub(super) const COUNTS: &str = "SELECT ?c ?n { ?c <urn:count> ?n }";

/// Compares the answer to [`SUMMARY`] with what the clients know, by client.
///
/// # Errors
/// A token is lost, an update is done twice or in part, or the answer is malformed: the reason.
pub(super) fn check(answer: &str, known: &[Known]) -> Result<Shown, String> {
    let mut by_client: Vec<Option<Row>> = known.iter().map(|_| None).collect();
    for line in answer.lines().skip(1) {
        let row = row(line).ok_or_else(|| format!("a malformed row: {line}"))?;
        let place = by_client.get_mut(row.client).ok_or_else(|| format!("an unknown client: {line}"))?;
        if let Some(Row { client, count, .. }) = place {
            return Err(format!("client {client} has two counts, {count} and {}", row.count));
        }
        *place = Some(row);
    }
    let mut shown = Shown::All;
    for (client, (row, known)) in by_client.iter().zip(known).enumerate() {
        let Some(Row { count, tokens, first, last, .. }) = row else {
            return Err(format!("client {client} is missing"));
        };
        if *first != 0 || *tokens != last + 1 {
            return Err(format!("client {client}: {tokens} tokens from {first} to {last}: some are lost"));
        }
        if count > tokens {
            return Err(format!("client {client}: a count of {count}, but {tokens} tokens: done twice"));
        }
        if count < tokens {
            return Err(format!("client {client}: a count of {count}, but {tokens} tokens: done in part"));
        }
        if *last > known.sent {
            return Err(format!(
                "client {client}: token {last}, but {} is the last that was sent",
                known.sent
            ));
        }
        if *last < known.acknowledged {
            let what = format!("client {client}: token {last}, but {} is acknowledged", known.acknowledged);
            shown = Shown::Behind(what);
        }
    }
    Ok(shown)
}

/// The counts in the answer to [`COUNTS`], by client.
///
/// # Errors
/// The answer is malformed, or a client has none or several counts.
pub(super) fn counts(answer: &str, clients: usize) -> Result<Vec<u64>, String> {
    let mut counts = vec![0; clients];
    for line in answer.lines().skip(1) {
        let malformed = || format!("a malformed row: {line}");
        let (client, count) = line.split_once(',').ok_or_else(malformed)?;
        let count = count.parse().map_err(|_| malformed())?;
        let place = client_of(client).and_then(|client| counts.get_mut(client)).ok_or_else(malformed)?;
        if std::mem::replace(place, count) != 0 {
            return Err(format!("{client} has two counts"));
        }
    }
    match counts.iter().position(|count| *count == 0) {
        Some(client) => Err(format!("client {client} has no count")),
        None => Ok(counts),
    }
}

/// Compares counts of one server with earlier ones of the same server, and keeps the later ones.
///
/// # Errors
/// A client has fewer: the reason.
pub(super) fn check_monotonic(seen: &mut Vec<u64>, counts: Vec<u64>) -> Result<(), String> {
    let lost = seen.iter().zip(&counts).position(|(seen, count)| count < seen);
    if let Some(client) = lost {
        return Err(format!("client {client} has count {} after {}", counts[client], seen[client]));
    }
    *seen = counts;
    Ok(())
}

fn client_of(iri: &str) -> Option<usize> {
    iri.strip_prefix("urn:client:")?.parse().ok()
}

fn row(line: &str) -> Option<Row> {
    let mut cells = line.split(',');
    let client = client_of(cells.next()?)?;
    let mut number = || cells.next()?.parse().ok();
    Some(Row { client, count: number()?, tokens: number()?, first: number()?, last: number()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet::{Database, OutputFormat, QueryOptions};

    const KNOWN: [Known; 2] = [Known { acknowledged: 3, sent: 4 }, Known { acknowledged: 2, sent: 2 }];

    /// A graph in which client 0 has written tokens 1 to 3, and client 1 tokens 1 and 2.
    fn written() -> Database {
        let database = Database::in_memory();
        database.update(&initial_graph(2)).unwrap();
        for (client, token) in [(0, 1), (1, 1), (0, 2), (0, 3), (1, 2)] {
            database.update(&update(client, token)).unwrap();
        }
        database
    }

    fn answer(database: &Database, query: &str) -> String {
        let mut bytes = Vec::new();
        database.write(query, &QueryOptions::default(), OutputFormat::Csv, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The outcome of the check after a change that no client has made.
    fn checked_after(change: &str) -> Result<Shown, String> {
        let database = written();
        database.update(change).unwrap();
        check(&answer(&database, SUMMARY), &KNOWN)
    }

    fn assert_found(change: &str, reason: &str) {
        let found = checked_after(change);
        assert!(found.as_ref().is_err_and(|found| found.contains(reason)), "{change}: {found:?}");
    }

    #[test]
    fn a_right_history_passes() {
        assert_eq!(checked_after("INSERT DATA {}"), Ok(Shown::All));
        // Without an answer: sent, and done.
        assert_eq!(checked_after(&update(0, 4)), Ok(Shown::All));
    }

    #[test]
    fn an_update_that_is_sent_again_changes_nothing() {
        assert_eq!(checked_after(&update(0, 3)), Ok(Shown::All));
        assert_eq!(checked_after(&update(1, 1)), Ok(Shown::All));
    }

    #[test]
    fn lost_tokens_are_found() {
        let lost = "some are lost";
        assert_found("DELETE DATA { <urn:client:0> <urn:token> 2 }", lost);
        assert_found("DELETE DATA { <urn:client:0> <urn:token> 0 }", lost);
        // With its increment undone.
        assert_found(
            "DELETE DATA { <urn:client:0> <urn:token> 1 ; <urn:count> 4 } ; INSERT DATA { <urn:client:0> <urn:count> 3 }",
            lost,
        );
        // The last one may still come.
        let whole = "DELETE DATA { <urn:client:1> <urn:token> 2 ; <urn:count> 3 } ; INSERT DATA { <urn:client:1> <urn:count> 2 }";
        let behind = checked_after(whole).unwrap();
        assert!(matches!(&behind, Shown::Behind(what) if what.contains("client 1: token 1")), "{behind:?}");
        assert_found("DELETE WHERE { <urn:client:1> <urn:token> ?t }", "client 1 is missing");
    }

    #[test]
    fn updates_that_are_done_twice_are_found() {
        let twice = "DELETE { <urn:client:1> <urn:count> ?n } INSERT { <urn:client:1> <urn:count> ?more } WHERE \
                     { <urn:client:1> <urn:count> ?n BIND(?n + 1 AS ?more) }";
        assert_found(twice, "done twice");
        // An increment beside another one, of the same version.
        assert_found("INSERT DATA { <urn:client:1> <urn:count> 4 }", "two counts");
    }

    #[test]
    fn other_faults_are_found() {
        assert_found("INSERT DATA { <urn:client:0> <urn:token> 4 }", "done in part");
        assert_found(
            "INSERT DATA { <urn:client:1> <urn:token> 3 ; <urn:count> 4 } ; DELETE DATA { <urn:client:1> <urn:count> 3 }",
            "2 is the last that was sent",
        );
        assert_found("INSERT DATA { <urn:client:7> <urn:token> 0 ; <urn:count> 1 }", "unknown client");
        assert!(check("c,n\nurn:client:0,1", &KNOWN).is_err());
        assert!(check("", &KNOWN).is_err());
    }

    #[test]
    fn counts_that_decrease_are_found() {
        let database = written();
        let mut seen = counts(&answer(&database, COUNTS), 2).unwrap();
        assert_eq!(seen, [4, 3]);
        let again = counts(&answer(&database, COUNTS), 2).unwrap();
        assert_eq!(check_monotonic(&mut seen, again), Ok(()));
        assert!(check_monotonic(&mut seen, vec![5, 2]).is_err());
        assert_eq!(seen, [4, 3]);
        assert_eq!(check_monotonic(&mut seen, vec![5, 3]), Ok(()));
        assert!(check_monotonic(&mut seen, vec![4, 3]).is_err());
        assert!(counts("c,n\nurn:client:0,4", 2).is_err());
        assert!(counts("c,n\nurn:client:0,4\nurn:client:0,5\nurn:client:1,3", 2).is_err());
    }
}
