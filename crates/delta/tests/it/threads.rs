//! Concurrent readers and one writer of versions.
//!
//! Readers on their own threads hold versions while a writer continues; each reads its version's graph, from
//! the first read to the last.

use crate::common::{Model, Random, World, compare, seed};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use vervet_delta::Version;
use vervet_model::Statement;

#[test]
fn readers_see_their_version() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let world = World::random(&mut random);
    let mut model = world.early_model(300, &mut random);
    let statements: Vec<Statement> = model.statements.iter().copied().collect();
    let mut version = Version::new(world.build(&statements, false), Arc::clone(&world.later));
    let head: Mutex<(Version, Arc<Model>)> = Mutex::new((version.clone(), Arc::new(model.clone())));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (world, head, done) = (&world, &head, &done);
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_add(reader) | 1);
                let mut rounds = 0;
                while !done.load(Ordering::Relaxed) || rounds == 0 {
                    let (version, model) = head.lock().expect("no panic").clone();
                    for _ in 0..3 {
                        compare(
                            &version,
                            &model,
                            world,
                            &mut random,
                            &format!("seed {seed}, reader {reader}"),
                        );
                    }
                    rounds += 1;
                }
                println!("reader {reader}: {rounds} versions");
            });
        }
        for _ in 0..3000 {
            for _ in 0..1 + random.below(8) {
                let statement = world.statement(&model, &mut random);
                if random.one_in(3) {
                    let removed = model.remove(statement);
                    assert_eq!(version.remove(&statement).ok(), removed, "seed {seed}");
                } else {
                    let inserted = model.insert(statement);
                    assert_eq!(version.insert(&statement).ok(), inserted, "seed {seed}");
                }
            }
            *head.lock().expect("no panic") = (version.clone(), Arc::new(model.clone()));
        }
        done.store(true, Ordering::Relaxed);
    });
}
