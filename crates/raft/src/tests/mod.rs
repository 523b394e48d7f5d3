//! Tests of the log on failing disks, and of three voters in one process.

mod storage;
mod voters;
