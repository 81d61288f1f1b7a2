//! Many clients at once on few slots, over HTTP, against several replicas; then an audit.
//!
//! First the race: each slot has many clients who all want it in the same moment. Then, for as long
//! as was asked for, each client lists, books and cancels as it comes. Whatever happened, every slot
//! must be had by the client that was told so last, and by nobody else.

mod audit;
mod clients;
mod report;

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use example_support::asked_to_end;
use hyper::Method;
use serde_json::json;
use time::format_description::well_known::Rfc3339;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use uuid::Uuid;

use self::clients::{Booker, Slots};
pub use self::report::Report;
use crate::auth::{Secret, Tokens};
use crate::cli::{Options, StormOptions};
use crate::client::Client;
use crate::clock::Clock;
use crate::domain::{Role, UserId};
use crate::replica::Replica;
use crate::repository::MongoRepository;
use crate::run::{self, Error};

/// How long the tokens of the clients last.
const HOUR: Duration = Duration::from_secs(3600);

/// Runs a storm, and returns what came of it.
///
/// # Errors
/// See [`Error`].
pub async fn run(options: &Options, storm: &StormOptions) -> Result<Report, Error> {
    if storm.replicas > 1 && (options.redis.is_none() || options.mongodb.is_none()) {
        return Err(Error::Usage(
            "--replicas 2 or more need servers that they share: also give --redis and --mongodb"
                .to_owned(),
        ));
    }
    crate::server::raise_file_limit();
    // A database of its own, which is gone afterwards.
    let database = format!("booking_storm_{}", Uuid::new_v4().simple());
    let repository = match &options.mongodb {
        Some(url) => Some(run::mongodb(url, &database).await?),
        None => None,
    };
    // Replicas that are left in the middle are killed.
    let outcome = tokio::select! {
        outcome = blow(options, storm, &database, repository.as_ref()) => outcome,
        signal = asked_to_end() => Err(signal.into()),
    };
    if let Some(repository) = &repository {
        repository.discard().await?;
    }
    outcome
}

async fn blow(
    options: &Options,
    storm: &StormOptions,
    database: &str,
    repository: Option<&MongoRepository>,
) -> Result<Report, Error> {
    let text = [Uuid::new_v4(), Uuid::new_v4()].map(|part| part.simple().to_string()).concat();
    let tokens = Tokens::new(&Secret::new(&text)?, HOUR, Clock::system())
        .map_err(crate::app::StartError::Token)?;
    let mut replicas = Vec::new();
    for _ in 0..storm.replicas {
        replicas.push(replica(options, database, &text).await?);
    }
    let addresses: Vec<_> = replicas.iter().map(Replica::address).collect();
    let organiser = token(&tokens, UserId::random(), Role::Organiser)?;
    let slots = create_slots(addresses[0], &organiser, storm.slots).await?;
    let slots = Arc::new(Slots::new(slots));

    let mut tasks = JoinSet::new();
    let count = usize::from(storm.clients) * replicas.len();
    let doors = Arc::new(Barrier::new(count + 1));
    for number in 0..count {
        let address = addresses[number % addresses.len()];
        let user = UserId::random();
        let booker = Booker::new(number, user, token(&tokens, user, Role::Guest)?, address);
        let work = booker.work(slots.clone(), doors.clone(), storm.seconds);
        tasks.spawn(work);
    }
    // All are connected; and again when the race is over.
    doors.wait().await;
    let began = Instant::now();
    doors.wait().await;
    let race = began.elapsed();
    let mut report = Report::new(storm, race);
    let mut users = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let booker = done.map_err(|error| Error::Io(std::io::Error::other(error)))?;
        report.add(&booker);
        users.push((booker.user, booker.token));
    }
    let found = match repository {
        Some(repository) => audit::by_database(repository).await?,
        None => audit::by_api(addresses[0], &users).await.map_err(unreachable)?,
    };
    report.audit(&slots, &found);
    for replica in &replicas {
        replica.terminate()?;
    }
    for mut replica in replicas {
        let status = replica.wait().await?;
        if !status.success() {
            report.faults.push(format!("a replica ended with {status}"));
        }
    }
    Ok(report)
}

async fn replica(options: &Options, database: &str, secret: &str) -> Result<Replica, Error> {
    // URLs may hold passwords, so they are no arguments, which any user of the machine can list.
    let mut variables = vec![("BOOKING_JWT_SECRET", secret)];
    let urls = [("REDIS_URL", &options.redis), ("MONGODB_URI", &options.mongodb)];
    for (name, url) in urls {
        variables.push((name, url.as_ref().map_or("", |url| url.secret())));
    }
    let arguments = ["--database", database, "--no-access-log", "--per-day", "1000"];
    let program = std::env::current_exe()?;
    Ok(Replica::start(&program, &arguments, variables, Stdio::inherit()).await?)
}

fn token(tokens: &Tokens, user: UserId, role: Role) -> Result<String, Error> {
    Ok(tokens.issue(user, role).map_err(crate::app::StartError::Token)?.text)
}

/// Creates slots that start in an hour, and returns their ids.
async fn create_slots(
    address: SocketAddr,
    organiser: &str,
    count: u16,
) -> Result<Vec<String>, Error> {
    let time = |hours| {
        let time = Clock::system().now() + time::Duration::hours(hours);
        time.format(&Rfc3339).map_err(std::io::Error::other)
    };
    let mut client = Client::connect(address).await.map_err(unreachable)?;
    let mut ids = Vec::new();
    for number in 0..count {
        let slot =
            json!({ "title": format!("Slot {number}"), "starts": time(1)?, "ends": time(2)? });
        let created = client.call(Method::POST, "/slots", Some(organiser), Some(&slot)).await;
        let created = created.map_err(unreachable)?;
        match created.json()["id"].as_str() {
            Some(id) if created.status == 201 => ids.push(id.to_owned()),
            _ => return Err(unreachable(format!("no slot, but {}", created.status))),
        }
    }
    Ok(ids)
}

fn unreachable(error: impl ToString) -> Error {
    Error::Usage(format!("a replica cannot be used: {}", error.to_string()))
}
