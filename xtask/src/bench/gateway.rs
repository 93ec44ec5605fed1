//! The gateway against a bare proxy and nginx: the server on one core, upstream and load on the other.
//!
//! Rounds go over every server and load in turn, so that a machine that slows down slows all of them; figures are
//! medians over the rounds. A refusal of the primary is put into the lane that leaves health alone, by a rule of the
//! operator: otherwise the gateway would ask the primary once and then pass it over.

use super::io;
use super::load::Report;
use super::process::{Process, output};
use crate::run::{Faults, Outcome, cargo, check, root};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The server's core, and that of upstream and load.
pub(super) const CORES: (usize, usize) = (0, 1);
const CONNECTIONS: usize = 32;
const HELD: usize = 400;
/// What is measured is asked in this dialect, which is the upstream's.
const CHAT: &str = "chat/completions";
/// How long each load trains a gateway, in milliseconds.
const TRAINED_MS: u64 = 1_500;

/// A load.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Load {
    name: &'static str,
    model: &'static str,
    streamed: bool,
    fails_over: bool,
}

const LOADS: [Load; 4] = [
    Load { name: "primary answers", model: "ok", streamed: false, fails_over: false },
    Load { name: "fails over from 429", model: "limited", streamed: false, fails_over: true },
    Load { name: "stream", model: "ok", streamed: true, fails_over: false },
    Load { name: "stream, fails over", model: "limited", streamed: true, fails_over: true },
];

/// A server under load.
pub(super) struct Server {
    name: &'static str,
    pub(super) process: Process,
    /// Where it answers, and where it fails over first, if it can.
    addresses: (String, Option<String>),
    results: Vec<Sample>,
    memory: f64,
}

/// What one load on one server gave in one round.
struct Sample {
    load: &'static str,
    connections: usize,
    report: Report,
    /// Of the server, for each answer, in microseconds.
    cpu_us: f64,
}

fn strings(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// Where the release binaries are; they are built unless `--built` says where to find them.
pub(super) fn release(args: &[String]) -> Result<PathBuf, Faults> {
    if let Ok(built) = super::text(args, "--built") {
        return Ok(PathBuf::from(built));
    }
    check(cargo(&["build", "--profile", "dist", "--quiet", "-p", "failover-cli", "-p", "xtask"]))?;
    Ok(root().join("target/dist"))
}

/// Measures and prints tables.
pub(crate) fn main(args: &[String]) -> Outcome {
    let quick = args.iter().any(|arg| arg == "--quick");
    let (rounds, millis) = if quick { (1, 1_000) } else { (5, 2_000) };
    let release = release(args)?;
    let tool = release.join("xtask");
    let home = root().join("target/bench-gateway");
    fs::create_dir_all(&home).map_err(|error| io("target", error))?;
    let (_upstream, answers, refuses) = upstream(&tool)?;
    let (answers, refuses) = (answers.as_str(), refuses.as_str());

    let mut servers = vec![failover(&release, &home, answers, refuses)?];
    let (process, line) = Process::telling(CORES.0, &tool, &strings(&["bench", "proxy", "--to", answers]))?;
    servers.push(Server::new("bare hyper proxy", process, (line.trim().to_owned(), None)));
    match nginx(&home, answers, refuses)? {
        Some(server) => servers.push(server),
        None => println!(
            "\n!!! NGINX IS NOT INSTALLED: its part is left out, and the targets against it are not shown !!!\n"
        ),
    }
    let direct = direct(&tool, answers, millis)?;
    for round in 0..rounds {
        for load in LOADS {
            for server in &mut servers {
                for connections in [CONNECTIONS, 1] {
                    server.measure(&tool, load, connections, millis)?;
                }
            }
        }
        println!("round {} of {rounds}", round + 1);
    }
    let idle = hold(&tool, &servers)?;
    show(&servers, direct, &idle);
    Ok(())
}

/// The upstream, and the addresses of one that answers and one that refuses.
fn upstream(tool: &Path) -> Result<(Process, String, String), Faults> {
    let (process, line) = Process::telling(CORES.1, tool, &strings(&["bench", "upstream"]))?;
    let mut addresses = line.split_whitespace().map(str::to_owned);
    match (addresses.next(), addresses.next()) {
        (Some(answers), Some(refuses)) => Ok((process, answers, refuses)),
        _ => Err(Faults::one("no upstream")),
    }
}

/// Everything that is measured, and the other dialects besides, for a gateway that counts which of its code is used.
pub(crate) fn train(args: &[String]) -> Outcome {
    let release = release(args)?;
    let tool = release.join("xtask");
    let home = root().join("target/bench-gateway");
    fs::create_dir_all(&home).map_err(|error| io("target", error))?;
    let (_upstream, answers, refuses) = upstream(&tool)?;
    let server = failover(&release, &home, &answers, &refuses)?;
    for load in LOADS {
        for dialect in super::load::dialects() {
            for connections in [CONNECTIONS, 1] {
                let report = run(&tool, &server.addresses.0, load, dialect, connections, TRAINED_MS)?;
                if report.bad > 0 || report.answers == 0 {
                    let counts = format!("{} good, {} bad answers", report.answers, report.bad);
                    return Err(Faults::one(format!("{dialect}, {}: {counts}", load.name)));
                }
            }
        }
    }
    Ok(())
}

impl Server {
    fn new(name: &'static str, process: Process, addresses: (String, Option<String>)) -> Self {
        Self { name, process, addresses, results: Vec::new(), memory: 0.0 }
    }

    fn address(&self, load: Load) -> Option<&str> {
        if load.fails_over { self.addresses.1.as_deref() } else { Some(&self.addresses.0) }
    }

    fn measure(&mut self, tool: &Path, load: Load, connections: usize, millis: u64) -> Outcome {
        let Some(address) = self.address(load).map(str::to_owned) else { return Ok(()) };
        let before = self.process.cpu()?;
        let report = run(tool, &address, load, CHAT, connections, millis)?;
        let cpu = self.process.cpu()? - before;
        if report.bad > 0 || report.answers == 0 {
            let counts = format!("{} good, {} bad answers", report.answers, report.bad);
            return Err(Faults::one(format!("{}, {}: {counts}", self.name, load.name)));
        }
        self.memory = self.memory.max(self.process.memory()?);
        let cpu_us = cpu * 1e6 / report.answers as f64;
        self.results.push(Sample { load: load.name, connections, report, cpu_us });
        Ok(())
    }

    /// The median of something over the rounds.
    fn median(&self, load: Load, connections: usize, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        let own = self.results.iter().filter(|one| one.load == load.name && one.connections == connections);
        median(own.map(of).collect())
    }
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn run(
    tool: &Path,
    address: &str,
    load: Load,
    dialect: &str,
    connections: usize,
    millis: u64,
) -> Result<Report, Faults> {
    let (connections, millis) = (connections.to_string(), millis.to_string());
    let mut args = strings(&["bench", "load", "--address", address, "--model", load.model]);
    args.extend(strings(&["--dialect", dialect]));
    args.extend(strings(&["--connections", &connections, "--millis", &millis]));
    args.extend(load.streamed.then(|| "--stream".to_owned()));
    let line = output(CORES.1, tool, &args)?;
    serde_json::from_str(&line).map_err(|error| io("load", error))
}

/// What the upstream alone takes, request and stream, one at a time.
fn direct(tool: &Path, answers: &str, millis: u64) -> Result<(f64, f64), Faults> {
    let [whole, _, stream, _] = LOADS;
    let one = |load| run(tool, answers, load, CHAT, 1, millis).map(|report| report.median_us);
    Ok((one(whole)?, one(stream)?))
}

pub(super) fn free_port() -> Result<u16, Faults> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| io("bind", error))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| io("bind", error))
}

/// Waits until a server takes connections.
fn ready(process: &mut Process, address: &str, log: &Path) -> Outcome {
    for _ in 0..200 {
        if TcpStream::connect(address).is_ok() {
            return Ok(());
        }
        if !process.lives() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(Faults::one(format!("{address}: {}", fs::read_to_string(log).unwrap_or_default())))
}

fn failover(release: &Path, home: &Path, answers: &str, refuses: &str) -> Result<Server, Faults> {
    let config = format!(
        r#"{{
  models: {{ providers: {{
    main: {{ baseUrl: "http://{answers}/v1", apiKey: "${{BENCH_KEY}}", api: "openai-completions", models: [{{ id: "m" }}] }},
    limited: {{ baseUrl: "http://{refuses}/v1", apiKey: "${{BENCH_KEY}}", api: "openai-completions", models: [{{ id: "m" }}] }},
  }} }},
  classifier: {{ rules: [{{ id: "bench", reason: "model_not_found", status: 429 }}] }},
  gateway: {{ routes: {{ ok: {{ chain: ["main/m"] }}, limited: {{ chain: ["limited/m", "main/m"] }} }} }},
}}"#
    );
    Server::failover(release, home, &config, &format!("127.0.0.1:{}", free_port()?))
}

impl Server {
    /// `failover serve` with this config, on this address.
    pub(super) fn failover(release: &Path, home: &Path, config: &str, address: &str) -> Result<Self, Faults> {
        let file = home.join("failover.json5");
        fs::write(&file, config).map_err(|error| io("config", error))?;
        let log = home.join("failover.log");
        let path = file.display().to_string();
        let args = strings(&["serve", "--config", &path, "--listen", address, "--no-watch"]);
        let state = home.join("state");
        // What an earlier run left there must not slow this one down, nor speed it up.
        let _ = fs::remove_dir_all(&state);
        let environment = [
            ("FAILOVER_HOME", state.display().to_string()),
            ("BENCH_KEY", "sk-bench-0123456789".to_owned()),
            // As the others: nobody writes a line a request.
            ("FAILOVER_LOG", "warn".to_owned()),
        ];
        let mut process = Process::start(CORES.0, &release.join("failover"), &args, &environment, &log)?;
        ready(&mut process, address, &log)?;
        Ok(Self::new("failover serve", process, (address.to_owned(), Some(address.to_owned()))))
    }
}

fn nginx(home: &Path, answers: &str, refuses: &str) -> Result<Option<Server>, Faults> {
    let Some(program) = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.exists())
    else {
        return Ok(None);
    };
    let ports = (free_port()?, free_port()?);
    let dir = home.display();
    let config = format!(
        "daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/nginx-error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  keepalive_requests 1000000000; tcp_nodelay on;
  upstream answers {{ server {answers} max_fails=0; keepalive 64; keepalive_requests 1000000000; }}
  upstream refuses {{ server {refuses} max_fails=0; server {answers} backup max_fails=0; keepalive 64; keepalive_requests 1000000000; }}
  proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; proxy_read_timeout 600s;
  proxy_next_upstream error timeout http_429 non_idempotent;
  server {{ listen 127.0.0.1:{}; location / {{ proxy_pass http://answers; }} }}
  server {{ listen 127.0.0.1:{}; location / {{ proxy_pass http://refuses; }} }}
}}
",
        ports.0, ports.1
    );
    let file = home.join("nginx.conf");
    fs::write(&file, config).map_err(|error| io("nginx.conf", error))?;
    let log = home.join("nginx.log");
    let args = strings(&["-c", &file.display().to_string()]);
    let mut process = Process::start(CORES.0, &program, &args, &[], &log)?;
    let address = |port: u16| format!("127.0.0.1:{port}");
    ready(&mut process, &address(ports.0), &log)?;
    Ok(Some(Server::new("nginx", process, (address(ports.0), Some(address(ports.1))))))
}

/// Memory for each stream that is silent, in bytes, by server.
fn hold(tool: &Path, servers: &[Server]) -> Result<Vec<f64>, Faults> {
    let mut grown = Vec::new();
    for server in servers {
        let before = server.process.memory()?;
        let connections = HELD.to_string();
        let address = server.addresses.0.as_str();
        let args =
            strings(&["bench", "hold", "--address", address, "--model", "ok", "--connections", &connections]);
        let (_streams, _) = Process::telling(CORES.1, tool, &args)?;
        grown.push((server.process.memory()? - before) / HELD as f64);
    }
    Ok(grown)
}

fn show(servers: &[Server], direct: (f64, f64), idle: &[f64]) {
    println!("\nupstream alone, one at a time: {:.0} µs a request, {:.0} µs a stream", direct.0, direct.1);
    println!(
        "\n| load | server | answers/s at {CONNECTIONS} | CPU µs an answer | median ms at {CONNECTIONS} | median µs at 1 |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for load in LOADS {
        for server in servers {
            let wide = |of: fn(&Sample) -> f64| server.median(load, CONNECTIONS, of);
            let rate = wide(|one| one.report.answers as f64 / one.report.seconds);
            let (Some(rate), Some(cpu)) = (rate, wide(|one| one.cpu_us)) else { continue };
            let median = wide(|one| one.report.median_us).unwrap_or_default() / 1_000.0;
            let alone = server.median(load, 1, |one| one.report.median_us).unwrap_or_default();
            println!("| {} | {} | {rate:.0} | {cpu:.1} | {median:.2} | {alone:.0} |", load.name, server.name);
        }
    }
    println!("\n| server | memory at {CONNECTIONS} connections, MiB | memory a silent stream, KiB |");
    println!("| --- | ---: | ---: |");
    for (server, idle) in servers.iter().zip(idle) {
        println!("| {} | {:.1} | {:.1} |", server.name, server.memory / 1_048_576.0, idle / 1_024.0);
    }
    let [own, bare, others @ ..] = servers else { return };
    println!("\n| target | measured |");
    println!("| --- | --- |");
    let [whole, failing, ..] = LOADS;
    let cpu = |server: &Server, load| server.median(load, CONNECTIONS, |one| one.cpu_us).unwrap_or(f64::NAN);
    let alone =
        |server: &Server, load| server.median(load, 1, |one| one.report.median_us).unwrap_or(f64::NAN);
    println!(
        "| CPU a request, at most 1.3 × the bare proxy's | {:.2} × |",
        cpu(own, whole) / cpu(bare, whole)
    );
    println!(
        "| median, at most 150 µs more than the bare proxy's | {:.0} µs more |",
        alone(own, whole) - alone(bare, whole)
    );
    let added = alone(own, failing) - alone(own, whole) - direct.0;
    println!("| failing over adds less than 1 ms to the two calls | {:.2} ms |", added / 1_000.0);
    for nginx in others {
        let rate = |server: &Server, load| {
            let of = |one: &Sample| one.report.answers as f64 / one.report.seconds;
            server.median(load, CONNECTIONS, of).unwrap_or(f64::NAN)
        };
        for load in LOADS {
            let wanted = if load.fails_over { "all" } else { "half" };
            println!(
                "| {}: at least {wanted} of nginx's answers a second | {:.2} × |",
                load.name,
                rate(own, load) / rate(nginx, load)
            );
        }
    }
}
