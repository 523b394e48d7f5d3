//! What servers log, with virtual time and the node, on standard error.

use crate::machine::{own_node, with};
use std::fmt::Write;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Prints what servers log at the levels up to this one.
pub(crate) struct Telling(pub(crate) Level);

/// Prints a line.
pub(crate) fn tell(what: &str) {
    let (now, node) = with(|world| (world.now(), own_node(world)));
    eprintln!("{:>12.6} {node:>3} {what}", now as f64 / 1e9);
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let name = if field.name() == "message" { "" } else { field.name() };
        let space = if name.is_empty() { "" } else { "=" };
        _ = write!(self.0, " {name}{space}{value:?}");
    }
}

impl Subscriber for Telling {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.0
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        tell(&format!("{} {}:{}", metadata.level(), metadata.target(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
