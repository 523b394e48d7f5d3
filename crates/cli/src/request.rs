//! Classifies an input of the shell: a command, a query or an update; and the first line of an input.

use vervet::Isolation;

/// A transaction command. Case does not matter; a leading `.` and a trailing `;` are ignored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TransactionCommand {
    Begin(Isolation),
    Commit,
    Rollback,
    Savepoint(String),
    RollbackTo(String),
    /// A malformed command; the text is the correct form.
    Wrong(&'static str),
}

impl TransactionCommand {
    /// The command in `input`; `None`: not a command.
    pub(crate) fn parse(input: &str) -> Option<Self> {
        let text = input.trim().trim_end_matches(';').trim_end();
        // No command has more than three words; a long input is parsed again with each new line.
        let words: Vec<&str> = text.strip_prefix('.').unwrap_or(text).split_whitespace().take(4).collect();
        let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        Some(match lower[..] {
            ["begin"] | ["begin", "serializable"] => Self::Begin(Isolation::Serializable),
            ["begin", "snapshot"] => Self::Begin(Isolation::Snapshot),
            ["begin", ..] => Self::Wrong("begin [serializable|snapshot]"),
            ["commit"] => Self::Commit,
            ["commit", ..] => Self::Wrong("commit"),
            ["rollback"] => Self::Rollback,
            ["rollback", "to", _] => Self::RollbackTo(words[2].to_owned()),
            ["rollback", ..] => Self::Wrong("rollback, or rollback to NAME"),
            ["savepoint", _] => Self::Savepoint(words[1].to_owned()),
            ["savepoint", ..] => Self::Wrong("savepoint NAME"),
            _ => return None,
        })
    }
}

/// A word that is a command of the shell without a dot, as a newcomer types it: `exit`, `quit`, `help`,
/// `\\q`.
pub(crate) fn plain_command(input: &str) -> Option<&'static str> {
    let text = input.trim().trim_end_matches(';').trim_end();
    match text.to_ascii_lowercase().as_str() {
        "exit" | "quit" | "\\q" | ":q" | "bye" => Some(".quit"),
        "help" | "?" | "\\h" | "\\?" => Some(".help"),
        _ => None,
    }
}

const QUERIES: [&str; 4] = ["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"];
const UPDATES: [&str; 10] =
    ["INSERT", "DELETE", "WITH", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY"];

/// The prefixes that a SPARQL text declares, and the text behind `PREFIX`, `BASE` and `VERSION`.
pub(crate) fn prologue(text: &str) -> (Vec<(String, String)>, &str) {
    let (mut prefixes, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        if rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let word = rest[..end].to_ascii_uppercase();
        // To the end of the IRI or string.
        let close = match word.as_str() {
            "PREFIX" | "BASE" => rest.find('>'),
            "VERSION" => rest.find(['"', '\'']).and_then(|start| {
                let quote = &rest[start..=start];
                Some(start + 1 + rest[start + 1..].find(quote)?)
            }),
            _ => return (prefixes, rest),
        };
        let Some(close) = close else { return (prefixes, "") };
        if word == "PREFIX"
            && let Some((name, iri)) = rest[end..close].split_once(":")
            && let Some(iri) = iri.trim().strip_prefix('<')
        {
            prefixes.push((name.trim().to_owned(), iri.to_owned()));
        }
        rest = &rest[close + 1..];
    }
}

/// Whether a SPARQL text is an update rather than a query: by its first word behind the prologue.
pub(crate) fn is_update(text: &str) -> bool {
    UPDATES.contains(&first_word(prologue(text).1).as_str())
}

/// Whether an input of the shell is Gremlin: it begins with the name of the traversal source.
pub(crate) fn is_gremlin(text: &str) -> bool {
    text.trim_start().strip_prefix('g').is_some_and(|rest| rest.trim_start().starts_with('.'))
}

/// Whether a line can be the first one of an input, and not the next one of an earlier input.
pub(crate) fn begins_input(line: &str) -> bool {
    let line = line.trim_start();
    if let Some(step) = line.strip_prefix('.') {
        // `.count()` continues a traversal.
        let name = step.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(step.len());
        return !step[name..].trim_start().starts_with('(');
    }
    let word = first_word(line);
    TransactionCommand::parse(line).is_some()
        || plain_command(line).is_some()
        || is_gremlin(line)
        || ["PREFIX", "BASE", "VERSION"].iter().chain(&QUERIES).chain(&UPDATES).any(|known| *known == word)
}

/// The letters at the start of a text, in capitals.
fn first_word(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    text[..end].to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_commands_are_recognized() {
        use TransactionCommand::{Begin, Commit, Rollback, RollbackTo, Savepoint, Wrong};
        let cases = [
            ("begin", Some(Begin(Isolation::Serializable))),
            (" BEGIN Serializable ;", Some(Begin(Isolation::Serializable))),
            (".begin snapshot", Some(Begin(Isolation::Snapshot))),
            ("begin twice", Some(Wrong("begin [serializable|snapshot]"))),
            ("Commit;", Some(Commit)),
            ("rollback", Some(Rollback)),
            ("ROLLBACK TO Here", Some(RollbackTo("Here".to_owned()))),
            ("rollback here", Some(Wrong("rollback, or rollback to NAME"))),
            ("savepoint a-1 ;", Some(Savepoint("a-1".to_owned()))),
            ("savepoint", Some(Wrong("savepoint NAME"))),
            ("beginning", None),
            ("ASK {}", None),
            ("", None),
            (".help", None),
        ];
        for (input, expected) in cases {
            assert_eq!(TransactionCommand::parse(input), expected, "{input:?}");
        }
    }

    /// users 20: a newcomer gets out, and gets help.
    #[test]
    fn users_20_plain_words_are_commands() {
        for (input, command) in [
            ("exit", Some(".quit")),
            ("QUIT;", Some(".quit")),
            ("\\q", Some(".quit")),
            (" help ;", Some(".help")),
            ("exit now", None),
            ("helper", None),
        ] {
            assert_eq!(plain_command(input), command, "{input}");
        }
    }

    #[test]
    fn prologues_are_separated_from_queries() {
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(name, iri)| ((*name).to_owned(), (*iri).to_owned())).collect()
        };
        let text = "# c\nPREFIX a: <u:a>\nBASE <x:y> prefix : <u:b#>\nSELECT * {}";
        assert_eq!(prologue(text), (pairs(&[("a", "u:a"), ("", "u:b#")]), "SELECT * {}"));
        assert_eq!(prologue("PREFIX a: <u:a>\n"), (pairs(&[("a", "u:a")]), ""));
        assert_eq!(prologue("PREFIX a:"), (Vec::new(), ""));
        for line in ["SELECT * {", "prefix a: <u:a>", ".help", "g.V()", "commit", "exit", "delete where {"] {
            assert!(begins_input(line), "{line}");
        }
        for line in ["LIMIT 3", "  .count()", "} ORDER BY ?x", "?s ?p ?o", "# comment", "FILTER(?x)"] {
            assert!(!begins_input(line), "{line}");
        }
    }

    #[test]
    fn updates_are_distinguished_from_queries() {
        let updates = [
            "insert data { }",
            "DELETE{?a ?b ?c} WHERE {}",
            "PREFIX a: <http://insert/> # comment\n BASE <x:y>\nWITH <urn:g> DELETE {} WHERE {}",
            "# SELECT\n CLEAR ALL",
            "VERSION \"1.2\" ADD <a:b> TO <a:c>",
        ];
        for text in updates {
            assert!(is_update(text), "{text:?}");
        }
        for text in [
            "SELECT * {}",
            "PREFIX insert: <x:insert> ASK {}",
            "",
            "PREFIX a:",
            "inserted",
            "# insert",
            "<a>",
        ] {
            assert!(!is_update(text), "{text:?}");
        }
    }
}
