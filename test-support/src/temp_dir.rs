use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory of one server, readable by its owner alone and removed on drop.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> Self {
        // Short: the path of a unix socket inside it may have 103 bytes on some systems.
        let unique = RandomState::new().hash_one(name);
        let path = std::env::temp_dir().join(format!("{name}-{unique:016x}"));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The last lines of a log file in here, for a panic's message.
    pub(crate) fn log_tail(&self, name: &str) -> String {
        let text = fs::read_to_string(self.join(name)).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
