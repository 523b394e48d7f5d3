//! Classifies an input of the shell: a transaction command, a query or an update.

use vervet::Isolation;

/// A transaction command. Case does not matter; a leading `.` and a trailing `;` are ignored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    Begin(Isolation),
    Commit,
    Rollback,
    Savepoint(String),
    RollbackTo(String),
    /// A malformed command; the text is the correct form.
    Wrong(&'static str),
}

impl Control {
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

/// Whether a SPARQL text is an update rather than a query: by its first word behind `PREFIX`, `BASE` and
/// `VERSION`.
pub(crate) fn is_update(text: &str) -> bool {
    const UPDATES: [&str; 10] =
        ["INSERT", "DELETE", "WITH", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY"];
    let mut rest = text;
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
            word => return UPDATES.contains(&word),
        };
        match close {
            Some(close) => rest = &rest[close + 1..],
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_transactions_are_told_from_queries() {
        use Control::{Begin, Commit, Rollback, RollbackTo, Savepoint, Wrong};
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
            assert_eq!(Control::parse(input), expected, "{input:?}");
        }
    }

    #[test]
    fn updates_are_told_from_queries() {
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
