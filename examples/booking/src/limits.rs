//! How often logins and registrations may be tried.
//!
//! **What logins are counted.** Those that fail. A login is counted before its password is compared,
//! and given back if it is right, so frequent logins keep no user out.
//!
//! **By what.** Guessing comes in three forms, and each has a budget of failures:
//! - many passwords for one account from one network: [`Rates::failures_by_both`];
//! - one password for many accounts from one network (credential stuffing):
//!   [`Rates::failures_by_address`];
//! - many passwords for one account from many networks: [`Rates::failures_by_account`].
//!
//! **Whom the third one must not keep out.** A stranger with enough addresses could use it up all the
//! time, and so lock the owner out. To let a right password pass all the same would undo it, as the
//! stranger's guesses would pass, too. What tells the owner from the stranger is where the owner has
//! registered or logged in before: such a network is *known* to the account ([`User::networks`]), and its logins
//! are counted by the first budget alone. A known network can be used for guessing at the rate of
//! that budget, and only by a client in the same network. An owner who comes from a new network
//! during an attack has to wait, or comes from a known one.
//!
//! **The work.** Each comparison takes tens of milliseconds of a core, so [`Rates::logins`] bounds
//! right and wrong ones of a network together.
//!
//! Counted in the memory of each replica: behind `n` of them an attacker has `n` times as many
//! attempts, which is still few. Which networks are known is in the database.
//!
//! [`User::networks`]: crate::domain::User::networks

mod budget;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use self::budget::Budget;
use crate::client_address::network;
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
}

/// The limits of a service.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Failed logins from one network, to accounts that do not know it.
    pub failures_by_address: Rate,
    /// Failed logins to one account from one network.
    pub failures_by_both: Rate,
    /// Failed logins to one account from all networks that it does not know.
    pub failures_by_account: Rate,
    /// Logins from one network, right or wrong.
    pub logins: Rate,
    /// Registrations from one network.
    pub register: Rate,
}

impl Rates {
    /// All of them at the same rate.
    #[must_use]
    pub fn all(rate: Rate) -> Self {
        Self {
            failures_by_address: rate,
            failures_by_both: rate,
            failures_by_account: rate,
            logins: rate,
            register: rate,
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            failures_by_address: Rate::new(30, minute),
            failures_by_both: Rate::new(5, minute),
            failures_by_account: Rate::new(100, minute * 60),
            logins: Rate::new(300, minute),
            register: Rate::new(10, minute * 10),
        }
    }
}

/// Counts attempts.
#[derive(Debug)]
pub struct Limits {
    failures_by_address: Budget<IpAddr>,
    failures_by_both: Budget<(IpAddr, Email)>,
    failures_by_account: Budget<Email>,
    logins: Budget<IpAddr>,
    register: Budget<IpAddr>,
}

/// A login that was counted as one that fails. If it does not, [`forgive`](Self::forgive) it.
#[derive(Debug)]
#[must_use]
pub struct Attempt<'a> {
    limits: &'a Limits,
    both: (IpAddr, Email),
    from_stranger: bool,
}

impl Limits {
    /// Limits at these rates.
    #[must_use]
    pub fn new(rates: &Rates) -> Self {
        Self {
            failures_by_address: Budget::new(rates.failures_by_address),
            failures_by_both: Budget::new(rates.failures_by_both),
            failures_by_account: Budget::new(rates.failures_by_account),
            logins: Budget::new(rates.logins),
            register: Budget::new(rates.register),
        }
    }

    /// Counts a login from a network that the account does not know, or may not know.
    ///
    /// # Errors
    /// [`ApiError::TooMany`]; then it is not counted.
    pub fn login(&self, address: IpAddr, email: &Email) -> Result<Attempt<'_>, ApiError> {
        let (network, now) = (network(address), Instant::now());
        // This one first: no network fills the tables of accounts.
        self.failures_by_address.take(&network, now).map_err(ApiError::TooMany)?;
        let give_back = |wait| {
            self.failures_by_address.give_back(&network, now);
            ApiError::TooMany(wait)
        };
        let mut attempt = self.counted(network, email, now).map_err(give_back)?;
        attempt.from_stranger = true;
        if let Err(wait) = self.failures_by_account.take(email, now) {
            attempt.from_stranger = false;
            attempt.forgive();
            return Err(give_back(wait));
        }
        Ok(attempt)
    }

    /// Counts a login from a network that the account knows.
    ///
    /// # Errors
    /// [`ApiError::TooMany`]; then it is not counted.
    pub fn login_from_known(
        &self,
        address: IpAddr,
        email: &Email,
    ) -> Result<Attempt<'_>, ApiError> {
        self.counted(network(address), email, Instant::now()).map_err(ApiError::TooMany)
    }

    /// By the budgets that count all logins.
    fn counted(
        &self,
        network: IpAddr,
        email: &Email,
        now: Instant,
    ) -> Result<Attempt<'_>, Duration> {
        let both = (network, email.clone());
        self.failures_by_both.take(&both, now)?;
        if let Err(wait) = self.logins.take(&network, now) {
            self.failures_by_both.give_back(&both, now);
            return Err(wait);
        }
        Ok(Attempt { limits: self, both, from_stranger: false })
    }

    /// Counts a registration.
    ///
    /// # Errors
    /// [`ApiError::TooMany`].
    pub fn register(&self, address: IpAddr) -> Result<(), ApiError> {
        self.register.take(&network(address), Instant::now()).map_err(ApiError::TooMany)
    }

    /// Forgets whoever is at no limit. To be called from time to time, or the tables only grow.
    pub fn tidy(&self) {
        let now = Instant::now();
        self.failures_by_address.tidy(now);
        self.failures_by_both.tidy(now);
        self.failures_by_account.tidy(now);
        self.logins.tidy(now);
        self.register.tidy(now);
    }
}

impl Attempt<'_> {
    /// It did not fail.
    pub fn forgive(self) {
        let now = Instant::now();
        self.limits.failures_by_both.give_back(&self.both, now);
        if self.from_stranger {
            self.limits.failures_by_address.give_back(&self.both.0, now);
            self.limits.failures_by_account.give_back(&self.both.1, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        let hour = Duration::from_secs(3600);
        Limits::new(&Rates {
            failures_by_address: Rate::new(4, hour),
            failures_by_both: Rate::new(2, hour),
            failures_by_account: Rate::new(3, hour),
            logins: Rate::new(8, hour),
            register: Rate::new(1, hour),
        })
    }

    fn emails() -> [Email; 2] {
        ["ann@example.org", "bob@example.org"].map(|text| Email::parse(text).expect("right"))
    }

    fn network_number(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn each_limit_is_one_of_its_own() {
        let limits = limits();
        let [ann, bob] = emails();
        let [here, there, elsewhere] = [1, 2, 3].map(network_number);
        let fails = |address, email| limits.login(address, email).is_ok();
        assert!(fails(here, &ann) && fails(here, &ann));
        assert!(!fails(here, &ann), "twice to one account from one network");
        assert!(fails(there, &ann), "an account is not closed by another network");
        assert!(!fails(elsewhere, &ann), "three times to one account");
        assert!(fails(here, &bob) && fails(here, &bob));
        let carl = Email::parse("carl@example.org").expect("right");
        assert!(!fails(here, &carl), "four times from one network");
        assert!(fails(elsewhere, &bob), "the refused ones are not counted");
        assert!(limits.register(here).is_ok() && limits.register(here).is_err());
    }

    #[test]
    fn right_logins_use_up_nothing_but_the_bound_of_the_work() {
        let limits = limits();
        let [ann, _] = emails();
        let here = network_number(1);
        for _ in 0..8 {
            limits.login(here, &ann).expect("right ones do not count").forgive();
        }
        assert!(limits.login(here, &ann).is_err(), "eight comparisons for one network");
        assert!(limits.login_from_known(here, &ann).is_err(), "known or not");
        let there = network_number(2);
        assert!(limits.login(there, &ann).is_ok() && limits.login(there, &ann).is_ok());
        assert!(limits.login(there, &ann).is_err(), "a refused one has given nothing back");
    }

    #[test]
    fn a_known_network_is_kept_out_by_its_own_failures_alone() {
        let limits = limits();
        let [ann, bob] = emails();
        let home = network_number(9);
        for number in 1..=3 {
            drop(limits.login(network_number(number), &ann).expect("there is room"));
        }
        assert!(limits.login(home, &ann).is_err(), "strangers have used up the account's budget");
        assert!(limits.login_from_known(home, &ann).is_ok());
        for _ in 0..2 {
            drop(limits.login(home, &bob).expect("it is another account"));
        }
        assert!(limits.login_from_known(home, &ann).is_ok(), "its own second failure");
        assert!(limits.login_from_known(home, &ann).is_err());
    }

    #[test]
    fn a_line_is_one_however_many_addresses_it_has() {
        let limits = limits();
        let [a, b, c] = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"]
            .map(|text| text.parse::<IpAddr>().expect("an address"));
        assert!(limits.register(a).is_ok() && limits.register(b).is_err());
        assert!(limits.register(c).is_ok());
        let Err(ApiError::TooMany(wait)) = limits.register(a) else { panic!("it is over") };
        assert!(wait > Duration::from_secs(60), "{wait:?}");
    }
}
