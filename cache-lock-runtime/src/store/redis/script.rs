//! The scripts.

use redis::Script;

/// A script, known to the server by its SHA-1 once it has run there.
pub(super) struct LuaScript {
    source: &'static str,
    hash: String,
}

/// All scripts of the store.
pub(super) struct Scripts {
    pub(super) acquire: LuaScript,
    pub(super) pass: LuaScript,
    pub(super) extend: LuaScript,
    pub(super) release: LuaScript,
    #[cfg(all(feature = "serde", feature = "single-flight"))]
    pub(super) record: LuaScript,
    #[cfg(all(feature = "serde", feature = "single-flight"))]
    pub(super) recorded: LuaScript,
}

/// A script of several parts.
macro_rules! script {
    ($($part:literal),+) => {
        LuaScript::new(concat!($(include_str!(concat!("../../lua/", $part, ".lua"))),+))
    };
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            acquire: script!("drop", "fence", "free", "tell", "waiting", "ask", "acquire"),
            pass: script!("drop", "tell", "grant", "waiting", "fence", "ask", "pass"),
            extend: script!("extend"),
            release: script!("drop", "tell", "grant", "release"),
            #[cfg(all(feature = "serde", feature = "single-flight"))]
            record: script!("record"),
            #[cfg(all(feature = "serde", feature = "single-flight"))]
            recorded: script!("recorded"),
        }
    }
}

impl LuaScript {
    fn new(source: &'static str) -> Self {
        // Only its hash is of use: `redis::Script` answers NOSCRIPT by SCRIPT LOAD and another
        // EVALSHA, which fails again if the scripts are flushed in between.
        Self { source, hash: Script::new(source).get_hash().to_owned() }
    }

    pub(super) fn source(&self) -> &'static str {
        self.source
    }

    pub(super) fn hash(&self) -> &str {
        &self.hash
    }
}
