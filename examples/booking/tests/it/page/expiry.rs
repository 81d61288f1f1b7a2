//! Forms of a page that has outlived its login.

use std::time::Duration;

use booking::auth::{Secret, Tokens};
use booking::clock::Clock;
use booking::domain::{Role, UserId};

use super::browser::{Browser, with_browser};
use super::looks;
use super::visitor::{Visitor, action, between, day_of, encoded, html, item, location};
use super::walk::{log_in, send_login};
use crate::service::{PASSWORD, SECRET, Service, now};

const ENDED: &str = "Your login has ended.";

/// A token that has ended an hour before the service began.
fn ended() -> String {
    let secret = Secret::new(SECRET).expect("it is strong");
    let clock = Clock::set_to(now() - time::Duration::HOUR);
    let tokens = Tokens::new(&secret, Duration::from_secs(1), clock).expect("it is a secret");
    tokens.issue(UserId::random(), Role::Guest).expect("it signs").text
}

/// The page that the forms of a page say they are on.
fn next_in(page: &str) -> String {
    between(page, "name=\"next\" value=\"", "\"").expect("each form says where it is")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_form_of_an_ended_login_leads_to_the_login_and_back() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    let (free, yours) = (service.slot(24).await, service.slot(25).await);
    let day = day_of(&service, &free).await;
    let mut ann = Visitor::registered(&service, "zoe@example.org").await;
    ann.post(&action(&yours, "book"), &[]).await;
    let forms = [
        (day.as_str(), action(&free, "book")),
        (day.as_str(), action(&yours, "cancel")),
        (day.as_str(), "/page/logout".to_owned()),
        ("/page/bookings", action(&yours, "cancel")),
        ("/page/bookings", "/page/logout".to_owned()),
    ];
    for (page, form) in &forms {
        // A browser forgets the cookie in time, unless its clock is slow.
        for session in [None, Some(ended())] {
            let shown = html(&ann.get(page).await);
            let next = next_in(&shown);
            assert_eq!(next, *page, "{form}");
            ann.cookies.remove("__Host-session");
            ann.cookies.extend(session.map(|session| ("__Host-session".to_owned(), session)));
            let answer = ann.post(form, &[("next", &next)]).await;
            assert_eq!(location(&answer), format!("/page/login?next={page}"), "{form}");
            let login = ann.follow(&answer).await;
            assert!(login.contains(ENDED), "{form}: {login}");
            let next = next_in(&login);
            let fields =
                [("email", "zoe@example.org"), ("password", PASSWORD), ("next", next.as_str())];
            let answer = ann.post("/page/login", &fields).await;
            assert_eq!(location(&answer), *page, "{form}");
            let back = ann.follow(&answer).await;
            assert!(back.contains("zoe@example.org") && !back.contains(ENDED), "{form}: {back}");
        }
    }
    let page = html(&ann.get(&day).await);
    assert!(item(&page, &free).contains("data-state=\"Free\""), "nothing was booked: {page}");
    assert!(item(&page, &yours).contains("data-state=\"Yours\""), "nor cancelled: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_login_leads_to_pages_of_ours_alone() {
    let service = Service::embedded(&[]).await;
    let slot = service.slot(24).await;
    for next in ["https://evil.example/", "//evil.example", "/\\evil.example", "/\r\nX: y", ""] {
        let mut visitor = Visitor::new(&service);
        for form in [action(&slot, "book"), action(&slot, "cancel"), "/page/logout".to_owned()] {
            let answer = visitor.post(&form, &[("next", next)]).await;
            assert_eq!(location(&answer), "/page/login?next=/", "{form} {next:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_or_registration_whose_cookie_has_gone_is_shown_again() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    let next = "/page/days/2999-01-01";
    for (form, email) in [("/page/login", "ann@example.org"), ("/page/register", "zoe@example.org")]
    {
        let mut visitor = Visitor::new(&service);
        visitor.get(&format!("{form}?next={next}")).await;
        visitor.cookies.clear();
        let fields = [("email", email), ("password", PASSWORD), ("next", next)];
        let refused = visitor.post(form, &fields).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        let page = html(&refused);
        for part in ["This form is out of date", &format!("value=\"{email}\""), "Error: "] {
            assert!(page.contains(part), "{part:?} is missing: {page}");
        }
        assert!(!page.contains(PASSWORD), "{page}");
        let fields = [("email", email), ("password", PASSWORD), ("next", &next_in(&page))];
        assert_eq!(location(&visitor.post(form, &fields).await), next, "{form}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_an_earlier_login_leads_back_to_its_page() {
    let service = Service::embedded(&[]).await;
    let slot = service.slot(24).await;
    let day = day_of(&service, &slot).await;
    let mut ann = Visitor::registered(&service, "ann@example.org").await;
    let request = ann.form(&action(&slot, "book"));
    let answer = ann.send(request, encoded(&[("csrf", "0"), ("next", &day)])).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    let page = html(&answer);
    assert!(page.contains(&format!("<a href=\"{day}\">Back to the slots</a>")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_said_on_the_next_page_and_on_no_later_one() {
    let service = Service::embedded(&[]).await;
    for (number, next) in
        ["/", "/page/bookings", "/page/days/2999-01-01", "/page/days/2999-01-01?page=9"]
            .into_iter()
            .enumerate()
    {
        let mut ann = Visitor::new(&service);
        ann.get("/page/register").await;
        let email = format!("ann{number}@example.org");
        let fields = [("email", email.as_str()), ("password", PASSWORD), ("next", next)];
        let answer = ann.post("/page/register", &fields).await;
        assert_eq!(location(&answer), next);
        let page = html(&ann.get(next).await);
        assert!(page.contains("Welcome!"), "{next}: {page}");
        for later in ["/", "/page/bookings", "/page/days/2999-01-01"] {
            let page = html(&ann.get(later).await);
            assert!(!page.contains("Welcome!"), "{next}, then {later}: {page}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_whose_login_ends_logs_in_and_is_back_at_the_day() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    let slot = service.slot(48).await;
    let day = day_of(&service, &slot).await;
    let url = format!("http://{}", service.replica.address());
    with_browser(async |browser: Browser| {
        log_in(&browser, &url).await;
        browser.open(&format!("{url}{day}")).await;
        browser.driver.delete_all_cookies().await.expect("they go");
        browser.tab_to(&format!("#slot-{slot} button")).await;
        browser.enter().await;
        browser.wait_for("location.pathname === '/page/login'").await;
        browser.wait_for_focus(".notice").await;
        let notice = browser.text(".notice").await.unwrap_or_default();
        assert!(notice.starts_with(ENDED), "{notice}");
        looks::check(&browser, "login-ended").await;
        send_login(&browser).await;
        let back = format!("location.pathname === '{day}' && !!document.querySelector('#slots')");
        browser.wait_for(&back).await;
        browser.tab_to(&format!("#slot-{slot} button")).await;
        browser.enter().await;
        let booked =
            "document.querySelector('.notice')?.textContent.includes('You have booked') === true";
        browser.wait_for(booked).await;
        assert_eq!(browser.complaints().await, [""; 0]);
        browser
    })
    .await;
}
