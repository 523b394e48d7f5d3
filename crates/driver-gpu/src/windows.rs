//! Windows of a segment: where it is cut, and the encoding of one window.
//!
//! # Shape
//! A segment is cut at its keys into runs of about [`crate::GpuOptions::window_bytes`]; a key with more
//! entries is a window of its own. Windows are read through [`Segment`], so every kind of segment has them,
//! and graph filters and parallel edges are resolved when a window is built: a [`Variant`] of a segment has
//! only the entries that pass.
//! # Cost
//! Cutting lists all keys with their degrees once, some 5 ns each; building reads the entries once. An
//! encoded section could be copied as it is instead; then building would cost a copy alone.

use vervet_device::{Window, window_bytes_max};
use vervet_kernel::Control;
use vervet_model::{Error, Id, Result};
use vervet_snapshot::{ContentId, Cursor, EntryFilter, Expansion, GraphFilter, Segment};

/// Keys that are listed, and entries that are read, at a time.
const ROWS_AT_ONCE: usize = 1 << 12;

/// The entries of a segment that a step sees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Variant {
    content: ContentId,
    filter: EntryFilter,
    /// Each neighbour of a key once, in whatever graphs.
    distinct: bool,
}

impl Variant {
    /// The variant of a segment; equal for conditions that its entries cannot tell apart. `None`: the segment
    /// must not be copied.
    pub(crate) fn new(segment: &dyn Segment, filter: EntryFilter, distinct: bool) -> Option<Self> {
        let content = segment.content_id()?;
        let statistics = segment.statistics();
        let mut filter = filter;
        if !statistics.has_named_graphs && filter.graph == GraphFilter::Any {
            filter.graph = GraphFilter::Default;
        }
        filter.parallel &= statistics.has_parallel && !distinct;
        let distinct = distinct && (statistics.has_named_graphs || statistics.has_parallel);
        Some(Self { content, filter, distinct })
    }
}

/// The keys of a window, and its place on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowPlace {
    pub(crate) first: Id,
    pub(crate) last: Id,
    keys: u64,
    entries: u64,
    /// Upper bound of the sizes of all windows before it, in words.
    pub(crate) words_before: u64,
    /// First word in the region of windows, and number of words, if it is resident.
    pub(crate) resident: Option<(u64, u64)>,
    pub(crate) last_use: u64,
    /// Whether the next launch needs it.
    pub(crate) is_pinned: bool,
}

impl WindowPlace {
    /// Upper bound of its size.
    pub(crate) fn words_max(&self) -> u64 {
        window_bytes_max(self.keys, self.entries).div_ceil(8)
    }
}

/// Cuts a segment.
pub(crate) fn cut(
    segment: &dyn Segment,
    variant: Variant,
    window_bytes: u64,
    control: &Control<'_>,
) -> Result<Vec<WindowPlace>> {
    let mut windows: Vec<WindowPlace> = Vec::new();
    let (mut keys, mut degrees) = (Vec::new(), Vec::new());
    let mut next = Some(Id::UNBOUND);
    while let Some(from) = next {
        keys.clear();
        next = segment.keys(from, ROWS_AT_ONCE, &mut keys)?;
        control.work(keys.len().max(1))?;
        segment.degrees(&keys, variant.filter, &mut degrees)?;
        for (key, degree) in keys.iter().zip(&degrees).filter(|(_, degree)| **degree != 0) {
            let grown = windows
                .last()
                .map(|last| (last.keys + 1, last.entries + degree))
                .filter(|(keys, entries)| window_bytes_max(*keys, *entries) <= window_bytes);
            match (windows.last_mut(), grown) {
                (Some(window), Some((keys, entries))) => {
                    *window = WindowPlace { last: *key, keys, entries, ..*window };
                }
                _ => windows.push(WindowPlace {
                    first: *key,
                    last: *key,
                    keys: 1,
                    entries: *degree,
                    words_before: 0,
                    resident: None,
                    last_use: 0,
                    is_pinned: false,
                }),
            }
        }
    }
    let mut words = 0;
    for window in &mut windows {
        window.words_before = words;
        words += window.words_max();
    }
    Ok(windows)
}

/// Reads the entries of a window and encodes them.
pub(crate) fn encode(
    segment: &dyn Segment,
    variant: Variant,
    place: &WindowPlace,
    control: &Control<'_>,
) -> Result<Window> {
    let (mut keys, mut ends, mut neighbours) = (Vec::new(), Vec::new(), Vec::new());
    let mut listed = Vec::new();
    let mut found = Expansion::new(ROWS_AT_ONCE);
    let mut next = Some(place.first);
    while let Some(from) = next {
        listed.clear();
        next = segment.keys_up_to(from, place.last, ROWS_AT_ONCE, &mut listed)?;
        let mut cursor = Cursor::default();
        while cursor.row < listed.len() {
            control.work(ROWS_AT_ONCE)?;
            found.clear();
            segment.expand(&listed, variant.filter, &mut cursor, &mut found)?;
            for (row, neighbour) in found.rows.iter().zip(&found.neighbours) {
                let key = listed.get(*row as usize).map_or(0, |key| key.bits());
                if keys.last() != Some(&key) {
                    keys.push(key);
                    ends.push(ends.last().copied().unwrap_or(0));
                } else if variant.distinct && neighbours.last() == Some(&neighbour.bits()) {
                    continue;
                }
                neighbours.push(neighbour.bits());
                if let Some(end) = ends.last_mut() {
                    *end += 1;
                }
            }
        }
    }
    Window::encode(&keys, &ends, &neighbours)
        .ok_or_else(|| Error::internal("the entries of a segment are not those that it counts"))
}
