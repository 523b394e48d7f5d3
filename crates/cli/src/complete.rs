//! Shell completion: keywords, prefixes, and the predicates and classes of the data.

use crate::request::Control;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use vervet::{Database, Direction, Id, Result};
use vervet_sparql::well_known_prefixes;

/// The commands of the shell, with their descriptions.
pub(crate) const COMMANDS: [(&str, &str); 12] = [
    (".help", "this list"),
    (".explain QUERY", "show the plan of a query"),
    (".format NAME", "table, tsv, csv, json, xml; turtle, nt for graphs; table, graphson, json for gremlin"),
    (".info", "show the contents of the database"),
    (".prefixes", "prefixes that need no PREFIX line"),
    (".timing on|off", "print the time of each query"),
    ("begin [serializable|snapshot]", "open a transaction for the following inputs"),
    ("commit", "commit the transaction"),
    ("rollback", "discard its changes"),
    ("savepoint NAME", "set a savepoint"),
    ("rollback to NAME", "undo the changes since that savepoint"),
    (".quit", "leave (also Ctrl-D)"),
];

const KEYWORDS: [&str; 97] = [
    "ABS",
    "ADD",
    "ASC",
    "ASK",
    "AVG",
    "BASE",
    "BEGIN",
    "BIND",
    "BOUND",
    "CEIL",
    "CLEAR",
    "COALESCE",
    "COMMIT",
    "CONCAT",
    "CONSTRUCT",
    "CONTAINS",
    "COPY",
    "COUNT",
    "CREATE",
    "DATA",
    "DATATYPE",
    "DAY",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "FILTER",
    "FLOOR",
    "GRAPH",
    "GROUP BY",
    "GROUP_CONCAT",
    "HAVING",
    "hasLANG",
    "hasLANGDIR",
    "HOURS",
    "IF",
    "IN",
    "INSERT",
    "IRI",
    "LANG",
    "LANGDIR",
    "LANGMATCHES",
    "LCASE",
    "LIMIT",
    "MAX",
    "MD5",
    "MIN",
    "MINUS",
    "MINUTES",
    "MONTH",
    "MOVE",
    "NOT IN",
    "NOW",
    "OFFSET",
    "OPTIONAL",
    "ORDER BY",
    "PREFIX",
    "RAND",
    "REDUCED",
    "REGEX",
    "REPLACE",
    "ROLLBACK",
    "ROUND",
    "SAMPLE",
    "SAVEPOINT",
    "SECONDS",
    "SELECT",
    "SEPARATOR",
    "SHA256",
    "STR",
    "STRAFTER",
    "STRBEFORE",
    "STRDT",
    "STRENDS",
    "STRLANG",
    "STRLANGDIR",
    "STRLEN",
    "STRSTARTS",
    "STRUUID",
    "SUBSTR",
    "SUM",
    "TIMEZONE",
    "UCASE",
    "UNDEF",
    "UNION",
    "USING",
    "UUID",
    "VALUES",
    "WHERE",
    "WITH",
    "YEAR",
    "isBLANK",
    "isIRI",
    "isLITERAL",
    "isNUMERIC",
    "isTRIPLE",
];

/// The maximum number of classes read for completion: longer lists are useless.
const CLASSES_MAX: usize = 2000;
/// The maximum number of candidates shown at once.
const CANDIDATES_MAX: usize = 100;

/// The helper of the line editor.
#[derive(Debug, Default)]
pub(crate) struct Assistant {
    /// Predicates and classes in query notation.
    names: Vec<String>,
}

impl Assistant {
    /// Reads the names of the data.
    pub(crate) fn new(database: &Database) -> Result<Self> {
        let snapshot = database.snapshot();
        let view = snapshot.as_snapshot();
        let mut ids: Vec<Id> = view.predicates().iter().map(|(id, _)| *id).collect();
        if let Some(type_predicate) = view.type_predicate()
            && let Some(types) = view.segment(type_predicate, Direction::In)?
        {
            types.keys(Id::UNBOUND, CLASSES_MAX, &mut ids)?;
        }
        let mut names = Vec::with_capacity(ids.len());
        let mut scratch = String::new();
        for id in ids {
            view.read_term(id, &mut scratch, &mut |parts| names.push(short(&parts.to_term().to_string())))?;
        }
        names.sort_unstable();
        names.dedup();
        Ok(Self { names })
    }

    /// The completions of `word`.
    fn candidates(&self, word: &str, line: &str) -> Vec<String> {
        if line.trim_start().starts_with('.') && line.trim() == word {
            let names = COMMANDS.iter().filter_map(|(command, _)| command.split(' ').next());
            return names.filter(|name| name.starts_with(word)).map(str::to_owned).collect();
        }
        if word.is_empty() || word.starts_with(['?', '$', '"']) {
            return Vec::new();
        }
        let lower = word.to_lowercase();
        let mut found: Vec<String> = Vec::new();
        if !word.contains([':', '<']) {
            found.extend(
                KEYWORDS
                    .iter()
                    .filter(|keyword| keyword.to_lowercase().starts_with(&lower))
                    .map(|&k| k.into()),
            );
            let prefixes = well_known_prefixes().iter().map(|(prefix, _)| format!("{prefix}:"));
            found.extend(prefixes.filter(|prefix| prefix.starts_with(&lower)));
        }
        // Matches the whole name, or the part behind the last `:`, `/` or `#`.
        let matches =
            |name: &&String| name.starts_with(word) || local(name).to_lowercase().starts_with(&lower);
        found.extend(self.names.iter().filter(matches).take(CANDIDATES_MAX).cloned());
        found
    }
}

/// The prefixed name with a well-known prefix, if SPARQL syntax allows it.
fn short(term: &str) -> String {
    let Some(iri) = term.strip_prefix('<').and_then(|term| term.strip_suffix('>')) else {
        return term.to_owned();
    };
    for (prefix, namespace) in well_known_prefixes() {
        if let Some(name) = iri.strip_prefix(namespace)
            && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        {
            return format!("{prefix}:{name}");
        }
    }
    term.to_owned()
}

fn local(name: &str) -> &str {
    let name = name.trim_end_matches('>');
    name.rsplit([':', '/', '#']).next().unwrap_or(name)
}

/// The start of the word that ends at the end of `text`.
fn word_start(text: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || "{}()[];,|^*+!=&".contains(c);
    let start = text.rfind(ends).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    // A full stop between statements ends a word too, but not inside a name or IRI.
    match text[start..].find('.') {
        Some(0) if start > 0 => start + 1,
        _ => start,
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..position).unwrap_or(line);
        let start = word_start(before);
        let candidates = self.candidates(&before[start..], before).into_iter();
        Ok((start, candidates.map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_complete(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Hinter for Assistant {
    type Hint = String;
}
impl Highlighter for Assistant {}
impl Helper for Assistant {}

/// Whether an input of one or more lines is complete: a command, an empty line at the end, or `;` at the end
/// outside all brackets (inside, it separates statements). Only the first line can be a command: a later line
/// that begins with a dot continues a traversal, even if all its brackets are closed before it.
pub(crate) fn is_complete(input: &str) -> bool {
    let text = input.trim();
    if text.is_empty() || text.starts_with('.') || Control::parse(text).is_some() {
        return true;
    }
    let last_line = input.rsplit('\n').next().unwrap_or_default();
    if last_line.trim().is_empty() && input.contains('\n') {
        return true;
    }
    text.ends_with(';') && open_brackets(text) == Some(0)
}

/// The number of open brackets at the end of the text; `None` inside a string or comment.
fn open_brackets(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '{' | '(' | '[' => open += 1,
            '}' | ')' | ']' => open = open.saturating_sub(1),
            '#' => {
                rest.find(|&c| c == '\n')?;
            }
            '<' => {
                // An IRI contains no space; `<` before anything else is a comparison.
                let end = rest.as_str().find(|c: char| c == '>' || c.is_whitespace());
                if let Some(end) = end.filter(|&end| rest.as_str()[end..].starts_with('>')) {
                    rest = rest.as_str()[end + 1..].chars();
                }
            }
            '"' | '\'' => loop {
                match rest.next()? {
                    '\\' => {
                        rest.next()?;
                    }
                    end if end == c => break,
                    _ => {}
                }
            },
            _ => {}
        }
    }
    Some(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_ends_with_a_semicolon_or_an_empty_line() {
        for input in [
            "",
            ".help",
            "ASK { ?s ?p ?o };",
            "SELECT * {\n ?s ?p ?o\n};",
            "ASK { ?s ?p ?o }\n",
            "ASK { ?s ?p \"{\" } ;",
            "ASK { ?s <http://a/#b> 'it\\'s' } ; ",
            "SELECT (?a < 3 AS ?b) {};",
            "begin",
            "rollback to here",
            "INSERT DATA { <urn:a> <urn:p> 1 };",
            "g.V();",
            "g.addV(\"half\")\n.property(\"a\",1);",
            "g.V()\n  .count()\n",
        ] {
            assert!(is_complete(input), "{input:?}");
        }
        for input in [
            "ASK { ?s ?p ?o }",
            "SELECT * { ?s a ?c ;",
            "SELECT * { ?s a ?c ;\n ?p ?o",
            "ASK { ?s ?p \"};",
            "ASK {} # comment ;",
            "g.V()",
            "g.addV(\"half\")\n.property(\"a\",1)",
            "g.V()\n.info",
            "ASK { ?s ?p 1\n.quit",
            "g.V().union(out();",
        ] {
            assert!(!is_complete(input), "{input:?}");
        }
    }

    #[test]
    fn words_are_completed_from_keywords_prefixes_and_data() {
        let assistant = Assistant {
            names: vec![
                "<http://a/ont#worksFor>".to_owned(),
                short("<urn:vervet:key:route>"),
                short("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"),
            ],
        };
        let complete = |line: &str| assistant.candidates(&line[word_start(line)..], line);
        assert_eq!(complete("sel"), ["SELECT"]);
        assert_eq!(complete(".he"), [".help"]);
        assert_eq!(complete("SELECT * { ?x works"), ["<http://a/ont#worksFor>"]);
        assert_eq!(complete("SELECT * { ?x <http://a/o"), ["<http://a/ont#worksFor>"]);
        assert_eq!(complete("ASK {?x key:ro"), ["key:route"]);
        assert_eq!(complete("ASK {?x rdf:t"), ["rdf:type"]);
        assert_eq!(complete("ASK {?x foa"), ["foaf:"]);
        assert!(complete("ASK {?ro").is_empty());
        assert!(complete("ASK { ").is_empty());
    }
}
