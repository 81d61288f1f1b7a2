//! HMAC with SHA-256 for `jsonwebtoken`, whose own back ends bring RSA and elliptic curves along.
//! An algorithm that is not in the program cannot be asked for by a token.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use sha2::Sha256;
use signature::{Signer, Verifier};

/// Makes HS256 the one algorithm of this process. It may be called again.
pub(super) fn install() {
    static ONLY: CryptoProvider = CryptoProvider {
        signer_factory: signer,
        verifier_factory: verifier,
        // For keys in JWK format, of which there are none here.
        key_utils: KeyUtils::new_unimplemented(),
    };
    // An error says that there is one already: this one.
    let _ = ONLY.install_default();
}

struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Box<Self>> {
        if algorithm != Algorithm::HS256 {
            return Err(Error::from(ErrorKind::InvalidAlgorithm));
        }
        let mac = Hmac::new_from_slice(key).map_err(|_| ErrorKind::InvalidKeyFormat)?;
        Ok(Box::new(Self(mac)))
    }
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Ok(Hs256::new(*algorithm, key.as_bytes())?)
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    Ok(Hs256::new(*algorithm, key.try_get_as_bytes()?)?)
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, signature::Error> {
        Ok(self.0.clone().chain_update(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        // In constant time, and of the full length only.
        let mac = self.0.clone().chain_update(message);
        mac.verify_slice(signature).map_err(signature::Error::from_source)
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
