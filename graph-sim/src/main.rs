//! The simulator as a program.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use graph_sim::{Fault, GraphSim, Limits};
use tokio::signal::unix::{SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  graph-sim --port 8025
  graph-sim --port 0 --port-file /tmp/graph-sim.port --latency 100-3000
  graph-sim --port 8025 --fault '{\"share\":0.01,\"then\":{\"answer\":{\"status\":503}}}'

While it runs:
  curl localhost:8025/sim/report
  curl 'localhost:8025/sim/messages?mailbox=news@example.com'
  curl localhost:8025/sim/faults --json '{\"at\":\"accepted\",\"then\":\"reset\"}'
  curl localhost:8025/sim/faults --json '{\"target\":\"token\",\"times\":3,\"then\":\"hang\"}'
  curl -X DELETE localhost:8025/sim/faults

SIGTERM or Ctrl-C ends it with a table of what each mailbox sent.";

/// Plays Microsoft Graph's sendMail and Entra's token endpoint, and holds each mailbox to
/// Microsoft's limits in exact rolling windows.
#[derive(Parser)]
#[command(name = "graph-sim", version, after_help = EXAMPLES)]
struct Options {
    /// Address to listen on. The simulator knows no users: keep it off public addresses
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,

    /// Port to listen on, 0 for a free one
    #[arg(long, default_value_t = 8025)]
    port: u16,

    /// File to write the port to, once it listens
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,

    /// Messages that a mailbox may send in a message window
    #[arg(long, value_name = "N", default_value_t = Limits::default().messages)]
    messages: u64,

    /// Length of the message window
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    message_window: Duration,

    /// Recipients that a mailbox may have in a recipient window
    #[arg(long, value_name = "N", default_value_t = Limits::default().recipients)]
    recipients: u64,

    /// Length of the recipient window
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = seconds)]
    recipient_window: Duration,

    /// Requests that a mailbox may have open at once
    #[arg(long, value_name = "N", default_value_t = Limits::default().concurrent)]
    concurrent: u64,

    /// Largest request body
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().request_bytes)]
    request_bytes: usize,

    /// The only client that gets a token; any does if left out
    #[arg(long, value_name = "ID", requires = "client_secret")]
    client_id: Option<String>,

    /// That client's secret
    #[arg(
        long,
        env = "GRAPH_SIM_CLIENT_SECRET",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    client_secret: Option<String>,

    /// How long a token is good
    #[arg(long, value_name = "SECONDS", default_value = "3599", value_parser = seconds)]
    token_lifetime: Duration,

    /// Take so long for each mail, as MIN-MAX or one number
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    latency: RangeInclusive<u64>,

    /// Misbehave from the start, as JSON; may be repeated
    #[arg(long, value_name = "JSON", value_parser = fault)]
    fault: Vec<Fault>,

    /// Keep the MIME of each mail for /sim/messages
    #[arg(long)]
    keep_raw: bool,

    /// Where delays and shares start from
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .map_err(|_| "must be a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn milliseconds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    match (min.trim().parse(), max.trim().parse()) {
        (Ok(min), Ok(max)) if min <= max => Ok(min..=max),
        _ => Err("must be milliseconds, as 250 or 100-3000".to_owned()),
    }
}

fn fault(text: &str) -> Result<Fault, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let options = Options::parse();
    let mut builder = GraphSim::builder()
        .listen(SocketAddr::new(options.host, options.port))
        .limits(Limits {
            messages: options.messages,
            message_window: options.message_window,
            recipients: options.recipients,
            recipient_window: options.recipient_window,
            concurrent: options.concurrent,
            request_bytes: options.request_bytes,
        })
        .token_lifetime(options.token_lifetime)
        .latency(options.latency)
        .keep_raw(options.keep_raw)
        .seed(options.seed);
    if let (Some(id), Some(secret)) = (options.client_id, options.client_secret) {
        builder = builder.client(id, secret);
    }
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let sim = builder.try_start().await?;
    for fault in options.fault {
        sim.try_inject(fault)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    }
    if let Some(file) = options.port_file {
        std::fs::write(file, sim.port().to_string())?;
    }
    writeln!(io::stdout(), "graph-sim listens on {}", sim.base_url())?;
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    writeln!(io::stdout(), "{}", sim.report())
}
