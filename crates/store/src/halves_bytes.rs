//! Halves of statements on their way to the server of their partitions, as bytes.
//!
//! # Shape
//! Numbers of 8 bytes, little-endian. A list for each direction, predicate and kind: direction (0: out, 1:
//! in), predicate, kind (tags of narrow entries, or [`PAIRS`] or [`QUADS`]), number of numbers, the numbers.
//! Then [`EDGES`], the number of rows of edges, and those. A triple takes 16 bytes: 8 for each half.

use crate::buffers::Buffers;
use crate::edges::EdgeRow;
use crate::spill::RunKind;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::{Direction, Id, Statement};

/// Halves of statements in memory.
#[derive(Debug, Default)]
pub struct Halves {
    pub(crate) sides: [Buffers; 2],
    /// Rows of edges.
    pub(crate) rows: Vec<EdgeRow>,
}

const PAIRS: u64 = 1 << 8;
const QUADS: u64 = PAIRS + 1;
const EDGES: u64 = 2;
const EDGE_NUMBERS: usize = 5;

impl Halves {
    /// Adds the out or the in half of a statement.
    pub fn add(&mut self, direction: Direction, statement: &Statement) {
        let Statement { subject, object, .. } = *statement;
        match direction {
            Direction::Out => self.sides[0].add(statement),
            Direction::In => {
                self.sides[1].add(&Statement { subject: object, object: subject, ..*statement });
            }
        }
    }

    /// Adds the row of the edge of a statement that has one.
    pub fn add_edge(&mut self, statement: &Statement) {
        let Statement { subject, predicate, object, graph, edge } = *statement;
        self.rows.push([edge, subject, predicate, object, graph].map(Id::bits));
    }

    /// Size in memory, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let rows = self.rows.len() as u64 * size_of::<EdgeRow>() as u64;
        self.sides.iter().map(|side| side.held_bytes).sum::<u64>() + rows
    }

    /// Takes all halves: appends their bytes.
    pub fn drain(&mut self, out: &mut Vec<u8>) {
        for (direction, side) in (0..).zip(&mut self.sides) {
            side.drain(&mut |predicate, kind, numbers| {
                let kind = match kind {
                    RunKind::Narrow(tags) => u64::from(tags),
                    RunKind::Pairs => PAIRS,
                    RunKind::Quads => QUADS,
                };
                for number in [direction, predicate, kind, numbers.len() as u64].iter().chain(numbers) {
                    write_u64(*number, out);
                }
            });
        }
        if !self.rows.is_empty() {
            write_u64(EDGES, out);
            write_u64(self.rows.len() as u64, out);
            std::mem::take(&mut self.rows).as_flattened().iter().for_each(|number| write_u64(*number, out));
        }
    }

    /// Adds the halves of these bytes. `is_own`: whether the key of a half, or an edge, is one that belongs
    /// here.
    ///
    /// # Errors
    /// Damaged bytes; a key that does not belong here. A part of the halves may have been added.
    pub fn add_bytes(&mut self, bytes: &[u8], is_own: impl Fn(Id) -> bool) -> Result<(), Damaged> {
        const FOREIGN: Damaged = Damaged("an entry is not of this server");
        let mut reader = Reader::new(bytes);
        let mut rest = bytes.len() / 8;
        while rest > 0 {
            let direction = reader.u64()?;
            if direction == EDGES {
                let count = reader.length()?;
                for _ in 0..count {
                    let mut row = [0; EDGE_NUMBERS];
                    for number in &mut row {
                        *number = reader.u64()?;
                    }
                    if !is_own(Id::from_bits(row[0])) {
                        return Err(FOREIGN);
                    }
                    self.rows.push(row);
                }
                break;
            }
            let side = usize::try_from(direction).ok().and_then(|side| self.sides.get_mut(side));
            let side = side.ok_or(Damaged("unknown direction"))?;
            let (predicate, kind) = (Id::from_bits(reader.u64()?), reader.u64()?);
            let kind = match (kind, u8::try_from(kind)) {
                (_, Ok(tags)) => RunKind::Narrow(tags),
                (PAIRS, _) => RunKind::Pairs,
                (QUADS, _) => RunKind::Quads,
                _ => return Err(Damaged("unknown kind of entries")),
            };
            let (count, of_entry) = (reader.list_length()?, kind.numbers());
            if count % of_entry != 0 {
                return Err(Damaged("a part of an entry"));
            }
            for _ in 0..count / of_entry {
                let mut numbers = [0; 4];
                for number in &mut numbers[..of_entry] {
                    *number = reader.u64()?;
                }
                let [subject, object, graph, edge] = kind.row(numbers).map(Id::from_bits);
                if !is_own(subject) {
                    return Err(FOREIGN);
                }
                side.add(&Statement { subject, predicate, object, graph, edge });
            }
            rest = rest.saturating_sub(count + 4);
        }
        reader.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_their_bytes() {
        let mut halves = Halves::default();
        let [a, p, x, g] = [1, 2, 1 << 40, 3].map(Id::vertex);
        let plain = |subject, object| Statement {
            subject,
            predicate: p,
            object,
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        };
        let edge = Statement { graph: g, edge: Id::edge(7), ..plain(a, Id::literal(4)) };
        for statement in [plain(a, Id::literal(5)), plain(x, a), edge, plain(a, a)] {
            Direction::BOTH.into_iter().for_each(|direction| halves.add(direction, &statement));
        }
        halves.add_edge(&edge);
        let held = halves.held_bytes();
        let (mut bytes, mut again, mut back) = (Vec::new(), Vec::new(), Halves::default());
        halves.drain(&mut bytes);
        assert_eq!(halves.held_bytes(), 0);
        back.add_bytes(&bytes, |_| true).expect("whole");
        assert_eq!(back.held_bytes(), held);
        back.drain(&mut again);
        assert_eq!(again, bytes);
        let not_literals = |id: Id| !id.is_stored_literal();
        assert!(Halves::default().add_bytes(&bytes, not_literals).is_err(), "foreign");
        for end in 1..bytes.len() {
            let cut = Halves::default().add_bytes(&bytes[..end], |_| true);
            // Lists are whole without those behind them.
            assert!(cut.is_err() || end % 8 == 0, "{end}");
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2_000 {
            let mut changed = bytes.clone();
            let at = random.usize(..changed.len());
            changed[at] = random.u8(..);
            _ = Halves::default().add_bytes(&changed, |_| true);
        }
    }
}
