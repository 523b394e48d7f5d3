//! Templates: the patterns of one dictionary, each with the kind of its terms.
//!
//! # Shape
//! In the file, a template is its kind (one byte), the length and text of its language tag or datatype (empty
//! for other kinds), the length and bytes of its pattern (see [`crate::pattern`]). Two more kinds are not
//! templates but symbol tables, one for vertices and one for literals, before the first template whose slot
//! takes codes. In memory, the pattern is split at its slots, once as plain text and once in N-Triples form.
//! # Invariants
//! Every piece is UTF-8; a slot for the rest, as text or as codes, is the only slot; a blank node has no text
//! before that slot (a label is returned in one piece). A triple term is returned only if it is valid, and
//! not nested too deep.
//! # Cost
//! Opening a dictionary reads all templates; there are at most [`TEMPLATES_MAX`].

use crate::fsst::SymbolTable;
use crate::integers::{DECIMAL_BYTES_MAX, Decimal, put_decimal};
use crate::pattern::{CODED, DIGITS_MAX, REST, SLOT};
use std::sync::Arc;
use vervet_codec::{read_varint, write_varint};
use vervet_model::{LiteralKind, TermParts, is_triple_text};

/// Maximum number of templates; terms without one are stored as text.
pub(crate) const TEMPLATES_MAX: usize = 1 << 14;

/// TemplateEntry kinds of symbol tables, for vertices and for literals.
pub(crate) const TABLE_KINDS: [u8; 2] = [7, 8];

/// Kind of the terms of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum TemplateKind {
    Iri = 0,
    Blank = 1,
    String = 2,
    /// The language tag is in the template.
    Language = 3,
    /// The datatype is in the template.
    Typed = 4,
    /// The language tag is in each record, before the text.
    OwnLanguage = 5,
    /// The datatype is in each record, before the text.
    OwnType = 6,
    /// A triple term in N-Triples form. Only in files from version 5 on.
    Triple = 9,
}

impl TemplateKind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Iri,
            1 => Self::Blank,
            2 => Self::String,
            3 => Self::Language,
            4 => Self::Typed,
            5 => Self::OwnLanguage,
            6 => Self::OwnType,
            9 => Self::Triple,
            _ => return None,
        })
    }

    /// Whether each record holds the language tag or datatype.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Self::OwnLanguage | Self::OwnType)
    }

    /// Index in [`TABLE_KINDS`] of the symbol table of this kind of term.
    pub(crate) fn table(self) -> usize {
        usize::from(!matches!(self, Self::Iri | Self::Blank))
    }

    fn literal_kind(self, detail: &str) -> LiteralKind<'_> {
        match self {
            Self::Language | Self::OwnLanguage => LiteralKind::Language(detail),
            Self::Typed | Self::OwnType => LiteralKind::Typed(detail),
            Self::Triple => LiteralKind::Triple,
            Self::Iri | Self::Blank | Self::String => LiteralKind::String,
        }
    }
}

/// A parsed template.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) kind: TemplateKind,
    detail: String,
    /// Text before the first slot.
    head: String,
    /// `None`: one slot, which takes the rest.
    numbers: Option<Numbers>,
    /// Symbol table of the rest; `None` if the rest is text.
    symbols: Option<Arc<SymbolTable>>,
}

#[derive(Debug)]
struct Numbers {
    /// The head in N-Triples form, with the opening delimiter.
    nt_head: Padded,
    slots: Vec<NumberSlot>,
    /// Size of the buffer that [`Template::put_nt`] needs.
    nt_bytes_max: usize,
}

#[derive(Debug)]
struct NumberSlot {
    width: u8,
    /// Text after the slot.
    text: String,
    /// The same in N-Triples form; that of the last slot includes the closing delimiter.
    nt_text: Padded,
}

/// Bytes that are copied in blocks of a fixed size, because copies of unknown length are calls.
#[derive(Debug)]
struct Padded {
    first: [u8; PIECE_BYTES],
    more: Box<[[u8; PIECE_BYTES]]>,
    length: usize,
}

const PIECE_BYTES: usize = 32;

impl Padded {
    fn new(bytes: &[u8]) -> Self {
        let pad = |piece: &[u8]| {
            let mut padded = [0; PIECE_BYTES];
            padded[..piece.len()].copy_from_slice(piece);
            padded
        };
        let (first, more) = bytes.split_at(bytes.len().min(PIECE_BYTES));
        Self { first: pad(first), more: more.chunks(PIECE_BYTES).map(pad).collect(), length: bytes.len() }
    }

    /// Number of bytes that [`Padded::put`] overwrites.
    fn padded_bytes(&self) -> usize {
        (1 + self.more.len()) * PIECE_BYTES
    }

    /// Writes the bytes at `at`; returns the position after them, or `None` if there is no room.
    #[inline]
    fn put(&self, buffer: &mut [u8], at: usize) -> Option<usize> {
        *piece_at(buffer, at)? = self.first;
        if !self.more.is_empty() {
            self.put_more(buffer, at)?;
        }
        Some(at + self.length)
    }

    fn put_more(&self, buffer: &mut [u8], at: usize) -> Option<()> {
        for (piece, start) in self.more.iter().zip((at..).step_by(PIECE_BYTES).skip(1)) {
            *piece_at(buffer, start)? = *piece;
        }
        Some(())
    }
}

#[inline]
fn piece_at(buffer: &mut [u8], at: usize) -> Option<&mut [u8; PIECE_BYTES]> {
    buffer.get_mut(at..)?.first_chunk_mut()
}

/// Appends a symbol table, of vertices (0) or literals (1), to the bytes of the file.
pub(crate) fn write_table(of: usize, table: &[u8], out: &mut Vec<u8>) {
    out.extend([TABLE_KINDS[of], 0]);
    write_varint(table.len() as u64, out);
    out.extend_from_slice(table);
}

/// Appends a template to the bytes of the file.
pub(crate) fn write(kind: TemplateKind, detail: &str, pattern: &[u8], out: &mut Vec<u8>) {
    out.push(kind as u8);
    write_varint(detail.len() as u64, out);
    out.extend_from_slice(detail.as_bytes());
    write_varint(pattern.len() as u64, out);
    out.extend_from_slice(pattern);
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(read_varint(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take(bytes)?).ok()
}

/// A symbol table or a template in the file.
pub(crate) enum TemplateEntry<'a> {
    /// Index of the kind in [`TABLE_KINDS`], and the table.
    Table(usize, &'a [u8]),
    /// Kind, language tag or datatype, pattern.
    Template(TemplateKind, &'a str, &'a [u8]),
}

/// Calls `each` with all entries of `bytes`; `None` if they are damaged, or if `each` returns `None`.
pub(crate) fn for_each<'a>(
    mut bytes: &'a [u8],
    mut each: impl FnMut(TemplateEntry<'a>) -> Option<()>,
) -> Option<()> {
    while let Some((&kind, rest)) = bytes.split_first() {
        bytes = rest;
        let detail = take_text(&mut bytes)?;
        let pattern = take(&mut bytes)?;
        match TABLE_KINDS.iter().position(|&table| table == kind) {
            Some(_) if !detail.is_empty() => return None,
            Some(of) => each(TemplateEntry::Table(of, pattern))?,
            None => each(TemplateEntry::Template(TemplateKind::from_byte(kind)?, detail, pattern))?,
        }
    }
    Some(())
}

/// Parses all templates in `bytes`; `None` if they are damaged.
pub(crate) fn read_all(bytes: &[u8]) -> Option<Vec<Template>> {
    let mut templates = Vec::new();
    let mut tables = [const { None }; TABLE_KINDS.len()];
    for_each(bytes, |entry| {
        match entry {
            TemplateEntry::Table(of, _) if tables[of].is_some() => return None,
            TemplateEntry::Table(of, table) => tables[of] = Some(Arc::new(SymbolTable::read(table)?)),
            TemplateEntry::Template(..) if templates.len() == TEMPLATES_MAX => return None,
            TemplateEntry::Template(kind, detail, pattern) => {
                templates.push(Template::parse(kind, detail, pattern, tables[kind.table()].as_ref())?);
            }
        }
        Some(())
    })?;
    Some(templates)
}

impl Template {
    /// `table`: the symbol table for codes of this kind of term.
    fn parse(
        kind: TemplateKind,
        detail: &str,
        pattern: &[u8],
        table: Option<&Arc<SymbolTable>>,
    ) -> Option<Self> {
        let mut pieces = pattern.split(|&byte| byte == SLOT);
        let head = std::str::from_utf8(pieces.next()?).ok()?.to_owned();
        let mut slots = Vec::new();
        let mut has_rest = false;
        let mut symbols = None;
        for piece in pieces {
            let (&width, text) = piece.split_first()?;
            if has_rest || usize::from(width) > DIGITS_MAX && width != CODED {
                return None;
            }
            if width == CODED {
                symbols = Some(Arc::clone(table?));
            }
            if width == REST || width == CODED {
                has_rest = slots.is_empty() && text.is_empty();
                if !has_rest {
                    return None;
                }
                continue;
            }
            let text = std::str::from_utf8(text).ok()?.to_owned();
            slots.push((width, text));
        }
        let may_have_rest = kind != TemplateKind::Blank || head.is_empty();
        if if has_rest { !may_have_rest } else { kind.is_own() } {
            return None;
        }
        let numbers = if has_rest { None } else { Some(Numbers::new(kind, detail, &head, slots)?) };
        Some(Self { kind, detail: detail.to_owned(), head, numbers, symbols })
    }

    /// Whether the pattern has numbers, so that [`Template::put_nt`] applies, else [`Template::append_nt`].
    #[inline]
    pub(crate) fn has_numbers(&self) -> bool {
        self.numbers.is_some()
    }

    /// Size of the buffer that [`Template::put_nt`] needs.
    pub(crate) fn nt_bytes_max(&self) -> usize {
        self.numbers.as_ref().map_or(0, |numbers| numbers.nt_bytes_max)
    }

    /// Writes the N-Triples form of the term with this payload at `at` and returns the position after it;
    /// `None` if it is damaged. The buffer must have [`Template::nt_bytes_max`] bytes from `at` on.
    #[inline]
    pub(crate) fn put_nt(&self, payload: &[u8], buffer: &mut [u8], at: usize) -> Option<usize> {
        let numbers = self.numbers.as_ref()?;
        let (mut payload, start) = (payload, at);
        let mut at = numbers.nt_head.put(buffer, at)?;
        for slot in &numbers.slots {
            at = put_decimal(read_varint(&mut payload)?, slot.width, buffer, at);
            at = slot.nt_text.put(buffer, at)?;
        }
        if self.kind == TemplateKind::Triple {
            let text = std::str::from_utf8(buffer.get(start..at)?).ok()?;
            is_triple(text, "").then_some(())?;
        }
        payload.is_empty().then_some(at)
    }

    /// Appends the N-Triples form of the term with this payload; `None` if it is damaged, or if the
    /// template has numbers.
    pub(crate) fn append_nt(&self, payload: &[u8], scratch: &mut String, out: &mut Vec<u8>) -> Option<()> {
        if self.numbers.is_some() {
            return None;
        }
        self.with_rest(payload, scratch, |parts| parts.write_nt(out))
    }

    /// Calls `read` with the term of this payload; `None` if it is damaged.
    /// The kind of the literal with this payload.
    pub(crate) fn literal_kind<'t>(&'t self, mut payload: &'t [u8]) -> Option<LiteralKind<'t>> {
        let detail = if self.kind.is_own() { take_text(&mut payload)? } else { &self.detail };
        Some(self.kind.literal_kind(detail))
    }

    pub(crate) fn read(
        &self,
        payload: &[u8],
        scratch: &mut String,
        read: &mut dyn FnMut(TermParts<'_>),
    ) -> Option<()> {
        let Some(numbers) = &self.numbers else {
            return self.with_rest(payload, scratch, read);
        };
        scratch.clear();
        if self.kind == TemplateKind::Blank {
            scratch.push_str(&self.head);
        }
        let mut payload = payload;
        for slot in &numbers.slots {
            scratch.push_str(Decimal::new(read_varint(&mut payload)?, slot.width).as_str());
            scratch.push_str(&slot.text);
        }
        if !payload.is_empty() {
            return None;
        }
        read(match self.kind {
            TemplateKind::Iri => TermParts::Iri { namespace: &self.head, local: scratch },
            TemplateKind::Blank => TermParts::Blank(scratch),
            TemplateKind::Triple if !is_triple(&self.head, scratch) => return None,
            kind => {
                let kind = kind.literal_kind(&self.detail);
                TermParts::Literal { head: &self.head, tail: scratch, kind }
            }
        });
        Some(())
    }

    /// [`Template::read`] for a template whose slot takes the rest.
    fn with_rest(
        &self,
        payload: &[u8],
        scratch: &mut String,
        read: impl FnOnce(TermParts<'_>),
    ) -> Option<()> {
        let mut payload = payload;
        let detail = if self.kind.is_own() { take_text(&mut payload)? } else { &self.detail };
        let rest = match &self.symbols {
            Some(symbols) => {
                let mut text = std::mem::take(scratch).into_bytes();
                text.clear();
                symbols.decode(payload, &mut text)?;
                *scratch = String::from_utf8(text).ok()?;
                scratch
            }
            None => std::str::from_utf8(payload).ok()?,
        };
        read(match self.kind {
            TemplateKind::Iri => TermParts::Iri { namespace: &self.head, local: rest },
            TemplateKind::Blank => TermParts::Blank(rest),
            TemplateKind::Triple if !is_triple(&self.head, rest) => return None,
            kind => TermParts::Literal { head: &self.head, tail: rest, kind: kind.literal_kind(detail) },
        });
        Some(())
    }

    /// Whether the term with this payload is a literal of this kind; `true` for any IRI or blank node if
    /// `kind` is that kind.
    fn has_kind(&self, kind: crate::key::TermKind<'_>, payload: &mut &[u8]) -> Option<bool> {
        use crate::key::TermKind;
        Some(match (kind, self.kind) {
            (TermKind::Iri, TemplateKind::Iri)
            | (TermKind::Blank, TemplateKind::Blank)
            | (TermKind::Literal(LiteralKind::String), TemplateKind::String)
            | (TermKind::Literal(LiteralKind::Triple), TemplateKind::Triple) => true,
            (TermKind::Literal(LiteralKind::Language(tag)), TemplateKind::Language) => tag == self.detail,
            (TermKind::Literal(LiteralKind::Typed(iri)), TemplateKind::Typed) => iri == self.detail,
            (TermKind::Literal(LiteralKind::Language(tag)), TemplateKind::OwnLanguage) => {
                tag == take_text(payload)?
            }
            (TermKind::Literal(LiteralKind::Typed(iri)), TemplateKind::OwnType) => iri == take_text(payload)?,
            _ => false,
        })
    }

    /// Whether the term with this payload equals `key`; `None` if the payload is damaged.
    pub(crate) fn is(&self, key: &crate::key::Key<'_>, payload: &[u8]) -> Option<bool> {
        let mut payload = payload;
        if !self.has_kind(key.kind, &mut payload)? {
            return Some(false);
        }
        let Some(mut text) = key.text.as_bytes().strip_prefix(self.head.as_bytes()) else {
            return Some(false);
        };
        let Some(numbers) = &self.numbers else {
            return match &self.symbols {
                Some(symbols) => symbols.is(payload, text),
                None => Some(text == payload),
            };
        };
        for slot in &numbers.slots {
            let number = Decimal::new(read_varint(&mut payload)?, slot.width);
            let rest =
                text.strip_prefix(number.as_bytes()).and_then(|rest| rest.strip_prefix(slot.text.as_bytes()));
            let Some(rest) = rest else { return Some(false) };
            text = rest;
        }
        if payload.is_empty() { Some(text.is_empty()) } else { None }
    }
}

impl Numbers {
    /// `slots`: the width of each, and the text after it; `None` without slots.
    fn new(kind: TemplateKind, detail: &str, head: &str, slots: Vec<(u8, String)>) -> Option<Self> {
        let last = slots.len().checked_sub(1)?;
        let start: &[u8] = match kind {
            TemplateKind::Iri => b"<",
            TemplateKind::Blank => b"_:",
            TemplateKind::Triple => b"",
            _ => b"\"",
        };
        let nt_head = Padded::new(&[start, &nt_text(kind, head)].concat());
        let slot = |(i, (width, text)): (usize, (u8, String))| {
            let mut nt = nt_text(kind, &text);
            if i == last {
                nt.extend_from_slice(&nt_end(kind, detail));
            }
            NumberSlot { width, text, nt_text: Padded::new(&nt) }
        };
        let slots: Vec<NumberSlot> = slots.into_iter().enumerate().map(slot).collect();
        let of_slots: usize = slots.iter().map(|slot| slot.nt_text.padded_bytes() + DECIMAL_BYTES_MAX).sum();
        Some(Self { nt_bytes_max: nt_head.padded_bytes() + of_slots, nt_head, slots })
    }
}

/// Whether a text is that of a valid triple term. The text comes from a file, and callers may follow its
/// nesting by recursion.
#[cold]
fn is_triple(head: &str, rest: &str) -> bool {
    if head.is_empty() { is_triple_text(rest) } else { is_triple_text(&[head, rest].concat()) }
}

/// `text` in N-Triples form inside a term of this kind.
fn nt_text(kind: TemplateKind, text: &str) -> Vec<u8> {
    if matches!(kind, TemplateKind::Iri | TemplateKind::Blank | TemplateKind::Triple) {
        return text.as_bytes().to_vec();
    }
    let mut quoted = Vec::new();
    TermParts::Literal { head: text, tail: "", kind: LiteralKind::String }.write_nt(&mut quoted);
    quoted[1..quoted.len() - 1].to_vec()
}

/// The closing delimiter of a term of this kind in N-Triples.
fn nt_end(kind: TemplateKind, detail: &str) -> Vec<u8> {
    match kind {
        TemplateKind::Iri => b">".to_vec(),
        TemplateKind::Blank | TemplateKind::Triple => Vec::new(),
        kind => {
            let mut empty = Vec::new();
            let kind = kind.literal_kind(detail);
            TermParts::Literal { head: "", tail: "", kind }.write_nt(&mut empty);
            empty[1..].to_vec()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsst::Encoder;
    use crate::key::{Key, TermKind};

    fn template(kind: TemplateKind, detail: &str, pattern: &[u8]) -> Option<Template> {
        let mut bytes = Vec::new();
        write(kind, detail, pattern, &mut bytes);
        read_all(&bytes)?.pop()
    }

    #[test]
    fn a_filled_template_is_the_term() {
        let filled = template(TemplateKind::Typed, "http://t", b"\"a\xFF\x01\n\xFF\x03z").expect("whole");
        let (mut out, mut scratch) = (vec![0; filled.nt_bytes_max()], String::new());
        let end = filled.put_nt(&[5, 7], &mut out, 0).expect("whole");
        out.truncate(end);
        assert_eq!(out, b"\"\\\"a5\\n007z\"^^<http://t>");
        let mut again = Vec::new();
        filled.read(&[5, 7], &mut scratch, &mut |parts| parts.write_nt(&mut again)).expect("whole");
        assert_eq!(out, again);
        let key = |text| Key { kind: TermKind::Literal(LiteralKind::Typed("http://t")), text, hash: 0 };
        assert_eq!(filled.is(&key("\"a5\n007z"), &[5, 7]), Some(true));
        assert_eq!(filled.is(&key("\"a5\n007zz"), &[5, 7]), Some(false));
        assert_eq!(filled.is(&key("\"a5\n007z"), &[5]), None);
        out.resize(100 + filled.nt_bytes_max(), 0);
        assert!(filled.put_nt(&[5, 7, 1], &mut out, 100).is_none());
        assert!(filled.append_nt(&[5, 7], &mut scratch, &mut out).is_none());
    }

    #[test]
    fn damaged_templates_are_refused() {
        for pattern in
            [&b""[..], b"abc", b"\xFF", b"\xFF\x00x", b"\xFF\x01\xFF\x00", b"\xFF\x14", b"\xC0\xFF\x01"]
        {
            assert!(template(TemplateKind::Iri, "", pattern).is_none(), "{pattern:?}");
        }
        assert!(template(TemplateKind::OwnType, "", b"\xFF\x01").is_none());
        assert!(read_all(&[9, 0, 0]).is_none() && read_all(&[0, 5, b'x']).is_none());
    }

    #[test]
    fn codes_need_their_table() {
        let encoder = Encoder::train(&[b"a text of words", b"another text of words", b"words"]);
        let mut codes = vec![2];
        codes.extend(b"de");
        encoder.encode("text of wörds".as_bytes(), &mut codes);
        let made = |of: &[usize]| {
            let mut bytes = Vec::new();
            of.iter().for_each(|of| write_table(*of, &encoder.table(), &mut bytes));
            write(TemplateKind::OwnLanguage, "", b"a \xFF\x13", &mut bytes);
            read_all(&bytes)
        };
        assert!(made(&[]).is_none() && made(&[0]).is_none(), "without the table of literals");
        assert!(made(&[1, 1]).is_none(), "two tables of literals");
        let template = made(&[0, 1]).expect("whole").pop().expect("one");
        let (mut out, mut scratch) = (Vec::new(), "left over".to_owned());
        template.append_nt(&codes, &mut scratch, &mut out).expect("whole");
        assert_eq!(out, "\"a text of wörds\"@de".as_bytes());
        let key = |text| Key { kind: TermKind::Literal(LiteralKind::Language("de")), text, hash: 0 };
        assert_eq!(template.is(&key("a text of wörds"), &codes), Some(true));
        assert_eq!(template.is(&key("a text of wörd"), &codes), Some(false));
        assert_eq!(template.is(&key("text of wörds"), &codes), Some(false));
        // An escape without a byte, and half a character.
        for damage in [&[255][..], &[255, 0xC3]] {
            codes.extend(damage);
            assert!(template.append_nt(&codes, &mut scratch, &mut out).is_none());
            codes.truncate(codes.len() - damage.len());
        }
    }
}
