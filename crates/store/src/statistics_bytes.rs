//! Bytes of the statistics of a segment, as sections and catalogs of partitions have them.

use vervet_codec::{Damaged, Reader, write_u64};
use vervet_snapshot::{ClassId, ClassPairCount, KeySketch, SegmentStatistics};

/// Flag bits of the metadata.
pub(crate) mod flag {
    pub(crate) const NAMED_GRAPHS: u64 = 1;
    pub(crate) const EDGES: u64 = 2;
    pub(crate) const LITERALS_ONLY: u64 = 4;
    pub(crate) const VERTICES_ONLY: u64 = 8;
    pub(crate) const PARALLEL: u64 = 16;
    pub(crate) const ALL_EDGES: u64 = 32;
    pub(crate) const SKETCH: u64 = 64;
    pub(crate) const PLAIN_STRINGS_ONLY: u64 = 128;
}

/// Appends statistics that are exact, without [`SegmentStatistics::untyped_keys`]. `more` are further flags
/// of this file.
pub fn write_statistics(statistics: &SegmentStatistics, more: u64, out: &mut Vec<u8>) {
    let flags = [
        (statistics.has_named_graphs, flag::NAMED_GRAPHS),
        (statistics.has_edges, flag::EDGES),
        (statistics.literals_only, flag::LITERALS_ONLY),
        (statistics.plain_strings_only, flag::PLAIN_STRINGS_ONLY),
        (statistics.vertices_only, flag::VERTICES_ONLY),
        (statistics.has_parallel, flag::PARALLEL),
        (statistics.sketch.is_some(), flag::SKETCH),
    ];
    let flags = flags.iter().map(|(set, bit)| if *set { *bit } else { 0 }).sum::<u64>() | more;
    for number in [
        flags,
        statistics.keys,
        statistics.entries,
        statistics.neighbours,
        statistics.degree_max,
        statistics.class_pairs.len() as u64,
    ] {
        write_u64(number, out);
    }
    for class_pair in &statistics.class_pairs {
        write_u64(u64::from(class_pair.source.0) << 16 | u64::from(class_pair.target.0), out);
        write_u64(class_pair.entries, out);
    }
    write_u64(statistics.keys_of_class.len() as u64, out);
    for (class, keys) in &statistics.keys_of_class {
        write_u64(u64::from(class.0), out);
        write_u64(*keys, out);
    }
    if let Some(sketch) = &statistics.sketch {
        let (samples, rank_end) = sketch.parts();
        for number in [statistics.degree_squares, rank_end.to_bits(), samples.len() as u64] {
            write_u64(number, out);
        }
        samples.iter().for_each(|sample| write_u64(*sample, out));
    }
}

/// The statistics that [`write_statistics`] wrote, and all flags.
///
/// # Errors
/// Damaged bytes.
pub fn read_statistics(meta: &mut Reader<'_>) -> Result<(SegmentStatistics, u64), Damaged> {
    let flags = meta.u64()?;
    let class = |number: u64| {
        let class = u16::try_from(number).ok().filter(|class| usize::from(*class) < ClassId::COUNT_MAX);
        class.map(ClassId).ok_or(Damaged("class number too large"))
    };
    let mut statistics = SegmentStatistics {
        exact: true,
        keys: meta.u64()?,
        entries: meta.u64()?,
        neighbours: meta.u64()?,
        degree_max: meta.u64()?,
        has_named_graphs: flags & flag::NAMED_GRAPHS != 0,
        has_edges: flags & flag::EDGES != 0,
        has_parallel: flags & flag::PARALLEL != 0,
        literals_only: flags & flag::LITERALS_ONLY != 0,
        plain_strings_only: flags & flag::PLAIN_STRINGS_ONLY != 0,
        vertices_only: flags & flag::VERTICES_ONLY != 0,
        ..SegmentStatistics::default()
    };
    for _ in 0..meta.list_length()? {
        let classes = meta.u64()?;
        let (source, target) = (class(classes >> 16)?, class(classes & 0xFFFF)?);
        statistics.class_pairs.push(ClassPairCount { source, target, entries: meta.u64()? });
    }
    for _ in 0..meta.list_length()? {
        statistics.keys_of_class.push((class(meta.u64()?)?, meta.u64()?));
    }
    if flags & flag::SKETCH != 0 {
        statistics.degree_squares = meta.u64()?;
        let rank_end = f64::from_bits(meta.u64()?);
        let count = meta.list_length()?;
        let samples = (0..count).map(|_| meta.u64()).collect::<Result<Vec<u64>, _>>()?;
        let sketch = KeySketch::from_parts(samples, rank_end).ok_or(Damaged("samples out of order"))?;
        statistics.sketch = Some(sketch);
    }
    Ok((statistics, flags))
}
