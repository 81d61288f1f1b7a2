//! Who is asking: passwords, tokens, and the identity that a handler takes as an argument.

mod hasher;
mod hs256;
mod identity;
mod networks;
mod passwords;
mod secret;
mod tokens;

pub use self::identity::Identity;
pub use self::networks::Networks;
pub use self::passwords::{HashError, Passwords};
pub use self::secret::{Secret, WeakSecret};
pub use self::tokens::{InvalidToken, Token, Tokens};
