//! The helper of the line editor: completion (keywords, prefixes, predicates and classes; steps, keys and
//! labels of Gremlin), colours, and the end of an input.

use crate::highlight;
use crate::keywords::KEYWORDS;
use crate::request::{TransactionCommand, is_gremlin, plain_command, prologue};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::borrow::Cow;
use vervet::{Database, Direction, Id, Result};
use vervet_gremlin::text::step_names;
use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, iri_name};
use vervet_sparql::well_known_prefixes;

/// The commands of the shell, with their descriptions.
pub(crate) const COMMANDS: [(&str, &str); 16] = [
    (".help", "this list"),
    (".explain QUERY", "show the plan of a query"),
    (
        ".format NAME",
        "table, tsv, csv, json, xml, arrow; turtle, nt for graphs; table, tsv, csv, graphson, json for gremlin",
    ),
    (".info", "show the contents of the database"),
    (
        ".output FILE",
        "write results to a file, in the format of its extension; without FILE to the terminal again",
    ),
    (".pager on|off", "whether a result longer than the screen goes to $PAGER, else less"),
    (".prefixes", "prefixes that need no PREFIX line"),
    (".read FILE", "run the inputs of a file"),
    (".schema", "list classes and predicates with their numbers"),
    (".timing on|off", "print the time of each query"),
    ("begin [serializable|snapshot]", "open a transaction for the following inputs"),
    ("commit", "commit the transaction"),
    ("rollback", "discard its changes"),
    ("savepoint NAME", "set a savepoint"),
    ("rollback to NAME", "undo the changes since that savepoint"),
    (".quit", "leave (also exit, quit, Ctrl-D)"),
];

/// The maximum number of classes read for completion: longer lists are useless.
const CLASSES_MAX: usize = 2000;
/// The maximum number of candidates shown at once.
const CANDIDATES_MAX: usize = 100;

/// The helper of the line editor.
#[derive(Debug, Default)]
pub(crate) struct LineEditorHelper {
    /// Predicates and classes in query notation.
    names: Vec<String>,
    /// Keys and labels in Gremlin.
    keys: Vec<String>,
    /// Whether every input is Gremlin.
    only_gremlin: bool,
    colours: bool,
}

impl LineEditorHelper {
    /// Reads the names of the data.
    pub(crate) fn new(database: &Database, only_gremlin: bool, colours: bool) -> Result<Self> {
        let snapshot = database.snapshot();
        let view = snapshot.as_snapshot();
        let mut ids: Vec<Id> = view.predicates().iter().map(|(id, _)| *id).collect();
        if let Some(type_predicate) = view.type_predicate()
            && let Some(types) = view.segment(type_predicate, Direction::In)?
        {
            types.keys(Id::UNBOUND, CLASSES_MAX, &mut ids)?;
        }
        let (mut names, mut keys) = (Vec::with_capacity(ids.len()), Vec::new());
        let mut scratch = String::new();
        for id in ids {
            view.read_term(id, &mut scratch, &mut |parts| {
                let term = parts.to_term().to_string();
                let iri = term.trim_start_matches('<').trim_end_matches('>');
                keys.extend(iri_name(KEY_NAMESPACE, iri).or_else(|| iri_name(LABEL_NAMESPACE, iri)));
                names.push(short(&term));
            })?;
        }
        for list in [&mut names, &mut keys] {
            list.sort_unstable();
            list.dedup();
        }
        Ok(Self { names, keys, only_gremlin, colours })
    }

    fn is_gremlin(&self, line: &str) -> bool {
        self.only_gremlin || is_gremlin(line)
    }

    /// The start of the word to complete at the end of `line`, and its completions.
    fn complete_at_end(&self, line: &str) -> (usize, Vec<String>) {
        if self.is_gremlin(line) && !line.trim_start().starts_with('.') {
            return self.of_gremlin(line);
        }
        let start = word_start(line);
        (start, self.candidates(&line[start..], line))
    }

    /// Keys and labels inside of quotes, steps elsewhere.
    fn of_gremlin(&self, line: &str) -> (usize, Vec<String>) {
        let mut quote: Option<(char, usize)> = None;
        let mut characters = line.char_indices();
        while let Some((at, c)) = characters.next() {
            match (quote, c) {
                (_, '\\') => drop(characters.next()),
                (Some((open, _)), c) if c == open => quote = None,
                (None, '"' | '\'') => quote = Some((c, at + 1)),
                _ => {}
            }
        }
        if let Some((_, start)) = quote {
            let lower = line[start..].to_lowercase();
            let fits = |key: &&String| key.to_lowercase().starts_with(&lower);
            return (start, self.keys.iter().filter(fits).take(CANDIDATES_MAX).cloned().collect());
        }
        let start = line
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
        let word = line[start..].to_lowercase();
        if start == 0 || word.is_empty() && !line.ends_with('.') {
            return (start, Vec::new());
        }
        let ends = ["explain", "hasNext", "iterate", "next", "toList", "toSet"];
        let mut found: Vec<String> = (step_names().chain(ends))
            .filter(|name| name.to_lowercase().starts_with(&word))
            .map(|name| format!("{name}("))
            .collect();
        found.sort_unstable();
        found.dedup();
        (start, found)
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
pub(crate) fn short(term: &str) -> String {
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

impl Completer for LineEditorHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..position).unwrap_or(line);
        let (start, candidates) = self.complete_at_end(before);
        let candidates = candidates.into_iter();
        Ok((start, candidates.map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Validator for LineEditorHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_complete(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

/// A word behind the cursor that the line editor cannot insert.
pub(crate) struct Reminder;

impl Hint for Reminder {
    fn display(&self) -> &str {
        "  ; or an empty line ends the input"
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for LineEditorHelper {
    type Hint = Reminder;

    /// On an empty line that continues an input: how the input ends. The editor has no second prompt.
    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<Reminder> {
        let is_continued = position == line.len() && line.ends_with('\n') && !line.trim().is_empty();
        is_continued.then_some(Reminder)
    }
}

impl Highlighter for LineEditorHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.colours {
            true => Cow::Owned(highlight::highlight(line, self.is_gremlin(line))),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        match self.colours {
            true => Cow::Owned(format!("\x1b[2m{hint}\x1b[0m")),
            false => Cow::Borrowed(hint),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.colours
    }
}
impl Helper for LineEditorHelper {}

/// Whether an input of one or more lines is complete: a command, an empty line behind a whole input, two
/// empty lines behind anything else, or `;` at the end outside all brackets (inside, it separates
/// statements). Only the first line can be a command: a later line that begins with a dot continues a
/// traversal, even if all its brackets are closed before it.
pub(crate) fn is_complete(input: &str) -> bool {
    let text = input.trim();
    let is_command =
        text.starts_with('.') || TransactionCommand::parse(text).is_some() || plain_command(text).is_some();
    if text.is_empty() || is_command || ends_with_semicolon(text) {
        return true;
    }
    let mut last_lines = input.rsplit('\n').map(|line| line.trim().is_empty());
    match (last_lines.next(), last_lines.next()) {
        (Some(true), Some(true)) => true,
        (Some(true), Some(false)) => is_whole(input),
        _ => false,
    }
}

/// Whether an input ends with `;` outside of brackets.
pub(crate) fn ends_with_semicolon(text: &str) -> bool {
    text.trim_end().ends_with(';') && open_brackets(text.trim_end()) == Some(0)
}

/// Whether an input can be a whole query: all brackets are closed, and there is more than the prologue.
pub(crate) fn is_whole(input: &str) -> bool {
    open_brackets(input) == Some(0) && !prologue(input).1.trim().is_empty()
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
            "exit",
            "help;",
            "\\q",
            "PREFIX a: <u:a>\n\nASK { ?s ?p a:b }\n",
            "SELECT * {\n\n  ?s ?p ?o\n}\n",
            // The way out of an input with an error.
            "SELECT * { ?s ?p ?o\n\n",
            "PREFIX a: <u:a>\n\n",
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
            // users 19: a blank line in the prologue or in brackets.
            "PREFIX a: <u:a>\n",
            "SELECT * {\n",
            "g.V().union(\n",
            "# only a comment\n",
        ] {
            assert!(!is_complete(input), "{input:?}");
        }
    }

    #[test]
    fn words_are_completed_from_keywords_prefixes_and_data() {
        let assistant = LineEditorHelper {
            names: vec![
                "<http://a/ont#worksFor>".to_owned(),
                short("<urn:vervet:key:route>"),
                short("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"),
            ],
            keys: vec!["airport".to_owned(), "country".to_owned()],
            ..LineEditorHelper::default()
        };
        let complete = |line: &str| assistant.complete_at_end(line).1;
        assert_eq!(complete("sel"), ["SELECT"]);
        assert_eq!(complete(".he"), [".help"]);
        assert_eq!(complete("SELECT * { ?x works"), ["<http://a/ont#worksFor>"]);
        assert_eq!(complete("SELECT * { ?x <http://a/o"), ["<http://a/ont#worksFor>"]);
        assert_eq!(complete("ASK {?x key:ro"), ["key:route"]);
        assert_eq!(complete("ASK {?x rdf:t"), ["rdf:type"]);
        assert_eq!(complete("ASK {?x foa"), ["foaf:"]);
        assert!(complete("ASK {?ro").is_empty());
        assert!(complete("ASK { ").is_empty());
        // users 21: steps, keys and labels of Gremlin.
        assert_eq!(complete("g.V().hasL"), ["hasLabel("]);
        assert_eq!(complete("g.V().toLi"), ["toList("]);
        assert!(complete("g.").contains(&"V(".to_owned()), "{:?}", complete("g."));
        assert_eq!(complete("g.V().has(\"cou"), ["country"]);
        assert_eq!(complete("g.V().has('code', 'x').hasLabel('air"), ["airport"]);
        assert_eq!(assistant.complete_at_end("g.V().has('cou").0, "g.V().has('".len());
        assert!(complete("g.V().has('code', ").is_empty());
    }
}
