//! Backups of a cluster that runs in a store of objects: what is new is stored once, restored graphs are
//! those of a database with the same updates, and calls that fail or meet leave the backup whole.

use crate::backup::{Twin, start, text, update};
use crate::voters::PATIENCE;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use vervet::{Database, Environment, ErrorKind};
use vervet_cluster::{
    BACKUP_FILE, BackedUp, BackupOptions, BackupStore, CheckedBackup, RestoreOptions, StoredObject,
    StoredText, Until, backup_to_store, check_stored_backup, restore_from_store, stored_backup_status,
};
use vervet_model::{Error, Result, Watch};

/// Called before an object is stored, with its name; its error is that of the call.
type Hook = Box<dyn FnMut(&str) -> Result<()> + Send>;

/// Objects in memory, each with the number of its version.
#[derive(Default)]
struct MemoryStore {
    objects: Mutex<BTreeMap<String, (Vec<u8>, u64)>>,
    /// Names of objects that were stored since the test took them.
    stored: Mutex<Vec<String>>,
    hook: Mutex<Option<Hook>>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

impl MemoryStore {
    fn names(&self) -> BTreeSet<String> {
        self.objects.lock().expect("no panic").keys().cloned().collect()
    }

    fn take_stored(&self) -> Vec<String> {
        std::mem::take(&mut self.stored.lock().expect("no panic"))
    }

    fn put(&self, name: &str, bytes: Vec<u8>) {
        self.stored.lock().expect("no panic").push(name.to_owned());
        let mut objects = self.objects.lock().expect("no panic");
        let version = objects.get(name).map_or(1, |(_, version)| version + 1);
        objects.insert(name.to_owned(), (bytes, version));
    }

    /// The hook is called once, and may use the store.
    fn call_hook(&self, name: &str) -> Result<()> {
        let hook = self.hook.lock().expect("no panic").take();
        let Some(mut hook) = hook else { return Ok(()) };
        let called = hook(name);
        self.hook.lock().expect("no panic").get_or_insert(hook);
        called
    }

    fn set_hook(&self, hook: Hook) {
        *self.hook.lock().expect("no panic") = Some(hook);
    }

    fn remove_hook(&self) {
        *self.hook.lock().expect("no panic") = None;
    }
}

impl BackupStore for MemoryStore {
    fn location(&self) -> String {
        "memory://backup".to_owned()
    }

    fn list(&self, begin: &str) -> Result<Vec<StoredObject>> {
        let objects = self.objects.lock().expect("no panic");
        let found = objects.iter().filter(|(name, _)| name.starts_with(begin));
        let object = |(name, (bytes, _)): (&String, &(Vec<u8>, u64))| StoredObject {
            name: name.clone(),
            size_bytes: bytes.len() as u64,
        };
        Ok(found.map(object).collect())
    }

    fn read(&self, name: &str, _: u64) -> Result<Option<StoredText>> {
        let objects = self.objects.lock().expect("no panic");
        let text =
            |(bytes, version): &(Vec<u8>, u64)| StoredText { bytes: bytes.clone(), tag: version.to_string() };
        Ok(objects.get(name).map(text))
    }

    fn download(
        &self,
        object: &StoredObject,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let found = self.objects.lock().expect("no panic").get(&object.name).cloned();
        let (bytes, _) = found.ok_or_else(|| Error::corrupt(&object.name, "it is missing"))?;
        out.write_all(&bytes).map_err(|error| Error::io("write", &error))?;
        progress(bytes.len() as u64)
    }

    fn upload(&self, name: &str, file: &Path, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        self.call_hook(name)?;
        let bytes = std::fs::read(file).map_err(|error| Error::io("read", &error))?;
        progress(bytes.len() as u64)?;
        self.put(name, bytes);
        Ok(())
    }

    fn replace(&self, name: &str, bytes: &[u8], before: Option<&str>) -> Result<bool> {
        self.call_hook(name)?;
        let version =
            self.objects.lock().expect("no panic").get(name).map(|(_, version)| version.to_string());
        if version.as_deref() != before {
            return Ok(false);
        }
        self.put(name, bytes.to_vec());
        Ok(true)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.objects.lock().expect("no panic").remove(name);
        Ok(())
    }
}

fn try_back_up(server: &Path, store: &MemoryStore, options: &BackupOptions) -> Result<BackedUp> {
    let scratch = tempfile::tempdir().expect("a folder");
    backup_to_store(server, store, scratch.path(), options, &|_, _| (), &|done, all| assert!(done <= all))
}

fn back_up(server: &Path, store: &MemoryStore) -> BackedUp {
    try_back_up(server, store, &BackupOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn full(keep: Option<usize>) -> BackupOptions {
    BackupOptions { full: true, keep, ..BackupOptions::default() }
}

fn restored(store: &MemoryStore, until: Option<&str>) -> Result<(Database, tempfile::TempDir)> {
    let scratch = tempfile::tempdir().expect("a folder");
    let until = until.map(|until| until.parse::<Until>().expect("a place"));
    let environment = Environment::real();
    let options = RestoreOptions { environment, until, scratch: scratch.path(), changes_max: None };
    let watch = Watch::new("test");
    Ok((restore_from_store(store, &options, &watch, &watch)?.database, scratch))
}

fn check(store: &MemoryStore) -> Result<CheckedBackup> {
    let scratch = tempfile::tempdir().expect("a folder");
    check_stored_backup(store, &Environment::real(), scratch.path(), &Watch::new("test"))
}

/// Each call stores what is new, and the manifest last; every point can be restored.
#[test]
fn a_stored_backup_has_what_was_committed() {
    let (servers, directories, _folder) = start();
    let store = MemoryStore::default();
    let scratch = tempfile::tempdir().expect("a folder");
    let status = || stored_backup_status(&store, &Environment::real(), scratch.path());
    let error = status().expect_err("nothing is there");
    assert!(error.kind() == ErrorKind::Input && error.message().contains("memory://backup"), "{error}");
    let (mut calls, mut counts, mut count) = (Vec::new(), Vec::new(), 0);
    for number in 0..6 {
        // Before the fourth call servers merge again and again, so that the log lacks what is new.
        for _ in 0..if number == 3 { 4 } else { 1 } {
            update(&servers, &text(0, count));
            count += 1;
            for server in servers.iter().filter(|_| number == 3) {
                server.catch_up(PATIENCE).expect("a majority is up");
                server.merge_changes().expect("merged");
            }
        }
        counts.push(count);
        let before = store.names();
        let made = back_up(&directories[number % 3], &store);
        let stored = store.take_stored();
        assert_eq!(stored.last().map(String::as_str), Some(BACKUP_FILE));
        let new: Vec<&String> = stored.iter().filter(|name| *name != BACKUP_FILE).collect();
        assert!(!new.is_empty() && new.iter().all(|name| !before.contains(*name)), "{stored:?}");
        match made.data_bytes {
            None => assert!(new.iter().all(|name| name.contains("/records-")), "{stored:?}"),
            Some(_) => assert!(new.iter().any(|name| name.ends_with("checkpoint.toml")), "{stored:?}"),
        }
        calls.push(made);
    }
    assert!(calls[0].data_bytes.is_some() && calls[1].data_bytes.is_none(), "{calls:?}");
    assert!(calls[3].data_bytes.is_some(), "the log was purged");
    // Nothing new: nothing is stored.
    let again = back_up(&directories[0], &store);
    assert_eq!((again.records, &again.point, store.take_stored()), (0, &calls[5].point, Vec::new()));
    let status = status().expect("a backup");
    assert_eq!((status.servers, status.voters, status.bases, status.points.len()), (3, 3, 2, 6));
    let checked = check(&store).expect("sound");
    assert_eq!((&checked.status, &checked.last), (&status, &calls[5].point));
    let mut twin = Twin::new();
    for (count, made) in counts.iter().zip(&calls) {
        let until = made.point.timestamp.to_string();
        let (database, _scratch) = restored(&store, Some(&until)).expect("restored");
        assert_eq!(twin.compare(&database), [*count, 0, 0]);
        let (same, _scratch) = restored(&store, Some(&made.point.time)).expect("restored");
        assert_eq!(same.newest_commit(), made.point.timestamp);
    }
    assert_eq!(restored(&store, Some("99999")).map(drop).expect_err("not there").kind(), ErrorKind::Input);
    // One copy of the data alone, and what is left of a call that was killed goes as well.
    store.put("base-0002-0123456789abcdef/data-1/catalog.vvc", vec![1]);
    store.put("base-0099-0123456789abcdef/data-1/catalog.vvc", vec![1]);
    store.put("other", vec![1]);
    update(&servers, &text(0, count));
    try_back_up(&directories[0], &store, &full(Some(1))).expect("made");
    let bases: BTreeSet<String> = store
        .names()
        .iter()
        .map(|name| name.split('/').next().unwrap_or_default()[..9.min(name.len())].to_owned())
        .collect();
    assert_eq!(bases, ["backup.to", "base-0003", "base-0099", "other"].map(str::to_owned).into());
    assert_eq!(twin.compare(&restored(&store, None).expect("restored").0), [count + 1, 0, 0]);
    let first = calls[0].point.timestamp.to_string();
    assert_eq!(restored(&store, Some(&first)).map(drop).expect_err("gone").kind(), ErrorKind::Input);
}

/// A call that fails when it stores any of its objects leaves the backup as it was, and the next one goes on.
#[test]
fn an_interrupted_call_leaves_the_stored_backup_before() {
    let (servers, directories, _folder) = start();
    let store = MemoryStore::default();
    let failing_at = |count: usize| {
        let mut count = count;
        store.set_hook(Box::new(move |_| {
            count -= 1;
            if count == 0 { Err(Error::new(ErrorKind::Unavailable, "a fault")) } else { Ok(()) }
        }));
    };
    // In the first call: before the first manifest, and behind it.
    for count in [1, 2, 4] {
        failing_at(count);
        try_back_up(&directories[0], &store, &BackupOptions::default()).expect_err("a fault");
        let error = restored(&store, None).map(drop).expect_err("no call has finished");
        assert!(error.kind() == ErrorKind::Input && error.message().contains("memory://backup"), "{error}");
    }
    // Bases without a manifest are not those of a new backup.
    store.remove_hook();
    let manifest = store.read(BACKUP_FILE, 0).expect("read").expect("there").bytes;
    store.remove(BACKUP_FILE).expect("removed");
    let error = try_back_up(&directories[0], &store, &BackupOptions::default()).expect_err("others");
    assert!(error.kind() == ErrorKind::Input && error.message().contains("and no backup"), "{error}");
    store.put(BACKUP_FILE, manifest);
    update(&servers, &text(0, 0));
    store.take_stored();
    back_up(&directories[0], &store);
    let mut twin = Twin::new();
    assert_eq!(twin.compare(&restored(&store, None).expect("restored").0), [1, 0, 0]);
    // In a call that adds records, and in one that copies data again.
    for options in [BackupOptions::default(), full(None)] {
        let before = store.read(BACKUP_FILE, 0).expect("read");
        update(&servers, &text(0, twin.count(0)));
        let files = if options.full { 4 } else { 2 };
        for count in 1..=files {
            failing_at(count);
            try_back_up(&directories[0], &store, &options).expect_err("a fault");
            assert_eq!(store.read(BACKUP_FILE, 0).expect("read"), before);
            twin.compare(&restored(&store, None).expect("restored").0);
        }
        store.remove_hook();
        try_back_up(&directories[0], &store, &options).expect("made");
        let count = twin.count(0) + 1;
        assert_eq!(twin.compare(&restored(&store, None).expect("restored").0), [count, 0, 0]);
        check(&store).expect("sound");
    }
}

/// Of two calls at the same time one succeeds, and the other changes nothing.
#[test]
fn calls_at_the_same_time_do_not_mix() {
    let (servers, directories, _folder) = start();
    let mut twin = Twin::new();
    // The call within stops the one around it: at the manifest, and at the first object.
    for (round, at) in [BACKUP_FILE, "base-"].into_iter().enumerate() {
        for options in [BackupOptions::default(), full(None), full(Some(1))] {
            let store: &'static MemoryStore = Box::leak(Box::default());
            back_up(&directories[0], store);
            update(&servers, &text(0, twin.count(0)));
            let (directory, inner) = (directories[1].clone(), options.clone());
            let mut is_done = false;
            store.set_hook(Box::new(move |name| {
                if !is_done && name.starts_with(at) {
                    is_done = true;
                    try_back_up(&directory, store, &inner).map(drop)?;
                }
                Ok(())
            }));
            let error = try_back_up(&directories[0], store, &options).expect_err("another call");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{round}: {error}");
            assert!(error.message().contains("another call has changed"), "{error}");
            let count = twin.count(0) + 1;
            assert_eq!(twin.compare(&restored(store, None).expect("restored").0), [count, 0, 0]);
            check(store).expect("sound");
            store.remove_hook();
            try_back_up(&directories[0], store, &full(Some(1))).expect("made");
            check(store).expect("sound");
            let names = store.names();
            let bases: BTreeSet<&str> =
                names.iter().filter_map(|name| Some(name.split_once('/')?.0)).collect();
            assert_eq!(bases.len(), 1, "{names:?}");
            twin.compare(&restored(store, None).expect("restored").0);
        }
    }
}

/// A changed, shortened or missing object is found by a check and by a restore, and its name is in the error.
#[test]
fn damage_of_objects_is_found() {
    let (servers, directories, _folder) = start();
    let store = MemoryStore::default();
    for number in 0..2 {
        update(&servers, &text(0, number));
        back_up(&directories[0], &store);
    }
    drop(servers);
    check(&store).expect("sound");
    let objects = store.objects.lock().expect("no panic").clone();
    let set = |name: &str, bytes: &[u8]| store.put(name, bytes.to_vec());
    let mut random = fastrand::Rng::with_seed(5);
    for (name, (bytes, _)) in &objects {
        // Texts begin with a comment, logs end with a mark.
        let (first, last) = match name.rsplit('.').next() {
            Some("toml") => {
                (bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1, bytes.len() - 1)
            }
            Some("log") => (0, bytes.len() - 21),
            _ => (0, bytes.len()),
        };
        let mut changed = bytes.clone();
        changed[random.usize(first..last)] ^= 1;
        for damaged in [Some(&changed[..]), Some(&bytes[..last / 2]), Some(&[]), None] {
            match damaged {
                Some(bytes) => set(name, bytes),
                None if name == BACKUP_FILE => continue,
                None => store.remove(name).expect("removed"),
            }
            for error in [
                check(&store).map(drop).expect_err("damaged"),
                restored(&store, None).map(drop).expect_err("damaged"),
            ] {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error}");
                // The data, or the records of a call.
                let place = name.split('/').next().unwrap_or_default();
                assert!(error.message().contains(&format!("memory://backup/{place}")), "{name}: {error}");
                assert!(error.hint().is_some(), "{error}");
            }
        }
        set(name, bytes);
    }
    // Names that are no files of a backup are not copied, wherever they point.
    let data = objects.keys().find_map(|name| name.strip_suffix("checkpoint.toml")).expect("data");
    for name in ["../../../../evil", "/evil", "a/../../evil", ".evil", "evil\0", ""] {
        set(&format!("{data}{name}"), b"evil");
    }
    check(&store).expect("sound again");
    let (_database, scratch) = restored(&store, None).expect("restored");
    assert!(!files_below(scratch.path()).iter().any(|name| name.contains("evil")));
}

fn files_below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        found.push(path.display().to_string());
        if path.is_dir() {
            found.extend(files_below(&path));
        }
    }
    found
}
