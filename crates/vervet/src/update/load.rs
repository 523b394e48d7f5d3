//! `LOAD`: adds the statements of a document.

use super::{Request, UpdateTarget};
use oxrdf::{BlankNodeRef, LiteralRef, NamedNode, NamedNodeRef, TermRef};
use vervet_kernel::Control;
use vervet_load::{LoadOptions, Target};
use vervet_model::{Error, ErrorKind, Id, LiteralKind, Result, Statement};

impl Request<'_, '_> {
    pub(super) fn load(&mut self, source: &NamedNode, graph: Option<&NamedNode>) -> Result<()> {
        let Some(documents) = self.documents.as_deref_mut() else {
            return Err(Error::new(ErrorKind::Unsupported, "LOAD is turned off")
                .with_hint("load the document with `vervet load`, or `Database::load`"));
        };
        let document = documents.open(source.as_str())?;
        let cancel = self.options.cancel.as_ref().map(crate::CancelToken::flag);
        let options = LoadOptions {
            graph: graph.cloned(),
            base_iri: Some(source.as_str().to_owned()),
            threads: 1,
            cancelled: cancel.as_deref(),
            blank_scope: self.new_scope()?,
            ..LoadOptions::default()
        };
        let mut buffered = BufferedTarget {
            target: &mut *self.target,
            control: &self.control,
            statements: Vec::new(),
            counted: 0,
        };
        let loaded = vervet_load::load(vec![document], &options, &mut buffered, &mut std::io::sink());
        let BufferedTarget { mut statements, mut counted, .. } = buffered;
        let done = loaded.and_then(|_| self.insert(&mut statements));
        self.control.recount(&mut counted, 0)?;
        done
    }
}

/// Buffers statements until the document has been read to its end.
struct BufferedTarget<'a> {
    target: &'a mut dyn UpdateTarget,
    control: &'a Control<'static>,
    statements: Vec<Statement>,
    counted: u64,
}

impl BufferedTarget<'_> {
    fn count(&mut self) -> Result<()> {
        self.control.check()?;
        let bytes = self.statements.capacity() * size_of::<Statement>();
        self.control.recount(&mut self.counted, bytes as u64)
    }
}

impl Target for BufferedTarget<'_> {
    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        if iri.starts_with(vervet_model::vocab::EDGE_NAMESPACE) {
            return Err(edges());
        }
        self.target.intern(NamedNodeRef::new_unchecked(iri).into())
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.target.intern(BlankNodeRef::new_unchecked(label).into())
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        let parts = vervet_model::TermParts::Literal { head: value, tail: "", kind };
        match kind {
            LiteralKind::String => self.target.intern(LiteralRef::new_simple_literal(value).into()),
            LiteralKind::Typed(datatype) => {
                let datatype = NamedNodeRef::new_unchecked(datatype);
                self.target.intern(LiteralRef::new_typed_literal(value, datatype).into())
            }
            LiteralKind::Language(_) | LiteralKind::Triple => {
                let term = parts.to_term();
                self.target.intern(TermRef::from(&term))
            }
        }
    }

    fn next_edge(&mut self) -> Result<Id> {
        Err(edges())
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        self.statements.extend(triples.iter().map(|&[subject, predicate, object]| Statement {
            subject,
            predicate,
            object,
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        }));
        self.count()
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.statements.extend_from_slice(statements);
        self.count()
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        self.statements.retain_mut(each);
        Ok(())
    }
}

fn edges() -> Error {
    Error::new(ErrorKind::Unsupported, "LOAD cannot read edges with identities yet")
        .with_hint("load such a document with `vervet load`, or `Database::load`")
}
