//! The cache of windows on the device.
//!
//! # Shape
//! Each variant of a segment that a query has used is cut once; each of its windows is resident or not. A
//! launch needs some windows of each of its segments at the same time: these are *pinned* while missing ones
//! are copied. Victims are the windows that were used longest ago.
//! # Invariants
//! A window is marked resident only after its copy has succeeded, so an error in the middle loses at most
//! free space, which it gives back.

use crate::arena::Arena;
use crate::lower::SegmentUse;
use crate::stop::Stop;
use crate::windows::{Variant, WindowPlace, cut, encode};
use std::collections::HashMap;
use std::ops::Range;
use vervet_device::Device;
use vervet_kernel::Control;
use vervet_model::{Error, Result};

/// Maximum number of windows of all segments: 80 bytes each on the host.
const WINDOWS_MAX: usize = 1 << 18;

/// A segment that was cut.
#[derive(Debug)]
struct CutSegment {
    windows: Vec<WindowPlace>,
    last_use: u64,
}

/// The windows of all segments. See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct WindowCache {
    segments: HashMap<Variant, CutSegment>,
    /// The resident windows, in no order.
    residents: Vec<(Variant, usize)>,
    clock: u64,
    /// Changes whenever a resident window moves or leaves.
    pub(crate) generation: u64,
    pub(crate) copied_words: u64,
}

/// Some consecutive windows of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WindowRange {
    pub(crate) variant: Variant,
    pub(crate) windows: Range<usize>,
}

impl WindowCache {
    /// The windows with keys between `bounds`, both included. Cuts the segment at its first use.
    pub(crate) fn range(
        &mut self,
        used: &SegmentUse<'_>,
        bounds: (u64, u64),
        window_bytes: u64,
        arena: &mut Arena,
        control: &Control<'_>,
    ) -> Result<WindowRange> {
        self.clock += 1;
        if !self.segments.contains_key(&used.variant) {
            let windows = cut(used.segment, used.variant, window_bytes, control)?;
            self.make_room_for(windows.len(), arena);
            self.segments.insert(used.variant, CutSegment { windows, last_use: 0 });
        }
        let segment = self.segments.get_mut(&used.variant).ok_or_else(missing)?;
        segment.last_use = self.clock;
        let windows = &segment.windows;
        let start = windows.partition_point(|window| window.last.bits() < bounds.0);
        let end = windows.partition_point(|window| window.first.bits() <= bounds.1);
        Ok(WindowRange { variant: used.variant, windows: start..end.max(start) })
    }

    /// Upper bound of the size of these windows, in words.
    pub(crate) fn words(&self, range: &WindowRange) -> u64 {
        match self.places(range) {
            [first, .., last] => last.words_before - first.words_before + last.words_max(),
            [one] => one.words_max(),
            [] => 0,
        }
    }

    /// Splits a range into groups of at most `budget` words; `None`: a window is larger, or there are more
    /// than `groups_max`.
    pub(crate) fn split(
        &self,
        range: &WindowRange,
        budget: u64,
        groups_max: usize,
    ) -> Option<Vec<WindowRange>> {
        let mut groups: Vec<WindowRange> = Vec::new();
        let mut words = 0;
        for (at, place) in range.windows.clone().zip(self.places(range)) {
            let (size, count) = (place.words_max(), groups.len());
            match groups.last_mut() {
                Some(group) if words + size <= budget => {
                    group.windows.end = at + 1;
                    words += size;
                }
                _ if size > budget || count == groups_max => return None,
                _ => {
                    groups.push(WindowRange { variant: range.variant, windows: at..at + 1 });
                    words = size;
                }
            }
        }
        Some(groups)
    }

    fn places(&self, range: &WindowRange) -> &[WindowPlace] {
        let segment = self.segments.get(&range.variant);
        segment.and_then(|segment| segment.windows.get(range.windows.clone())).unwrap_or_default()
    }

    /// Copies the missing ones of these windows, all of which are then resident at the same time.
    pub(crate) fn load(
        &mut self,
        needed: &[(&SegmentUse<'_>, WindowRange)],
        device: &mut dyn Device,
        arena: &mut Arena,
        control: &Control<'_>,
    ) -> Result<(), Stop> {
        self.pin(needed, true);
        let mut loaded = self.load_pinned(needed, device, arena, control);
        if matches!(loaded, Err(Stop::Windows)) {
            // Free space may be in pieces: the needed windows alone are placed anew.
            self.evict_all(arena);
            loaded = self.load_pinned(needed, device, arena, control);
        }
        self.pin(needed, false);
        loaded
    }

    fn pin(&mut self, needed: &[(&SegmentUse<'_>, WindowRange)], is_pinned: bool) {
        self.clock += 1;
        for (_, range) in needed {
            let segment = self.segments.get_mut(&range.variant);
            let windows = segment.and_then(|segment| segment.windows.get_mut(range.windows.clone()));
            for window in windows.into_iter().flatten() {
                window.is_pinned = is_pinned;
                window.last_use = self.clock;
            }
        }
    }

    fn load_pinned(
        &mut self,
        needed: &[(&SegmentUse<'_>, WindowRange)],
        device: &mut dyn Device,
        arena: &mut Arena,
        control: &Control<'_>,
    ) -> Result<(), Stop> {
        for (used, range) in needed {
            for at in range.windows.clone() {
                let place = self.places(range).get(at - range.windows.start).copied();
                // Another segment of this launch may have displaced it.
                let place = place.ok_or(Stop::Windows)?;
                if place.resident.is_some() {
                    continue;
                }
                control.check()?;
                let window = encode(used.segment, range.variant, &place, control)?;
                let words = window.words().len() as u64;
                device.suballocate()?;
                let start = self.place(words, arena).ok_or(Stop::Windows)?;
                if let Err(error) = device.upload(arena.address(start), window.words()) {
                    arena.windows.give(start, words);
                    return Err(error.into());
                }
                self.copied_words += words;
                let segment = self.segments.get_mut(&range.variant).ok_or(Stop::Windows)?;
                segment.windows[at].resident = Some((start, words));
                self.residents.push((range.variant, at));
            }
        }
        Ok(())
    }

    /// Finds free words; evicts windows that are not pinned, oldest first.
    fn place(&mut self, words: u64, arena: &mut Arena) -> Option<u64> {
        loop {
            if let Some(start) = arena.windows.take(words) {
                return Some(start);
            }
            let age = |(at, (variant, window)): (usize, &(Variant, usize))| {
                let place = self.segments.get(variant)?.windows.get(*window)?;
                (!place.is_pinned).then_some((place.last_use, at))
            };
            let (_, oldest) = self.residents.iter().enumerate().filter_map(age).min()?;
            self.evict(oldest, arena);
        }
    }

    /// Evicts the resident window at this position.
    fn evict(&mut self, at: usize, arena: &mut Arena) {
        self.generation += 1;
        let (variant, window) = self.residents.swap_remove(at);
        let place = self.segments.get_mut(&variant).and_then(|segment| segment.windows.get_mut(window));
        if let Some((start, words)) = place.and_then(|place| place.resident.take()) {
            arena.windows.give(start, words);
        }
    }

    /// Evicts all windows.
    fn evict_all(&mut self, arena: &mut Arena) {
        while let Some(last) = self.residents.len().checked_sub(1) {
            self.evict(last, arena);
        }
    }

    /// Forgets the segments that were used longest ago, until `count` more windows fit.
    fn make_room_for(&mut self, count: usize, arena: &mut Arena) {
        let mut total: usize = self.segments.values().map(|segment| segment.windows.len()).sum();
        while total > 0 && total + count > WINDOWS_MAX {
            let oldest = self.segments.iter().min_by_key(|(_, segment)| segment.last_use);
            let Some(variant) = oldest.map(|(variant, _)| *variant) else { return };
            while let Some(at) = self.residents.iter().position(|(other, _)| *other == variant) {
                self.evict(at, arena);
            }
            total -= self.segments.remove(&variant).map_or(0, |segment| segment.windows.len());
        }
    }

    /// Last keys and addresses of resident windows, for a launch.
    pub(crate) fn directory(&self, range: &WindowRange, arena: &Arena) -> Result<Vec<u64>, Stop> {
        let places = self.places(range);
        let mut words: Vec<u64> = places.iter().map(|place| place.last.bits()).collect();
        for place in places {
            let (start, _) = place.resident.ok_or(Stop::Windows)?;
            words.push(arena.address(start).0);
        }
        Ok(words)
    }

    /// Forgets all segments: their memory is gone.
    pub(crate) fn forget(&mut self) {
        let (copied_words, generation) = (self.copied_words, self.generation + 1);
        *self = Self { copied_words, generation, ..Self::default() };
    }

    /// Whether this variant has been cut: a sign that its windows may be resident.
    pub(crate) fn knows(&self, variant: &Variant) -> bool {
        self.segments.contains_key(variant)
    }
}

fn missing() -> Error {
    Error::internal("a window is not in the cache")
}
