//! The device of a driver: opened at its first use, with its memory and windows.

use crate::arena::Arena;
use crate::cache::WindowCache;
use crate::lower::DevicePart;
use crate::options::GpuOptions;
use crate::rest::{End, Rest};
use crate::stop::Stop;
use crate::strip::{Context, Strip, StripResult};
use std::fmt;
use vervet_device::{Device, DeviceError, DeviceErrorKind};
use vervet_kernel::Batch;
use vervet_kernel::plan::StepProfile;

/// Opens a device.
pub type OpenDevice = Box<dyn FnOnce() -> Result<Box<dyn Device>, DeviceError> + Send>;

enum State {
    Closed(OpenDevice),
    Open(Box<dyn Device>),
    /// It could not be opened, or does not answer any more.
    Lost,
}

/// A device with its memory and windows.
pub(crate) struct Engine {
    state: State,
    arena: Option<Arena>,
    pub(crate) cache: WindowCache,
    pub(crate) launches: u64,
    /// Steps whose windows did not fit together.
    pub(crate) passes: u64,
}

impl Engine {
    /// A device that `open` opens at its first use.
    pub(crate) fn new(open: OpenDevice) -> Self {
        let state = State::Closed(open);
        Self { state, arena: None, cache: WindowCache::default(), launches: 0, passes: 0 }
    }

    /// Whether the device has been opened.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether it cannot be used any more.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost)
    }

    /// Gives the device up.
    pub(crate) fn lose(&mut self) {
        self.state = State::Lost;
        self.arena = None;
        self.cache.forget();
    }

    /// Opens the device, unless it is open. Returns its name if it was opened now.
    pub(crate) fn open(&mut self) -> Result<Option<String>, DeviceError> {
        match std::mem::replace(&mut self.state, State::Lost) {
            State::Closed(open) => {
                let device = open()?;
                let name = device.name();
                self.state = State::Open(device);
                Ok(Some(name))
            }
            state => {
                self.state = state;
                Ok(None)
            }
        }
    }

    /// Runs a strip.
    pub(crate) fn run(
        &mut self,
        part: &DevicePart<'_>,
        input: &Batch,
        options: &GpuOptions,
        context: Context<'_>,
    ) -> Result<StripResult, Stop> {
        let result = self.run_on_device(part, input, options, context);
        if let Err(Stop::Device(DeviceError { kind: DeviceErrorKind::Lost, message })) = &result
            && !self.is_lost()
        {
            tracing::warn!(device_error = %message, "the device is lost; queries run on the CPU from now on");
            self.lose();
        }
        if let Some(arena) = &mut self.arena {
            arena.release_all();
        }
        result
    }

    fn run_on_device(
        &mut self,
        part: &DevicePart<'_>,
        input: &Batch,
        options: &GpuOptions,
        context: Context<'_>,
    ) -> Result<StripResult, Stop> {
        let State::Open(device) = &mut self.state else {
            return Err(DeviceError::new(DeviceErrorKind::Lost, "the device is lost").into());
        };
        let arena = match &mut self.arena {
            Some(arena) => arena,
            none => {
                let bytes = options.memory_bytes.min(device.memory_bytes() / 10 * 9);
                none.insert(Arena::new(&mut **device, bytes)?)
            }
        };
        let mut strip = Strip {
            device: &mut **device,
            arena,
            cache: &mut self.cache,
            part,
            options,
            control: context.control,
            profile: context.profile,
            figures: vec![StepProfile::default(); part.step_count],
            out: Batch::new(input.columns.len()),
            exits: Vec::new(),
            counted: context.counted,
            combines: part.combination.is_some(),
            launches: &mut self.launches,
            passes: &mut self.passes,
        };
        let table = strip.upload(input)?;
        strip.run_from(Rest { steps: &part.steps, end: End::Result }, &table)?;
        Ok(StripResult { figures: strip.figures, out: strip.out, exits: strip.exits })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let (State::Open(device), Some(arena)) = (&mut self.state, &self.arena) {
            device.free(arena.base());
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state: &dyn fmt::Debug = match &self.state {
            State::Closed(_) => &"closed",
            State::Open(device) => device,
            State::Lost => &"lost",
        };
        f.debug_struct("Engine").field("device", state).finish_non_exhaustive()
    }
}
