//! Booking and cancelling, alone and against each other.

use std::sync::Arc;
use std::time::Duration;

use booking::domain::Role;
use hyper::Method;
use rustix::process::Signal;
use test_support::{Data, MongoServer, Proxy, RedisServer};
use tokio::task::JoinSet;

use crate::service::{Service, database, discard, locks_in, problem, token};

/// How many bookings have begun their critical section.
const SECTIONS: &str = "booking_lock_wait_seconds_count";

/// How many bookings ended so.
fn bookings(outcome: &str) -> String {
    format!("booking_bookings_total{{outcome=\"{outcome}\"}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_is_booked_by_one_and_given_back_by_the_same() {
    let service = Service::embedded(&[]).await;
    let [ann, bob] = [token(Role::Guest), token(Role::Guest)];
    let slot = service.slot(24).await;

    let booked = service.book(&slot, &ann).await;
    assert_eq!(booked.status, 201, "{booked:?}");
    assert_eq!(booked.json()["mine"], true);
    assert_eq!(service.book(&slot, &ann).await.status, 200, "to repeat it does no harm");
    assert_eq!(problem(&service.book(&slot, &bob).await, 409)["type"], "/docs#already-booked");
    let seen = service.get(&format!("/slots/{slot}"), Some(&bob)).await.json();
    assert_eq!((&seen["booked"], &seen["mine"]), (&true.into(), &false.into()));

    let mine = service.get("/me/bookings", Some(&ann)).await.json();
    assert_eq!(mine["slots"][0]["id"], slot.as_str(), "{mine}");
    let his = service.get("/me/bookings", Some(&bob)).await.json();
    assert_eq!(his["slots"].as_array().map(Vec::len), Some(0), "{his}");

    problem(&service.cancel(&slot, &bob).await, 403);
    assert_eq!(service.cancel(&slot, &ann).await.status, 200);
    problem(&service.cancel(&slot, &ann).await, 404);
    assert_eq!(service.book(&slot, &bob).await.status, 201, "it is free again");
    problem(&service.cancel(&slot, &ann).await, 403);

    let nothing = uuid::Uuid::new_v4().to_string();
    problem(&service.book(&nothing, &ann).await, 404);
    problem(&service.cancel(&nothing, &ann).await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_has_more_slots_of_a_day_than_one_may_have() {
    let service = Service::embedded(&["--dev", "--per-day", "2", "--think-ms", "50"]).await;
    let ann = token(Role::Guest);
    let mut slots = Vec::new();
    for _ in 0..6 {
        slots.push(service.slot(48).await);
    }
    // All at once: each would find room if they counted at the same moment.
    let service = Arc::new(service);
    let mut tasks = JoinSet::new();
    for slot in slots {
        let (service, ann) = (service.clone(), ann.clone());
        tasks.spawn(async move {
            loop {
                let answer = service.book(&slot, &ann).await;
                if answer.status != 423 {
                    return answer;
                }
            }
        });
    }
    let all = tasks.join_all().await;
    let booked = all.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(booked, 2, "{all:?}");
    let refused = all.iter().find(|answer| answer.status == 409).expect("four of them");
    assert_eq!(problem(refused, 409)["type"], "/docs#limit-reached");
    let other_day = service.slot(24 * 10).await;
    assert_eq!(service.book(&other_day, &ann).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_while_another_is_booking_is_told_to_come_again() {
    let redis = RedisServer::start();
    let database = database();
    let think = ["--dev", "--think-ms", "3000"];
    let one = Service::served(&redis.url(), &database, &think).await;
    let other = Service::served(&redis.url(), &database, &think).await;
    let [ann, bob] = [token(Role::Guest), token(Role::Guest)];
    let slot = one.slot(24).await;

    let (booked, ()) = tokio::join!(one.book(&slot, &ann), async {
        one.wait_for_metric(SECTIONS, 1.0).await;
        let locked = other.book(&slot, &bob).await;
        assert_eq!(problem(&locked, 423)["type"], "/docs#locked");
        assert_eq!(locked.header("retry-after"), Some("1"));
        let again = one.book(&slot, &ann).await;
        assert_eq!(problem(&again, 423)["type"], "/docs#busy", "the same user twice at once");
    });
    assert_eq!(booked.status, 201, "{booked:?}");
    assert_eq!(other.book(&slot, &bob).await.status, 409);
    assert_eq!(other.metric(&bookings("Locked")).await, 1.0);
    assert_eq!(other.metric("booking_locks_contended_total").await, 1.0);
    assert_eq!(locks_in(&redis), [""; 0]);
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_more_than_a_replica_works_on_at_once_is_refused_and_counted_apart() {
    let service = Arc::new(Service::embedded(&["--dev", "--think-ms", "60000"]).await);
    let mut under_way = JoinSet::new();
    for _ in 0..128 {
        let (service, slot) = (service.clone(), service.slot(24).await);
        under_way.spawn(async move { service.book(&slot, &token(Role::Guest)).await });
    }
    service.wait_for_metric(SECTIONS, 128.0).await;
    let refused = service.book(&service.slot(24).await, &token(Role::Guest)).await;
    assert_eq!(problem(&refused, 503)["type"], "/docs#unavailable");
    assert_eq!(service.metric(&bookings("Overloaded")).await, 1.0);
    assert_eq!(service.metric(&bookings("Failed")).await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_whose_lock_is_lost_has_an_open_outcome_and_can_be_repeated() {
    let redis = RedisServer::start();
    let database = database();
    let service = Service::served(&redis.url(), &database, &["--dev", "--think-ms", "4000"]).await;
    let ann = token(Role::Guest);
    let slot = service.slot(24).await;
    let (lost, ()) = tokio::join!(service.book(&slot, &ann), async {
        service.wait_for_metric(SECTIONS, 1.0).await;
        redis.cli(&["DEL", &format!("booking:slot:{slot}")]);
    });
    let open = problem(&lost, 503);
    assert_eq!(open["type"], "/docs#outcome-open");
    assert!(open["detail"].as_str().is_some_and(|text| text.contains("books the slot once")));
    assert!(lost.header("retry-after").is_some());
    assert_eq!(service.metric("booking_locks_lost_total").await, 1.0);
    let slots = service.get("/me/bookings", Some(&ann)).await.json();
    assert_eq!(slots["slots"].as_array().map(Vec::len), Some(0), "it was dropped where it stood");
    let other = Service::served(&redis.url(), &database, &[]).await;
    assert_eq!(other.book(&slot, &ann).await.status, 201);
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_locks_nothing_is_booked_and_nothing_is_ready() {
    let redis = RedisServer::start();
    let database = database();
    let service = Service::served(&redis.url(), &database, &[]).await;
    let ann = token(Role::Guest);
    let slot = service.slot(24).await;
    assert_eq!(service.get("/readyz", None).await.status, 200);
    assert_eq!(redis.cli(&["KEYS", "*"]), "", "to ask leaves nothing");
    redis.kill();
    let refused = service.book(&slot, &ann).await;
    assert_eq!(problem(&refused, 503)["type"], "/docs#unavailable");
    assert_eq!(service.metric("booking_locks_failed_total").await, 1.0);
    assert_eq!(service.metric(&bookings("Failed")).await, 1.0);
    assert!(refused.header("retry-after").is_some());
    problem(&service.get("/readyz", None).await, 503);
    assert_eq!(service.get("/healthz", None).await.status, 200);
    assert_eq!(service.get("/slots", None).await.status, 200, "what needs no lock goes on");

    redis.restart(Data::Lose);
    for _ in 0..1000 {
        if service.get("/readyz", None).await.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(service.book(&slot, &ann).await.status, 201);
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_silent_or_gone_is_a_503_within_bounds() {
    let redis = RedisServer::start();
    let database = database();
    let uri = MongoServer::start().uri();
    let (_, port) = uri.trim_end_matches('/').rsplit_once(':').expect("it has a port");
    let Ok(port) = port.parse() else { return }; // A cluster of the tester's own.
    let proxy = Proxy::start(port);
    let through = format!("mongodb://127.0.0.1:{}/?directConnection=true", proxy.port());
    let arguments = ["--database", &database];
    let service =
        Service::start(&arguments, &redis.url(), &through, std::process::Stdio::null()).await;
    let ann = token(Role::Guest);
    let slot = service.slot(24).await;
    for silent in [true, false] {
        if silent {
            proxy.swallow()
        } else {
            proxy.refuse()
        }
        let (booking, list, ready) = tokio::join!(
            service.book(&slot, &ann),
            service.get("/slots", None),
            service.get("/readyz", None)
        );
        for refused in [booking, list, ready] {
            problem(&refused, 503);
        }
        assert_eq!(service.get("/healthz", None).await.status, 200);
    }
    proxy.pass();
    // The driver notices within its heartbeat.
    for _ in 0..3000 {
        if service.get("/readyz", None).await.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let booked = service.book(&slot, &ann).await;
    assert!([200, 201].contains(&booked.status.as_u16()), "{booked:?}");
    assert_eq!(locks_in(&redis), [""; 0]);
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_ends_answers_what_is_under_way_and_leaves_no_lock() {
    let redis = RedisServer::start();
    let database = database();
    let mut service =
        Service::served(&redis.url(), &database, &["--dev", "--think-ms", "3000"]).await;
    let ann = token(Role::Guest);
    let slot = service.slot(24).await;
    // An idle connection must not keep it.
    let mut idle = service.client().await;
    let first = idle.call(Method::GET, "/healthz", None, None).await;
    assert_eq!(first.expect("it answers").status, 200);
    let (booked, ()) = tokio::join!(service.book(&slot, &ann), async {
        service.wait_for_metric(SECTIONS, 1.0).await;
        assert_ne!(locks_in(&redis), [""; 0], "the booking has its locks");
        service.replica.terminate().expect("it runs");
    });
    assert_eq!(booked.status, 201, "{booked:?}");
    let status = service.replica.wait().await.expect("it ends");
    assert!(status.success(), "{status}");
    assert_eq!(locks_in(&redis), [""; 0]);
    let address = service.replica.address();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens");
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_must_end_sooner_gives_its_locks_back_all_the_same() {
    let redis = RedisServer::start();
    let database = database();
    let arguments = ["--dev", "--think-ms", "60000", "--drain-seconds", "1"];
    let mut service = Service::served(&redis.url(), &database, &arguments).await;
    let slot = service.slot(24).await;
    let mut client = service.client().await;
    let ann = token(Role::Guest);
    let path = format!("/slots/{slot}/book");
    let (_, ()) = tokio::join!(client.call(Method::POST, &path, Some(&ann), None), async {
        service.wait_for_metric(SECTIONS, 1.0).await;
        service.replica.terminate().expect("it runs");
    });
    assert!(service.replica.wait().await.expect("it ends").success());
    assert_eq!(locks_in(&redis), [""; 0]);
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_no_lock_and_no_booking() {
    let redis = RedisServer::start();
    let database = database();
    let service = Service::served(&redis.url(), &database, &["--dev", "--think-ms", "60000"]).await;
    let slot = service.slot(24).await;
    let ann = token(Role::Guest);
    tokio::select! {
        answer = service.book(&slot, &ann) => panic!("it thinks for a minute: {answer:?}"),
        () = service.wait_for_metric(SECTIONS, 1.0) => {}
    }
    // The connection is closed now.
    for _ in 0..3000 {
        if locks_in(&redis).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(locks_in(&redis), [""; 0]);
    let seen = service.get(&format!("/slots/{slot}"), None).await.json();
    assert_eq!(seen["booked"], false, "{seen}");
    discard(&database).await;
}

/// Books for as long as somebody else is booking.
async fn book_in_the_end(service: &Service, slot: &str, token: &str) -> u16 {
    for _ in 0..600 {
        let answer = service.book(slot, token).await;
        if answer.status != 423 {
            return answer.status.as_u16();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it stays locked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_while_it_books_frees_the_slot_with_its_lease() {
    let redis = RedisServer::start();
    let database = database();
    let one = Service::served(&redis.url(), &database, &["--dev", "--think-ms", "60000"]).await;
    let other = Service::served(&redis.url(), &database, &[]).await;
    let [ann, bob] = [token(Role::Guest), token(Role::Guest)];
    let slot = one.slot(24).await;
    let mut client = one.client().await;
    let path = format!("/slots/{slot}/book");
    let (died, ()) = tokio::join!(client.call(Method::POST, &path, Some(&ann), None), async {
        one.wait_for_metric(SECTIONS, 1.0).await;
        one.replica.signal(Signal::KILL).expect("it runs");
    });
    assert!(died.is_err(), "nobody answers");
    assert_eq!(book_in_the_end(&other, &slot, &bob).await, 201);
    assert_eq!(book_in_the_end(&other, &slot, &ann).await, 409);
    discard(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_sleeps_through_its_lease_takes_nothing_from_the_next() {
    let redis = RedisServer::start();
    let database = database();
    let one = Service::served(&redis.url(), &database, &["--dev", "--think-ms", "3000"]).await;
    let other = Service::served(&redis.url(), &database, &[]).await;
    let [ann, bob] = [token(Role::Guest), token(Role::Guest)];
    let slot = one.slot(24).await;
    let (late, ()) = tokio::join!(one.book(&slot, &ann), async {
        one.wait_for_metric(SECTIONS, 1.0).await;
        one.replica.signal(Signal::STOP).expect("it runs");
        assert_eq!(book_in_the_end(&other, &slot, &bob).await, 201);
        one.replica.signal(Signal::CONT).expect("it runs");
    });
    let late = late.status.as_u16();
    assert!([503, 423, 409].contains(&late), "it was too late: {late}");
    let his = other.get("/me/bookings", Some(&bob)).await.json();
    assert_eq!(his["slots"][0]["id"], slot.as_str(), "{his}");
    assert_eq!(one.book(&slot, &ann).await.status, 409);
    discard(&database).await;
}
