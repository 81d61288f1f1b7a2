//! What browsers and other sites are kept from.

use booking::client::Answer;
use booking::domain::Role;
use hyper::header::{CONTENT_TYPE, ORIGIN, SET_COOKIE};
use hyper::{Method, Request};
use serde_json::json;

use super::visitor::{Visitor, action, between, day_of, encoded, html, item, location};
use crate::service::{PASSWORD, Service, slot_in, token};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

fn set_cookies(answer: &Answer) -> Vec<String> {
    let cookies = answer.headers.get_all(SET_COOKIE).iter();
    cookies.map(|cookie| cookie.to_str().expect("it is text").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_are_for_this_host_alone_and_for_no_script() {
    let service = Service::embedded(&[]).await;
    let mut ann = Visitor::new(&service);
    let mut all = set_cookies(&ann.get("/page/register").await);
    assert!(all[0].starts_with("__Host-visitor="), "{all:?}");
    let fields = [("email", "ann@example.org"), ("password", PASSWORD)];
    let registered = set_cookies(&ann.post("/page/register", &fields).await);
    let session = registered.iter().find(|cookie| cookie.starts_with("__Host-session="));
    let age = session.and_then(|cookie| {
        between(cookie, "Max-Age=", ";").or_else(|| between(&format!("{cookie};"), "Max-Age=", ";"))
    });
    let age: u64 = age.expect("it ends").parse().expect("it is a number");
    assert!((1..=30 * 60).contains(&age), "as long as the token lasts: {age}");
    all.extend(registered);
    all.extend(set_cookies(&ann.get("/").await));
    all.extend(set_cookies(&ann.post("/page/logout", &[]).await));
    assert!(all.len() >= 6, "{all:?}");
    for cookie in all {
        assert!(cookie.starts_with("__Host-"), "{cookie}");
        for part in ["; HttpOnly", "; Secure", "; SameSite=Lax", "; Path=/"] {
            assert!(cookie.contains(part), "{part:?} is missing: {cookie}");
        }
        assert!(!cookie.to_ascii_lowercase().contains("domain"), "{cookie}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_may_run_or_load_what_is_not_ours() {
    let service = Service::embedded(&[]).await;
    let slot = service.slot(24).await;
    let mut ann = Visitor::registered(&service, "ann@example.org").await;
    let day = day_of(&service, &slot).await;
    let pages = [
        ann.get("/").await,
        ann.get(&day).await,
        ann.get("/page/bookings").await,
        ann.get("/page/login").await,
        ann.get("/page/register").await,
        ann.get("/page/days/none").await,
        ann.post(&action(&slot, "cancel"), &[]).await,
        ann.post("/page/register", &[]).await,
        ann.send(ann.form("/page/logout"), String::new()).await,
    ];
    for page in &pages {
        assert_eq!(page.header("content-security-policy"), Some(POLICY), "{page:?}");
        assert_eq!(page.header("cache-control"), Some("no-store"), "{page:?}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{page:?}");
        // Any stricter, and browsers would send `Origin: null` with our own forms.
        assert_eq!(page.header("referrer-policy"), Some("same-origin"), "{page:?}");
        let html = html(page);
        assert_eq!(html.matches("<script").count(), 1, "{html}");
        for inline in ["<script>", "<style", " style=", " onclick", " onload", "javascript:"] {
            assert!(!html.contains(inline), "{inline:?} is in it: {html}");
        }
        for attribute in ["href=\"", "src=\"", "action=\"", "data-events=\""] {
            for rest in html.split(attribute).skip(1) {
                assert!(
                    ["/page/", "/docs\""].iter().any(|ours| rest.starts_with(ours))
                        || rest.starts_with("/\"")
                        || rest.starts_with('#'),
                    "{rest}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_needs_the_token_of_its_session_and_a_page_of_ours() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    let slot = service.slot(24).await;
    let yours = service.slot(25).await;
    let mut ann = Visitor::registered(&service, "eve@example.org").await;
    let bob = Visitor::registered(&service, "mallory@example.org").await;
    ann.post(&action(&yours, "book"), &[]).await;
    let (right, foreign) = (ann.csrf.clone(), bob.csrf.clone());
    assert_ne!(right, foreign);
    let mut visitor = Visitor::new(&service);
    visitor.get("/page/login").await;
    let before = ann.cookies.clone();

    let paths = [
        action(&slot, "book"),
        action(&yours, "cancel"),
        "/page/login".to_owned(),
        "/page/register".to_owned(),
        "/page/logout".to_owned(),
    ];
    let elsewhere = "https://evil.example";
    for path in &paths {
        for (token, origin, site) in [
            ("", None, None),
            ("0", None, None),
            (foreign.as_str(), None, None),
            (visitor.csrf.as_str(), None, None),
            (right.as_str(), Some(elsewhere), None),
            (right.as_str(), Some("null"), None),
            (right.as_str(), None, Some("cross-site")),
            (right.as_str(), None, Some("same-site")),
            (right.as_str(), Some(elsewhere), Some("same-origin")),
        ] {
            let mut request = Request::builder()
                .method(Method::POST)
                .uri(path)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            if let Some(origin) = origin {
                request = request.header(ORIGIN, origin);
            }
            if let Some(site) = site {
                request = request.header("sec-fetch-site", site);
            }
            let fields = [("csrf", token), ("email", "new@example.org"), ("password", PASSWORD)];
            let answer = ann.send(request, encoded(&fields)).await;
            assert_eq!(answer.status, 403, "{path} {token:?} {origin:?} {site:?}: {answer:?}");
            assert_eq!(set_cookies(&answer), [""; 0], "{path}");
        }
        // Nor does a token help without the cookie; nor is JSON a form.
        let mut nobody = Visitor::new(&service);
        let answer = nobody.send(ann.form(path), encoded(&[("csrf", &right)])).await;
        if path.starts_with("/page/slots/") || path == "/page/logout" {
            assert_eq!(location(&answer), "/page/login?next=/", "{path}");
        } else {
            assert_eq!(answer.status, 403, "{path}: {answer:?}");
        }
        assert!(!nobody.cookies.contains_key("__Host-session"), "{path}");
        let json = Request::post(path.as_str()).header(CONTENT_TYPE, "application/json");
        let answer = ann.send(json, json!({ "csrf": right }).to_string()).await;
        assert!(answer.status.is_client_error(), "{path}: {answer:?}");
    }
    assert_eq!(ann.cookies, before);
    let page = html(&ann.get(&day_of(&service, &slot).await).await);
    assert!(item(&page, &slot).contains("data-state=\"Free\""), "{page}");
    let page = html(&ann.get(&day_of(&service, &yours).await).await);
    assert!(item(&page, &yours).contains("data-state=\"Yours\""), "{page}");
    // None of them was refused for another reason.
    let answer = ann.post(&action(&slot, "book"), &[]).await;
    location(&answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_is_no_login_to_the_api_and_a_token_none_to_the_page() {
    let service = Service::embedded(&[]).await;
    let slot = service.slot(24).await;
    let mut ann = Visitor::registered(&service, "ann@example.org").await;
    let answer = ann.get("/me/bookings").await;
    assert_eq!(answer.status, 401, "{answer:?}");
    let mut nobody = Visitor::new(&service);
    let bearer = format!("Bearer {}", token(Role::Guest));
    let request = nobody.form(&action(&slot, "book")).header("authorization", bearer);
    let answer = nobody.send(request, String::new()).await;
    assert_eq!(location(&answer), "/page/login?next=/");
    let page = html(&nobody.get(&day_of(&service, &slot).await).await);
    assert!(item(&page, &slot).contains("data-state=\"Free\""), "{page}");
    nobody.cookies.insert("__Host-session".to_owned(), "nonsense".to_owned());
    let page = nobody.get("/").await;
    assert_eq!(page.status, 200);
    assert!(html(&page).contains("Log in"), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_leads_to_pages_of_ours_alone() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    for next in
        ["https://evil.example/", "//evil.example", "/\\evil.example", "/page/logout", "/\r\nX: y"]
    {
        let mut visitor = Visitor::new(&service);
        let page = html(&visitor.get("/page/login?next=https://evil.example/").await);
        assert!(!page.contains("evil"), "{page}");
        let fields = [("email", "ann@example.org"), ("password", PASSWORD), ("next", next)];
        let answer = visitor.post("/page/login", &fields).await;
        assert_eq!(location(&answer), "/", "{next:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_write_is_shown_as_text() {
    const TITLE: &str = "</li><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>";
    let service = Service::embedded(&[]).await;
    let mut slot = slot_in(24);
    slot["title"] = TITLE.into();
    let answer = service.post("/slots", Some(&token(Role::Organiser)), &slot).await;
    let slot = answer.json()["id"].as_str().expect("it has an id").to_owned();
    let mut ann = Visitor::registered(&service, "o'hara&co@example.org").await;
    let day = day_of(&service, &slot).await;
    let answer = ann.post(&action(&slot, "book"), &[]).await;
    let page = ann.follow(&answer).await;
    assert!(page.contains("o'hara&amp;co@example.org"), "{page}");
    assert!(page.contains("&lt;/li&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;"), "{page}");
    let mut visitor = Visitor::new(&service);
    visitor.get("/page/login").await;
    let fields = [("email", "\"><script>alert(3)</script>"), ("password", "x")];
    let refused = html(&visitor.post("/page/login", &fields).await);
    assert!(refused.contains("value=\"&quot;&gt;&lt;script&gt;alert(3)"), "{refused}");
    let named = html(&ann.get(&format!("{day}/%3Cscript%3E")).await);
    for page in [page, refused, named] {
        assert!(!page.contains("<script>") && !page.contains("<img"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_brings_its_files_which_browsers_keep() {
    let service = Service::embedded(&[]).await;
    let mut visitor = Visitor::new(&service);
    let page = html(&visitor.get("/").await);
    for (name, media_type) in [
        ("style.css", "text/css; charset=utf-8"),
        ("script.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let version =
            between(&page, &format!("/page/assets/{name}?v="), "\"").expect("it is named");
        let path = format!("/page/assets/{name}");
        let file = visitor.get(&format!("{path}?v={version}")).await;
        assert_eq!(file.header("content-type"), Some(media_type));
        assert!(file.header("cache-control").is_some_and(|keep| keep.contains("immutable")));
        let tag = file.header("etag").expect("it has one").to_owned();
        let known = Request::get(&path).header("if-none-match", &tag);
        let known = visitor.send(known, String::new()).await;
        assert_eq!(known.status, 304, "{known:?}");
        assert!(known.body.is_empty());
        let other = visitor.get(&format!("{path}?v=0")).await;
        assert_eq!(other.status, 200);
        assert_eq!(other.header("cache-control"), Some("no-cache"), "another replica's version");
    }
    assert_eq!(visitor.get("/page/assets/..%2Fpage.rs").await.status, 404);
}
