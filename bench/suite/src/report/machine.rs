//! What the run ran on.

use std::{fs, process::Command};

/// The processor, the system, and the versions of the programs that are involved.
pub(super) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("a processor that does not tell its name", |(_, name)| name.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{processor}, {cores} cores; Linux {}; {}; {}",
        kernel.trim(),
        output("redis-server", "--version")
            .split(' ')
            .find_map(|word| word.strip_prefix("v="))
            .map_or("a Redis that does not tell its version".to_owned(), |version| {
                format!("Redis {version}")
            }),
        // Without the commit and the day.
        output("rustc", "--version").split(" (").next().unwrap_or_default()
    )
}

/// The versions of the crates that are compared, by the lock file that they were built with.
pub(super) fn versions(names: &[&str]) -> Vec<String> {
    const LOCK_FILE: &str = include_str!("../../Cargo.lock");
    let version = |name: &str| {
        let head = format!("name = \"{name}\"\nversion = \"");
        let (_, rest) = LOCK_FILE.split_once(&head)?;
        rest.split('"').next()
    };
    names.iter().map(|name| format!("{name} {}", version(name).unwrap_or("?"))).collect()
}

fn output(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_those_of_the_lock_file() {
        let [version] = &super::versions(&["rslock"])[..] else { panic!("one was asked for") };
        assert!(version.starts_with("rslock 0.10."), "{version}");
    }
}
