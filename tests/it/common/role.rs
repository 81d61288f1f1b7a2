//! Other processes: this same test binary, of which an ignored test is run. The environment tells it
//! what to do.

use std::{
    env, fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use test_support::{RedisServer, wait_until};

/// A directory for what the processes of one test tell each other.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new(test: &str) -> Self {
        let dir =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("the target directory is writable");
        Self(dir)
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A child process, which ends with its owner.
pub(crate) struct Role(Child);

impl Role {
    /// Runs the ignored test `child`, which plays the role.
    pub(crate) fn start(child: &str, role: &str, server: &RedisServer, dir: &Dir) -> Self {
        let child = Command::new(env::current_exe().expect("our own path"))
            .args(["--ignored", "--exact", child])
            .env("ROLE", role)
            .env("ROLE_REDIS", server.url())
            .env("ROLE_DIR", &dir.0)
            // Its other end is closed when this process ends, however that happens.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it ran once");
        Self(child)
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.0.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.expect("there is a shell").success());
    }

    pub(crate) fn wait(mut self) {
        let mut status = None;
        wait_until("the child ends", || {
            status = self.0.try_wait().expect("it is ours");
            status.is_some()
        });
        assert!(status.is_some_and(|status| status.success()), "the child failed");
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// For the child: ends it when its parent does.
pub(crate) fn end_with_the_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
}
