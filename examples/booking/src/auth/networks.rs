use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Secret;
use crate::client_address::network;
use crate::domain::{NetworkMark, UserId};

/// What no token's signature is made of: keeps the two uses of the secret apart.
const PURPOSE: &[u8] = b"network of a user\0";

/// Marks the networks from which users log in.
#[derive(Clone)]
pub struct Networks(Hmac<Sha256>);

impl Networks {
    /// Marks that are made with this secret. With a new one, no network is known any more.
    ///
    /// # Errors
    /// When the library cannot use the secret.
    pub fn new(secret: &Secret) -> Result<Self, hmac::digest::InvalidLength> {
        Hmac::new_from_slice(secret.as_bytes()).map(Self)
    }

    /// The mark of an address's network for this user. Two users in one network have two.
    #[must_use]
    pub fn mark(&self, user: UserId, address: IpAddr) -> NetworkMark {
        let octets = match network(address) {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let mac = self.0.clone().chain_update(PURPOSE).chain_update(user.0.as_bytes());
        let hash = mac.chain_update(octets).finalize().into_bytes();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        NetworkMark::from_bytes(bytes)
    }
}

impl std::fmt::Debug for Networks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Networks").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{NetworkMark, Networks, Secret, UserId};

    #[test]
    fn a_mark_is_of_one_user_in_one_network() {
        let networks = Networks::new(&Secret::random()).expect("any length will do");
        let [ann, bob] = [UserId::random(), UserId::random()];
        let mark = |user, address: &str| networks.mark(user, address.parse().expect("an address"));
        assert_eq!(mark(ann, "2001:db8::1"), mark(ann, "2001:db8::2"), "one line");
        assert_eq!(mark(ann, "10.0.0.1"), mark(ann, "::ffff:10.0.0.1"));
        assert_ne!(mark(ann, "10.0.0.1"), mark(ann, "10.0.0.2"));
        assert_ne!(mark(ann, "10.0.0.1"), mark(bob, "10.0.0.1"));
        let kept = mark(ann, "10.0.0.1");
        assert_eq!(NetworkMark::parse(&kept.to_string()), Some(kept));
        let others = Networks::new(&Secret::random()).expect("any length will do");
        assert_ne!(kept, others.mark(ann, "10.0.0.1".parse().expect("an address")));
    }
}
