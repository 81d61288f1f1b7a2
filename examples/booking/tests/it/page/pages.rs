//! A day with more slots than a page has.

use std::time::Duration;

use booking::domain::Role;
use hyper::Method;

use super::browser::{Browser, with_browser};
use super::live::Events;
use super::looks;
use super::visitor::{Visitor, action, between, day_of, html, item, location};
use super::walk::log_in;
use crate::service::{Service, slot_in, token};

/// Slots of a page.
const LENGTH: usize = 200;

/// Creates so many slots that start together.
async fn slots(service: &Service, count: usize, hours: i64) -> Vec<String> {
    let (organiser, slot) = (token(Role::Organiser), slot_in(hours));
    let mut client = service.client().await;
    let mut ids = Vec::new();
    for _ in 0..count {
        let answer = client.call(Method::POST, "/slots", Some(&organiser), Some(&slot)).await;
        let answer = answer.expect("it answers");
        ids.push(answer.json()["id"].as_str().expect("it has an id").to_owned());
    }
    ids
}

fn ids_in(text: &str) -> Vec<String> {
    text.split("id=\"slot-").skip(1).map(|rest| rest[..36].to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_slot_of_a_day_is_on_one_page_which_links_and_bookings_lead_to() {
    let service = Service::embedded(&[]).await;
    let mut all = slots(&service, 2 * LENGTH + 1, 24).await;
    let day = day_of(&service, &all[0]).await;
    let mut ann = Visitor::registered(&service, "ann@example.org").await;

    let (mut path, mut seen, mut pages) = (day.clone(), Vec::new(), Vec::new());
    loop {
        let page = html(&ann.get(&path).await);
        seen.extend(ids_in(&page));
        pages.push(path.clone());
        // Above the list and below it, but on the first page.
        let earlier = page.matches("← Earlier").count();
        assert_eq!(earlier, if pages.len() == 1 { 0 } else { 2 }, "{page}");
        let links = page.split("<a href=\"").skip(1);
        let mut later = links.filter(|link| link.contains("\">Later<"));
        let Some(link) = later.next() else { break };
        path = link.split_once('"').expect("it ends").0.to_owned();
    }
    assert_eq!(pages, [day.clone(), format!("{day}?page=2"), format!("{day}?page=3")]);
    assert_eq!(seen.len(), all.len(), "each once");
    let last = seen[2 * LENGTH].clone();
    seen.sort();
    all.sort();
    assert_eq!(seen, all);

    let answer = ann.post(&action(&last, "book"), &[]).await;
    assert_eq!(location(&answer), pages[2], "the page that has the slot");
    let page = ann.follow(&answer).await;
    assert!(page.contains("You have booked Yoga"), "{page}");
    assert!(item(&page, &last).contains("data-state=\"Yours\""), "{page}");
    let own = html(&ann.get("/page/bookings").await);
    let link = between(&item(&own, &last), "<a href=\"", "\"").expect("it leads to its day");
    assert_eq!(location(&ann.get(&link).await), format!("{}#slot-{last}", pages[2]));
    let answer = ann.post(&action(&last, "cancel"), &[]).await;
    assert_eq!(location(&answer), pages[2]);

    for wrong in ["4", "0", "-1", "01", "x", "", "5001", "99999999999999999999", "2&page=x", "%ff"]
    {
        let missing = ann.get(&format!("{day}?page={wrong}")).await;
        assert_eq!(missing.status, 404, "{wrong:?}");
        assert!(html(&missing).contains(&format!("<a href=\"{day}\">Back")), "{missing:?}");
        let stream = format!("{day}/events?page={wrong}");
        let mut stranger = Visitor::new(&service);
        // A stream would go on for ever.
        let answer = tokio::time::timeout(Duration::from_secs(60), stranger.get(&stream)).await;
        assert_eq!(answer.map(|answer| answer.status.as_u16()), Ok(404), "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_has_a_stream_of_its_own() {
    let service = Service::embedded(&[]).await;
    let first = slots(&service, LENGTH, 24).await;
    let day = day_of(&service, &first[0]).await;
    let mut visitor = Visitor::new(&service);
    let stream = async |visitor: &mut Visitor<'_>, path: &str| {
        let page = html(&visitor.get(path).await);
        let path = between(&page, "data-events=\"", "\"").expect("the page names its stream");
        Events::open(&service, &path, None).await
    };
    let mut one = stream(&mut visitor, &day).await;
    let list = one.next().await.expect("there is a list at once");
    assert_eq!(ids_in(&list).len(), LENGTH);
    assert!(!list.contains(">Later<"), "{list}");

    let last = slots(&service, 1, 25).await.remove(0);
    let list = one.next_list().await;
    assert!(list.contains(&format!("href=\"{day}?page=2\">Later<")), "{list}");
    let mut two = stream(&mut visitor, &format!("{day}?page=2")).await;
    let list = two.next().await.expect("there is a list at once");
    assert_eq!(ids_in(&list), std::slice::from_ref(&last));
    assert!(list.contains(&format!("href=\"{day}\">← Earlier<")), "{list}");
    assert_eq!(service.book(&last, &token(Role::Guest)).await.status, 201);
    let list = two.next_list().await;
    assert!(item(&list, &last).contains("data-state=\"Taken\""), "{list}");
    // A slot before it moves one on to this page.
    slots(&service, 1, 24).await;
    assert_eq!(ids_in(&two.next_list().await).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_turns_pages_with_the_keyboard_and_each_is_live() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    let first = slots(&service, LENGTH, 96).await;
    let day = day_of(&service, &first[0]).await;
    let url = format!("http://{}", service.replica.address());
    with_browser(async |browser: Browser| {
        log_in(&browser, &url).await;
        browser.open(&format!("{url}{day}")).await;
        let live = "document.querySelector('#live').textContent === 'Changes show by themselves.'";
        browser.wait_for(live).await;
        let shown =
            |selector: &str| format!("!!document.querySelector('{selector}')?.checkVisibility()");
        assert_eq!(browser.run(&format!("return {}", shown(".pages"))).await, false);
        let last = slots(&service, 1, 97).await.remove(0);
        browser.wait_for(&shown(".pages a")).await;
        browser.tab_to(".pages a").await;
        browser.enter().await;
        browser.wait_for("location.search === '?page=2'").await;
        browser.wait_for(live).await;
        looks::check(&browser, "page-2").await;
        assert_eq!(service.book(&last, &token(Role::Guest)).await.status, 201);
        let taken = format!("document.querySelector('#slot-{last}').dataset.state === 'Taken'");
        browser.wait_for(&taken).await;
        // The focus stays where it is when the links change.
        browser.tab_to(".pages a").await;
        slots(&service, LENGTH, 98).await;
        browser.wait_for(&shown(".pages li:last-child a")).await;
        assert!(browser.has_focus(".pages li:first-child a").await);
        browser.enter().await;
        browser.wait_for("location.search === ''").await;
        browser.wait_for(live).await;
        assert_eq!(browser.complaints().await, [""; 0]);
        browser
    })
    .await;
}
