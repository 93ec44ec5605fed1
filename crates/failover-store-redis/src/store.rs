//! The client's end.

use crate::feed;
use crate::rest::Rest;
use crate::script::{PAGE, SCAN, SWAP};
use async_trait::async_trait;
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, MAX_SCAN, Prefix, StoreError, Swap, Value, Version, Versioned,
    WriteOptions,
};
use failover_types::Clock;
use redis::aio::{ConnectionManager, ConnectionManagerConfig, PubSub};
use redis::{Client, RedisError, Script};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a connection or an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// A lost connection is tried once more at once; after that the next call tries again.
const RECONNECTS: usize = 1;
const RECONNECT_DELAY: Duration = Duration::from_millis(20);

/// A namespace of a Redis server. Clones share one connection, which is made anew when it is lost.
#[derive(Clone)]
pub struct RedisStore {
    client: Client,
    connection: ConnectionManager,
    clock: Arc<dyn Clock>,
    names: Arc<Names>,
    rest: Arc<Rest>,
}

struct Names {
    /// Host and port, without user and password.
    place: String,
    /// What record keys begin with.
    record: String,
    /// What the keys of damaged records begin with, which nobody reads but a person.
    damaged: String,
    index: String,
    version: String,
    /// Where changes are published: the name of the record, and nothing else.
    channel: String,
    swap: Script,
    scan: Script,
}

impl RedisStore {
    /// Keeps to `namespace` of the server at `url` (`redis://…` or `redis+unix://…`). The connection is made by the first
    /// call, and made anew by the next one where it was lost. The clock is only asked how far away an expiry is. To be
    /// called within a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] where the URL makes no sense.
    pub fn open(url: &str, namespace: &str, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        // The URL may hold a password: only what is wrong with it is told.
        let refused = |e: &RedisError| StoreError::Refused {
            place: "redis".to_owned(),
            why: format!("the address is not understood: {}", e.category()),
        };
        let client = Client::open(url).map_err(|e| refused(&e))?;
        let place = client.get_connection_info().addr().to_string();
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE))
            .set_number_of_retries(RECONNECTS)
            .set_min_delay(RECONNECT_DELAY)
            .set_max_delay(RECONNECT_DELAY);
        let connection =
            ConnectionManager::new_lazy_with_config(client.clone(), config).map_err(|e| refused(&e))?;
        let names = Names {
            record: format!("{{{namespace}}}:r:"),
            damaged: format!("{{{namespace}}}:damaged:"),
            index: format!("{{{namespace}}}:index"),
            version: format!("{{{namespace}}}:version"),
            channel: format!("{{{namespace}}}:changes"),
            swap: Script::new(SWAP),
            scan: Script::new(SCAN),
            place,
        };
        Ok(Self { client, connection, clock, names: Arc::new(names), rest: Arc::default() })
    }

    /// Asks whether the server answers. Gives the settings that let it lose what it acknowledged, as sentences for an
    /// operator.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] where the server does not answer within about two seconds.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        let ping = |mut connection| async move { redis::cmd("PING").query_async(&mut connection).await };
        let () = self.answer(true, ping).await?;
        Ok(warnings(&mut self.connection.clone()).await)
    }

    /// The server's answer, unless it did not answer lately. `ask` is called again where its first error is the
    /// connection's from before: the server may be back since.
    async fn answer<T, A>(&self, reads: bool, ask: impl Fn(ConnectionManager) -> A) -> Result<T, StoreError>
    where
        A: Future<Output = Result<T, RedisError>>,
    {
        let place = || self.names.place.clone();
        let begun = Instant::now();
        if let Some(why) = self.rest.why(begun) {
            return Err(StoreError::Unavailable { place: place(), why: why.to_string() });
        }
        let mut asked = ask(self.connection.clone()).await;
        if asked.as_ref().is_err_and(|e| is_old(e, reads, begun.elapsed())) {
            asked = ask(self.connection.clone()).await;
        }
        match asked {
            Ok(answer) => {
                self.rest.answered();
                Ok(answer)
            }
            Err(e) => {
                let why = told(&e);
                // What the server itself refuses is an answer.
                if e.is_io_error() || e.is_timeout() {
                    self.rest.failed(Instant::now(), &why);
                }
                Err(StoreError::Unavailable { place: place(), why })
            }
        }
    }

    /// A connection of its own that is told of every change of the namespace.
    pub(crate) async fn subscribe(&self) -> Result<PubSub, StoreError> {
        let subscribed = async {
            let mut connection = self.client.get_async_pubsub().await?;
            connection.subscribe(&self.names.channel).await?;
            Ok(connection)
        };
        match tokio::time::timeout(PATIENCE, subscribed).await {
            Ok(subscribed) => subscribed
                .map_err(|e| StoreError::Unavailable { place: self.names.place.clone(), why: told(&e) }),
            Err(_) => Err(StoreError::Unavailable {
                place: self.names.place.clone(),
                why: "the server did not answer within 1 s".to_owned(),
            }),
        }
    }

    fn confused(&self) -> StoreError {
        StoreError::Unavailable {
            place: self.names.place.clone(),
            why: "the server answered something else than our script does; is the namespace shared?"
                .to_owned(),
        }
    }
}

/// Whether an error tells of the connection as it was, and of a command that the server has not got: one that could not
/// be made, or, for what only reads, one that was lost. The manager makes a new one once it has told of that.
fn is_old(e: &RedisError, reads: bool, took: Duration) -> bool {
    // No answer can be late that soon: the connection was.
    let late = e.is_timeout() && took < PATIENCE / 2;
    e.is_connection_refusal() || late || reads && e.is_io_error() && !e.is_timeout()
}

fn told(e: &RedisError) -> String {
    if e.is_timeout() { "the server did not answer within 1 s".to_owned() } else { e.to_string() }
}

/// What to tell of the server's settings. A server that does not show them is told of too.
async fn warnings(connection: &mut ConnectionManager) -> Vec<String> {
    let mut found = Vec::new();
    for (setting, good, else_) in [
        ("appendonly", &["yes"][..], "acknowledged writes are lost when the server ends"),
        ("appendfsync", &["always", "everysec"], "acknowledged writes may be lost at a power cut"),
        ("maxmemory-policy", &["noeviction"], "records may be dropped when memory is short"),
    ] {
        let answer: Result<Vec<String>, RedisError> =
            redis::cmd("CONFIG").arg("GET").arg(setting).query_async(connection).await;
        match answer.ok().as_deref() {
            Some([_, value]) if good.contains(&value.as_str()) => {}
            Some([_, value]) => found.push(format!("`{setting}` is `{value}`: {else_}")),
            _ => found.push(format!(
                "`{setting}` cannot be read; where it is not `{}`, {else_}",
                good.join("` or `")
            )),
        }
    }
    found
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({})", self.names.place)
    }
}

/// It was set aside by the script that met it.
fn damaged(name: &str) -> StoreError {
    tracing::warn!(key = name, "a damaged record was set aside");
    let why = "its key held something else than a record; it is kept under `…:damaged:`".to_owned();
    StoreError::Damaged { key: name.to_owned(), why }
}

fn versioned(version: &[u8], value: &[u8]) -> Option<Versioned> {
    let version = std::str::from_utf8(version).ok()?.parse().ok()?;
    Some(Versioned { version: Version(version), value: Value::new(value) })
}

#[async_trait]
impl KeyValue for RedisStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let record = format!("{}{key}", self.names.record);
        let mut command = redis::cmd("HMGET");
        command.arg(record).arg("v").arg("d");
        let command = &command;
        let ask = |mut connection: ConnectionManager| async move {
            match command.query_async(&mut connection).await {
                // A key of another kind: damaged, as what is no version.
                Err(e) if e.code() == Some("WRONGTYPE") => Ok((Some(Vec::new()), None)),
                answer => answer,
            }
        };
        let found: (Option<Vec<u8>>, Option<Vec<u8>>) = self.answer(true, ask).await?;
        let (version, value) = match found {
            (None, None) => return Ok(None),
            (version, value) => (version.unwrap_or_default(), value),
        };
        match value.and_then(|value| versioned(&version, &value)) {
            Some(found) => Ok(Some(found)),
            // A swap that expects what cannot be sets it aside, or finds that somebody else has mended it.
            None => match self.swap(key, Expect::Version(Version(0)), None, WriteOptions::soft()).await? {
                Swap::Lost(current) => Ok(current),
                Swap::Done(_) => Err(self.confused()),
            },
        }
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        if let Some(value) = &next {
            value.check_size(key)?;
        }
        let expect = match expect {
            Expect::Absent => String::new(),
            Expect::Version(version) => version.0.to_string(),
        };
        // Both classes of write are acknowledged alike: durability is the server's.
        let life = write.expires_at.map(|at| at.since(self.clock.now()).as_millis().to_string());
        let mut swap = self.names.swap.key(format!("{}{key}", self.names.record));
        swap.key(&self.names.index)
            .key(&self.names.version)
            .arg(expect)
            .arg(if next.is_some() { "put" } else { "del" })
            .arg(next.as_ref().map_or(&[][..], Value::as_bytes))
            .arg(life.unwrap_or_default())
            .arg(key.as_str())
            .arg(&self.names.channel)
            .arg(&self.names.damaged);
        let swap = &swap;
        let ask = |mut connection| async move { swap.invoke_async(&mut connection).await };
        let answer: Vec<Vec<u8>> = self.answer(false, ask).await?;
        let parts: Vec<&[u8]> = answer.iter().map(Vec::as_slice).collect();
        match parts.as_slice() {
            [b"damaged"] => Err(damaged(key.as_str())),
            [b"done"] => Ok(Swap::Done(None)),
            [b"done", version] => {
                let done = versioned(version, &[]).ok_or_else(|| self.confused())?;
                Ok(Swap::Done(Some(done.version)))
            }
            [b"lost"] => Ok(Swap::Lost(None)),
            [b"lost", version, value] => versioned(version, value)
                .map(|current| Swap::Lost(Some(current)))
                .ok_or_else(|| self.confused()),
            _ => Err(self.confused()),
        }
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        let limit = limit.min(MAX_SCAN);
        let mut from = match after {
            Some(key) if key.as_str() >= prefix.as_str() => format!("({key}"),
            _ if prefix.as_str().is_empty() => "-".to_owned(),
            _ => format!("[{}", prefix.as_str()),
        };
        // A prefix ends with a slash; the next byte ends its subtree.
        let to = prefix.as_str().strip_suffix('/').map_or_else(|| "+".to_owned(), |stem| format!("({stem}0"));
        let mut found = Vec::new();
        let mut broken = None;
        while found.len() < limit {
            let mut scan = self.names.scan.key(&self.names.index);
            scan.arg(&from).arg(&to).arg((limit - found.len()).min(PAGE));
            scan.arg(&self.names.record).arg(&self.names.damaged);
            let scan = &scan;
            let ask = |mut connection| async move { scan.invoke_async(&mut connection).await };
            let answer: Vec<Vec<u8>> = self.answer(true, ask).await?;
            let (stopped, records) = answer.split_first().ok_or_else(|| self.confused())?;
            for record in records.chunks(3) {
                let [name, version, value] = record else { return Err(self.confused()) };
                if version.is_empty() {
                    broken.get_or_insert(damaged(&String::from_utf8_lossy(name)));
                    continue;
                }
                let key = std::str::from_utf8(name).ok().and_then(|name| Key::from_stored(name).ok());
                let entry = key.zip(versioned(version, value)).ok_or_else(|| self.confused())?;
                found.push(entry);
            }
            if stopped.is_empty() {
                break;
            }
            from = format!("({}", String::from_utf8_lossy(stopped));
        }
        broken.map_or(Ok(found), Err)
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        feed::listen(self.clone(), prefix.clone()).await.map(Some)
    }
}
