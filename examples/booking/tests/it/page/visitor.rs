//! What a browser does with forms and cookies, without one.

use std::collections::BTreeMap;

use axum::body::Bytes;
use booking::client::Answer;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, COOKIE, ORIGIN, SET_COOKIE};
use hyper::{Method, Request};

use crate::service::{PASSWORD, Service};

/// Somebody who looks at the page. Cookies are kept; redirects are not followed.
pub(super) struct Visitor<'a> {
    pub(super) service: &'a Service,
    pub(super) cookies: BTreeMap<String, String>,
    /// The token of the last form that was seen.
    pub(super) csrf: String,
}

impl<'a> Visitor<'a> {
    pub(super) fn new(service: &'a Service) -> Self {
        Self { service, cookies: BTreeMap::new(), csrf: String::new() }
    }

    /// Somebody who has just opened an account.
    pub(super) async fn registered(service: &'a Service, email: &str) -> Self {
        let mut visitor = Self::new(service);
        visitor.get("/page/register").await;
        let answer =
            visitor.post("/page/register", &[("email", email), ("password", PASSWORD)]).await;
        assert_eq!(location(&answer), "/", "{answer:?}");
        visitor.get("/").await;
        visitor
    }

    pub(super) async fn get(&mut self, path: &str) -> Answer {
        let request = Request::get(path);
        self.send(request, String::new()).await
    }

    /// Sends a form, as a page of ours would.
    pub(super) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let csrf = self.csrf.clone();
        let request = self.form(path).header("sec-fetch-site", "same-origin");
        self.send(request, encoded(&[fields, &[("csrf", &csrf)]].concat())).await
    }

    /// A form of ours, as far as its head.
    pub(super) fn form(&self, path: &str) -> hyper::http::request::Builder {
        let origin = format!("http://{}", self.service.replica.address());
        Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ORIGIN, origin)
    }

    pub(super) async fn send(
        &mut self,
        request: hyper::http::request::Builder,
        body: String,
    ) -> Answer {
        let cookies: Vec<_> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = request.header(COOKIE, cookies.join("; ")).body(Full::new(Bytes::from(body)));
        let mut client = self.service.client().await;
        let answer = client.send(request.expect("it is a request")).await.expect("it answers");
        for cookie in answer.headers.get_all(SET_COOKIE) {
            let cookie = cookie::Cookie::parse(cookie.to_str().expect("it is text"));
            let cookie = cookie.expect("it is a cookie");
            let name = cookie.name().to_owned();
            if cookie.max_age() == Some(time::Duration::ZERO) {
                self.cookies.remove(&name);
            } else {
                self.cookies.insert(name, cookie.value().to_owned());
            }
        }
        if let Some(csrf) = between(&html(&answer), "name=\"csrf\" value=\"", "\"") {
            self.csrf = csrf;
        }
        answer
    }

    /// Follows a redirect.
    pub(super) async fn follow(&mut self, answer: &Answer) -> String {
        let page = self.get(&location(answer)).await;
        assert_eq!(page.status, 200, "{page:?}");
        html(&page)
    }
}

/// A form's body.
pub(super) fn encoded(fields: &[(&str, &str)]) -> String {
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let fields = fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    fields.collect::<Vec<_>>().join("&")
}

/// Where a redirect leads.
pub(super) fn location(answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.header("location").expect("a redirect leads somewhere").to_owned()
}

pub(super) fn html(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// What first stands between two texts.
pub(super) fn between(text: &str, before: &str, after: &str) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0.to_owned())
}

/// The item of a slot.
pub(super) fn item(page: &str, slot: &str) -> String {
    let start = page.find(&format!("id=\"slot-{slot}\"")).expect("the slot is in the list");
    let end = page[start..].find("</li>").expect("it ends");
    page[start..start + end].to_owned()
}

/// The path of a slot's form.
pub(super) fn action(slot: &str, action: &str) -> String {
    format!("/page/slots/{slot}/{action}")
}

/// The page of a slot's day.
pub(super) async fn day_of(service: &Service, slot: &str) -> String {
    let slot = service.get(&format!("/slots/{slot}"), None).await.json();
    format!(
        "/page/days/{}",
        slot["starts"].as_str().and_then(|time| time.get(..10)).expect("a day")
    )
}
