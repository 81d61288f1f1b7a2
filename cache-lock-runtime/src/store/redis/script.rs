//! The scripts, and how they are sent.

use redis::{Cmd, Script};

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
            acquire: script!("fence", "free", "tell", "waiting", "ask", "acquire"),
            pass: script!("tell", "grant", "waiting", "fence", "ask", "pass"),
            extend: script!("extend"),
            release: script!("tell", "grant", "release"),
        }
    }
}

impl LuaScript {
    fn new(source: &'static str) -> Self {
        // Only its hash is of use: `redis::Script` answers NOSCRIPT by SCRIPT LOAD and another
        // EVALSHA, which fails again if the scripts are flushed in between.
        Self { source, hash: Script::new(source).get_hash().to_owned() }
    }

    /// The call by hash, which a server that does not know the script refuses.
    pub(super) fn by_hash(&self, keys: &[&str], arguments: &[&str]) -> Cmd {
        call("EVALSHA", &self.hash, keys, arguments)
    }

    /// The call that carries the script, and makes it known.
    pub(super) fn in_full(&self, keys: &[&str], arguments: &[&str]) -> Cmd {
        call("EVAL", self.source, keys, arguments)
    }
}

fn call(command: &str, script: &str, keys: &[&str], arguments: &[&str]) -> Cmd {
    let mut call = redis::cmd(command);
    call.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    call
}
