//! Options of the driver.

/// Options of a [`GpuDriver`](crate::GpuDriver).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GpuOptions {
    /// Maximum device memory in bytes; at most 90 % of the free memory is used.
    pub memory_bytes: u64,
    /// Size of a window of a segment, in bytes.
    pub window_bytes: u64,
    /// Maximum input rows of a strip.
    pub strip_rows: usize,
    /// Maximum result rows of a strip, which are buffered on the host.
    pub result_rows_max: usize,
    /// Whether [`Placement::Auto`] means [`Placement::Gpu`]: for tests.
    ///
    /// [`Placement::Auto`]: vervet_driver_local::Placement::Auto
    /// [`Placement::Gpu`]: vervet_driver_local::Placement::Gpu
    pub force: bool,
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self {
            memory_bytes: u64::MAX,
            window_bytes: 4 << 20,
            strip_rows: 1 << 20,
            result_rows_max: 1 << 22,
            force: false,
        }
    }
}

impl GpuOptions {
    /// For tests: every mechanism is used on small graphs.
    pub const TINY: Self = Self {
        memory_bytes: 64 << 10,
        window_bytes: 256,
        strip_rows: 64,
        result_rows_max: 1 << 12,
        force: true,
    };
}
