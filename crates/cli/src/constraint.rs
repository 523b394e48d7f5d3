//! `vervet constraint`: constraints on the vertices of a class.

use crate::arguments::{ConstraintArguments, ConstraintChange, ConstraintWords};
use crate::output::{Outcome, Output};
use std::io::Write;
use vervet::{Constraint, Database, Error, ErrorKind, NamedNode, Result};
use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, is_iri, name_iri};

pub(crate) fn run(arguments: &ConstraintArguments) -> Outcome {
    let database = Database::open(&arguments.database)?;
    match &arguments.change {
        None => {
            let mut out = Output::standard();
            for constraint in database.constraints() {
                writeln!(out, "{constraint}")?;
            }
            return out.finish();
        }
        Some(ConstraintChange::Add(words)) => {
            let constraint = constraint(words)?;
            if !database.add_constraint(&constraint)? {
                let message = format!("there is a constraint {constraint} already");
                return Err(Error::new(ErrorKind::Input, message).into());
            }
            crate::output::warn(&database.constraint_warnings(&constraint)?);
        }
        Some(ConstraintChange::Remove(words)) => {
            let constraint = constraint(words)?;
            if !database.remove_constraint(&constraint)? {
                let message = format!("there is no constraint {constraint}");
                let hint = "`vervet constraint DB` lists the existing constraints";
                return Err(Error::new(ErrorKind::Input, message).with_hint(hint).into());
            }
        }
    }
    Ok(())
}

fn constraint(words: &ConstraintWords) -> Result<Constraint> {
    let properties =
        words.properties.iter().map(|name| iri(KEY_NAMESPACE, name)).collect::<Result<Vec<_>>>()?;
    Constraint::new(words.kind, iri(LABEL_NAMESPACE, &words.class)?, properties)
}

/// An IRI, with or without angle brackets, or the IRI of a name.
fn iri(namespace: &str, name: &str) -> Result<NamedNode> {
    let bare = name.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
    let iri = match bare {
        Some(bare) => bare.to_owned(),
        None if is_iri(name) => name.to_owned(),
        None => name_iri(namespace, name),
    };
    NamedNode::new(&iri)
        .map_err(|error| Error::new(ErrorKind::Input, format!("{name} is not an absolute IRI: {error}")))
}
