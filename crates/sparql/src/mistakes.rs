//! Hints for common mistakes: words and symbols of SQL, Cypher and programming languages, clauses in the
//! wrong order, typographic characters, brackets that are not closed. They cost nothing before there is an
//! error.

use crate::lexer::{Lexer, Token};

/// The order of the clauses of a query.
const CLAUSES: &str = "the clauses of a query are SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET, VALUES, in this order";

/// The hint for a word that another language has in this place.
pub(crate) fn of_word(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_uppercase().as_str() {
        "AND" => "did you mean &&?",
        "OR" => "did you mean ||?",
        "LIKE" | "ILIKE" | "RLIKE" | "MATCHES" => "did you mean REGEX, CONTAINS or STRSTARTS?",
        "IS" | "ISNULL" | "NULL" => "whether a variable has a value is BOUND(?x) or !BOUND(?x)",
        "BETWEEN" => "a range is ?x >= 1 && ?x <= 9",
        "GROUPBY" => "did you mean GROUP BY?",
        "ORDERBY" => "did you mean ORDER BY?",
        "NOTEXISTS" => "did you mean NOT EXISTS?",
        "NOTIN" => "did you mean NOT IN?",
        "JOIN" | "INNER" => "patterns in one group are joined by their common variables",
        "LEFT" | "OUTER" => "did you mean OPTIONAL { … }?",
        "TOP" | "FETCH" => "did you mean LIMIT?",
        "SKIP" => "did you mean OFFSET?",
        "MATCH" | "UNWIND" | "RETURN" | "CALL" | "MERGE" => {
            "this looks like Cypher; the query languages are SPARQL and Gremlin"
        }
        "GROUP" | "HAVING" | "ORDER" | "LIMIT" | "OFFSET" | "FROM" => CLAUSES,
        _ => return None,
    })
}

/// The hint for a function that another language has under this name.
pub(crate) fn of_function(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_uppercase().as_str() {
        "UPPER" | "TOUPPER" | "UPPERCASE" => "did you mean UCASE?",
        "LOWER" | "TOLOWER" | "LOWERCASE" => "did you mean LCASE?",
        "LEN" | "LENGTH" | "SIZE" | "CHAR_LENGTH" => "did you mean STRLEN?",
        "STARTSWITH" | "STARTS_WITH" => "did you mean STRSTARTS?",
        "ENDSWITH" | "ENDS_WITH" => "did you mean STRENDS?",
        "IFNULL" | "NVL" => "did you mean COALESCE?",
        "STRING_AGG" | "LISTAGG" | "GROUPCONCAT" | "COLLECT" => {
            "did you mean GROUP_CONCAT(?x; SEPARATOR=\", \")?"
        }
        "AVERAGE" | "MEAN" => "did you mean AVG?",
        "TRIM" => "write REPLACE(?x, \"^\\\\s+|\\\\s+$\", \"\")",
        "CAST" => "a cast is the name of its type: xsd:integer(?x)",
        "TODAY" | "CURRENT_DATE" | "GETDATE" => "did you mean NOW?",
        _ => return of_word(name),
    })
}

/// The hint for the symbol `spelled`, with the text before it and after its start.
pub(crate) fn of_symbol(spelled: &str, before: &str, from: &str) -> Option<&'static str> {
    match spelled {
        "<>" => Some("did you mean !=?"),
        "=" if before.ends_with('=') => Some("did you mean =?"),
        "<" => {
            // `<not an iri>`
            let line = from.lines().next().unwrap_or_default();
            line.contains('>').then_some("an IRI between < and > contains no spaces and quotation marks")
        }
        ";" => Some("a query does not end with ;"),
        _ => None,
    }
}

/// The hint for a character that no token begins with.
pub(crate) fn of_character(c: char) -> Option<&'static str> {
    match c {
        '“' | '”' | '„' | '«' | '»' | '‘' | '’' | '‚' => {
            Some("write straight quotation marks, \" or '")
        }
        '\u{A0}' | '\u{2000}'..='\u{200B}' | '\u{202F}' | '\u{3000}' | '\u{FEFF}' => {
            Some("this character looks like a space: write a plain one")
        }
        '–' | '—' | '−' => Some("did you mean -?"),
        '≤' => Some("did you mean <=?"),
        '≥' => Some("did you mean >=?"),
        '≠' => Some("did you mean !=?"),
        '%' => Some("there is no operator %; ?x - ?y * FLOOR(?x / ?y) is the remainder"),
        '`' => Some("names are IRIs: <http://…> or prefix:name"),
        _ => None,
    }
}

/// The last bracket of a text that is not closed, and its position.
pub(crate) fn open_bracket(text: &str) -> Option<(char, usize)> {
    let mut lexer = Lexer::new(text);
    let mut open = Vec::new();
    loop {
        let lexeme = lexer.next().ok()?;
        match lexeme.token {
            Token::BraceOpen => open.push(('{', lexeme.start)),
            Token::ParenthesisOpen => open.push(('(', lexeme.start)),
            Token::BracketOpen => open.push(('[', lexeme.start)),
            Token::BraceClose | Token::ParenthesisClose | Token::BracketClose => {
                open.pop();
            }
            Token::End => return open.pop(),
            _ => {}
        }
    }
}
