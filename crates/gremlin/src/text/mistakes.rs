//! Hints for common mistakes: names and symbols of other languages and of earlier versions of Gremlin.

/// The hint for a step that another language has under this name.
pub(super) fn of_step(name: &str) -> Option<&'static str> {
    Some(match name {
        "distinct" | "unique" | "uniq" => "did you mean dedup()?",
        "sort" | "sorted" | "sortBy" | "orderBy" => "did you mean order() or order().by(…)?",
        "first" | "head" => "did you mean limit(1) or next()?",
        "take" | "top" => "did you mean limit()?",
        "last" => "did you mean tail(1)?",
        "size" => "did you mean count()?",
        "get" | "getProperty" | "attr" | "prop" | "getValue" => "did you mean values()?",
        "delete" | "remove" => "did you mean drop()?",
        "find" | "search" | "match_" => "did you mean has()?",
        "groupBy" => "did you mean group().by(…)?",
        "countBy" => "did you mean groupCount().by(…)?",
        "average" | "avg" => "did you mean mean()?",
        "equals" | "eq" => "did you mean is()?",
        "exists" => "did you mean hasNext()?",
        "neighbors" | "neighbours" => "did you mean both()?",
        "incoming" => "did you mean in()?",
        "outgoing" => "did you mean out()?",
        "each" | "forEach" => "a traversal handles each element: did you mean map(…) or local(…)?",
        _ => return None,
    })
}

/// The hint for a start of a traversal that another language has under this name.
pub(super) fn of_start(name: &str) -> Option<&'static str> {
    Some(match name {
        "vertices" | "nodes" | "v" => "did you mean V()?",
        "edges" | "relationships" | "e" => "did you mean E()?",
        "addVertex" | "addNode" => "did you mean addV()?",
        _ => return None,
    })
}

/// The hint for a name in the place of a value.
pub(super) fn of_value(name: &str) -> Option<&'static str> {
    Some(match name {
        "descending" | "decr" | "DESC" | "Desc" => "did you mean desc?",
        "ascending" | "incr" | "ASC" | "Asc" => "did you mean asc?",
        "True" | "TRUE" => "did you mean true?",
        "False" | "FALSE" => "did you mean false?",
        "None" | "nil" | "NULL" => "did you mean null?",
        _ => return None,
    })
}

/// The hint for the first word of a text in another language.
pub(super) fn of_statement(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_uppercase().as_str() {
        "MATCH" | "RETURN" | "UNWIND" | "MERGE" | "CREATE" => {
            "this looks like Cypher; the query languages are Gremlin and SPARQL"
        }
        "SELECT" | "PREFIX" | "ASK" | "CONSTRUCT" | "DESCRIBE" => "this looks like SPARQL",
        "INSERT" | "DELETE" => "this looks like an update in SPARQL",
        _ => return None,
    })
}

/// The hint for a character that no token begins with.
pub(super) fn of_character(c: char) -> Option<&'static str> {
    match c {
        '=' | '<' | '>' | '!' | '&' | '|' => {
            Some("a comparison is a predicate, as in has(\"age\", gt(30)) or values(\"age\").is(lt(9))")
        }
        '“' | '”' | '„' | '«' | '»' | '‘' | '’' | '‚' => {
            Some("write straight quotation marks, \" or '")
        }
        '\u{A0}' | '\u{2000}'..='\u{200B}' | '\u{202F}' | '\u{3000}' | '\u{FEFF}' => {
            Some("this character looks like a space: write a plain one")
        }
        _ => None,
    }
}
