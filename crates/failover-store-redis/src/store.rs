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
        let mut connection = self.connection.clone();
        let () = self.answer(redis::cmd("PING").query_async(&mut connection)).await?;
        Ok(warnings(&mut connection).await)
    }

    /// The server's answer, unless it did not answer lately.
    async fn answer<T>(&self, asked: impl Future<Output = Result<T, RedisError>>) -> Result<T, StoreError> {
        let place = || self.names.place.clone();
        if let Some(why) = self.rest.why(Instant::now()) {
            return Err(StoreError::Unavailable { place: place(), why: why.to_string() });
        }
        match asked.await {
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

fn versioned(version: &[u8], value: &[u8]) -> Option<Versioned> {
    let version = std::str::from_utf8(version).ok()?.parse().ok()?;
    Some(Versioned { version: Version(version), value: Value::new(value) })
}

#[async_trait]
impl KeyValue for RedisStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let mut connection = self.connection.clone();
        let record = format!("{}{key}", self.names.record);
        let mut command = redis::cmd("HMGET");
        command.arg(record).arg("v").arg("d");
        let (version, value): (Option<Vec<u8>>, Option<Vec<u8>>) =
            self.answer(command.query_async(&mut connection)).await?;
        version
            .zip(value)
            .map(|(version, value)| versioned(&version, &value).ok_or_else(|| self.confused()))
            .transpose()
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
        let mut connection = self.connection.clone();
        let mut swap = self.names.swap.key(format!("{}{key}", self.names.record));
        swap.key(&self.names.index)
            .key(&self.names.version)
            .arg(expect)
            .arg(if next.is_some() { "put" } else { "del" })
            .arg(next.as_ref().map_or(&[][..], Value::as_bytes))
            .arg(life.unwrap_or_default())
            .arg(key.as_str())
            .arg(&self.names.channel);
        let answer: Vec<Vec<u8>> = self.answer(swap.invoke_async(&mut connection)).await?;
        let parts: Vec<&[u8]> = answer.iter().map(Vec::as_slice).collect();
        match parts.as_slice() {
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
        while found.len() < limit {
            let mut connection = self.connection.clone();
            let mut scan = self.names.scan.key(&self.names.index);
            scan.arg(&from).arg(&to).arg((limit - found.len()).min(PAGE)).arg(&self.names.record);
            let answer: Vec<Vec<u8>> = self.answer(scan.invoke_async(&mut connection)).await?;
            let (stopped, records) = answer.split_first().ok_or_else(|| self.confused())?;
            for record in records.chunks(3) {
                let [name, version, value] = record else { return Err(self.confused()) };
                let key = std::str::from_utf8(name).ok().and_then(|name| Key::from_stored(name).ok());
                let entry = key.zip(versioned(version, value)).ok_or_else(|| self.confused())?;
                found.push(entry);
            }
            if stopped.is_empty() {
                break;
            }
            from = format!("({}", String::from_utf8_lossy(stopped));
        }
        Ok(found)
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        feed::listen(self.clone(), prefix.clone()).await.map(Some)
    }
}
