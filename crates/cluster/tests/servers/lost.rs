//! Merged data of which a partition is at no server any more: the servers that have them give them up, and
//! all go on from those before.

use crate::changes::UPDATES;
use crate::open;
use crate::together::{all_answer, merge, start, update, wait_for};
use std::path::{Path, PathBuf};
use vervet::{Database, DatabaseOptions};
use vervet_cluster::{Cluster, check};

fn merged(server: &Cluster) -> u64 {
    server.changes().and_then(|changes| changes.merged).unwrap_or_default()
}

fn remove_data(directory: &Path, name: &str) {
    std::fs::remove_dir_all(directory.join(name)).expect("removed");
}

fn change(servers: &[Cluster], twin: &Database, texts: &[&str]) {
    for text in texts {
        twin.update(text).expect("an update");
        update(servers, text);
    }
}

#[test]
fn data_without_a_partition_are_given_up() {
    // Whether the server that has the lost data has the data before still.
    for has_before in [true, false] {
        let twin = crate::graph();
        let (mut servers, directories, _folder) = start(&crate::graph(), 3, 2);
        let (first, rest) = UPDATES.split_at(UPDATES.len() / 3);
        let (second, third) = rest.split_at(rest.len() / 2);
        change(&servers, &twin, first);
        let before = merge(&servers);
        change(&servers, &twin, second);
        let lost = merge(&servers);
        change(&servers, &twin, third);
        drop(servers);
        // The leader has all partitions still. Some are at the two others than this one alone.
        let files =
            |directory: &&PathBuf| directory.join(format!("data-{lost}")).read_dir().expect("files").count();
        let kept = directories.iter().min_by_key(files).expect("three");
        for directory in directories.iter().filter(|directory| *directory != kept) {
            remove_data(directory, &format!("data-{lost}"));
        }
        if !has_before {
            remove_data(kept, "data");
            remove_data(kept, &format!("data-{before}"));
        }
        servers = directories.iter().map(|directory| open(directory)).collect();
        wait_for(&servers, "data that are whole", |server| merged(server) == before);
        all_answer(&servers, &twin);
        assert!(!kept.join(format!("data-{lost}")).exists(), "it would begin with them again");
        let text = "INSERT DATA { <urn:last> a <urn:T1> ; <urn:next> <urn:v1> ; <urn:size> 7 }";
        change(&servers, &twin, &[text]);
        assert!(merge(&servers) > lost);
        all_answer(&servers, &twin);
        drop(servers);
        for directory in &directories {
            check(directory, &DatabaseOptions::default()).expect("whole");
        }
    }
}
