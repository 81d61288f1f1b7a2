//! How often logins and registrations may be tried.
//!
//! Counted in the memory of each replica: behind `n` of them an attacker has `n` times as many
//! attempts, which is still few.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::domain::Email;
use crate::error::ApiError;

/// So many at once, and as many more in each such time.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// How many.
    pub times: NonZeroU32,
    /// In which time.
    pub per: Duration,
}

impl Rate {
    /// `times` in `per`; one, if it says none.
    #[must_use]
    pub fn new(times: u32, per: Duration) -> Self {
        Self { times: NonZeroU32::new(times).unwrap_or(NonZeroU32::MIN), per }
    }

    fn limiter<K: std::hash::Hash + Eq + Clone>(self) -> DefaultKeyedRateLimiter<K> {
        let each = self.per / self.times.get();
        let quota = Quota::with_period(each).unwrap_or(Quota::per_second(self.times));
        RateLimiter::keyed(quota.allow_burst(self.times))
    }
}

/// The limits of a service.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Logins from one address.
    pub login_by_address: Rate,
    /// Logins to one account from one address.
    pub login_by_both: Rate,
    /// Logins to one account from anywhere: more, so that a stranger who keeps trying cannot keep
    /// its owner out at once.
    pub login_by_account: Rate,
    /// Registrations from one address.
    pub register: Rate,
}

impl Default for Rates {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            login_by_address: Rate::new(30, minute),
            login_by_both: Rate::new(5, minute),
            login_by_account: Rate::new(100, minute * 60),
            register: Rate::new(10, minute * 10),
        }
    }
}

/// Counts attempts.
#[derive(Debug)]
pub struct Limits {
    login_by_address: DefaultKeyedRateLimiter<IpAddr>,
    login_by_both: DefaultKeyedRateLimiter<(IpAddr, Email)>,
    login_by_account: DefaultKeyedRateLimiter<Email>,
    register: DefaultKeyedRateLimiter<IpAddr>,
}

impl Limits {
    /// Limits at these rates.
    #[must_use]
    pub fn new(rates: &Rates) -> Self {
        Self {
            login_by_address: rates.login_by_address.limiter(),
            login_by_both: rates.login_by_both.limiter(),
            login_by_account: rates.login_by_account.limiter(),
            register: rates.register.limiter(),
        }
    }

    /// Counts a login, right or wrong.
    ///
    /// # Errors
    /// [`ApiError::TooMany`].
    pub fn login(&self, address: IpAddr, email: &Email) -> Result<(), ApiError> {
        let address = network(address);
        // In this order: whoever is over a narrower limit does not use up a wider one, and no
        // address fills the tables of accounts.
        check(&self.login_by_address, &address)?;
        check(&self.login_by_both, &(address, email.clone()))?;
        check(&self.login_by_account, email)
    }

    /// Counts a registration.
    ///
    /// # Errors
    /// [`ApiError::TooMany`].
    pub fn register(&self, address: IpAddr) -> Result<(), ApiError> {
        check(&self.register, &network(address))
    }

    /// Forgets whoever is at no limit. To be called from time to time, or the tables only grow.
    pub fn tidy(&self) {
        self.login_by_address.retain_recent();
        self.login_by_both.retain_recent();
        self.login_by_account.retain_recent();
        self.register.retain_recent();
    }
}

fn check<K: std::hash::Hash + Eq + Clone>(
    limiter: &DefaultKeyedRateLimiter<K>,
    key: &K,
) -> Result<(), ApiError> {
    limiter
        .check_key(key)
        .map_err(|until| ApiError::TooMany(until.wait_time_from(DefaultClock::default().now())))
}

/// The address, or of IPv6 the /64: so much belongs to a single line.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates() -> Rates {
        let hour = Duration::from_secs(3600);
        Rates {
            login_by_address: Rate::new(4, hour),
            login_by_both: Rate::new(2, hour),
            login_by_account: Rate::new(3, hour),
            register: Rate::new(1, hour),
        }
    }

    #[test]
    fn each_limit_is_one_of_its_own() {
        let limits = Limits::new(&rates());
        let [ann, bob] =
            ["ann@example.org", "bob@example.org"].map(|text| Email::parse(text).expect("right"));
        let [here, there, elsewhere] =
            [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3]].map(IpAddr::from);
        let login = |address, email| limits.login(address, email).is_ok();
        assert!(login(here, &ann) && login(here, &ann));
        assert!(!login(here, &ann), "twice to one account from one address");
        assert!(login(there, &ann), "an account is not closed by another address");
        assert!(!login(elsewhere, &ann), "three times to one account");
        assert!(login(here, &bob));
        assert!(!login(here, &bob), "four times from one address");
        assert!(limits.register(here).is_ok() && limits.register(here).is_err());
    }

    #[test]
    fn a_line_is_one_however_many_addresses_it_has() {
        let limits = Limits::new(&rates());
        let [a, b, c] = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"]
            .map(|text| text.parse::<IpAddr>().expect("an address"));
        assert!(limits.register(a).is_ok() && limits.register(b).is_err());
        assert!(limits.register(c).is_ok());
        let Err(ApiError::TooMany(wait)) = limits.register(a) else { panic!("it is over") };
        assert!(wait > Duration::from_secs(60), "{wait:?}");
    }
}
