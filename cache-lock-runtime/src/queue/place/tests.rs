use std::time::Duration;

use super::*;
use crate::{key::LockKey, options::OnLost, owner::Owners};

const EXPIRE: Duration = Duration::from_secs(10);
const START: Moment = Moment::from_nanos(1_000_000_000);

fn waiter(patience: Duration) -> Arc<Waiter> {
    let settings = Settings {
        timeout: patience,
        expire: EXPIRE,
        renew: true,
        max_hold: None,
        on_lost: OnLost::Cancel,
        background_release: false,
    };
    Arc::new(Waiter::new(settings, None, START.after(patience), START.after(EXPIRE)))
}

fn busy(listed: bool) -> Result<Reply, Failed> {
    Ok(Reply::Busy { remaining: Some(EXPIRE), ours: true, listed })
}

/// The last question of a waiter whose time is over does not ask to wait. Its token is on the list
/// all the same, from the question before.
#[test]
fn a_token_that_was_listed_leaves_the_list_when_nobody_waits_any_more() {
    let (key, owners) = (LockKey::from("key"), Arc::new(Owners::new()));
    let at = |now| Scene {
        key: &key,
        manager: 1,
        owners: &owners,
        attempt: EXPIRE / 10,
        told: true,
        now,
    };
    let mut place = Place::new(1);
    let mut effects = Effects::default();
    place.join(&at(START), &waiter(Duration::from_millis(500)), &mut effects);
    let token = effects.ask.take().expect("a question").token;
    place.answered(&at(START), &token, busy(true), &mut effects);

    let due = place.due(&at(START)).expect("a timer");
    place.look(&at(due), &mut effects);
    let again = effects.ask.take().expect("another question");
    assert!(again.listed && !again.wait, "{again:?}");
    place.answered(&at(due), &token, busy(false), &mut effects);
    assert_eq!(effects.release.map(|ended| ended.token), Some(token));
    assert!(place.is_idle());
}
