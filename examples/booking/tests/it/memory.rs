//! What the service keeps of memory after a load.

use booking::domain::Role;

use crate::service::{PASSWORD, Service, credentials, token};

/// The memory of a process that is resident, in KiB.
#[cfg(target_os = "linux")]
fn resident(service: &Service) -> u64 {
    let id = service.replica.id().expect("it runs");
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number")
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn logins_one_after_another_take_the_memory_of_one() {
    let service = Service::embedded(&["--dev", "--unlimited"]).await;
    let ann = credentials("ann@example.org", PASSWORD);
    let wrong = credentials("ann@example.org", "another long password");
    let login = async |body| service.post("/login", None, body).await.status.as_u16();
    assert_eq!((login(&ann).await, login(&wrong).await), (200, 401));
    let before = resident(&service);
    for _ in 0..40 {
        assert_eq!(login(&wrong).await, 401);
    }
    let after = resident(&service);
    assert!(after < before + 19 * 1024, "{before} KiB before, {after} KiB after 40 more logins");
    assert_eq!(service.get("/me/bookings", Some(&token(Role::Guest))).await.status, 200);
}
