//! argon2id, in buffers that are used again.

use std::sync::{Mutex, PoisonError};

use argon2::password_hash::phc::{Output, ParamsString, Salt};
use argon2::password_hash::{self, generate_salt};
use argon2::{Algorithm, Argon2, Block, Params, PasswordHash, Version};

/// Hashes passwords with argon2id: 19 MiB, two passes, as OWASP recommends at least.
///
/// A hash needs a buffer of 19 MiB. glibc does not reuse the freed ones, as their blocks are aligned
/// to 64 bytes: 90 logins in a row left 900 MB behind. So a buffer is kept for the next hash, and
/// there are as many as there were hashes at once.
#[derive(Debug, Default)]
pub(super) struct Hasher {
    idle: Mutex<Vec<Vec<Block>>>,
}

impl Hasher {
    /// The hash of a password, with a new salt, in PHC format.
    ///
    /// # Errors
    /// Those of argon2.
    pub(super) fn hash(&self, password: &[u8]) -> Result<String, password_hash::Error> {
        let (algorithm, version, params) = Default::default();
        let salt = Salt::new(&generate_salt())?;
        let output =
            self.compute(password, &salt, algorithm, version, &params, Params::DEFAULT_OUTPUT_LEN)?;
        let hash = PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(&params)?,
            salt: Some(salt),
            hash: Some(output),
        };
        Ok(hash.to_string())
    }

    /// Whether `hash` was made of this password, with whichever parameters it names.
    ///
    /// # Errors
    /// Those of argon2, and of a hash that cannot be read.
    pub(super) fn verify(&self, password: &[u8], hash: &str) -> Result<bool, password_hash::Error> {
        let hash = PasswordHash::new(hash)?;
        let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else {
            return Err(password_hash::Error::PasswordInvalid);
        };
        let algorithm = Algorithm::try_from(hash.algorithm.as_str())?;
        let version = hash.version.map_or(Ok(Version::default()), Version::try_from)?;
        let params = Params::try_from(&hash)?;
        let computed = self.compute(password, salt, algorithm, version, &params, expected.len())?;
        // `Output` compares in constant time.
        Ok(computed == *expected)
    }

    fn compute(
        &self,
        password: &[u8],
        salt: &Salt,
        algorithm: Algorithm,
        version: Version,
        params: &Params,
        length: usize,
    ) -> Result<Output, password_hash::Error> {
        let mut buffer = self.idle().pop().unwrap_or_default();
        let blocks = params.block_count();
        if buffer.len() < blocks {
            // In one piece, without a copy of what is in the smaller one.
            buffer = vec![Block::new(); blocks];
        }
        let argon2 = Argon2::new(algorithm, version, params.clone());
        let mut bytes = [0; Output::MAX_LENGTH];
        let output = bytes.get_mut(..length).ok_or(password_hash::Error::OutputSize)?;
        let done = argon2.hash_password_into_with_memory(password, salt, output, &mut buffer);
        self.idle().push(buffer);
        done?;
        Output::new(output).map_err(Into::into)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Vec<Block>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};

    use super::Hasher;

    #[test]
    fn a_hash_is_the_one_that_argon2_itself_makes_and_accepts() {
        let hasher = Hasher::default();
        for text in ["correct horse battery", "", "zwölf Zeichen"] {
            let ours = hasher.hash(text.as_bytes()).expect("it hashes");
            let parsed = PasswordHash::new(&ours).expect("it is a hash");
            assert!(Argon2::default().verify_password(text.as_bytes(), &parsed).is_ok());
            let theirs = Argon2::default().hash_password(text.as_bytes()).expect("it hashes");
            assert_eq!(hasher.verify(text.as_bytes(), &theirs.to_string()).ok(), Some(true));
            assert_eq!(hasher.verify(b"another", &ours).ok(), Some(false));
            assert_ne!(ours, hasher.hash(text.as_bytes()).expect("it hashes"), "the salt is new");
        }
    }

    #[test]
    fn a_hash_with_other_parameters_is_verified_by_its_own() {
        let hasher = Hasher::default();
        for (memory, passes) in [(64, 1), (32 * 1024, 1), (8, 3)] {
            let params = argon2::Params::new(memory, passes, 1, Some(20)).expect("they are valid");
            let hash = Argon2::from(params).hash_password(b"correct horse").expect("it hashes");
            assert_eq!(hasher.verify(b"correct horse", &hash.to_string()).ok(), Some(true));
            assert_eq!(hasher.verify(b"correct hors", &hash.to_string()).ok(), Some(false));
        }
    }

    #[test]
    fn hashes_one_after_another_use_one_buffer() {
        let hasher = Hasher::default();
        for _ in 0..3 {
            hasher.hash(b"correct horse").expect("it hashes");
            assert_eq!(hasher.idle().len(), 1);
        }
    }

    #[test]
    fn what_is_no_hash_is_an_error() {
        let hasher = Hasher::default();
        for text in ["", "$argon2id$", "$bcrypt$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2g", "plain"]
        {
            assert!(hasher.verify(b"correct horse", text).is_err(), "{text}");
        }
    }
}
