//! Pages on the smallest phones, and slots of a whole day.

use booking::domain::Role;
use serde_json::json;

use super::browser::{Browser, with_browser};
use super::visitor::{Visitor, day_of, html, item};
use crate::service::{PASSWORD, Service, slot_in, token};

/// A slot of 24 hours with the longest title.
async fn long_slot(service: &Service) -> String {
    let mut slot = slot_in(24);
    slot["title"] = "W".repeat(100).into();
    slot["ends"] = slot_in(48)["starts"].clone();
    let answer = service.post("/slots", Some(&token(Role::Organiser)), &slot).await;
    answer.json()["id"].as_str().expect("it has an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_ends_on_the_next_day_says_so() {
    let service = Service::embedded(&[]).await;
    let (hour, long) = (service.slot(24).await, long_slot(&service).await);
    let mut ann = Visitor::registered(&service, "ann@example.org").await;
    let day = day_of(&service, &hour).await;
    for slot in [&hour, &long] {
        ann.post(&super::visitor::action(slot, "book"), &[]).await;
    }
    for path in [day.as_str(), "/page/bookings"] {
        let page = html(&ann.get(path).await);
        assert!(!item(&page, &hour).contains("next day"), "{page}");
        assert!(item(&page, &long).contains(">00:00</time> the next day</p>"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_fits_into_320_pixels() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    let long = long_slot(&service).await;
    let day = day_of(&service, &long).await;
    let url = format!("http://{}", service.replica.address());
    with_browser(async |browser: Browser| {
        browser.resize(320, 568).await;
        let open = async |path: &str| {
            browser.open(&format!("{url}{path}")).await;
            fits(&browser, path).await;
        };
        for path in ["/", "/docs", &day, "/page/login", "/page/register", "/page/bookings"] {
            open(path).await;
        }
        open("/page/days/none").await;
        open(&format!("{day}?page=2")).await;
        // The longest address, and the widest.
        let label = "W".repeat(60);
        let email = format!("{label}@{label}.{label}.{label}.example");
        browser.open(&format!("{url}/page/register?next={day}")).await;
        for (field, text) in [("email", email.as_str()), ("password", "short")] {
            browser
                .run(&format!("document.getElementById('{field}').value = {}", json!(text)))
                .await;
        }
        submit(&browser, "button.book", "register-error").await;
        let fill = format!("document.getElementById('password').value = {}", json!(PASSWORD));
        browser.run(&fill).await;
        submit(&browser, "button.book", "welcome").await;
        let name = browser.text(".who").await.unwrap_or_default();
        assert!(name.len() > 240, "{name}");
        submit(&browser, &format!("#slot-{long} button"), "booked").await;
        open("/page/bookings").await;
        open("/page/days/none").await;
        browser.open(&format!("{url}{day}")).await;
        browser.run("document.querySelector('[name=csrf]').value = ''").await;
        submit(&browser, ".top form button", "outdated").await;
        browser
    })
    .await;
}

/// Presses a button, and looks at what comes.
async fn submit(browser: &Browser, button: &str, name: &str) {
    browser.run("window.sameDocument = true").await;
    browser.click(button).await;
    browser.wait_for("!window.sameDocument && document.readyState === 'complete'").await;
    fits(browser, name).await;
}

async fn fits(browser: &Browser, name: &str) {
    let widths = "const { scrollWidth, clientWidth } = document.documentElement;
        return scrollWidth <= clientWidth && clientWidth <= 320
          ? '' : `${scrollWidth} > ${clientWidth}`";
    browser.screenshot(&format!("narrow-{}", name.replace(['/', '?'], "-"))).await;
    assert_eq!(browser.run(widths).await, "", "{name}");
}
