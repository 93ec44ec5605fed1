//! Damaged files and records, and a full disk: nothing is lost without a word, and what can be read comes back.

use crate::common::{clock, create, key, open, private_dir, put, read, value};
use failover_store::{Expect, KeyValue, Prefix, StoreError, WriteOptions};
use failover_store_sled::{SledOptions, SledStore};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use test_case::test_case;

const KEYS: usize = 200;

/// Long enough that no two records share a sector for long.
fn text(name: &str, generation: usize) -> String {
    format!("{name} generation {generation} {}", name.repeat(30))
}

/// A store with a history, closed in good order. Gives back what its records are.
async fn filled(dir: &Path) -> BTreeMap<String, String> {
    let store = open(dir);
    let mut records = BTreeMap::new();
    for generation in 1..=3 {
        for number in 0..KEYS {
            let name = format!("key-{number}");
            let current = store.get(&key(&name)).await.unwrap();
            let text = text(&name, generation);
            let write = if number % 4 == 0 { WriteOptions::durable() } else { WriteOptions::soft() };
            put(&store, &name, Expect::from(current.as_ref()), Some(&text), write).await;
            records.insert(name, text);
        }
    }
    for number in (0..KEYS).step_by(10) {
        let name = format!("key-{number}");
        let current = store.get(&key(&name)).await.unwrap();
        put(&store, &name, Expect::from(current.as_ref()), None, WriteOptions::durable()).await;
        records.remove(&name);
    }
    records
}

fn data_files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(dir.join("sled")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

/// Deterministic and spread over the file.
fn spot(seed: usize, len: usize) -> usize {
    (seed + 1).wrapping_mul(2_654_435_761) % len.max(1)
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Truncate,
    Empty,
    Zero,
    Flip,
    Remove,
}

fn harm(path: &Path, harm: Harm, seed: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = spot(seed, bytes.len());
    match harm {
        Harm::Truncate => bytes.truncate(at),
        Harm::Empty => bytes.clear(),
        Harm::Zero => {
            let end = (at + 8_192).min(bytes.len());
            bytes.get_mut(at..end).unwrap().fill(0);
        }
        Harm::Flip => *bytes.get_mut(at).unwrap() ^= 1 << (seed % 8),
        Harm::Remove => return fs::remove_file(path).unwrap(),
    }
    fs::write(path, bytes).unwrap();
}

/// Opens a harmed store. Every record is as it was, or an error says what is wrong; after a repair every record
/// whose bytes are whole is there again.
async fn judge(dir: &Path, records: &BTreeMap<String, String>, what: &str) -> &'static str {
    // As text, because searching text is quick.
    let raw = fs::read(dir.join("sled/db")).unwrap_or_default();
    let raw: String =
        raw.into_iter().map(|byte| if byte.is_ascii() { char::from(byte) } else { '?' }).collect();
    match SledStore::open(dir, clock()) {
        Ok(store) => {
            for (name, text) in records {
                let found = match store.get(&key(name)).await {
                    Ok(found) => found,
                    Err(StoreError::Damaged { .. } | StoreError::Corrupt { .. }) => continue,
                    Err(e) => panic!("{what}: {name}: {e}"),
                };
                let found = found.map(|found| String::from_utf8(found.value.as_bytes().to_vec()).unwrap());
                assert_eq!(found.as_deref(), Some(text.as_str()), "{what}: {name} changed without a word");
            }
            "opened"
        }
        Err(e @ (StoreError::Corrupt { .. } | StoreError::Engine { .. })) => {
            assert!(
                matches!(e, StoreError::Engine { .. }) || e.to_string().contains("doctor --fix"),
                "{what}: {e}"
            );
            let options = SledOptions::new(dir, clock());
            let repair = options.repair().unwrap_or_else(|again| panic!("{what}: {e}: {again}"));
            assert!(repair.aside.exists());
            let store = options.open().unwrap();
            for (name, text) in records {
                // The end of the text stands in for the whole record: only it is hit by most harm.
                let whole = raw.contains(text.as_str());
                let found = read(&store, name).await;
                let good = found.as_deref() == Some(text.as_str());
                let older =
                    found.as_ref().is_some_and(|found| found.starts_with(&format!("{name} generation")));
                assert!(good || !whole || older, "{what}: {name} was readable, and {found:?} came back");
            }
            "repaired"
        }
        Err(e) => panic!("{what}: {e}"),
    }
}

// spec: K-2
#[test_case(Harm::Truncate; "truncated")]
#[test_case(Harm::Empty; "emptied")]
#[test_case(Harm::Zero; "zeroed")]
#[test_case(Harm::Flip; "bits flipped")]
#[test_case(Harm::Remove; "removed")]
#[tokio::test]
async fn damaged_files_are_told_or_do_no_harm(kind: Harm) {
    let origin = private_dir();
    let records = filled(origin.path()).await;
    let mut outcomes = BTreeMap::<(String, &str), u32>::new();
    for file in data_files(origin.path()) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let seeds = if name == "db" && !matches!(kind, Harm::Empty | Harm::Remove) { 5 } else { 1 };
        for seed in 0..seeds {
            let dir = private_dir();
            copy_dir(origin.path(), dir.path());
            harm(&dir.path().join("sled").join(&name), kind, seed);
            let what = format!("{kind:?} of {name}, seed {seed}");
            let outcome = judge(dir.path(), &records, &what).await;
            *outcomes.entry((name.clone(), outcome)).or_default() += 1;
        }
    }
    assert!(outcomes.keys().any(|(name, _)| name == "db"), "{outcomes:?}");
}

fn copy_dir(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

// spec: K-2
#[tokio::test]
async fn a_lost_log_is_told_and_not_taken_for_a_new_store() {
    let dir = private_dir();
    filled(dir.path()).await;
    harm(&dir.path().join("sled/db"), Harm::Empty, 0);
    let error = SledStore::open(dir.path(), clock()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    let again = SledStore::open(dir.path(), clock()).unwrap_err();
    assert!(matches!(again, StoreError::Corrupt { .. }), "the second try finds {again}");
}

// spec: K-1, K-2
#[tokio::test]
async fn a_repair_brings_back_no_version_and_no_deleted_value() {
    let dir = private_dir();
    let records = filled(dir.path()).await;
    let store = open(dir.path());
    let newest = create(&store, "newest", "1").await;
    drop(store);
    let repair = SledOptions::new(dir.path(), clock()).repair().unwrap();
    assert_eq!(repair.recovered, records.len() + 1);
    let store = open(dir.path());
    let page = store.scan(&Prefix::everything(), None, 1000).await.unwrap();
    assert_eq!(page.len(), records.len() + 1);
    assert!(create(&store, "after", "1").await > newest);
}

/// Writes junk over a record behind the store's back.
fn damage_record(dir: &Path, name: &str) {
    let db = sled::Config::new().path(dir.join("sled")).segment_size(4 * 1024 * 1024).open().unwrap();
    let records = db.open_tree("records").unwrap();
    records.insert(key(name).as_str(), b"junk").unwrap();
    db.flush().unwrap();
}

// spec: K-2
#[tokio::test]
async fn a_damaged_record_is_set_aside_and_told_and_hides_no_other() {
    let dir = private_dir();
    let store = open(dir.path());
    for name in ["a", "b", "c"] {
        create(&store, name, name).await;
    }
    drop(store);
    damage_record(dir.path(), "a");
    damage_record(dir.path(), "b");

    let store = open(dir.path());
    assert_eq!(store.health().unwrap().damaged.len(), 2);
    let error = store.get(&key("a")).await.unwrap_err();
    let StoreError::Damaged { key: name, why } = &error else { panic!("{error}") };
    assert_eq!((name.as_str(), why.is_empty()), ("session/a", false));
    assert!(matches!(store.scan(&Prefix::everything(), None, 10).await, Err(StoreError::Damaged { .. })));
    let rest = store.scan(&Prefix::everything(), None, 10).await.unwrap();
    assert_eq!(rest.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["session/c"]);
    let health = store.health().unwrap();
    assert_eq!(health.quarantined, ["session/a", "session/b"]);
    assert_eq!((health.live, health.damaged.len()), (1, 0));
    // The place is free again, and what was set aside outlives a restart.
    create(&store, "a", "anew").await;
    drop(store);
    assert_eq!(open(dir.path()).health().unwrap().quarantined, ["session/a", "session/b"]);
}

const FULL_DIR: &str = "FAILOVER_TEST_FULL_DIR";

/// The child that meets a full disk: writes until that fails, and says how many writes were acknowledged.
#[tokio::test]
async fn child_on_a_full_disk() {
    let Some(dir) = crate::crash::env(FULL_DIR) else { return };
    let store = open(Path::new(&dir));
    let mut acked = 0;
    let error = loop {
        let text = value(&text(&format!("key-{acked}"), 1).repeat(20));
        match store.swap(&key(&acked.to_string()), Expect::Absent, Some(text), WriteOptions::durable()).await
        {
            Ok(_) => acked += 1,
            Err(e) => break e,
        }
    };
    let again = store.swap(&key("again"), Expect::Absent, None, WriteOptions::durable()).await;
    let refused = store.swap(&key("again"), Expect::Absent, Some(value("x")), WriteOptions::durable()).await;
    assert!(again.is_err() && refused.is_err(), "after {error} writes go on: {again:?}, {refused:?}");
    let readable = store.get(&key("0")).await.is_ok();
    writeln!(std::io::stderr(), "acked {acked} {readable} {error}").unwrap();
    // A store that cannot write cannot close in good order either.
    std::process::exit(0);
}

/// A full disk, modelled by the largest file that the child may write.
// spec: K-2
#[test]
fn a_full_disk_is_an_error_and_no_loss() {
    let dir = private_dir();
    let child = std::process::Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 16384; exec \"$0\" --exact damage::child_on_a_full_disk --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(FULL_DIR, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    let line = said.lines().find_map(|line| line.strip_prefix("acked ")).unwrap_or_else(|| panic!("{said}"));
    let mut words = line.splitn(3, ' ');
    let acked: usize = words.next().unwrap().parse().unwrap();
    assert!(acked > 50, "{line}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = open(dir.path());
    for number in 0..acked {
        let found = runtime.block_on(read(&store, &number.to_string()));
        assert!(found.is_some(), "write {number} of {acked} was acknowledged and is lost");
    }
    runtime.block_on(create(&store, "room again", "1"));
}
