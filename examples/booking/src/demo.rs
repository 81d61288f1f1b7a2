//! Users and slots to try the service with, for `--dev`.

use prometheus_client::metrics::counter::Counter;
use time::{Duration, OffsetDateTime, Time};

use crate::auth::Passwords;
use crate::domain::{Day, Email, NewSlot, Password, Role, Title, User, UserId};
use crate::repository::Repository;
use crate::run::Error;

const PASSWORD: &str = "correct horse battery";

/// What there is to try.
pub const NOTE: &str = "\
organiser@example.org may create slots, ann@example.org and bob@example.org book them;
the password of each is: correct horse battery
";

const TITLES: [&str; 6] = ["Yoga", "Physiotherapy", "Massage", "Piano", "Tandem jump", "Eye test"];

/// Adds three users, and slots of the rest of the day that it is `now` and of the next two, unless
/// they are there.
///
/// # Errors
/// Those of the repository.
pub async fn seed(repository: &dyn Repository, now: OffsetDateTime) -> Result<(), Error> {
    let passwords = Passwords::new(1, Counter::default()).await?;
    let mut new = false;
    for (name, role) in [("organiser", Role::Organiser), ("ann", Role::Guest), ("bob", Role::Guest)]
    {
        let Ok(email) = Email::parse(&format!("{name}@example.org")) else { continue };
        if repository.user_by_email(&email).await?.is_some() {
            continue;
        }
        let password_hash = passwords.hash(Password::attempt(PASSWORD.to_owned())).await?;
        let user = User { id: UserId::random(), email, password_hash, role, networks: Vec::new() };
        new |= repository.insert_user(&user).await?;
    }
    if new {
        repository.insert_slots(&slots(now)).await?;
    }
    Ok(())
}

/// Slots of an hour, all around the clock: there is one ahead today, except after 23:00.
fn slots(now: OffsetDateTime) -> Vec<crate::domain::Slot> {
    let today = Day::of(now);
    let midnight = today.date().with_time(Time::MIDNIGHT).assume_utc();
    let hours = (0..72).map(|hour| midnight + Duration::hours(hour));
    let ahead = hours.filter(|starts| *starts > now);
    ahead
        .zip(TITLES.iter().cycle())
        .filter_map(|(starts, title)| {
            let title = Title::parse(title).ok()?;
            Some(NewSlot { title, starts, ends: starts + Duration::hours(1) }.into_slot())
        })
        .collect()
}
