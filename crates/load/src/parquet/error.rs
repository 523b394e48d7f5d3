//! The error of a file that exceeds a limit or is not supported.

use parquet::errors::ParquetError;

pub(super) fn parquet_error(message: impl Into<String>) -> ParquetError {
    ParquetError::General(message.into())
}
