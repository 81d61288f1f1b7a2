//! What a user does, in a browser.

use std::process::Stdio;

use booking::domain::Role;
use example_support::mongodb_at;
use mongodb::bson::{Document, doc};
use serde_json::json;
use test_support::{MongoServer, RedisServer};
use thirtyfour::Key;

use super::browser::{Browser, with_browser};
use super::looks;
use super::visitor::day_of;
use crate::service::{NOW, PASSWORD, Service, database, discard, token};

pub(super) async fn log_in(browser: &Browser, url: &str) {
    browser.open(&format!("{url}/page/login")).await;
    send_login(browser).await;
    browser.wait_for("location.pathname === '/' && !!document.querySelector('#slots')").await;
}

/// Fills in the form of the login that is open, and sends it.
pub(super) async fn send_login(browser: &Browser) {
    browser.tab_to("#email").await;
    browser.press("ann@example.org").await;
    browser.tab_to("#password").await;
    browser.press(PASSWORD).await;
    browser.enter().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_books_with_the_keyboard_and_sees_what_others_do() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    let (near, far) = (service.slot(48).await, service.slot(49).await);
    let day = day_of(&service, &near).await;
    let url = format!("http://{}", service.replica.address());
    with_browser(async |browser: Browser| {
        register_and_log_in(&browser, &url).await;
        browser.open(&format!("{url}{day}")).await;
        let live = "document.querySelector('#live').textContent === 'Changes show by themselves.'";
        browser.wait_for(live).await;
        looks::check(&browser, "day").await;
        see_another_booking(&browser, &service, &near, &far).await;
        book_and_cancel(&browser, &far).await;
        lose_the_login(&browser).await;
        assert_eq!(browser.complaints().await, [""; 0]);
        browser
    })
    .await;
}

async fn register_and_log_in(browser: &Browser, url: &str) {
    browser.open(url).await;
    looks::check(browser, "today").await;
    // The first thing that Tab leads to spares one the head of each page.
    browser.press(char::from(Key::Tab).to_string()).await;
    assert!(browser.has_focus(".skip").await);
    browser.enter().await;
    browser.wait_for_focus("main").await;
    browser.tab_to("nav a[href^='/page/register']").await;
    browser.enter().await;
    browser.wait_for("location.pathname === '/page/register'").await;
    looks::check(browser, "register").await;
    assert_eq!(browser.complaints().await, [""; 0]);
    browser.tab_to("#email").await;
    browser.press("zoe@example.org").await;
    browser.tab_to("#password").await;
    browser.press("short").await;
    browser.enter().await;
    browser.wait_for("document.title.startsWith('Error: ')").await;
    browser.wait_for_focus(".problem").await;
    looks::check(browser, "register-error").await;
    browser.tab_to(".problem a[href='#password']").await;
    browser.enter().await;
    browser.wait_for("document.activeElement.id === 'password'").await;
    browser.press(PASSWORD).await;
    browser.enter().await;
    browser.wait_for("document.body.textContent.includes('Welcome!')").await;
    browser.wait_for_focus(".notice").await;
    // The status of the refused form is all there is on the console.
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(|text| text.contains("400")), "{complaints:?}");

    let cookie = browser.driver.get_named_cookie("__Host-session").await.expect("it is kept");
    assert_eq!((cookie.http_only, cookie.secure), (Some(true), Some(true)), "{cookie:?}");
    let seen = browser.run("return document.cookie").await;
    assert_eq!(seen, "", "scripts see no cookie");

    browser.tab_to("form[action='/page/logout'] button").await;
    browser.enter().await;
    browser.wait_for("document.body.textContent.includes('You are logged out.')").await;
    log_in(browser, url).await;
}

/// Another client's booking shows by itself, is said once, and takes nobody's focus away.
async fn see_another_booking(browser: &Browser, service: &Service, near: &str, far: &str) {
    let mark = format!(
        "window.sameDocument = true; document.querySelector('#slot-{far}').same = true;
         document.querySelector('#slot-{far} button').focus()"
    );
    browser.run(&mark).await;
    let other = token(Role::Guest);
    assert_eq!(service.book(near, &other).await.status, 201);
    browser
        .wait_for(&format!("document.querySelector('#slot-{near}').dataset.state === 'Taken'"))
        .await;
    assert_eq!(browser.run("return window.sameDocument").await, true, "nothing was reloaded");
    let news = browser.text("#news").await.expect("there is a live region");
    assert!(news.starts_with("Yoga, ") && news.ends_with(": Taken."), "{news:?}");
    let same = browser.run(&format!("return document.querySelector('#slot-{far}').same")).await;
    assert_eq!(same, true, "what has not changed is left alone");
    assert!(browser.has_focus(&format!("#slot-{far} button")).await, "the focus stays");
    browser.screenshot("taken").await;

    service.cancel(near, &other).await;
    browser.wait_for(&format!("!!document.querySelector('#slot-{near} button')")).await;
    browser.run(&format!("document.querySelector('#slot-{near} button').focus()")).await;
    service.book(near, &other).await;
    browser.wait_for(&format!("!document.querySelector('#slot-{near} button')")).await;
    assert!(browser.has_focus(&format!("#slot-{near} h2")).await, "the focus stays on the slot");

    let region = looks::tree(browser).await;
    let statuses: Vec<_> = region.iter().filter(|node| node.role == "status").collect();
    assert_eq!(statuses.len(), 1, "one region is read out, and not the list: {statuses:?}");
}

async fn book_and_cancel(browser: &Browser, slot: &str) {
    browser.tab_to(&format!("#slot-{slot} button")).await;
    let names: Vec<_> = looks::tree(browser).await;
    assert!(
        names.iter().any(|node| node.role == "button" && node.name.starts_with("Book Yoga, ")),
        "{names:#?}"
    );
    browser.enter().await;
    browser.wait_for("document.querySelector('.notice')?.textContent.includes('You have booked Yoga') === true").await;
    browser.wait_for_focus(".notice").await;
    looks::check(browser, "booked").await;
    browser.tab_to("nav a[href='/page/bookings']").await;
    browser.enter().await;
    browser.wait_for("!!document.querySelector('#bookings button.cancel')").await;
    looks::check(browser, "bookings").await;
    browser.tab_to(&format!("#slot-{slot} a")).await;
    browser.enter().await;
    // The link leads on to the slot, from where Tab goes on.
    browser.wait_for(&format!("location.hash === '#slot-{slot}'")).await;
    browser.tab_to("button.cancel").await;
    assert!(browser.has_focus(&format!("#slot-{slot} button")).await);
    browser.enter().await;
    browser.wait_for("document.querySelector('.notice')?.textContent.includes('You have cancelled Yoga') === true").await;
    let state = browser.text(&format!("#slot-{slot} .state")).await;
    assert_eq!(state.as_deref(), Some("Free"));
}

/// A page that outlives its login says so, when it is looked at again.
async fn lose_the_login(browser: &Browser) {
    browser.driver.delete_all_cookies().await.expect("they go");
    browser.run("document.dispatchEvent(new Event('visibilitychange'))").await;
    browser
        .wait_for(
            "document.querySelector('#live').textContent.startsWith('Your login has changed')",
        )
        .await;
    browser.tab_to("#live a").await;
    browser.enter().await;
    browser.wait_for("!!document.querySelector('.call a')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_being_booked_is_a_friendly_message() {
    let service = Service::embedded(&["--dev", "--unlimited", "--think-ms", "25000"]).await;
    let slot = service.slot(48).await;
    let day = day_of(&service, &slot).await;
    let url = format!("http://{}", service.replica.address());
    with_browser(async |browser: Browser| {
        log_in(&browser, &url).await;
        browser.open(&format!("{url}{day}")).await;
        let other = token(Role::Guest);
        let booking = service.book(&slot, &other);
        let meanwhile = async {
            service.wait_for_metric("booking_lock_wait_seconds_count", 1.0).await;
            for button in [format!("#slot-{slot} button"), ".problem button".to_owned()] {
                browser.click(&button).await;
                let refused = "document.querySelector('.problem')?.textContent
                    .includes('Somebody is booking this slot right now.') === true
                    && performance.getEntriesByType('navigation')[0].responseStatus === 423";
                browser.wait_for(refused).await;
                browser.wait_for_focus(".problem").await;
            }
            browser.screenshot("423").await;
        };
        tokio::select! {
            answer = booking => panic!("the other was to be thinking still: {answer:?}"),
            () = meanwhile => {}
        }
        looks::check(&browser, "423").await;
        let complaints = browser.complaints().await;
        assert!(complaints.iter().all(|text| text.contains("423")), "{complaints:?}");
        browser
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_slot_that_goes_leaves_the_page() {
    let redis = RedisServer::start();
    let database = database();
    let service = Service::served(&redis.url(), &database, &[]).await;
    let slot = service.slot(24).await;
    let day = day_of(&service, &slot).await;
    let url = format!("http://{}{day}", service.replica.address());
    with_browser(async |browser: Browser| {
        browser.open(&url).await;
        let live = "document.querySelector('#live').textContent === 'Changes show by themselves.'";
        browser.wait_for(live).await;
        let shown = format!(
            "!!document.querySelector('#slot-{slot}') && document.querySelector('#none').hidden"
        );
        browser.wait_for(&shown).await;
        withdraw_slots(&database).await;
        let gone = format!(
            "!document.querySelector('#slot-{slot}') && !document.querySelector('#none').hidden"
        );
        browser.wait_for(&gone).await;
        looks::check(&browser, "no-slots").await;
        // A day that has none to begin with is live too.
        browser.open(&url).await;
        browser.wait_for(live).await;
        let slot = service.slot(24).await;
        browser.wait_for(&format!("!!document.querySelector('#slot-{slot}')")).await;
        assert_eq!(browser.complaints().await, [""; 0]);
        browser
    })
    .await;
    discard(&database).await;
}

/// As an operator does it, by the database: the service itself withdraws no slot.
async fn withdraw_slots(database: &str) {
    let url = MongoServer::start().uri().to_owned().into();
    let mongodb = mongodb_at(&url).await.expect("it is reachable").database(database);
    let slots = mongodb.collection::<Document>("slots");
    slots.delete_many(doc! {}).await.expect("it writes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_finds_the_service_again() {
    let mut service = Service::embedded(&["--dev", "--unlimited"]).await;
    let url = format!("http://{}", service.replica.address());
    with_browser(async |browser: Browser| {
        browser.open(&url).await;
        let says = |text: &str| {
            format!("document.querySelector('#live').textContent.startsWith({})", json!(text))
        };
        browser.wait_for(&says("Changes show")).await;
        service.replica.terminate().expect("it runs");
        service.replica.wait().await.expect("it ends");
        browser.wait_for(&says("The connection is lost")).await;
        looks::check(&browser, "lost").await;
        let _again = tokio::process::Command::new(env!("CARGO_BIN_EXE_booking"))
            .args(["--dev", "--end-with-stdin", "--now", &NOW, "--listen"])
            .arg(service.replica.address().to_string())
            .env_remove("REDIS_URL")
            .env_remove("MONGODB_URI")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts again");
        browser.wait_for(&says("Changes show")).await;
        // That there was nobody is all there is on the console.
        let complaints = browser.complaints().await;
        assert!(complaints.iter().all(|text| text.contains("net::ERR_")), "{complaints:?}");
        browser
    })
    .await;
}
