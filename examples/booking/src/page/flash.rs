//! What a page says once, about the form that led to it.

use std::fmt;

use crate::domain::SlotId;

/// A message. It travels in a cookie as a word, never as text, so nobody can make us say anything
/// else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flash {
    /// The slot was booked.
    Booked(SlotId),
    /// The booking was cancelled.
    Cancelled(SlotId),
    /// The account is open, and its owner logged in.
    Welcome,
    /// The user has logged out.
    LoggedOut,
    /// To do that one has to be logged in.
    LogInFirst,
    /// The login of the form's page has ended.
    LoginEnded,
}

impl Flash {
    /// Reads what a cookie says.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.split_once('.').unwrap_or((text, "")) {
            ("booked", slot) => SlotId::parse(slot).map(Self::Booked),
            ("cancelled", slot) => SlotId::parse(slot).map(Self::Cancelled),
            ("welcome", "") => Some(Self::Welcome),
            ("logged-out", "") => Some(Self::LoggedOut),
            ("log-in-first", "") => Some(Self::LogInFirst),
            ("login-ended", "") => Some(Self::LoginEnded),
            _ => None,
        }
    }

    /// In words.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Booked(_) => "You have booked it.",
            Self::Cancelled(_) => "You have cancelled it.",
            Self::Welcome => "Welcome! Your account is open, and you are logged in.",
            Self::LoggedOut => "You are logged out.",
            Self::LogInFirst => "Log in first.",
            Self::LoginEnded => {
                "Your login has ended. Nothing was booked or cancelled: log in to go on."
            }
        }
    }

    /// The slot it is about.
    pub(super) fn slot(self) -> Option<SlotId> {
        match self {
            Self::Booked(slot) | Self::Cancelled(slot) => Some(slot),
            _ => None,
        }
    }
}

impl fmt::Display for Flash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Booked(slot) => write!(f, "booked.{slot}"),
            Self::Cancelled(slot) => write!(f, "cancelled.{slot}"),
            Self::Welcome => f.write_str("welcome"),
            Self::LoggedOut => f.write_str("logged-out"),
            Self::LogInFirst => f.write_str("log-in-first"),
            Self::LoginEnded => f.write_str("login-ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Flash, SlotId};

    #[test]
    fn a_message_is_read_as_it_was_written_and_no_other_is() {
        let slot = SlotId::random();
        for flash in [
            Flash::Booked(slot),
            Flash::Cancelled(slot),
            Flash::Welcome,
            Flash::LoggedOut,
            Flash::LogInFirst,
            Flash::LoginEnded,
        ] {
            assert_eq!(Flash::parse(&flash.to_string()), Some(flash));
        }
        for wrong in ["", "booked", "booked.1", "welcome.x", "Send money to evil.example"] {
            assert_eq!(Flash::parse(wrong), None, "{wrong:?}");
        }
    }
}
