//! Random property paths, each in a form for Vervet and in one for Oxigraph.
//!
//! Oxigraph 0.5.13 differs from SPARQL 1.1 in three ways that would hide other differences:
//! * An alternative, or a negated set with both directions, gives a pair of ends once; by §18.2.2.4 and §18.4
//!   it is a union, so a pair that both sides connect occurs twice. Oxigraph gets the union instead of the
//!   path.
//! * A path that may be empty does not lead from a term of the query to itself where no statement mentions
//!   the term; by §18.4 (`ALP`, and `ZeroOrOnePath` with a term) it does. Such paths get variables at both
//!   ends.
//! * A negated set gives a pair of ends once for each triple that it matches, but only once for all of them
//!   where both ends are given. By §18.4 (*Evaluation of NegatedPropertySet*) a term as an end makes no such
//!   difference: the one definition is about μ′, which stands for variables and terms alike (Jena 5.2 gives
//!   one solution per triple in either case, as Vervet does). Where both ends are terms, Oxigraph gets the
//!   path followed by an empty part, so that the end is not given where the set is matched.
//!
//! Inside closures none of these makes a difference.

use crate::random_terms::{Random, predicate, variable, vertex};

/// Encloses text for Vervet only; the text up to the last marker is for Oxigraph.
const OURS: char = '\u{1}';
const THEIRS: char = '\u{2}';
const END: char = '\u{3}';

/// A part of a path, and whether it may be empty.
struct PathFragment {
    text: String,
    nullable: bool,
}

fn step(random: &mut Random) -> String {
    let inverse = if random.chance(20) { "^" } else { "" };
    format!("{inverse}{}", predicate(random))
}

/// Any part, for the inside of a closure.
fn inner(random: &mut Random, depth: usize) -> PathFragment {
    if depth == 0 {
        return PathFragment { text: step(random), nullable: false };
    }
    match random.below(7) {
        0 => {
            let (a, b) = (inner(random, depth - 1), inner(random, depth - 1));
            PathFragment { text: format!("({}|{})", a.text, b.text), nullable: a.nullable || b.nullable }
        }
        1 => PathFragment { text: format!("!({}|{})", step(random), step(random)), nullable: false },
        _ => element(random, depth),
    }
}

/// A part that is not an alternative.
fn element(random: &mut Random, depth: usize) -> PathFragment {
    if depth == 0 {
        return PathFragment { text: step(random), nullable: false };
    }
    match random.below(8) {
        0 => {
            let (a, b) = (element(random, depth - 1), element(random, depth - 1));
            PathFragment { text: format!("({}/{})", a.text, b.text), nullable: a.nullable && b.nullable }
        }
        1 => {
            let part = element(random, depth - 1);
            PathFragment { text: format!("^({})", part.text), nullable: part.nullable }
        }
        2 => {
            PathFragment { text: format!("!({}|{})", predicate(random), predicate(random)), nullable: false }
        }
        3 => PathFragment { text: format!("({})?", inner(random, depth - 1).text), nullable: true },
        4 | 5 => PathFragment { text: format!("({})*", inner(random, depth - 1).text), nullable: true },
        _ => {
            let part = inner(random, depth - 1);
            PathFragment { text: format!("({})+", part.text), nullable: part.nullable }
        }
    }
}

/// A triple pattern with a path.
pub(crate) fn pattern(random: &mut Random) -> String {
    let depth = 1 + random.below(3);
    let kind = random.below(8);
    let branches = match kind {
        0 => vec![element(random, depth), element(random, depth)],
        1 => {
            let not = |set: String| PathFragment { text: set, nullable: false };
            vec![not(format!("!{}", predicate(random))), not(format!("!^{}", predicate(random)))]
        }
        _ => vec![element(random, depth)],
    };
    let stands = branches.iter().any(|branch| branch.nullable);
    let mut end = |constant: usize| match !stands && random.chance(constant) {
        true => vertex(random),
        false => variable(random).to_owned(),
    };
    let (subject, object) = (end(25), end(25));
    let texts: Vec<&str> = branches.iter().map(|branch| branch.text.as_str()).collect();
    let given = !subject.starts_with('?') && !object.starts_with('?');
    let theirs = |text: &str| match given && text.contains('!') {
        true => format!("{subject} ({text})/<urn:none>? {object}"),
        false => format!("{subject} {text} {object}"),
    };
    if let [text] = texts[..] {
        return format!("{OURS}{subject} {text} {object} .{THEIRS}{} .{END}", theirs(text));
    }
    let ours = if kind == 1 && random.chance(50) {
        // One set with both directions.
        let set = texts.iter().map(|text| text.trim_start_matches('!'));
        format!("!({})", set.collect::<Vec<_>>().join("|"))
    } else {
        texts.join("|")
    };
    let union: Vec<_> = texts.iter().map(|text| format!("{{ {} }}", theirs(text))).collect();
    format!("{OURS}{subject} {ours} {object} .{THEIRS}{}{END}", union.join(" UNION "))
}

/// A text that differs between the engines; neither part contains such a text.
pub(crate) fn choice(ours: &str, theirs: &str) -> String {
    format!("{OURS}{ours}{THEIRS}{theirs}{END}")
}

/// The text as Vervet gets it.
pub(crate) fn for_vervet(text: &str) -> String {
    choose(text, OURS, THEIRS)
}

/// The text as Oxigraph gets it.
pub(crate) fn for_oxigraph(text: &str) -> String {
    choose(text, THEIRS, END)
}

fn choose(text: &str, from: char, to: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chosen = true;
    for c in text.chars() {
        match c {
            _ if c == from => chosen = true,
            _ if c == to => chosen = false,
            OURS | THEIRS => chosen = false,
            END => chosen = true,
            c if chosen => out.push(c),
            _ => {}
        }
        if c == END {
            chosen = true;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_get_their_spelling() {
        let text = format!("a {OURS}x{THEIRS}y{END} b {OURS}{THEIRS}z{END} c");
        assert_eq!(for_vervet(&text), "a x b  c");
        assert_eq!(for_oxigraph(&text), "a y b z c");
    }
}
