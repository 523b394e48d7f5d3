//! The table of contents of a store: all metadata read on opening.

use crate::statistics::ClassTable;
use rustc_hash::FxHashMap;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::Id;
use vervet_snapshot::ClassId;

/// Counts, sections, classes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Toc {
    pub(crate) vertex_count: u64,
    pub(crate) edge_count: u64,
    pub(crate) literal_count: u64,
    pub(crate) statement_count: u64,
    /// [`Id::UNBOUND`] without types.
    pub(crate) type_predicate: Id,
    /// Named graphs with their statements, ascending.
    pub(crate) graphs: Vec<(Id, u64)>,
    /// Predicates with their entries, ascending.
    pub(crate) predicates: Vec<(Id, u64)>,
    /// The sections of each predicate: out, in.
    pub(crate) segments: Vec<[SectionLocation; 2]>,
    /// The section of the edge table, if there are edges.
    pub(crate) edges: Option<SectionLocation>,
    pub(crate) classes: ClassTable,
    /// Order columns, ascending by predicate.
    pub(crate) orders: Vec<OrderSections>,
}

/// The order columns of one predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OrderSections {
    pub(crate) predicate: Id,
    pub(crate) property: Id,
    /// The sections: out, in.
    pub(crate) locations: [SectionLocation; 2],
}

/// Position of a section in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SectionLocation {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// xxh3 of its bytes.
    pub(crate) checksum: u64,
}

impl SectionLocation {
    fn write(&self, out: &mut Vec<u8>) {
        for number in [self.offset, self.length, self.checksum] {
            write_u64(number, out);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self { offset: reader.u64()?, length: reader.u64()?, checksum: reader.u64()? })
    }
}

impl Toc {
    /// Encodes the table.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let counts = [self.vertex_count, self.edge_count, self.literal_count, self.statement_count];
        for number in counts.into_iter().chain([self.type_predicate.bits(), self.graphs.len() as u64]) {
            write_u64(number, &mut out);
        }
        for (graph, statements) in &self.graphs {
            write_u64(graph.bits(), &mut out);
            write_u64(*statements, &mut out);
        }
        write_u64(self.predicates.len() as u64, &mut out);
        for ((predicate, entries), locations) in self.predicates.iter().zip(&self.segments) {
            write_u64(predicate.bits(), &mut out);
            write_u64(*entries, &mut out);
            locations.iter().for_each(|location| location.write(&mut out));
        }
        write_u64(u64::from(self.edges.is_some()), &mut out);
        if let Some(location) = &self.edges {
            location.write(&mut out);
        }
        write_u64(self.classes.sizes.len() as u64, &mut out);
        self.classes.sizes.iter().for_each(|size| write_u64(*size, &mut out));
        let mut types: Vec<_> = self.classes.of_type.iter().collect();
        types.sort_unstable();
        write_u64(types.len() as u64, &mut out);
        for (type_id, classes) in types {
            write_u64(*type_id, &mut out);
            write_u64(classes.len() as u64, &mut out);
            classes.iter().for_each(|class| write_u64(u64::from(class.0), &mut out));
        }
        write_u64(self.orders.len() as u64, &mut out);
        for order in &self.orders {
            write_u64(order.predicate.bits(), &mut out);
            write_u64(order.property.bits(), &mut out);
            order.locations.iter().for_each(|location| location.write(&mut out));
        }
        out
    }

    /// Decodes the table.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let mut toc = Self {
            vertex_count: reader.u64()?,
            edge_count: reader.u64()?,
            literal_count: reader.u64()?,
            statement_count: reader.u64()?,
            type_predicate: Id::from_bits(reader.u64()?),
            ..Self::default()
        };
        for _ in 0..reader.list_length()? {
            toc.graphs.push((Id::from_bits(reader.u64()?), reader.u64()?));
        }
        for _ in 0..reader.list_length()? {
            toc.predicates.push((Id::from_bits(reader.u64()?), reader.u64()?));
            toc.segments.push([SectionLocation::read(&mut reader)?, SectionLocation::read(&mut reader)?]);
        }
        toc.edges = match reader.u64()? {
            0 => None,
            1 => Some(SectionLocation::read(&mut reader)?),
            _ => return Err(Damaged("unknown kind of edge table")),
        };
        for _ in 0..reader.list_length()? {
            toc.classes.sizes.push(reader.u64()?);
        }
        let mut of_type = FxHashMap::default();
        for _ in 0..reader.list_length()? {
            let type_id = reader.u64()?;
            let mut classes = Vec::new();
            for _ in 0..reader.list_length()? {
                let class = u16::try_from(reader.u64()?).map_err(|_| Damaged("class number too large"))?;
                if usize::from(class) >= ClassId::COUNT_MAX {
                    return Err(Damaged("class number too large"));
                }
                classes.push(ClassId(class));
            }
            of_type.insert(type_id, classes);
        }
        toc.classes.of_type = of_type;
        for _ in 0..reader.list_length()? {
            toc.orders.push(OrderSections {
                predicate: Id::from_bits(reader.u64()?),
                property: Id::from_bits(reader.u64()?),
                locations: [SectionLocation::read(&mut reader)?, SectionLocation::read(&mut reader)?],
            });
        }
        reader.finish()?;
        Ok(toc)
    }
}
