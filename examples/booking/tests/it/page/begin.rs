//! Slots that begin while a page is open, and a service that is silent meanwhile.

use std::time::{Duration, Instant};

use booking::domain::Role;
use rustix::process::Signal;
use serde_json::json;
use time::format_description::well_known::Rfc3339;

use super::browser::{Browser, with_browser};
use super::live::Events;
use super::looks;
use super::visitor::{Visitor, action, between, day_of, html, item};
use super::walk::log_in;
use crate::service::{Service, now, token};

/// Seconds from a slot's making to its beginning. On a busy machine a slot may have begun before
/// the test looks; then the next one has more time.
const LEADS: [u64; 3] = [5, 10, 20];

/// A service, and when it began at the latest.
struct Clocked {
    service: Service,
    began: Instant,
}

impl Clocked {
    async fn start(arguments: &[&str]) -> Self {
        let began = Instant::now();
        Self { service: Service::embedded(arguments).await, began }
    }

    /// A slot that begins soon; none if the moment passed before it was made.
    async fn slot(&self, lead: u64) -> Option<String> {
        let starts = now() + self.began.elapsed() + Duration::from_secs(lead);
        let starts = starts.replace_nanosecond(0).expect("it is a time");
        let ends = starts + time::Duration::HOUR;
        let text = |time: time::OffsetDateTime| time.format(&Rfc3339).expect("it is a time");
        let slot = json!({ "title": "Yoga", "starts": text(starts), "ends": text(ends) });
        let answer = self.service.post("/slots", Some(&token(Role::Organiser)), &slot).await;
        (answer.status == 201).then(|| answer.json()["id"].as_str().expect("an id").to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_that_a_slot_has_begun_though_nobody_changes_it() {
    let clocked = Clocked::start(&[]).await;
    let service = &clocked.service;
    let mut ann = Visitor::registered(service, "ann@example.org").await;
    for lead in LEADS {
        let Some(slot) = clocked.slot(lead).await else { continue };
        let day = day_of(service, &slot).await;
        let page = html(&ann.get(&day).await);
        let path = between(&page, "data-events=\"", "\"").expect("the page names its stream");
        let path = path.replace("&amp;", "&");
        let mut events = Events::open(service, &path, Some(&ann.cookies["__Host-session"])).await;
        if item(&events.next_list().await, &slot).contains("data-state=\"Has begun\"") {
            continue;
        }
        let begun = item(&events.next_list().await, &slot);
        assert!(
            begun.contains("data-state=\"Has begun\"") && !begun.contains("<button"),
            "{begun}"
        );

        // Without scripts, the page says from when it is, and a booking is refused in words.
        let page = html(&ann.get(&day).await);
        assert!(!item(&page, &slot).contains("<button"), "{page}");
        let noscript = between(&page, "<noscript>", "</noscript>").expect("there is a sentence");
        assert!(noscript.starts_with("This is how it was at "), "{noscript}");
        let refused = ann.post(&action(&slot, "book"), &[]).await;
        assert_eq!(refused.status, 409, "{refused:?}");
        assert!(html(&refused).contains("The slot has begun"), "{refused:?}");
        return;
    }
    panic!("no slot was seen before it began");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_stream_tells_the_time_of_the_service() {
    let service = Service::embedded(&[]).await;
    let mut events = Events::open(&service, "/page/days/2999-01-01/events", None).await;
    let list = events.next().await.expect("there is a list at once");
    let time = |text: &str| text.parse::<i128>().expect("it is a number");
    let mut last = time(&between(&list, "data-now=\"", "\"").expect("it has a time"));
    assert!(last >= now().unix_timestamp_nanos() / 1_000_000, "the service's, which tests set");
    for _ in 0..2 {
        let beat = events.next().await.expect("the stream goes on");
        let (_, data) = beat.split_once("event: beat\ndata: ").expect("nothing else happens");
        assert!(time(data) > last, "{beat}");
        last = time(data);
    }
}

/// Opens the page of a slot that begins soon, before it does.
async fn open_in_time(browser: &Browser, clocked: &Clocked, url: &str) -> String {
    for lead in LEADS {
        let Some(slot) = clocked.slot(lead).await else { continue };
        browser.open(&format!("{url}{}", day_of(&clocked.service, &slot).await)).await;
        let live = "document.querySelector('#live').textContent === 'Changes show by themselves.'";
        browser.wait_for(live).await;
        let free = format!(
            "const button = document.querySelector('#slot-{slot} button'); button?.focus();
             window.sameDocument = true; return !!button"
        );
        if browser.run(&free).await == true {
            return slot;
        }
    }
    panic!("no slot was seen before it began");
}

/// Whether the slot is shown as one that has begun.
fn begun(slot: &str, state: &str) -> String {
    format!(
        "(() => {{
           const item = document.querySelector('#slot-{slot}');
           return item.dataset.state === '{state}' && item.className === 'slot begun'
             && item.querySelector('.state:not([hidden])').textContent === '{state}'
             && !item.querySelector('button');
         }})()"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_begins_while_its_page_is_open() {
    let clocked = Clocked::start(&["--dev", "--unlimited"]).await;
    let url = format!("http://{}", clocked.service.replica.address());
    with_browser(async |browser: Browser| {
        log_in(&browser, &url).await;
        let slot = open_in_time(&browser, &clocked, &url).await;
        browser.wait_for(&begun(&slot, "Has begun")).await;
        assert!(browser.has_focus(&format!("#slot-{slot} h2")).await, "the focus stays there");
        let news = browser.text("#news").await.expect("there is a live region");
        assert!(news.starts_with("Yoga, ") && news.ends_with(": Has begun."), "{news:?}");
        assert_eq!(browser.run("return window.sameDocument").await, true, "nothing was reloaded");

        // One's own, on the page that has no stream.
        for lead in LEADS {
            let Some(slot) = clocked.slot(lead).await else { continue };
            browser.open(&format!("{url}{}", day_of(&clocked.service, &slot).await)).await;
            browser.run(&format!("document.querySelector('#slot-{slot} button')?.click()")).await;
            browser.wait_for("!!document.querySelector('.notice, .problem')").await;
            browser.open(&format!("{url}/page/bookings")).await;
            let yours = format!("return !!document.querySelector('#slot-{slot} button')");
            if browser.run(&yours).await == true {
                browser.wait_for(&begun(&slot, "Yours, has begun")).await;
                return browser;
            }
        }
        panic!("no slot was booked before it began");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_that_the_service_is_silent_and_slots_begin_all_the_same() {
    let clocked = Clocked::start(&["--dev", "--unlimited"]).await;
    let service = &clocked.service;
    let url = format!("http://{}", service.replica.address());
    with_browser(async |browser: Browser| {
        log_in(&browser, &url).await;
        let slot = open_in_time(&browser, &clocked, &url).await;
        service.replica.signal(Signal::STOP).expect("it runs");
        browser.wait_for(&begun(&slot, "Has begun")).await;
        let says = |css: &str, text: &str| {
            format!("document.querySelector('{css}').textContent.startsWith({})", json!(text))
        };
        browser.wait_for(&says("#live", "The service is silent")).await;
        browser.wait_for(&says("#news", "The service is silent")).await;
        looks::check(&browser, "silent").await;
        service.replica.signal(Signal::CONT).expect("it is there");
        browser.wait_for(&says("#live", "Changes show by themselves.")).await;
        browser.wait_for(&begun(&slot, "Has begun")).await;
        assert_eq!(browser.run("return window.sameDocument").await, true, "nothing was reloaded");

        // What a page in the background has missed, it shows as soon as it is looked at.
        let other = service.slot(24).await;
        browser.open(&format!("{url}{}", day_of(service, &other).await)).await;
        browser.wait_for(&says("#live", "Changes show by themselves.")).await;
        look(&browser, false).await;
        assert_eq!(service.book(&other, &token(Role::Guest)).await.status, 201);
        look(&browser, true).await;
        browser
            .wait_for(&format!("document.querySelector('#slot-{other}').dataset.state === 'Taken'"))
            .await;
        // A service that stands still by then is not said to tell of changes.
        look(&browser, false).await;
        service.replica.signal(Signal::STOP).expect("it runs");
        look(&browser, true).await;
        browser.wait_for(&says("#live", "Looking for changes")).await;
        service.replica.signal(Signal::CONT).expect("it is there");
        browser.wait_for(&says("#live", "Changes show by themselves.")).await;
        assert_eq!(browser.complaints().await, [""; 0]);
        browser
    })
    .await;
}

/// Puts the page into the background, or back.
async fn look(browser: &Browser, seen: bool) {
    let script = format!(
        "Object.defineProperty(document, 'hidden', {{ value: {}, configurable: true }});
         document.dispatchEvent(new Event('visibilitychange'))",
        !seen
    );
    browser.run(&script).await;
}
