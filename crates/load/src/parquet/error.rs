//! The error of a file that exceeds a limit or is not supported.

use parquet::errors::ParquetError;

pub(super) fn refused(message: impl Into<String>) -> ParquetError {
    ParquetError::General(message.into())
}
