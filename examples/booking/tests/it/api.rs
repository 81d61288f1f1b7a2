//! Users, slots, and the operator's pages: each status of each route.

use booking::domain::Role;
use hyper::Method;
use serde_json::json;

use crate::service::{PASSWORD, Service, credentials, fields, problem, slot_in, token};

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_opened_once_and_logs_in() {
    let service = Service::embedded(&[]).await;
    let ann = credentials("Ann@Example.org", PASSWORD);
    let opened = service.post("/register", None, &ann).await;
    assert_eq!(opened.status, 201, "{opened:?}");
    assert_eq!(opened.json()["email"], "ann@example.org");
    assert_eq!(opened.json()["role"], "guest", "nobody makes an organiser of himself");
    assert!(!format!("{opened:?}").contains(PASSWORD));

    let again = credentials("ann@example.ORG", "another long password");
    let kind = problem(&service.post("/register", None, &again).await, 409)["type"].clone();
    assert_eq!(kind, "/docs#user-exists");

    let login = service.post("/login", None, &ann).await;
    assert_eq!(login.status, 200, "{login:?}");
    let token = login.json()["token"].as_str().expect("there is a token").to_owned();
    assert_eq!(service.get("/me/bookings", Some(&token)).await.status, 200);

    for wrong in [
        credentials("ann@example.org", "another long password"),
        credentials("bob@example.org", PASSWORD),
        credentials("", ""),
    ] {
        let refused = service.post("/login", None, &wrong).await;
        assert_eq!(problem(&refused, 401)["type"], "/docs#wrong-credentials");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_says_which_fields_are_wrong_and_why() {
    let service = Service::embedded(&[]).await;
    for (body, wrong) in [
        (json!({}), vec!["email", "password"]),
        (json!({ "email": "ann", "password": "short" }), vec!["email", "password"]),
        (json!({ "email": "ann@example.org", "password": 12 }), vec!["password"]),
        (json!({ "email": null, "password": PASSWORD }), vec!["email"]),
        (json!({ "email": "a@b.org", "password": PASSWORD, "role": "organiser" }), vec![]),
    ] {
        assert_eq!(fields(&service.post("/register", None, &body).await), wrong, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn organisers_create_slots_and_nobody_else() {
    let service = Service::embedded(&[]).await;
    let organiser = token(Role::Organiser);
    let created = service.post("/slots", Some(&organiser), &slot_in(24)).await;
    assert_eq!(created.status, 201, "{created:?}");
    let location = created.header("location").expect("it says where").to_owned();
    let found = service.get(&location, None).await;
    assert_eq!(found.status, 200);
    assert_eq!(found.json()["id"], created.json()["id"]);
    assert_eq!(found.json()["booked"], false);

    problem(&service.post("/slots", None, &slot_in(24)).await, 401);
    problem(&service.post("/slots", Some(&token(Role::Guest)), &slot_in(24)).await, 403);
    let wrong = json!({ "title": "", "starts": "soon", "ends": 7 });
    assert_eq!(fields(&service.post("/slots", Some(&organiser), &wrong).await), ["ends"]);
    let wrong = json!({ "title": "", "starts": "soon", "ends": "later" });
    let named = fields(&service.post("/slots", Some(&organiser), &wrong).await);
    assert_eq!(named, ["title", "starts", "ends"]);
    assert_eq!(fields(&service.post("/slots", Some(&organiser), &slot_in(-26)).await), ["starts"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_come_in_pages_and_by_day() {
    let service = Service::embedded(&[]).await;
    let mut ids = Vec::new();
    for hours in [5 * 24, 2 * 24, 2 * 24, 3 * 24, 2 * 24] {
        ids.push(service.slot(hours).await);
    }
    let page = service.get("/slots?limit=2", None).await.json();
    assert_eq!(page["slots"].as_array().map(Vec::len), Some(2), "{page}");
    let mut seen = Vec::new();
    let mut path = "/slots?limit=2".to_owned();
    loop {
        let page = service.get(&path, None).await.json();
        let slots = page["slots"].as_array().expect("there are slots").clone();
        seen.extend(slots.iter().map(|slot| slot["id"].as_str().unwrap_or_default().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/slots?limit=2&after={next}");
    }
    assert_eq!(seen.len(), 5, "each is there once: {seen:?}");
    assert_eq!((&seen[3], &seen[4]), (&ids[3], &ids[0]), "in the order in which they start");

    let day = service.get(&format!("/slots/{}", ids[3]), None).await.json()["day"].clone();
    let day = day.as_str().expect("it has a day");
    let of_day = service.get(&format!("/slots?day={day}"), None).await.json();
    assert_eq!(of_day["slots"].as_array().map(Vec::len), Some(1), "{of_day}");
    assert_eq!(of_day["slots"][0]["id"], ids[3].as_str());

    for (query, wrong) in [
        ("day=tomorrow", vec!["day"]),
        ("limit=0", vec!["limit"]),
        ("limit=201", vec!["limit"]),
        ("limit=x&after=y&day=z", vec!["day", "limit", "after"]),
        ("sort=title", vec![]),
    ] {
        assert_eq!(fields(&service.get(&format!("/slots?{query}"), None).await), wrong, "{query}");
    }
    problem(&service.get("/slots", Some("nonsense")).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_problem_too() {
    let service = Service::embedded(&[]).await;
    problem(&service.get("/nothing", None).await, 404);
    for path in ["/slots/%ff", "/slots/%C3%28", "/slots/%00"] {
        problem(&service.get(path, None).await, 404);
    }
    let ann = token(Role::Guest);
    problem(&service.book("%ff", &ann).await, 404);
    problem(&service.cancel("%ff", &ann).await, 404);
    for query in ["day=%ff", "limit=1&limit=2", "a=1&a=2"] {
        problem(&service.get(&format!("/slots?{query}"), None).await, 400);
    }
    problem(&service.get("/slots/42", None).await, 404);
    problem(&service.get(&format!("/slots/{}", uuid::Uuid::new_v4()), None).await, 404);
    let wrong = service.call(Method::PUT, "/slots", None, None).await;
    problem(&wrong, 405);
    assert!(wrong.header("allow").is_some(), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_that_it_lives_is_ready_and_what_it_did() {
    let service = Service::embedded(&[]).await;
    assert_eq!(service.get("/healthz", None).await.status, 200);
    assert_eq!(service.get("/readyz", None).await.status, 200);
    service.get("/nothing-of-the-kind", None).await;
    let requests = |route: &str, status: u16| {
        format!(
            "booking_http_requests_total{{method=\"GET\",route=\"{route}\",status=\"{status}\"}}"
        )
    };
    assert_eq!(service.metric(&requests("/readyz", 200)).await, 1.0);
    assert_eq!(service.metric(&requests("(none)", 404)).await, 1.0);
    let text = service.get("/metrics", None).await;
    assert!(text.header("content-type").is_some_and(|kind| kind.contains("openmetrics-text")));
    let text = String::from_utf8_lossy(&text.body).into_owned();
    assert!(text.ends_with("# EOF\n") && !text.contains("nothing-of-the-kind"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_of_the_api_and_is_shown_without_outside_help() {
    let service = Service::embedded(&[]).await;
    let api = service.get("/openapi.json", None).await.json();
    assert!(api["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")), "{api}");
    for (path, method) in [
        ("/register", "post"),
        ("/login", "post"),
        ("/slots", "post"),
        ("/slots", "get"),
        ("/slots/{id}", "get"),
        ("/slots/{id}/book", "post"),
        ("/slots/{id}/booking", "delete"),
        ("/me/bookings", "get"),
        ("/healthz", "get"),
        ("/readyz", "get"),
        ("/metrics", "get"),
    ] {
        let page = service.get("/docs", None).await;
        assert_eq!(page.status, 200);
        let text = String::from_utf8_lossy(&page.body).into_owned();
        let operation = &api["paths"][path][method];
        assert!(operation["responses"].is_object(), "{method} {path}: {operation}");
        assert!(text.contains(path), "{path}");
        assert!(!text.contains("http://") && !text.contains("https://"), "nothing from outside");
    }
    assert!(api["paths"]["/slots/{id}/book"]["post"]["responses"]["423"].is_object());
    for reference in api.to_string().split("\"$ref\":\"").skip(1) {
        let path = reference.split('"').next().unwrap_or_default().trim_start_matches('#');
        assert!(api.pointer(path).is_some(), "{path} is not there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_problem_is_explained_where_its_type_points_to() {
    let service = Service::embedded(&[]).await;
    let page = service.get("/docs", None).await;
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let answers = [
        service.get("/nothing", None).await,
        service.get("/me/bookings", None).await,
        service.post("/register", None, &json!({})).await,
        service.post("/login", None, &credentials("ann@example.org", PASSWORD)).await,
    ];
    for answer in answers {
        let kind = answer.json()["type"].as_str().unwrap_or_default().to_owned();
        let anchor = kind.strip_prefix("/docs#").expect("it points to the page");
        assert!(text.contains(&format!("id=\"{anchor}\"")), "{anchor}");
    }
}
