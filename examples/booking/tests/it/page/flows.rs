//! Everything that can be done, by links and forms alone.

use std::process::Stdio;

use booking::domain::{Day, Role};
use test_support::RedisServer;

use super::visitor::{Visitor, action, between, day_of, html, item, location};
use crate::service::{PASSWORD, Service, now, token};

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_opened_left_and_entered_again() {
    let service = Service::embedded(&[]).await;
    let mut ann = Visitor::new(&service);
    ann.get("/page/register?next=/page/days/2999-01-01").await;
    let fields =
        [("email", "Ann@Example.org"), ("password", PASSWORD), ("next", "/page/days/2999-01-01")];
    let answer = ann.post("/page/register", &fields).await;
    assert_eq!(location(&answer), "/page/days/2999-01-01");
    let page = ann.follow(&answer).await;
    assert!(page.contains("Welcome!") && page.contains("ann@example.org"), "{page}");
    let again = html(&ann.get("/").await);
    assert!(!again.contains("Welcome!"), "it is said once: {again}");

    let answer = ann.post("/page/logout", &[]).await;
    let page = ann.follow(&answer).await;
    assert!(page.contains("You are logged out.") && !page.contains("ann@"), "{page}");
    assert!(ann.cookies.is_empty(), "{:?}", ann.cookies);

    ann.get("/page/login").await;
    let answer =
        ann.post("/page/login", &[("email", "ann@example.org"), ("password", PASSWORD)]).await;
    let page = ann.follow(&answer).await;
    assert!(page.contains("ann@example.org") && page.contains("Log out"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_is_booked_and_cancelled_and_others_see_it() {
    let service = Service::embedded(&[]).await;
    let slot = service.slot(24).await;
    let day = day_of(&service, &slot).await;
    let mut ann = Visitor::registered(&service, "ann@example.org").await;
    let mut stranger = Visitor::new(&service);
    assert!(item(&html(&ann.get(&day).await), &slot).contains(">Book<"));

    let answer = ann.post(&action(&slot, "book"), &[]).await;
    assert_eq!(location(&answer), day);
    let page = ann.follow(&answer).await;
    assert!(page.contains("You have booked Yoga"), "{page}");
    assert!(item(&page, &slot).contains("data-state=\"Yours\""), "{page}");
    let seen = item(&html(&stranger.get(&day).await), &slot);
    assert!(seen.contains("data-state=\"Taken\"") && !seen.contains("<button"), "{seen}");

    let own = html(&ann.get("/page/bookings").await);
    let year = day["/page/days/".len()..][..4].to_owned();
    let button = between(&item(&own, &slot), ">Cancel<span class=\"unseen\">", "<");
    assert!(button.is_some_and(|name| name.ends_with(&year)), "it says of which day: {own}");
    assert_eq!(location(&stranger.get("/page/bookings").await), "/page/login?next=/page/bookings");

    let again = ann.post(&action(&slot, "book"), &[]).await;
    assert_eq!(location(&again), day, "to book it again is no error");

    let answer = ann.post(&action(&slot, "cancel"), &[]).await;
    let page = ann.follow(&answer).await;
    assert!(page.contains("You have cancelled Yoga"), "{page}");
    let own = html(&ann.get("/page/bookings").await);
    assert!(own.contains("You have booked nothing."), "{own}");
    let seen = item(&html(&stranger.get(&day).await), &slot);
    assert!(seen.contains("data-state=\"Free\"") && !seen.contains("<button"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_logged_in_is_asked_to() {
    let service = Service::embedded(&[]).await;
    let slot = service.slot(24).await;
    let mut visitor = Visitor::new(&service);
    visitor.get("/page/login").await;
    let answer = visitor.post(&action(&slot, "book"), &[]).await;
    assert_eq!(location(&answer), "/page/login?next=/");
    let page = visitor.follow(&answer).await;
    assert!(page.contains("Log in first"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_being_booked_is_a_423_with_a_way_to_try_again() {
    let service = Service::embedded(&["--dev", "--unlimited", "--think-ms", "25000"]).await;
    let slot = service.slot(24).await;
    let mut ann = Visitor::registered(&service, "eve@example.org").await;
    let other = token(Role::Guest);
    let booking = service.book(&slot, &other);
    let meanwhile = async {
        service.wait_for_metric("booking_lock_wait_seconds_count", 1.0).await;
        let answer = ann.post(&action(&slot, "book"), &[]).await;
        assert_eq!(answer.status, 423, "{answer:?}");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        let page = html(&answer);
        for part in [
            "Somebody is booking this slot right now.",
            "Try again in a moment.",
            ">Try again<",
            &action(&slot, "book"),
            "<title>Error: ",
        ] {
            assert!(page.contains(part), "{part:?} is missing: {page}");
        }
        // What the address bar says by now is asked for with GET.
        let shown = ann.get(&action(&slot, "book")).await;
        assert_eq!(location(&shown), format!("{}#slot-{slot}", day_of(&service, &slot).await));
    };
    tokio::select! {
        answer = booking => panic!("the other was to be thinking still: {answer:?}"),
        () = meanwhile => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_told_with_their_status() {
    let service = Service::embedded(&["--per-day", "1"]).await;
    let (first, second) = (service.slot(24).await, service.slot(24).await);
    let mut ann = Visitor::registered(&service, "ann@example.org").await;
    let mut bob = Visitor::registered(&service, "bob@example.org").await;
    ann.post(&action(&first, "book"), &[]).await;

    let taken = bob.post(&action(&first, "book"), &[]).await;
    assert_eq!(taken.status, 409);
    assert!(html(&taken).contains("This slot is taken."), "{taken:?}");
    let limit = ann.post(&action(&second, "book"), &[]).await;
    assert_eq!(limit.status, 409);
    assert!(html(&limit).contains("as many slots"), "{limit:?}");
    let foreign = bob.post(&action(&first, "cancel"), &[]).await;
    assert_eq!(foreign.status, 403);
    assert!(html(&foreign).contains("Somebody else has this slot."), "{foreign:?}");
    for id in ["nonsense", "00000000-0000-4000-8000-000000000000"] {
        let missing = bob.post(&action(id, "book"), &[]).await;
        assert_eq!(missing.status, 404);
        assert!(html(&missing).contains("There is no such slot."), "{missing:?}");
    }
    for path in ["/page/days/2999-02-30", "/page/days/today", "/page/days/%ff"] {
        let missing = bob.get(path).await;
        assert_eq!(missing.status, 404);
        assert!(html(&missing).contains("There is no such day."), "{missing:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_nothing_is_booked_and_the_page_says_so() {
    let redis = RedisServer::start();
    let service = Service::start(&[], &redis.url(), "", Stdio::null()).await;
    let slot = service.slot(24).await;
    let mut ann = Visitor::registered(&service, "ann@example.org").await;
    drop(redis);
    let answer = ann.post(&action(&slot, "book"), &[]).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.header("retry-after").is_some());
    let page = html(&answer);
    assert!(page.contains("Nothing was changed.") && page.contains(">Try again<"), "{page}");
    assert!(item(&page, &slot).contains("data-state=\"Free\""), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_field_has_its_message_beside_it_and_above() {
    let service = Service::embedded(&[]).await;
    let mut visitor = Visitor::new(&service);
    visitor.get("/page/register").await;
    let fields = [("email", "ann"), ("password", "short secret")];
    let answer = visitor.post("/page/register", &[fields[0], ("password", "short")]).await;
    assert_eq!(answer.status, 400);
    let page = html(&answer);
    for part in [
        "<title>Error: Register",
        "href=\"#email\"",
        "href=\"#password\"",
        "id=\"email-error\"",
        "aria-describedby=\"email-error\"",
        "aria-describedby=\"password-hint password-error\"",
        "value=\"ann\"",
    ] {
        assert!(page.contains(part), "{part:?} is missing: {page}");
    }
    assert_eq!(page.matches("aria-invalid=\"true\"").count(), 2, "{page}");
    assert!(!page.contains("short secret") && !page.contains("value=\"short\""), "{page}");

    visitor.get("/page/login").await;
    let answer = visitor.post("/page/login", &[("email", ""), ("password", "")]).await;
    assert_eq!(answer.status, 400);
    assert_eq!(html(&answer).matches("is missing").count(), 4, "{answer:?}");

    Visitor::registered(&service, "ann@example.org").await;
    visitor.get("/page/register").await;
    let fields = [("email", "ann@example.org"), ("password", PASSWORD)];
    let answer = visitor.post("/page/register", &fields).await;
    assert_eq!(answer.status, 409);
    assert!(html(&answer).contains("There is an account"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_tries_too_often_is_told_for_how_long_to_wait() {
    let service = Service::embedded(&[]).await;
    let mut visitor = Visitor::new(&service);
    visitor.get("/page/login").await;
    let fields = [("email", "ann@example.org"), ("password", "wrong")];
    let mut last = visitor.post("/page/login", &fields).await;
    assert_eq!(last.status, 401);
    assert!(html(&last).contains("The email address or the password is wrong."), "{last:?}");
    for _ in 0..100 {
        last = visitor.post("/page/login", &fields).await;
        if last.status != 401 {
            break;
        }
    }
    assert_eq!(last.status, 429, "{last:?}");
    let wait = last.header("retry-after").expect("it says when").parse::<u64>();
    assert!(wait.is_ok_and(|wait| wait > 0));
    assert!(html(&last).contains("Try again in "), "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn days_lead_to_each_other() {
    let service = Service::embedded(&[]).await;
    let mut visitor = Visitor::new(&service);
    let page = html(&visitor.get("/page/days/2028-02-29").await);
    for part in [
        "Tuesday, 29 February 2028",
        "<time datetime=\"2028-02-29\">",
        "rel=\"prev\" href=\"/page/days/2028-02-28\"",
        "rel=\"next\" href=\"/page/days/2028-03-01\"",
        "There are no slots on this day.",
    ] {
        assert!(page.contains(part), "{part:?} is missing: {page}");
    }
    let is_today = Day::of(now()).to_string() == "2028-02-29";
    assert_eq!(page.contains("aria-current"), is_today, "{page}");
    let page = html(&visitor.get("/").await);
    // The service may have begun just before midnight.
    let days = [Day::of(now()), Day::of(now()).next()];
    let days = days.map(|day| format!("<time datetime=\"{day}\">"));
    assert!(days.iter().any(|day| page.contains(day)), "{page}");
    assert!(page.contains("aria-current=\"date\""), "{page}");
}
