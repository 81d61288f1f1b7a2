//! Who is asking: passwords, tokens, and the identity that a handler takes as an argument.

mod hs256;
mod identity;
mod passwords;
mod secret;
mod tokens;

pub use self::identity::Identity;
pub use self::passwords::{HashError, Passwords};
pub use self::secret::{Secret, WeakSecret};
pub use self::tokens::{InvalidToken, Token, Tokens};
