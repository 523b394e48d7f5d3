//! Tests of the simulated disk.

use super::*;

#[test]
fn the_simulated_file_system_meets_the_contract() {
    let files = SimulatedFiles::new(1);
    contract::check(&files, Path::new("/db"));
    assert!(!files.exists(Path::new("/db")).expect("exists"));
}

fn write(files: &SimulatedFiles, path: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
    let mut file = files.create(Path::new(path))?;
    file.write_all(bytes)?;
    if sync { file.sync() } else { Ok(()) }
}

/// Synced data survives every crash, and a file never has bytes that were not written.
#[test]
fn a_crash_keeps_synced_data() {
    let mut torn = 0;
    for seed in 0..64 {
        let files = SimulatedFiles::new(seed);
        files.create_dir_all(Path::new("/db")).expect("create_dir_all");
        files.sync_dir(Path::new("/")).expect("sync_dir");
        write(&files, "/db/log", b"synced", true).expect("write");
        write(&files, "/db/old", b"old", true).expect("write");
        files.sync_dir(Path::new("/db")).expect("sync_dir");
        let mut log = files.append(Path::new("/db/log")).expect("append");
        log.write_all(b" and more").expect("write");
        write(&files, "/db/new", b"new", true).expect("write");
        files.rename(Path::new("/db/new"), Path::new("/db/old")).expect("rename");
        let left = files.after_power_loss();
        let text = |name| left.read(Path::new(name)).expect("read").to_vec();
        assert_eq!((text("/db/log"), text("/db/old")), (b"synced".to_vec(), b"old".to_vec()));
        assert!(!left.exists(Path::new("/db/new")).expect("exists"));
        files.crash();
        let after = files.read(Path::new("/db/log")).expect("read");
        assert!(b"synced and more".starts_with(&after) && after.starts_with(b"synced"), "seed {seed}");
        torn += u32::from(after.len() > 6 && after.len() < 15);
        let old = files.read(Path::new("/db/old")).expect("read");
        assert!(old == b"old" || old == b"new", "seed {seed}");
        assert!(log.write_all(b"x").is_err(), "a handle does not outlive a crash");
    }
    assert!(torn > 10, "tails are torn at random points");
}

/// Unsynced sectors survive in any combination, synced bytes always.
#[test]
fn a_crash_may_reorder() {
    let (mut holes, mut mixtures) = (0, 0);
    for seed in 0..64 {
        let files = SimulatedFiles::new(seed);
        write(&files, "/log", &[1; 100], true).expect("write");
        write(&files, "/old", b"old", true).expect("write");
        files.sync_dir(Path::new("/")).expect("sync_dir");
        files.append(Path::new("/log")).expect("append").write_all(&[1; 1000]).expect("write");
        write(&files, "/new", b"new", true).expect("write");
        files.remove_file(Path::new("/old")).expect("remove_file");
        files.crash_reordering();
        let after = files.read(Path::new("/log")).expect("read");
        assert!(after.starts_with(&[1; 100]) && after.len() <= 1100, "seed {seed}");
        holes += u32::from(after.is_sorted_by(|a, b| a >= b) && after.last() == Some(&0));
        mixtures += u32::from(!after.is_sorted_by(|a, b| a >= b));
        let names = files.list(Path::new("/")).expect("list").len();
        assert!((1..=3).contains(&names), "seed {seed}");
    }
    assert!(holes > 0 && mixtures > 30, "{holes} {mixtures}");
}

#[test]
fn data_of_a_failed_sync_is_lost_in_a_crash() {
    let files = SimulatedFiles::new(0);
    write(&files, "/a", b"good", true).expect("write");
    files.sync_dir(Path::new("/")).expect("sync_dir");
    let mut file = files.append(Path::new("/a")).expect("append");
    file.write_all(b"bad").expect("write");
    files.fail_write(0, Fault::Io);
    assert!(file.sync().is_err());
    file.write_all(b"more").expect("write");
    file.sync().expect("says that all is well");
    assert_eq!(files.read(Path::new("/a")).expect("read"), b"goodbadmore");
    files.crash_losing_all();
    assert_eq!(files.read(Path::new("/a")).expect("read"), b"good\0\0\0more");
}

#[test]
fn a_hard_crash_loses_unsynced_data() {
    let files = SimulatedFiles::new(0);
    files.create_dir_all(Path::new("/db")).expect("create_dir_all");
    files.sync_dir(Path::new("/")).expect("sync_dir");
    write(&files, "/db/named", b"lost", false).expect("write");
    files.sync_dir(Path::new("/db")).expect("sync_dir");
    write(&files, "/db/nameless", b"synced", true).expect("write");
    let lock = files.lock(Path::new("/db/lock")).expect("lock");
    files.crash_losing_all();
    assert_eq!(files.list(Path::new("/db")).expect("list"), [Path::new("/db/named")]);
    assert!(files.read(Path::new("/db/named")).expect("read").is_empty());
    let again = files.lock(Path::new("/db/lock")).expect("a crash frees locks");
    drop(lock);
    assert!(files.lock(Path::new("/db/lock")).is_err(), "a dead guard frees nothing");
    drop(again);
}

#[test]
fn the_nth_operation_fails() {
    let files = SimulatedFiles::new(0);
    write(&files, "/a", b"12345678", true).expect("write");
    assert_eq!(files.write_count(), 3);
    for n in 0..3 {
        files.fail_write(n, Fault::Io);
        assert!(write(&files, "/a", b"12345678", true).is_err());
        write(&files, "/a", b"12345678", true).expect("works again");
    }
    files.fail_write(1, Fault::DiskFull);
    let full = write(&files, "/b", b"12345678", true).expect_err("full");
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(files.read(Path::new("/b")).expect("read"), b"1234");
    assert!(write(&files, "/c", b"1", true).is_err(), "still full");
    files.remove_file(Path::new("/a")).expect("removing needs no space");
    files.clear_faults();
    write(&files, "/c", b"1", true).expect("healed");
    files.fail_read(1);
    assert!(files.read(Path::new("/c")).is_ok());
    assert!(files.map(Path::new("/c")).is_err());
    files.damage(Path::new("/c"), 0, b'2').expect("damage");
    assert_eq!(files.read(Path::new("/c")).expect("read"), b"2");
}

/// An unreadable sector, a panic during a write, a directory that cannot be synced, a full disk.
#[test]
fn bad_sectors_and_slow_syncs_are_simulated() {
    let files = SimulatedFiles::new(0);
    write(&files, "/a", b"12345678", true).expect("write");
    files.add_bad_sector(Path::new("/a"), 5);
    assert!(files.read(Path::new("/a")).is_err());
    let mut found = Vec::new();
    let mut reading = files.open(Path::new("/a")).expect("open");
    assert!(reading.read_to_end(&mut found).is_err());
    assert_eq!(found, b"12345");
    let mapped = std::panic::catch_unwind(|| files.map(Path::new("/a")));
    assert!(mapped.is_err(), "a process dies");
    files.open_at(Path::new("/a"), 6).expect("open").read_to_end(&mut found).expect("behind it");
    assert_eq!(found, b"1234578");
    files.clear_faults();
    assert_eq!(&*files.map(Path::new("/a")).expect("map"), b"12345678");

    files.fail_write(1, Fault::Panic);
    let panicked = std::panic::catch_unwind(|| write(&files, "/b", b"1", true));
    assert!(panicked.is_err());
    write(&files, "/b", b"1", true).expect("works again");
    files.create_dir_all(Path::new("/d")).expect("create_dir_all");
    files.fail_directory_syncs(Path::new("/d"));
    let refused = files.sync_dir(Path::new("/d")).expect_err("cannot");
    assert!(crate::is_directory_sync_unsupported(&refused) && !crate::is_disk_full(&refused));
    files.fail_write(0, Fault::DiskFull);
    let full = write(&files, "/b", b"1", true).expect_err("full");
    assert!(crate::is_disk_full(&full));
    assert_eq!(files.available_bytes(Path::new("/d")).expect("available"), Some(0));
    files.clear_faults();
    assert_eq!(files.available_bytes(Path::new("/d")).expect("available"), None);
}
