//! The edge table: maps the number of an edge to its statement.
//!
//! # Shape
//! A key set of edge ids (a range, when numbers are dense) and four columns in the order of its
//! positions: subject, predicate, object, graph (0: default; else the number of its vertex plus 1).
//! # Cost
//! An edge look-up: one cache miss for each column.

use crate::encode::optional_id;
use crate::sort;
use vervet_codec::{Array, Codes, Damaged, KeySet, Locate, NONE, Reader, Stride, write_u64};
use vervet_env::Bytes;
use vervet_model::{Error, ErrorKind, Id, Result, Tag, Watch};

/// The table. See the header of this file.
#[derive(Debug)]
pub(crate) struct EdgeTable {
    bytes: Bytes,
    keys: KeySet,
    columns: [Codes; 3],
    graphs: Array,
}

/// Edge, subject, predicate, object, graph, as bits.
pub(crate) type EdgeRow = [u64; 5];

/// The section of a table with these rows, whose edges all have `stride`. `None` if there are none.
pub(crate) fn encode(rows: &mut Vec<EdgeRow>, stride: Stride, watch: &Watch<'_>) -> Result<Option<Vec<u8>>> {
    sort_rows(rows, watch)?;
    if let Some(pair) = rows.windows(2).find(|pair| pair[0][0] == pair[1][0]) {
        let number = Id::from_bits(pair[0][0]).payload();
        return Err(Error::new(ErrorKind::Input, format!("edge {number} has two statements")));
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let mut body = Vec::new();
    let ids: Vec<u64> = rows.iter().map(|row| row[0]).collect();
    let keys = KeySet::write_strided(&ids, stride, &mut body)
        .map_err(|_| Error::new(ErrorKind::Unsupported, "more than 4,294,967,294 edges"))?;
    let mut meta = Vec::new();
    keys.write_meta(&mut meta);
    let mut scratch = Vec::new();
    for column in 1..4 {
        watch.check()?;
        let mut distinct: Vec<u64> = rows.iter().map(|row| row[column]).collect();
        sort::sort(&mut distinct, u64::MAX, &mut scratch, watch)?;
        distinct.dedup();
        let (minimum, maximum) = (distinct[0], distinct[distinct.len() - 1]);
        let is_table_smaller = Codes::is_table_smaller(rows.len(), distinct.len(), minimum, maximum);
        let framed = {
            let (values, distinct) =
                (rows.iter().map(|row| row[column]), is_table_smaller.then_some(distinct.len()));
            Codes::write_framed(values, rows.len(), distinct, minimum, maximum, &mut body)
        };
        let codes = if let Some(framed) = framed {
            framed
        } else if is_table_smaller {
            let code = |value: u64| distinct.binary_search(&value).expect("`distinct` has all values") as u64;
            Codes::write_table(&distinct, rows.iter().map(|row| code(row[column])), rows.len(), &mut body)
        } else {
            Codes::write_plain(rows.iter().map(|row| row[column]), rows.len(), minimum, maximum, &mut body)
        };
        codes.write_meta(&mut meta);
    }
    let graph = |row: &EdgeRow| if row[4] == 0 { 0 } else { Id::from_bits(row[4]).payload() + 1 };
    let maximum = rows.iter().map(graph).max().unwrap_or(0);
    Array::write_small(rows.iter().map(graph), rows.len(), 0, maximum, &mut body).write_meta(&mut meta);
    body.extend_from_slice(&meta);
    write_u64(meta.len() as u64, &mut body);
    body.shrink_to_fit();
    Ok(Some(body))
}

/// Sorts rows by their edges: by counting sort, where the numbers of row and edge fit into one number.
fn sort_rows(rows: &mut Vec<EdgeRow>, watch: &Watch<'_>) -> Result<()> {
    if rows.is_sorted() {
        return Ok(());
    }
    let fits = rows.iter().all(|row| Id::from_bits(row[0]).payload() <= NUMBER_MAX);
    if !fits || rows.len() as u64 > NUMBER_MAX {
        return watch.sort(rows, Ord::cmp);
    }
    let number = |(place, row): (u64, &EdgeRow)| row[0] << 32 | place;
    let mut numbers: Vec<u64> = (0..).zip(&*rows).map(number).collect();
    sort::sort(&mut numbers, u64::MAX << 32, &mut Vec::new(), watch)?;
    // Lossless: indices of rows.
    let place = |number: u64| usize::try_from(number & NUMBER_MAX).unwrap_or_default();
    *rows = numbers.iter().map(|number| rows[place(*number)]).collect();
    Ok(())
}

const NUMBER_MAX: u64 = u32::MAX as u64;

impl EdgeTable {
    /// Opens the table in a section whose checksum was verified.
    pub(crate) fn open(bytes: Bytes, name: &dyn std::fmt::Display) -> Result<Self> {
        Self::parse(bytes).map_err(|damaged| Error::corrupt(name, damaged.0))
    }

    fn parse(bytes: Bytes) -> Result<Self, Damaged> {
        let mut meta = Reader::of_section(&bytes)?;
        let section = bytes.len();
        let keys = KeySet::read_meta(&mut meta, section)?;
        let mut column = || Codes::read_meta(&mut meta, section);
        let columns = [column()?, column()?, column()?];
        let graphs = Array::read_meta(&mut meta, section)?;
        meta.finish()?;
        if columns.iter().any(|column| column.len() != keys.len()) || graphs.len() != keys.len() {
            return Err(Damaged("columns of the edge table have different lengths"));
        }
        Ok(Self { bytes, keys, columns, graphs })
    }

    /// Number of edges.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// One more than the largest edge number.
    pub(crate) fn number_end(&self) -> u64 {
        let mut last = None;
        let position = self.keys.len().saturating_sub(1) as u64;
        self.keys.list(&self.bytes, position, 1, |key| last = Some(key));
        last.map_or(0, |key| Id::from_bits(key).payload() + 1)
    }

    /// Whether an edge with this id exists.
    pub(crate) fn contains(&self, edge: u64) -> bool {
        self.keys.view(&self.bytes).position(self.keys.stride().close(edge)) != NONE
    }

    /// Subject, predicate, object, graph.
    pub(crate) fn row(&self, edge: Id) -> Option<[Id; 4]> {
        let position = self.keys.view(&self.bytes).position(self.keys.stride().close(edge.bits()));
        if position == NONE {
            return None;
        }
        let index = position as usize;
        let [subject, predicate, object] =
            self.columns.map(|column| Id::from_bits(column.view(&self.bytes).get(index)));
        let graph = optional_id(Tag::Vertex, self.graphs.view(&self.bytes).get(index));
        Some([subject, predicate, object, graph])
    }

    /// Size of the section, in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_edge_however_large_the_numbers() {
        let mut random = fastrand::Rng::with_seed(3);
        for (count, number_max) in [(0, 10), (1, 10), (9_000, 20_000), (9_000, u64::MAX >> 10)] {
            let mut rows: Vec<EdgeRow> = (0..count)
                .map(|_| [Id::edge(random.u64(..number_max)).bits(), random.u64(..), 1, 2, 3])
                .collect();
            rows.sort_unstable();
            rows.dedup_by_key(|row| row[0]);
            let expected = rows.clone();
            random.shuffle(&mut rows);
            sort_rows(&mut rows, &Watch::new("test")).unwrap();
            assert_eq!(rows, expected);
        }
        let row = [Id::edge(7).bits(), 1, 2, 3, 0];
        let twice = &mut vec![row, [Id::edge(6).bits(), 1, 2, 3, 0], row];
        assert!(encode(twice, Stride::default(), &Watch::new("test")).is_err(), "one edge twice");
    }
}
