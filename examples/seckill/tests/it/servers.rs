//! Runs on a real Redis and MongoDB, in one process and in several.

use crate::command::{Output, number, seckill};
use mongodb::Client;
use mongodb::bson::doc;
use seckill::model::{Item, Order};
use test_support::{Data, MongoServer, Proxy, RedisServer, wait_until};

/// Runs `seckill` on these servers.
fn on(redis: &RedisServer, arguments: &[&str]) -> Output {
    let redis = redis.url();
    let mut all = vec!["--redis", &redis, "--mongodb", MongoServer::start().uri()];
    all.extend(arguments);
    seckill(&all)
}

/// What is left in Redis besides fences.
fn locks_left(redis: &RedisServer) -> Vec<String> {
    let keys = redis.cli(&["KEYS", "*"]);
    keys.lines().filter(|key| !key.ends_with(":fence")).map(str::to_owned).collect()
}

#[test]
fn all_modes_in_one_process() {
    let redis = RedisServer::start();
    let output = on(&redis, &["--json"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let report = output.json();
    let rows = report["modes"].as_array().expect("it is an array");
    assert!(number(&rows[0], "oversold") > 0, "{report}");
    for row in &rows[1..] {
        let numbers =
            ["sold", "left", "oversold", "turned_away", "errors"].map(|name| number(row, name));
        assert_eq!(numbers, [600, 0, 0, 400, 0], "{row}");
    }
    for row in rows {
        let commands = row["redis_commands_per_purchase"].as_f64().expect("Redis counts");
        let locked = row["mode"] == "lock" || row["mode"] == "fenced";
        let local = row["local_hand_over_share"].as_f64();
        // A lock that came from another buyer costs no command. The others cost one at least, and
        // the last in line for each item its release.
        assert!(if locked { commands > 0.0 } else { commands == 0.0 }, "{row}");
        assert_eq!(local.is_some(), locked, "{row}");
        assert!(local.is_none_or(|local| 1.0 - local < commands), "{row}");
    }
    assert_eq!(locks_left(&redis), [""; 0]);
}

#[test]
fn several_processes_sell_every_piece_once() {
    let redis = RedisServer::start();
    for mode in ["lock", "fenced", "atomic"] {
        let row = on(&redis, &["--mode", mode, "--processes", "4", "--json"]).sound_row();
        let numbers = ["sold", "left", "turned_away", "errors"].map(|name| number(&row, name));
        assert_eq!(numbers, [600, 0, 400, 0], "{mode}");
        if mode == "atomic" {
            continue;
        }
        let processes = row["processes"].as_array().expect("it is an array");
        assert_eq!(processes.len(), 4, "{row}");
        let sum = |name| processes.iter().map(|process| number(process, name)).sum::<i64>();
        let sums = ["buyers", "bought", "acquired"].map(sum);
        assert_eq!(sums, [1000, 600, 1000], "each buyer takes the lock once: {row}");
        let local = row["local_hand_over_share"].as_f64().expect("there were locks");
        assert!((sum("handed_over") as f64 / 1000.0 - local).abs() < 1e-9, "{row}");
        for process in processes {
            assert_eq!(number(process, "buyers"), 250, "{row}");
            // An even share is 150; whoever hands over in its own process gives others a turn.
            assert!(number(process, "bought") > 50, "{row}");
            assert!(number(process, "handed_over") > 0, "{row}");
        }
    }
    assert_eq!(locks_left(&redis), [""; 0]);
}

/// The report's number is made of the server's counts, which know commands of scripts too; this one is
/// of what went over the wire.
#[test]
fn the_commands_of_the_report_are_those_that_clients_sent() {
    let redis = RedisServer::start();
    redis.cli(&["CONFIG", "RESETSTAT"]);
    let proxy = Proxy::start(redis.port());
    let url = redis.url_through(proxy.port());
    let sale = ["--mode", "lock", "--processes", "4", "--json"];
    let servers = ["--redis", &url, "--mongodb", MongoServer::start().uri()];
    let row = seckill(&[&servers[..], &sale].concat()).sound_row();

    let sent = proxy.commands();
    let calls = redis.cli(&["INFO", "commandstats"]);
    let times = |command: &str| {
        let prefix = format!("cmdstat_{command}:calls=");
        let count = calls.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
        count.map_or(0, |count| count.parse::<u64>().expect("it is a number"))
    };
    // Each connection is opened by two CLIENT SETINFO, which a server before 7.2 does not count, and
    // HELLO, and those for locks that do not listen by a PUBLISH that tells whether the user may; the report
    // itself asks by INFO.
    let silent = times("hello") - times("subscribe");
    let for_locks = sent - 2 * proxy.accepted() - times("hello") - silent - times("info");
    let reported = row["redis_commands_per_purchase"].as_f64().expect("Redis counts");
    let reported = (reported * 1000.0).round() as u64;
    // Each connection is looked over by an EVAL, perhaps before the report begins to count.
    let looks = times("hello");
    assert!((for_locks - looks..=for_locks).contains(&reported), "{for_locks}: {row}\n{calls}");
}

#[test]
fn several_processes_without_protection_oversell() {
    let redis = RedisServer::start();
    let output = on(&redis, &["--mode", "naive", "--processes", "2", "--json"]);
    assert!(number(&output.json()["modes"][0], "oversold") > 0, "{output:?}");
}

#[test]
fn redis_locks_can_guard_an_inventory_in_memory() {
    let redis = RedisServer::start();
    let output = seckill(&["--redis", &redis.url(), "--mode", "lock"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("Locks: Redis "), "{output:?}");
    assert!(output.stdout.contains("Inventory: in the memory of this process"), "{output:?}");
}

#[test]
fn locks_in_memory_can_guard_a_database() {
    let output = seckill(&["--mongodb", MongoServer::start().uri(), "--mode", "fenced"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("Locks: in the memory of this process"), "{output:?}");
    assert!(output.stdout.contains("Inventory: MongoDB "), "{output:?}");
}

#[test]
fn a_frozen_buyer_is_refused_by_the_fence_in_the_database() {
    let redis = RedisServer::start();
    let fenced = ["--mode", "fenced", "--stall", "--processes", "2", "--json"];
    let row = on(&redis, &fenced).sound_row();
    assert_eq!(number(&row, "sold"), 600, "{row}");
    assert_eq!(number(&row, "errors"), 1, "{row}");

    let output = on(&redis, &["--mode", "lock", "--stall", "--processes", "2", "--json"]);
    assert_eq!(output.code, Some(0), "expected damage: {output:?}");
    assert!(number(&output.json()["modes"][0], "oversold") > 0, "{output:?}");
}

/// The pieces do for more buyers than the process that lives on has, so the one that is to die
/// gets to sell.
const CRASH: [&str; 9] =
    ["--json", "--processes", "2", "--items", "1", "--buyers", "60", "--stock", "45"];

#[test]
fn a_killed_holder_loses_nothing_under_the_fence() {
    let redis = RedisServer::start();
    for step in ["claim", "item-update", "order-insert"] {
        let output =
            on(&redis, &[&CRASH[..], &["--mode", "fenced", "--crash-after", step]].concat());
        let row = output.sound_row();
        // Thirty buyers of the process that lives on; the dead one sold a piece before it died,
        // unless it died first.
        let sold = number(&row, "sold");
        assert_eq!(sold + number(&row, "left"), 45, "{step}: {row}");
        assert!(sold >= 30 + i64::from(step != "claim"), "{step}: {row}");
        assert!(number(&row, "errors") >= 1, "a process has died: {step}: {row}");
    }
}

#[test]
fn buyers_without_an_answer_are_in_the_verdict() {
    let redis = RedisServer::start();
    let arguments = ["--mode", "fenced", "--processes", "2", "--buyers", "20"];
    let output = on(&redis, &[&arguments[..], &["--crash-after", "claim"]].concat());
    assert_eq!(output.code, Some(0), "nothing is oversold or lost: {output:?}");
    let verdict = output.stdout.lines().last().unwrap_or_default();
    assert!(verdict.starts_with("INCOMPLETE: ") && !verdict.contains("OK"), "{output:?}");
    let why = "of 20 buyers in fenced got no answer (the buyer's process died)";
    assert!(verdict.contains(why), "{output:?}");
}

#[test]
fn what_nobody_comes_back_to_is_settled_before_the_count() {
    let redis = RedisServer::start();
    // Each process has one buyer, and each buyer an item of its own.
    let row = on(
        &redis,
        &[
            "--json",
            "--mode",
            "fenced",
            "--processes",
            "2",
            "--items",
            "2",
            "--buyers",
            "2",
            "--stock",
            "1",
            "--crash-after",
            "item-update",
        ],
    )
    .sound_row();
    let numbers = ["sold", "left", "errors"].map(|name| number(&row, name));
    assert_eq!(numbers, [2, 0, 1], "the dead buyer's order is completed: {row}");
}

#[test]
fn a_killed_holder_loses_an_order_under_the_lock_and_the_audit_finds_it() {
    let redis = RedisServer::start();
    let crash = ["--mode", "lock", "--crash-after", "item-update"];
    let output = on(&redis, &[&CRASH[..], &crash].concat());
    assert_eq!(output.code, Some(1), "{output:?}");
    let report = output.json();
    assert_eq!(report["ok"], false, "{report}");
    let row = &report["modes"][0];
    assert_eq!(number(row, "sold") + number(row, "left"), 44, "{report}");
}

#[test]
fn a_redis_that_loses_its_data_mid_sale_costs_no_piece_under_the_fence() {
    let redis = RedisServer::start();
    let losing = |lose: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            let sale = scope.spawn(|| on(&redis, &["--mode", "fenced", "--json"]));
            let before = redis.calls("evalsha");
            wait_until("the sale is going on", || redis.calls("evalsha") > before + 10);
            lose();
            sale.join().expect("it does not panic").sound_row()
        })
    };
    let row = losing(&|| {
        redis.cli(&["FLUSHALL"]);
    });
    assert_eq!(number(&row, "sold"), 600, "{row}");

    let row = losing(&|| redis.restart(Data::Lose));
    assert_eq!(number(&row, "sold") + number(&row, "left"), 600, "{row}");
}

#[tokio::test]
async fn the_collections_say_what_the_report_says_and_are_dropped_after_it() {
    let redis = RedisServer::start();
    let client = Client::with_uri_str(MongoServer::start().uri()).await.expect("it is reachable");
    let arguments = ["--mode", "fenced", "--buyers", "100", "--stock", "30"];

    let kept = on(&redis, &[&arguments[..], &["--keep"]].concat());
    let name = database(&kept.stdout);
    let (items, orders) =
        (all::<Item>(&client, &name, "items").await, all::<Order>(&client, &name, "orders").await);
    client.database(&name).drop().await.expect("it can be dropped");
    assert_eq!(items.len(), 2, "{kept:?}");
    assert_eq!(orders.len(), 60, "{kept:?}");
    for item in items {
        assert_eq!((item.stock, &item.pending), (0, &None), "{item:?}");
        let mut tokens: Vec<_> =
            orders.iter().filter(|order| order.item == item.id).map(|order| order.token).collect();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), 30, "each hold sells one piece: {orders:?}");
        assert!(tokens.iter().all(|token| *token <= Some(item.fence)), "{item:?}");
    }

    let dropped = database(&on(&redis, &arguments).stdout);
    let names = client.list_database_names().await.expect("it answers");
    assert!(!names.contains(&dropped), "{dropped} is still there");
}

fn database(header: &str) -> String {
    let (_, rest) = header.split_once(", database ").expect("the header names it");
    rest.lines().next().unwrap_or_default().to_owned()
}

async fn all<T: serde::de::DeserializeOwned + Send + Sync + Unpin>(
    client: &Client,
    database: &str,
    collection: &str,
) -> Vec<T> {
    let collection = client.database(database).collection::<T>(collection);
    let mut cursor = collection.find(doc! {}).await.expect("it answers");
    let mut documents = Vec::new();
    while cursor.advance().await.expect("it answers") {
        documents.push(cursor.deserialize_current().expect("it has the shape"));
    }
    documents
}
