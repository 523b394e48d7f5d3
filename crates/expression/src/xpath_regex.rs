//! Translation of regular expressions: from XPath (F&O 3.1 §5.6.1, XML Schema 1.1 part 2 §G) to the crate
//! `regex`.
//!
//! # Shape
//! One pass over the pattern copies what both syntaxes share, writes characters as `\x{...}`, and computes
//! the set of a class (`[a-z-[aeiou]]`, `\i`, `\p{IsGreek}`) here, so that no class of the pattern reaches
//! the syntax of the crate, where `&&`, `--`, `~~` and `[` in a class have other meanings.
//! # Semantics
//! Different from the crate: `\w` is all but punctuation, separators and other characters, `\s` has four
//! characters, `.` does not match a carriage return, `x` removes white space and has no comments, and `i` has
//! no effect on `\p{Lu}`. Refused: back references, look-around, `\b`, inline flags, named groups, and other
//! syntax that XPath does not have. More lenient than XPath: an unescaped `-` anywhere in a class, and `]`
//! and `}` outside one, are characters.
//!
//! # Cost
//! Linear in the pattern: each category and block of a class counts once, and the ranges of a class are
//! sorted once. Patterns whose translation is longer than [`TRANSLATED_BYTES`] are refused.
//!
//! With the flag `m`, neither `^` nor `$` matches after a line feed at the end of the text; the search sees
//! to that (`pattern.rs`). Where it cannot, because a match may end in `^` ([`may_end_in_line_start`]), the
//! result is an error.

use crate::unicode_blocks::block;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look};
use std::fmt::Write;
use std::iter::Peekable;
use std::rc::Rc;
use std::str::Chars;

/// Maximum size of a translated pattern, in bytes. (40 times `\w`; the programs of most such patterns are too
/// large anyway.)
const TRANSLATED_BYTES: usize = 512 << 10;

/// Ranges of one class in the translation; more are several classes in one. The crate sorts the ranges of a
/// class for each range that it reads.
const RANGES_PER_CLASS: usize = 128;

/// Maximum nesting of class subtractions.
const SUBTRACTIONS_MAX: usize = 32;

/// Categories of characters in XML Schema. The crate knows others, such as scripts.
const CATEGORIES: [&str; 36] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C", "Cc", "Cf", "Co", "Cn",
];

/// `\i`: characters that start an XML name.
const NAME_START: &[(char, char)] = &[
    (':', ':'),
    ('A', 'Z'),
    ('_', '_'),
    ('a', 'z'),
    ('\u{C0}', '\u{D6}'),
    ('\u{D8}', '\u{F6}'),
    ('\u{F8}', '\u{2FF}'),
    ('\u{370}', '\u{37D}'),
    ('\u{37F}', '\u{1FFF}'),
    ('\u{200C}', '\u{200D}'),
    ('\u{2070}', '\u{218F}'),
    ('\u{2C00}', '\u{2FEF}'),
    ('\u{3001}', '\u{D7FF}'),
    ('\u{F900}', '\u{FDCF}'),
    ('\u{FDF0}', '\u{FFFD}'),
    ('\u{10000}', '\u{EFFFF}'),
];

/// `\c` without [`NAME_START`].
const NAME_REST: &[(char, char)] =
    &[('-', '.'), ('0', '9'), ('\u{B7}', '\u{B7}'), ('\u{300}', '\u{36F}'), ('\u{203F}', '\u{2040}')];

/// Flags of a pattern.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Flags {
    pub(crate) ignore_case: bool,
    pub(crate) multi_line: bool,
    pub(crate) dot_all: bool,
    pub(crate) ignore_space: bool,
    pub(crate) literal: bool,
}

impl Flags {
    /// # Errors
    /// Another flag than `i`, `m`, `s`, `x`, `q`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut flags = Self::default();
        for flag in text.chars() {
            match flag {
                'i' => flags.ignore_case = true,
                'm' => flags.multi_line = true,
                's' => flags.dot_all = true,
                'x' => flags.ignore_space = true,
                'q' => flags.literal = true,
                other => return Err(format!("the flag {other:?} is not one of i, m, s, x, q")),
            }
        }
        Ok(flags)
    }
}

/// The pattern in the syntax of the crate `regex`.
///
/// # Errors
/// Syntax that XPath does not have, or the crate cannot match; the text says which.
pub(crate) fn translate(pattern: &str, flags: Flags) -> Result<String, String> {
    if flags.literal {
        return match pattern.len() > TRANSLATED_BYTES {
            true => Err(too_long(TRANSLATED_BYTES)),
            false => Ok(regex_syntax::escape(pattern)),
        };
    }
    let stripped;
    let pattern = if flags.ignore_space {
        stripped = without_space(pattern);
        &stripped
    } else {
        pattern
    };
    let chars = pattern.chars().peekable();
    let mut translator =
        Translator { chars, length: pattern.chars().count(), out: String::new(), flags, classes: Vec::new() };
    translator.expression()?;
    Ok(translator.out)
}

/// The error for a pattern with too long a translation.
#[cold]
fn too_long(position: usize) -> String {
    format!(
        "it is too large from character {position} on: its classes and characters take more than \
         {TRANSLATED_BYTES} bytes; use fewer of them, or test parts in several REGEX"
    )
}

/// Removes white space outside of classes.
fn without_space(pattern: &str) -> String {
    let (mut out, mut depth, mut escaped) = (String::new(), 0_usize, false);
    for c in pattern.chars() {
        if depth == 0 && matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        match c {
            _ if escaped => {}
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        out.push(c);
    }
    out
}

struct Translator<'p> {
    chars: Peekable<Chars<'p>>,
    /// Number of characters of the pattern.
    length: usize,
    out: String,
    flags: Flags,
    /// The classes of escape sequences so far, by letter and name.
    classes: Vec<((char, String), Rc<ClassUnicode>)>,
}

/// An escape sequence.
enum Escape {
    Char(char),
    Class(Rc<ClassUnicode>),
}

impl Translator<'_> {
    fn expression(&mut self) -> Result<(), String> {
        // Whether a quantifier may follow.
        let mut atom = false;
        while let Some(c) = self.chars.next() {
            if self.out.len() > TRANSLATED_BYTES {
                return Err(too_long(self.length - self.chars.clone().count()));
            }
            atom = match c {
                '|' => {
                    self.out.push('|');
                    false
                }
                '(' => {
                    self.group()?;
                    false
                }
                // The crate finds unbalanced parentheses.
                ')' | '^' | '$' => {
                    self.out.push(c);
                    true
                }
                '.' => {
                    self.out.push_str(if self.flags.dot_all { "(?s:.)" } else { r"[^\n\r]" });
                    true
                }
                '[' => {
                    let class = self.class(0)?;
                    self.push_class(&class);
                    true
                }
                '\\' => {
                    match self.escape()? {
                        Escape::Char(c) => self.push_char(c),
                        Escape::Class(class) => self.push_class(&class),
                    }
                    true
                }
                '?' | '*' | '+' | '{' if !atom => {
                    return Err(format!("the quantifier {c:?} does not follow a character, class or group"));
                }
                '?' | '*' | '+' => {
                    self.out.push(c);
                    self.reluctant();
                    false
                }
                '{' => {
                    self.repetition()?;
                    self.reluctant();
                    false
                }
                c => {
                    self.push_char(c);
                    true
                }
            };
        }
        if self.out.len() > TRANSLATED_BYTES {
            return Err(too_long(self.length));
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        if self.chars.next_if_eq(&'?').is_some() {
            if self.chars.next() != Some(':') {
                return Err(
                    "after (? only : is possible: XPath has no look-around, inline flags and names of groups"
                        .into(),
                );
            }
            self.out.push_str("?:");
        }
        Ok(())
    }

    /// The `?` of a reluctant quantifier.
    fn reluctant(&mut self) {
        if let Some(c) = self.chars.next_if_eq(&'?') {
            self.out.push(c);
        }
    }

    /// `{2}`, `{2,}` or `{2,3}`, after the brace.
    fn repetition(&mut self) -> Result<(), String> {
        let mut text = String::new();
        while let Some(c) = self.chars.next_if(|c| c.is_ascii_digit() || *c == ',') {
            text.push(c);
        }
        let valid = match text.split_once(',') {
            None => !text.is_empty(),
            Some((least, most)) => !least.is_empty() && !most.contains(','),
        };
        if !valid || self.chars.next() != Some('}') {
            return Err("a quantifier in braces is {2}, {2,} or {2,3}".into());
        }
        // Writing to a `String` cannot fail.
        let _ = write!(self.out, "{{{text}}}");
        Ok(())
    }

    /// An escape sequence, after the backslash.
    fn escape(&mut self) -> Result<Escape, String> {
        let Some(c) = self.chars.next() else { return Err("a backslash ends the pattern".into()) };
        match c {
            'n' => return Ok(Escape::Char('\n')),
            'r' => return Ok(Escape::Char('\r')),
            't' => return Ok(Escape::Char('\t')),
            '\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '-' | '[' | ']' | '^' | '$' => {
                return Ok(Escape::Char(c));
            }
            '1'..='9' => return Err("back references cannot be matched in linear time".into()),
            'b' | 'B' | 'A' | 'z' | 'Z' => return Err(format!("XPath has no \\{c}; use ^, $ and \\W")),
            _ => {}
        }
        let name = if matches!(c, 'p' | 'P') { self.property_name()? } else { String::new() };
        let is_it = |((letter, of), _): &&((char, String), _)| *letter == c && *of == name;
        if let Some((_, class)) = self.classes.iter().find(is_it) {
            return Ok(Escape::Class(Rc::clone(class)));
        }
        let class = match c {
            's' | 'S' => set(&[('\t', '\n'), ('\r', '\r'), (' ', ' ')]),
            'i' | 'I' => set(NAME_START),
            'c' | 'C' => {
                let mut class = set(NAME_START);
                class.union(&set(NAME_REST));
                class
            }
            'd' | 'D' => category("Nd")?,
            'w' | 'W' => {
                let mut class = category("P")?;
                class.union(&category("Z")?);
                class.union(&category("C")?);
                complement(&class)
            }
            'p' | 'P' => property(&name)?,
            other => return Err(format!("XPath has no escape sequence \\{other}")),
        };
        let class = Rc::new(if c.is_ascii_uppercase() { complement(&class) } else { class });
        self.classes.push(((c, name), Rc::clone(&class)));
        Ok(Escape::Class(class))
    }

    /// `{Lu}` or `{IsGreek}`.
    fn property_name(&mut self) -> Result<String, String> {
        if self.chars.next() != Some('{') {
            return Err("after \\p and \\P a category or block follows in braces".into());
        }
        let mut name = String::new();
        loop {
            match self.chars.next() {
                Some('}') => return Ok(name),
                Some(c) => name.push(c),
                None => return Err("the braces after \\p are not closed".into()),
            }
        }
    }

    /// A class, after its opening bracket.
    fn class(&mut self, depth: usize) -> Result<ClassUnicode, String> {
        if depth > SUBTRACTIONS_MAX {
            return Err(format!("more than {SUBTRACTIONS_MAX} class subtractions are nested"));
        }
        let negated = self.chars.next_if_eq(&'^').is_some();
        // Characters, which `i` affects, and classes, which it does not.
        let (mut ranges, mut classes) = (Vec::new(), Vec::<Rc<ClassUnicode>>::new());
        let mut subtracted = None;
        let mut empty = true;
        loop {
            let Some(c) = self.chars.next() else { return Err("a class is not closed by ]".into()) };
            let first = match c {
                ']' if empty => return Err("a class is empty; write \\] for the character".into()),
                ']' => break,
                '[' => return Err("a [ in a class is written \\[".into()),
                '-' if !empty && self.chars.next_if_eq(&'[').is_some() => {
                    subtracted = Some(self.class(depth + 1)?);
                    match self.chars.next() {
                        Some(']') => break,
                        _ => return Err("a class ends after a subtraction".into()),
                    }
                }
                '\\' => match self.escape()? {
                    Escape::Char(c) => c,
                    Escape::Class(class) => {
                        if !classes.iter().any(|other| Rc::ptr_eq(other, &class)) {
                            classes.push(class);
                        }
                        empty = false;
                        continue;
                    }
                },
                c => c,
            };
            empty = false;
            let last = self.end_of_range(first)?;
            if last < first {
                return Err(format!("the range {first:?}-{last:?} of a class is empty"));
            }
            ranges.push(ClassUnicodeRange::new(first, last));
        }
        let mut chars = ClassUnicode::new(ranges);
        if self.flags.ignore_case {
            chars.try_case_fold_simple().map_err(|error| error.to_string())?;
        }
        for class in &classes {
            chars.union(class);
        }
        if negated {
            chars = complement(&chars);
        }
        if let Some(subtracted) = subtracted {
            chars.difference(&subtracted);
        }
        Ok(chars)
    }

    /// The last character of a range that may follow `first`; `first` if none follows.
    fn end_of_range(&mut self, first: char) -> Result<char, String> {
        let mut ahead = self.chars.clone();
        if ahead.next() != Some('-') {
            return Ok(first);
        }
        match ahead.peek() {
            // The hyphen is a character, or a subtraction follows.
            None | Some(']' | '[') => Ok(first),
            Some('\\') => {
                let after = self.chars.clone();
                self.chars.next();
                self.chars.next();
                match self.escape()? {
                    Escape::Char(last) => Ok(last),
                    // The hyphen is a character before a class.
                    Escape::Class(_) => {
                        self.chars = after;
                        Ok(first)
                    }
                }
            }
            Some(_) => {
                self.chars.next();
                Ok(self.chars.next().unwrap_or(first))
            }
        }
    }

    fn push_char(&mut self, c: char) {
        if c.is_alphanumeric() {
            self.out.push(c);
        } else {
            let _ = write!(self.out, "\\x{{{:X}}}", u32::from(c));
        }
    }

    fn push_class(&mut self, class: &ClassUnicode) {
        if class.ranges().is_empty() {
            // No character.
            self.out.push_str(r"[^\x{0}-\x{10FFFF}]");
            return;
        }
        // Case has been considered.
        self.out.push_str("(?-i:[");
        for ranges in class.ranges().chunks(RANGES_PER_CLASS) {
            let is_nested = class.ranges().len() > RANGES_PER_CLASS;
            self.out.push_str(if is_nested { "[" } else { "" });
            for range in ranges {
                let _ = write!(self.out, "\\x{{{:X}}}", u32::from(range.start()));
                if range.end() > range.start() {
                    let _ = write!(self.out, "-\\x{{{:X}}}", u32::from(range.end()));
                }
            }
            self.out.push_str(if is_nested { "]" } else { "" });
        }
        self.out.push_str("])");
    }
}

fn set(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|(first, last)| ClassUnicodeRange::new(*first, *last)))
}

/// The characters of a category or block.
fn property(name: &str) -> Result<ClassUnicode, String> {
    if let Some((first, last)) = name.strip_prefix("Is").and_then(block) {
        return Ok(set(&[(first, last)]));
    }
    if !CATEGORIES.contains(&name) {
        return Err(format!("XML Schema has no category or block {name:?}"));
    }
    category(name)
}

/// All other characters. The crate's own negation is wrong for a class with ranges that end at U+D7FF and
/// begin at U+E000 (`regex-syntax` 0.8): it takes the empty range between them for the one from U+D7FF to
/// U+E000.
fn complement(class: &ClassUnicode) -> ClassUnicode {
    let mut ranges = Vec::new();
    // The first character that is in no range so far.
    let mut next = Some('\0');
    for range in class.ranges() {
        if let (Some(first), Some(last)) = (next, before(range.start()))
            && first <= last
        {
            ranges.push(ClassUnicodeRange::new(first, last));
        }
        next = after(range.end());
    }
    if let Some(first) = next {
        ranges.push(ClassUnicodeRange::new(first, char::MAX));
    }
    ClassUnicode::new(ranges)
}

/// The character before this one.
fn before(c: char) -> Option<char> {
    if c == '\u{E000}' { Some('\u{D7FF}') } else { char::from_u32(u32::from(c).checked_sub(1)?) }
}

/// The character after this one.
fn after(c: char) -> Option<char> {
    if c == '\u{D7FF}' { Some('\u{E000}') } else { char::from_u32(u32::from(c) + 1) }
}

/// Whether a match of a translated pattern may end in `^`, with nothing between it and the end but what may
/// be empty, in a text where `$` does not match at the end. May be `true` wrongly.
pub(crate) fn may_end_in_line_start(translated: &str) -> bool {
    if !translated.contains('^') {
        return false;
    }
    match ParserBuilder::new().multi_line(true).build().parse(translated) {
        Ok(parsed) => Ending::of(&parsed).in_line_start,
        Err(_) => true,
    }
}

/// How the matches of a part of a pattern may end.
#[derive(Clone, Copy)]
struct Ending {
    /// Whether a match may be empty, without `$`.
    empty: bool,
    /// See [`may_end_in_line_start`].
    in_line_start: bool,
}

impl Ending {
    /// The depth is that of the parentheses, which the parser limits.
    fn of(part: &Hir) -> Self {
        match part.kind() {
            HirKind::Empty => Self { empty: true, in_line_start: false },
            HirKind::Literal(_) | HirKind::Class(_) => Self { empty: false, in_line_start: false },
            HirKind::Look(Look::EndLF) => Self { empty: false, in_line_start: false },
            HirKind::Look(_) => Self { empty: true, in_line_start: true },
            HirKind::Repetition(repetition) => {
                let once = Self::of(&repetition.sub);
                Self { empty: repetition.min == 0 || once.empty, ..once }
            }
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Concat(parts) => {
                let start = Self { empty: true, in_line_start: false };
                parts.iter().map(Self::of).fold(start, |before, part| Self {
                    empty: before.empty && part.empty,
                    in_line_start: part.in_line_start || before.in_line_start && part.empty,
                })
            }
            HirKind::Alternation(parts) => {
                let none = Self { empty: false, in_line_start: false };
                parts.iter().map(Self::of).fold(none, |any, part| Self {
                    empty: any.empty || part.empty,
                    in_line_start: any.in_line_start || part.in_line_start,
                })
            }
        }
    }
}

/// The characters of a category of Unicode.
fn category(name: &str) -> Result<ClassUnicode, String> {
    let parsed = regex_syntax::parse(&format!("\\p{{{name}}}")).map_err(|error| error.to_string())?;
    match parsed.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class),
        _ => Err(format!("the category {name} has no characters")),
    }
}
