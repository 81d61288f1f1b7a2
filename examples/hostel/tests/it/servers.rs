//! Runs on a real Redis and MongoDB, with processes that are killed.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::{Client, Database};
use test_support::{Data, MongoServer, RedisServer, wait_until};

use crate::command::{Output, hostel, number, start};

/// Nothing that these tests wait for takes nearly as long.
const HANG: Duration = Duration::from_secs(60);

const SMALL: [&str; 6] = ["--students", "120", "--rooms", "6", "--chaos", "0.3"];

/// Arguments that name the servers, and these.
fn on<'a>(redis: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    let mongodb = MongoServer::start().uri();
    [&["--redis", redis, "--mongodb", mongodb][..], arguments].concat()
}

/// What is left in Redis besides fences.
fn locks_left(redis: &RedisServer) -> Vec<String> {
    let keys = redis.cli(&["KEYS", "*"]);
    keys.lines().filter(|key| !key.ends_with(":fence")).map(str::to_owned).collect()
}

/// A database that goes with the test.
struct Scratch {
    name: String,
    database: Database,
}

impl Scratch {
    async fn new(name: &str) -> Self {
        let client = Client::with_uri_str(MongoServer::start().uri()).await;
        let name = format!("hostel_test_{name}_{}", std::process::id());
        let database = client.expect("it is reachable").database(&name);
        Self { name, database }
    }

    async fn count(&self, collection: &str, filter: Document) -> u64 {
        let collection = self.database.collection::<Document>(collection);
        collection.count_documents(filter).await.expect("it answers")
    }

    async fn drop(self) {
        self.database.drop().await.expect("it answers");
    }
}

#[test]
fn chaos_holds_in_one_process_on_servers() {
    let redis = RedisServer::start();
    let output = hostel(&on(&redis.url(), &[&SMALL[..], &["--json"]].concat()));
    assert!(number(&output.sound()[0]["audit"], "taken") > 20, "{output:?}");
    assert_eq!(locks_left(&redis), [""; 0]);
}

#[test]
fn chaos_holds_with_processes_that_are_killed() {
    let redis = RedisServer::start();
    let url = redis.url();
    let kill = ["--processes", "3", "--kill-every", "400ms", "--json"];
    // Few beds, and so many that students can move.
    let reports: Vec<_> = ["8", "30"]
        .into_iter()
        .flat_map(|capacity| {
            let beds = ["--capacity", capacity];
            hostel(&on(&url, &[&SMALL[..], &kill, &beds].concat())).sound()
        })
        .collect();
    assert!(number(&reports[1]["calls"], "moved") > 0, "{reports:?}");
    let sum = |name| reports.iter().map(|report| number(report, name)).sum::<i64>();
    assert!(sum("killed") > 0 && sum("begun_again") > 0, "{reports:?}");
    assert!(reports.iter().all(|report| number(&report["audit"], "taken") > 20), "{reports:?}");
}

/// Killed between paying and reserving, and at other bad moments.
#[test]
fn a_process_that_dies_after_a_step_costs_no_bed() {
    let redis = RedisServer::start();
    let url = redis.url();
    let race = ["--students", "60", "--rooms", "3", "--processes", "2", "--json"];
    for step in
        ["requested", "authorised", "marked-authorised", "bed-taken", "assigned", "captured"]
    {
        let crash = ["--crash-after", step];
        let report = hostel(&on(&url, &[&race[..], &crash].concat())).sound().remove(0);
        assert_eq!(number(&report, "killed"), 1, "{step}: {report}");
        assert!(number(&report, "begun_again") > 0, "{step}: {report}");
        // Somebody settles the payment: the process that comes next, or the student.
        assert!(number(&report["audit"], "taken") > 10, "{step}: {report}");
    }
}

#[test]
fn a_redis_that_loses_its_data_costs_no_bed() {
    let redis = RedisServer::start();
    let url = redis.url();
    let arguments = on(&url, &[&SMALL[..], &["--processes", "2", "--json"]].concat());
    for lose in [&(|| drop(redis.cli(&["FLUSHALL"]))) as &dyn Fn(), &|| redis.restart(Data::Lose)] {
        let before = redis.calls("evalsha");
        let running = start(&arguments);
        wait_until("the race is going on", || redis.calls("evalsha") > before + 50);
        lose();
        running.finish().sound();
    }
}

/// The whole of it is killed, and nobody starts it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_settles_what_a_killed_run_left() {
    let redis = RedisServer::start();
    let url = redis.url();
    let scratch = Scratch::new("killed").await;
    let database = ["--database", &scratch.name];
    let run = [&SMALL[..], &["--processes", "2"], &database].concat();
    let mut running = start(&on(&url, &run));
    let appear = async {
        // Beds that are taken, and payments on their way.
        while scratch.count("payments", doc! { "state": "captured" }).await < 5
            || scratch.count("payments", doc! { "open": true }).await < 5
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, appear).await.expect("it runs");
    running.0.kill().expect("it is our child");
    drop(running);
    // Its workers have lost their parent, and end.
    let open = doc! { "open": true };
    let mut seen = 0;
    while seen < 5 {
        // Until they have, they may settle what is open themselves.
        let before = scratch.count("payments", doc! {}).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        seen = if scratch.count("payments", doc! {}).await == before { seen + 1 } else { 0 };
    }
    assert!(scratch.count("payments", open.clone()).await > 0, "it was killed too late");
    let check = hostel(&on(&url, &[&["check"][..], &database].concat()));
    assert_eq!(check.code, Some(1), "a crash shows: {check:?}");
    assert!(check.stdout.contains(" is not settled\n"), "{check:?}");

    let recovered = hostel(&on(&url, &[&["recover"][..], &database].concat()));
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert!(recovered.stdout.starts_with("Recovered: "), "{recovered:?}");
    assert_eq!(scratch.count("payments", open).await, 0);
    assert_sound(&hostel(&on(&url, &[&["check"][..], &database].concat())));
    let again = hostel(&on(&url, &[&["recover"][..], &database].concat()));
    assert_eq!(again.stdout, "Recovered: 0 payments captured, 0 refunded.\n");

    // And the same hostel goes on.
    let run = hostel(&on(&url, &[&run[..], &["--json"]].concat()));
    assert!(number(&run.sound()[0]["audit"], "taken") > 20, "{run:?}");
    scratch.drop().await;
}

fn assert_sound(output: &Output) {
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("\nOK: "), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_that_is_wrong_in_the_database_is_found() {
    let redis = RedisServer::start();
    let url = redis.url();
    let scratch = Scratch::new("wrong").await;
    let database = ["--database", &scratch.name];
    let run = ["--students", "30", "--rooms", "3"];
    assert_sound(&hostel(&on(&url, &[&run[..], &database].concat())));
    let rooms = scratch.database.collection::<Document>("rooms");
    let one_more = doc! { "$push": { "occupants": "student-nobody" } };
    rooms.update_one(doc! { "number": 2 }, one_more).await.expect("it answers");
    let check = hostel(&on(&url, &[&["check"][..], &database].concat()));
    assert_eq!(check.code, Some(1), "{check:?}");
    let named = "- student-nobody is an occupant of room 2, and does not point at it\n";
    assert!(check.stdout.contains(named), "{check:?}");
    assert!(check.stdout.ends_with(" rules do not hold.\n"), "{check:?}");
    scratch.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_database_is_left_behind() {
    let redis = RedisServer::start();
    let url = redis.url();
    let client = Client::with_uri_str(MongoServer::start().uri()).await.expect("it is reachable");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // Long enough that it does not end by itself.
        let slow = ["--students", "50", "--payment-time", "60s", "--processes", "2"];
        let mut running = start(&on(&url, &slow));
        let header = BufReader::new(running.0.stdout.take().expect("it is a pipe")).lines();
        let name = header
            .map_while(Result::ok)
            .find_map(|line| line.split_once(", database ").map(|(_, name)| name.to_owned()))
            .expect("the header names it");
        let payments = client.database(&name).collection::<Document>("payments");
        let appear = async {
            while payments.count_documents(doc! {}).await.expect("it answers") == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(HANG, appear).await.expect("its processes are at work");

        let pid = running.0.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal} is sent");
        let mut status = None;
        wait_until("the command ends", || {
            status = running.0.try_wait().expect("it is our child");
            status.is_some()
        });
        assert_eq!(status.and_then(|status| status.code()), Some(code), "{signal}");
        let names = client.list_database_names().await.expect("it answers");
        assert!(!names.contains(&name), "{signal}: {name} is still there");
    }
}
