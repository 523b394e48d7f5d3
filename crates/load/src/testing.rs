//! Targets made of hash maps, for tests and measurements.

use crate::target::{Statement, Target, TermRef};
use rustc_hash::FxHashMap;
use vervet_model::vocab::EDGE_NAMESPACE;
use vervet_model::{Id, LiteralKind, Result, TermParts, inline_id};

/// A target that keeps every term as text and every statement in a list.
#[derive(Default, Debug)]
pub struct MapTarget {
    ids: FxHashMap<Box<str>, Id>,
    vertices: Vec<String>,
    literals: Vec<String>,
    edges: u64,
    /// All statements in insertion order.
    pub statements: Vec<Statement>,
}

impl MapTarget {
    fn intern(&mut self, term: TermParts<'_>) -> Id {
        let mut text = Vec::new();
        term.write_nt(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        if let Some(&id) = self.ids.get(text.as_str()) {
            return id;
        }
        let id = if matches!(term, TermParts::Literal { .. }) {
            self.literals.push(text.clone());
            Id::literal(self.literals.len() as u64 - 1)
        } else {
            self.vertices.push(text.clone());
            Id::vertex(self.vertices.len() as u64 - 1)
        };
        self.ids.insert(text.into(), id);
        id
    }

    /// The N-Triples form of a term, `edge:N` for an edge, empty for the default graph.
    #[must_use]
    pub fn text(&self, id: Id) -> String {
        let at = usize::try_from(id.payload()).unwrap_or(usize::MAX);
        let stored = match id.tag() {
            vervet_model::Tag::Vertex => self.vertices.get(at),
            vervet_model::Tag::Literal => self.literals.get(at),
            vervet_model::Tag::Edge => return format!("edge:{at}"),
            _ => None,
        };
        stored.cloned().unwrap_or_default()
    }

    /// Every statement as a line, in insertion order.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |s: &Statement| {
            let [subject, predicate, object, graph, edge] =
                [s.subject, s.predicate, s.object, s.graph, s.edge].map(|id| self.text(id));
            format!("{subject} {predicate} {object} {graph} {edge}").trim_end().to_owned()
        };
        self.statements.iter().map(line).collect()
    }

    /// Number of distinct terms.
    #[must_use]
    pub fn term_count(&self) -> usize {
        self.ids.len()
    }
}

impl Target for MapTarget {
    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        // As in dictionaries, names of edges are inline ids.
        if let Some(number) = iri.strip_prefix(EDGE_NAMESPACE).and_then(|digits| digits.parse().ok()) {
            return Ok(Id::edge(number));
        }
        Ok(self.intern(TermParts::Iri { namespace: "", local: iri }))
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        Ok(self.intern(TermParts::Blank(label)))
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        Ok(self.intern(TermParts::Literal { head: value, tail: "", kind }))
    }

    fn next_edge(&mut self) -> Result<Id> {
        self.edges += 1;
        Ok(Id::edge(self.edges - 1))
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        self.statements.extend(triples.iter().map(|&[subject, predicate, object]| Statement {
            subject,
            predicate,
            object,
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        }));
        Ok(())
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.statements.extend_from_slice(statements);
        Ok(())
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        self.statements.retain_mut(each);
        Ok(())
    }
}

/// The cheapest possible target with a dictionary: one hash table over one text, for measurements.
#[derive(Default, Debug)]
pub struct HashTarget {
    index: hashbrown::HashTable<(u32, u32)>,
    text: Vec<u8>,
    starts: Vec<u64>,
    edges: u64,
    /// Statements of the default graph.
    pub triples: Vec<[Id; 3]>,
    /// All other statements.
    pub statements: Vec<Statement>,
}

impl HashTarget {
    fn intern(&mut self, mark: u8, parts: [&[u8]; 2]) -> Id {
        let mut hasher = rustc_hash::FxHasher::default();
        std::hash::Hasher::write(&mut hasher, parts[0]);
        std::hash::Hasher::write(&mut hasher, parts[1]);
        std::hash::Hasher::write_u8(&mut hasher, mark);
        let hash = std::hash::Hasher::finish(&hasher);
        let short = hash.to_le_bytes();
        let short = u32::from_le_bytes([short[0], short[1], short[2], short[3]]);
        let (text, starts) = (&self.text, &self.starts);
        let start = |number: u32| usize::try_from(starts[number as usize]).unwrap_or(0);
        let equal = |&(other, number): &(u32, u32)| {
            let end = starts.get(number as usize + 1).map_or(text.len(), |_| start(number + 1));
            let term = &text[start(number)..end];
            other == short
                && term.len() == parts[0].len() + parts[1].len() + 1
                && term[0] == mark
                && term[1..].starts_with(parts[0])
                && term[1 + parts[0].len()..] == *parts[1]
        };
        // The table takes its tags from the top bits of the hash.
        let spread = |short: u32| u64::from(short).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if let Some(&(_, number)) = self.index.find(spread(short), equal) {
            return Id::vertex(u64::from(number));
        }
        let number = u32::try_from(self.starts.len()).unwrap_or(u32::MAX);
        self.starts.push(self.text.len() as u64);
        self.text.push(mark);
        self.text.extend_from_slice(parts[0]);
        self.text.extend_from_slice(parts[1]);
        self.index.insert_unique(spread(short), (short, number), |&(short, _)| spread(short));
        Id::vertex(u64::from(number))
    }

    /// Number of distinct terms in the table.
    #[must_use]
    pub fn term_count(&self) -> usize {
        self.starts.len()
    }
}

impl Target for HashTarget {
    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        Ok(self.intern(b'<', [iri.as_bytes(), b""]))
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        Ok(self.intern(b'_', [label.as_bytes(), b""]))
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        let (mark, rest, datatype) = match kind {
            LiteralKind::String => (b'"', "", "http://www.w3.org/2001/XMLSchema#string"),
            LiteralKind::Language(tag) => (b'@', tag, ""),
            LiteralKind::Typed(iri) => (b'^', iri, iri),
            LiteralKind::Triple => (b'T', "", ""),
        };
        Ok(match inline_id(value, datatype) {
            Some(id) => id,
            None => self.intern(mark, [value.as_bytes(), rest.as_bytes()]),
        })
    }

    fn next_edge(&mut self) -> Result<Id> {
        self.edges += 1;
        Ok(Id::edge(self.edges - 1))
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        self.triples.extend_from_slice(triples);
        Ok(())
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.statements.extend_from_slice(statements);
        Ok(())
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        let plain = |[subject, predicate, object]: [Id; 3]| Statement {
            subject,
            predicate,
            object,
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        };
        self.statements.extend(std::mem::take(&mut self.triples).into_iter().map(plain));
        self.statements.retain_mut(each);
        Ok(())
    }
}

/// A target that only counts, to measure parsing alone.
#[derive(Default, Debug)]
pub struct CountTarget {
    terms: u64,
    edges: u64,
    /// Number of statements.
    pub statements: u64,
}

impl Target for CountTarget {
    fn intern_iri(&mut self, _iri: &str) -> Result<Id> {
        self.terms += 1;
        Ok(Id::vertex(self.terms))
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.intern_iri(label)
    }

    fn intern_literal(&mut self, value: &str, _kind: LiteralKind<'_>) -> Result<Id> {
        self.intern_iri(value)
    }

    fn intern_all(&mut self, terms: &[TermRef<'_>], ids: &mut Vec<Id>) -> Result<()> {
        ids.resize(ids.len() + terms.len(), Id::vertex(1));
        Ok(())
    }

    fn next_edge(&mut self) -> Result<Id> {
        self.edges += 1;
        Ok(Id::edge(self.edges - 1))
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        self.statements += triples.len() as u64;
        Ok(())
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.statements += statements.len() as u64;
        Ok(())
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        let _ = each;
        Ok(())
    }
}
