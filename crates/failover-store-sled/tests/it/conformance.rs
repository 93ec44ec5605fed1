//! The suite that every store must pass.

use async_trait::async_trait;
use failover_store::KeyValue;
use failover_store::conformance::{Fixture, StillClock, violations};
use failover_store_sled::{Disk, SledOptions, SledStore};
use failover_types::{Clock, Timestamp};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

#[derive(Default)]
struct Sled {
    clock: Arc<StillClock>,
    dirs: Mutex<Vec<TempDir>>,
}

impl Sled {
    fn options(&self, dir: &Path) -> SledOptions {
        SledOptions::new(dir, Arc::<StillClock>::clone(&self.clock))
    }

    fn make_dir(&self) -> std::path::PathBuf {
        let dir = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap();
        let path = dir.path().to_owned();
        self.dirs.lock().unwrap().push(dir);
        path
    }
}

/// Works until it is told to fail.
#[derive(Default)]
pub(crate) struct FullDisk(pub(crate) AtomicBool);

impl Disk for FullDisk {
    fn sync(&self, file: &File) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { file.sync_data() }
    }
}

#[async_trait]
impl Fixture for Sled {
    async fn fresh(&self) -> Arc<dyn KeyValue> {
        Arc::new(self.options(&self.make_dir()).open().unwrap())
    }

    async fn reopen(&self, store: Arc<dyn KeyValue>) -> Option<Arc<dyn KeyValue>> {
        drop(store);
        let dir = self.dirs.lock().unwrap().last().unwrap().path().to_owned();
        let store: SledStore = self.options(&dir).open().unwrap();
        Some(Arc::new(store))
    }

    async fn failing(&self) -> Option<Arc<dyn KeyValue>> {
        let disk = Arc::new(FullDisk::default());
        let store = self.options(&self.make_dir()).disk(Arc::<FullDisk>::clone(&disk)).open().unwrap();
        disk.0.store(true, Ordering::SeqCst);
        Some(Arc::new(store))
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&self, span: Duration) {
        self.clock.turn(span);
    }
}

// spec: K-1, K-2, K-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sled_store_passes() {
    assert_eq!(violations(&Sled::default()).await, []);
}
