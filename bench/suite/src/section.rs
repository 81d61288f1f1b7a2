//! The critical section that every implementation guards, and the check that it did.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::net::UnixDatagram;

use crate::clock;

/// What is done under the lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) work: Work,
    /// Given when the section has begun.
    pub(crate) tell: Option<Arc<Signal>>,
}

/// How long the section takes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Work {
    /// Nothing at all.
    #[default]
    Nothing,
    /// Lets other tasks of the thread run once.
    Yield,
    /// Sleeps.
    Sleep(Duration),
}

/// When a section ran, in nanoseconds of the clock that all processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Body {
    pub(crate) async fn run(self) -> Interval {
        let start = clock::now();
        if let Some(signal) = &self.tell {
            signal.send(Word::Inside);
        }
        match self.work {
            Work::Nothing => {}
            Work::Yield => tokio::task::yield_now().await,
            Work::Sleep(duration) => tokio::time::sleep(duration).await,
        }
        Interval { start, end: clock::now() }
    }
}

/// What one process tells the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It is in the section: the other one may get in line.
    Inside = b'!' as isize,
    /// It has failed, and will not be back.
    GaveUp = b'.' as isize,
}

/// Where the sockets of two processes are.
#[derive(Debug)]
pub(crate) struct MeetingPlace(PathBuf);

impl MeetingPlace {
    pub(crate) fn new() -> std::io::Result<Self> {
        // Short, as paths of sockets must be.
        let path = std::env::temp_dir().join(format!("lock-bench-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for MeetingPlace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The way from one process to the other, past the server and past the parent.
#[derive(Debug)]
pub(crate) struct Signal {
    socket: UnixDatagram,
    peer: PathBuf,
}

impl Signal {
    /// The sockets of the two processes are beside each other in a directory.
    pub(crate) fn open(directory: &Path, process: u32) -> std::io::Result<Self> {
        let path = |process: u32| directory.join(format!("signal-{process}"));
        let own = path(process);
        // Left by an earlier run.
        let _ = std::fs::remove_file(&own);
        Ok(Self { socket: UnixDatagram::bind(own)?, peer: path(1 - process) })
    }

    pub(crate) fn send(&self, word: Word) {
        // One that cannot be told has ended, and the parent hears of that.
        let _ = self.socket.try_send_to(&[word as u8], &self.peer);
    }

    pub(crate) async fn receive(&self) -> std::io::Result<Word> {
        let mut word = [0];
        self.socket.recv(&mut word).await?;
        Ok(if word[0] == Word::Inside as u8 { Word::Inside } else { Word::GaveUp })
    }
}

/// How many sections began before an earlier one of the same key had ended.
pub(crate) fn overlaps(mut sections: Vec<(u32, Interval)>) -> u32 {
    sections.sort_by_key(|(key, interval)| (*key, interval.start, interval.end));
    let mut overlaps = 0;
    let mut latest: Option<(u32, u64)> = None;
    for (key, interval) in sections {
        match &mut latest {
            Some((of, end)) if *of == key => {
                overlaps += u32::from(interval.start < *end);
                *end = interval.end.max(*end);
            }
            _ => latest = Some((key, interval.end)),
        }
    }
    overlaps
}

#[cfg(test)]
mod tests {
    use super::{Interval, overlaps};

    fn section(key: u32, start: u64, end: u64) -> (u32, Interval) {
        (key, Interval { start, end })
    }

    #[test]
    fn sections_of_a_key_are_compared_and_no_others() {
        assert_eq!(overlaps(vec![section(0, 5, 9), section(0, 0, 5), section(1, 2, 7)]), 0);
        assert_eq!(overlaps(vec![section(0, 4, 9), section(0, 0, 5), section(1, 2, 7)]), 1);
        // Both of the later ones ran beside the first.
        assert_eq!(overlaps(vec![section(0, 0, 9), section(0, 1, 2), section(0, 3, 4)]), 2);
    }
}
