use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{Identity, Secret, hs256};
use crate::clock::Clock;
use crate::domain::{Role, UserId};

/// Who makes the tokens, and for whom: a token of another program with the same secret is none here.
const ISSUER: &str = "booking";

/// How far the clocks of two replicas may be apart.
const LEEWAY: time::Duration = time::Duration::seconds(5);

/// No token of ours is nearly as long.
const LONGEST: usize = 1024;

/// Makes tokens and reads them.
pub struct Tokens {
    signing: EncodingKey,
    verifying: DecodingKey,
    validation: Validation,
    lifetime: Duration,
    clock: Clock,
}

/// A token that was made.
#[derive(Debug)]
pub struct Token {
    /// Its text.
    pub text: String,
    /// When it ends.
    pub expires: OffsetDateTime,
}

/// The token is not one of ours, or not any more. Which of it is nobody's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token is not valid")]
pub struct InvalidToken;

/// What a token says. The role is in it, so that no request has to look it up: one that is taken
/// away lasts until the token ends.
#[derive(Serialize, Deserialize)]
struct Claims {
    sub: UserId,
    role: Role,
    iss: String,
    aud: String,
    iat: i64,
    exp: i64,
}

impl Tokens {
    /// Tokens that are signed with `secret` and last for `lifetime` by this clock.
    ///
    /// # Errors
    /// When the library cannot use the secret.
    pub fn new(
        secret: &Secret,
        lifetime: Duration,
        clock: Clock,
    ) -> Result<Self, jsonwebtoken::errors::Error> {
        hs256::install();
        // What the token's own header says of the algorithm is compared with this, not followed.
        let mut validation = Validation::new(Algorithm::HS256);
        // The library knows no clock but the machine's; `verify` looks at ours.
        validation.validate_exp = false;
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        Ok(Self {
            signing: EncodingKey::from_secret(secret.as_bytes())?,
            verifying: DecodingKey::from_secret(secret.as_bytes())?,
            validation,
            lifetime,
            clock,
        })
    }

    /// A token for a user.
    ///
    /// # Errors
    /// None that could be met in practice: it is JSON and a hash.
    pub fn issue(&self, user: UserId, role: Role) -> Result<Token, jsonwebtoken::errors::Error> {
        let now = self.clock.now();
        let expires = now + self.lifetime;
        let claims = Claims {
            sub: user,
            role,
            iss: ISSUER.to_owned(),
            aud: ISSUER.to_owned(),
            iat: now.unix_timestamp(),
            exp: expires.unix_timestamp(),
        };
        let text = encode(&Header::new(Algorithm::HS256), &claims, &self.signing)?;
        Ok(Token { text, expires })
    }

    /// Whom a token names.
    ///
    /// # Errors
    /// [`InvalidToken`] if it was not made by [`issue`](Self::issue) with the same secret, or has
    /// ended.
    pub fn verify(&self, token: &str) -> Result<Identity, InvalidToken> {
        if token.len() > LONGEST {
            return Err(InvalidToken);
        }
        let claims = decode::<Claims>(token, &self.verifying, &self.validation)
            .map_err(|_| InvalidToken)?
            .claims;
        let expires = OffsetDateTime::from_unix_timestamp(claims.exp).map_err(|_| InvalidToken)?;
        if expires.saturating_add(LEEWAY) < self.clock.now() {
            return Err(InvalidToken);
        }
        Ok(Identity { user: claims.sub, role: claims.role, expires })
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}
