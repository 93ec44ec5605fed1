//! A modelled power cut: a disk keeps only what a sync covered, and some of the later pages at random.

use crate::common::{clock, create, key, private_dir, put, read, value};
use failover_store::{Durability, Expect, KeyValue, Swap, WriteOptions};
use failover_store_sled::{Disk, SledOptions, SledStore};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What reaches the platter in one piece.
const PAGE: usize = 4096;

/// Files by path, relative to the store's home. `None`: a directory.
type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Copies the log just before it is synced: all of the copy was written by then, so the sync covers it.
struct RecordingDisk {
    home: PathBuf,
    durable: Mutex<Image>,
    /// A disk that only pretends keeps nothing.
    honest: bool,
}

impl Disk for RecordingDisk {
    fn sync(&self, file: &File) -> io::Result<()> {
        if self.honest {
            let content = read_at_once(&self.home.join("db"))?;
            file.sync_data()?;
            self.durable.lock().unwrap().insert("db".into(), Some(content));
        }
        Ok(())
    }
}

/// The file as it was at one moment: other threads may be writing, so it is read until two copies agree.
fn read_at_once(path: &Path) -> io::Result<Vec<u8>> {
    let mut before = fs::read(path)?;
    loop {
        let after = fs::read(path)?;
        if before == after {
            return Ok(after);
        }
        before = after;
    }
}

fn copy_all(home: &Path) -> Image {
    let mut image = Image::new();
    let mut todo = vec![home.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(home).unwrap().to_owned();
            if path.is_dir() {
                image.insert(name, None);
                todo.push(path);
            } else if let Ok(bytes) = fs::read(&path) {
                image.insert(name, Some(bytes));
            }
        }
    }
    image
}

fn write_all(image: &Image, dir: &Path) {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let home = dir.join("sled");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    for (name, content) in image {
        let path = home.join(name);
        match content {
            None => fs::create_dir_all(path).unwrap(),
            Some(bytes) => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let mut file =
                    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
                io::Write::write_all(&mut file, bytes).unwrap();
            }
        }
    }
}

/// Lets each page that was written after the sync reach the disk or not.
fn with_stray_pages(durable: &[u8], written: &[u8], random: &mut TestRng) -> Vec<u8> {
    let mut out = durable.to_vec();
    out.resize(written.len().max(durable.len()), 0);
    for (at, page) in written.chunks(PAGE).enumerate() {
        if random.next_u32().is_multiple_of(2) {
            let from = at * PAGE;
            out.get_mut(from..from + page.len()).unwrap().copy_from_slice(page);
        }
    }
    out
}

struct Machine {
    dir: tempfile::TempDir,
    disk: Arc<RecordingDisk>,
    store: SledStore,
}

fn machine(honest: bool) -> Machine {
    let dir = private_dir();
    let home = dir.path().join("sled");
    // A first life makes the files, whose names and contents are synced when the store is opened.
    drop(SledOptions::new(dir.path(), clock()).open().unwrap());
    let disk = Arc::new(RecordingDisk { home: home.clone(), durable: Mutex::new(copy_all(&home)), honest });
    let store =
        SledOptions::new(dir.path(), clock()).disk(Arc::<RecordingDisk>::clone(&disk)).open().unwrap();
    // What opening itself wrote through `sync_names`.
    let opened = copy_all(&home);
    disk.durable.lock().unwrap().extend(opened.into_iter().filter(|(name, _)| name != Path::new("db")));
    Machine { dir, disk, store }
}

/// Writers write until they are done; after some of their steps the power is cut. Gives back what was lost.
async fn cut_power_now_and_then(machine: &Machine, stray: bool) -> Vec<String> {
    const WRITERS: u64 = 8;
    const STEPS: u64 = 250;
    let acked: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (store, acked) = (machine.store.clone(), Arc::clone(&acked));
        tasks.spawn(async move {
            for step in 1..=STEPS {
                let name = format!("{writer}-{}", step % 25);
                let durability = if step % 3 == 0 { Durability::Soft } else { Durability::Durable };
                let write = if step % 3 == 0 { WriteOptions::soft() } else { WriteOptions::durable() };
                let current = store.get(&key(&name)).await.unwrap();
                // Mixed sizes, up to the largest.
                let size = if step % 40 == 1 { 30_000 } else { 100 };
                let text = format!("{step} {}", "x".repeat(size));
                let swap =
                    store.swap(&key(&name), Expect::from(current.as_ref()), Some(value(&text)), write).await;
                assert!(matches!(swap.unwrap(), Swap::Done(_)));
                if durability == Durability::Durable {
                    acked.lock().unwrap().insert(name, step);
                }
            }
        });
    }
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut lost = Vec::new();
    let mut cuts = 0;
    let mut running = true;
    while running {
        running = tokio::time::timeout(std::time::Duration::from_millis(25), tasks.join_next())
            .await
            .map_or(true, |ended| ended.map(Result::unwrap).is_some());
        // The list first: what is on it was acknowledged before the image was taken.
        let promised = acked.lock().unwrap().clone();
        let mut image = machine.disk.durable.lock().unwrap().clone();
        if stray {
            let written = fs::read(machine.disk.home.join("db")).unwrap();
            let durable = image.get(Path::new("db")).cloned().flatten().unwrap();
            let mixed = with_stray_pages(&durable, &written, &mut random);
            image.insert("db".into(), Some(mixed));
        }
        lost.extend(lost_by(&image, &promised).await);
        cuts += 1;
    }
    assert!(cuts > 1, "no cut fell into the writing");
    let aside = fs::read_dir(machine.disk.home.join("blobs")).unwrap().count();
    assert_eq!(aside, 0, "sled put tree nodes into files that it does not sync");
    lost
}

/// Opens a machine with this disk, and names the promised writes that are not on it.
async fn lost_by(image: &Image, promised: &BTreeMap<String, u64>) -> Vec<String> {
    let dir = private_dir();
    write_all(image, dir.path());
    let store = match SledOptions::new(dir.path(), clock()).open() {
        Ok(store) => store,
        Err(e) => return vec![format!("not opened: {e}")],
    };
    let mut lost = Vec::new();
    for (name, step) in promised {
        let text = read(&store, name).await;
        let stands = text.as_deref().and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        if stands.is_none_or(|stands| stands < *step) {
            lost.push(format!("{name}: step {step} promised, {stands:?} found"));
        }
    }
    lost
}

// spec: K-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_a_power_cut() {
    let machine = machine(true);
    assert_eq!(cut_power_now_and_then(&machine, false).await, Vec::<String>::new());
    drop(machine.store);
    drop(machine.dir);
}

// spec: K-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_reached_the_disk_early_do_no_harm() {
    let machine = machine(true);
    assert_eq!(cut_power_now_and_then(&machine, true).await, Vec::<String>::new());
}

/// The proof that the model sees something: a store whose disk does not sync loses promised writes, and says so
/// when it is opened again, as long as the number of the last batch is not lost as well.
#[tokio::test]
async fn the_model_catches_a_disk_that_only_pretends() {
    let machine = machine(false);
    create(&machine.store, "a", "1").await;
    let mut image = machine.disk.durable.lock().unwrap().clone();
    let promised = BTreeMap::from([("a".to_owned(), 1)]);
    let lost = lost_by(&image, &promised).await;
    assert!(lost.iter().all(|lost| lost.contains("acknowledged writes are missing")), "{lost:?}");
    image.remove(Path::new("acknowledged")).unwrap();
    assert_eq!(lost_by(&image, &promised).await, ["a: step 1 promised, None found"]);
}

// spec: K-2
#[tokio::test]
async fn a_soft_write_waits_for_no_disk() {
    struct Stuck;
    impl Disk for Stuck {
        fn sync(&self, _file: &File) -> io::Result<()> {
            std::thread::park_timeout(std::time::Duration::from_millis(300));
            Ok(())
        }
    }
    let dir = private_dir();
    let store = SledOptions::new(dir.path(), clock()).disk(Arc::new(Stuck)).open().unwrap();
    let mut durable = Box::pin(create(&store, "slow", "1"));
    let mut soft = Box::pin(put(&store, "quick", Expect::Absent, Some("1"), WriteOptions::soft()));
    tokio::select! {
        biased;
        _ = &mut durable => panic!("the durable write did not wait for the disk"),
        version = &mut soft => assert!(version.is_some()),
    }
    durable.await;
}

// spec: K-2
#[tokio::test]
async fn a_soft_write_reaches_the_disk_without_being_asked() {
    let machine = machine(true);
    put(&machine.store, "soft", Expect::Absent, Some("1"), WriteOptions::soft()).await;
    let promised = BTreeMap::from([("soft".to_owned(), 1)]);
    // Each look opens a store and takes a while; the first few are within the half second.
    for _ in 0..100 {
        let image = machine.disk.durable.lock().unwrap().clone();
        if lost_by(&image, &promised).await.is_empty() {
            return;
        }
    }
    panic!("a soft write never reached the disk");
}
