//! Checks the model in a size of your choice, and shows how a property is violated.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Parser, builder::RangedU64ValueParser};
use lock_model::{Action, Broken, Config, Kinds, LockModel, State};
use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

/// Goes through the states of the protocol for one key, and looks for a violation.
#[derive(Debug, Parser)]
struct Arguments {
    /// Processes, each with a manager and a connection.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=4))]
    managers: u8,
    /// Local waiters of each manager.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(..=8))]
    waiters: u8,
    /// How many faults happen at most.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=8))]
    faults: u8,
    /// Which faults [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Every second waiter of a manager asks for a shorter lease than the others.
    #[arg(long)]
    mixed: bool,
    /// How many waiters give up at most.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=8))]
    cancels: u8,
    /// How many renewals there are at most.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=8))]
    renewals: u8,
    /// How often at most a manager leaves the lock free for a moment.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=8))]
    yields: u8,
    /// The most numbers reserved at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=9))]
    block: u16,
    /// The server permits no pushes.
    #[arg(long)]
    no_push: bool,
    /// A holder that knows nothing of the protocol comes first.
    #[arg(long)]
    foreign: bool,
    /// The rule to break.
    #[arg(long, value_enum)]
    broken: Option<Broken>,
    /// Stop after so many states were generated.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000_000))]
    states: Option<usize>,
    /// Stop after so many seconds.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=7 * 86_400))]
    seconds: Option<u64>,
    /// How many threads look.
    #[arg(long, default_value_t = 2, value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    threads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Cut,
    Crash,
    Pause,
    Flush,
    LostPush,
    Slow,
    Stall,
    Lag,
}

impl Arguments {
    fn kinds(&self) -> Kinds {
        if self.kinds.is_empty() {
            return Kinds::ALL;
        }
        let has = |kind| self.kinds.contains(&kind);
        Kinds {
            cut: has(Kind::Cut),
            crash: has(Kind::Crash),
            pause: has(Kind::Pause),
            flush: has(Kind::Flush),
            lost_push: has(Kind::LostPush),
            slow: has(Kind::Slow),
            stall: has(Kind::Stall),
            lag: has(Kind::Lag),
        }
    }

    fn config(&self) -> Config {
        Config {
            managers: self.managers,
            waiters: self.waiters,
            faults: self.faults,
            kinds: self.kinds(),
            mixed: self.mixed,
            cancels: self.cancels,
            renewals: self.renewals,
            yields: self.yields,
            block: self.block,
            push: !self.no_push,
            foreign: self.foreign,
            broken: self.broken,
            ..Config::default()
        }
    }
}

fn main() -> io::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut out = io::stdout().lock();
    let mut checker = LockModel::new(arguments.config())
        .checker()
        .threads(arguments.threads)
        .finish_when(HasDiscoveries::AnyFailures);
    if let Some(states) = arguments.states {
        checker = checker.target_state_count(states);
    }
    if let Some(seconds) = arguments.seconds {
        checker = checker.timeout(Duration::from_secs(seconds));
    }
    let started = Instant::now();
    let mut checker = checker.spawn_bfs();
    let workers = checker.handles();
    let mut told = Instant::now();
    while workers.iter().any(|worker| !worker.is_finished()) {
        std::thread::sleep(Duration::from_millis(50));
        if told.elapsed() > Duration::from_secs(5) {
            told = Instant::now();
            tell(&mut out, &checker, started)?;
        }
    }
    for worker in workers {
        worker.join().map_err(|_| io::Error::other("a thread of the checker panicked"))?;
    }
    tell(&mut out, &checker, started)?;
    report(&mut out, &checker)
}

fn tell(
    out: &mut impl Write,
    checker: &impl Checker<LockModel>,
    started: Instant,
) -> io::Result<()> {
    writeln!(
        out,
        "{} states, {} of them different, depth {}, {} s",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed().as_secs(),
    )?;
    out.flush()
}

fn report(out: &mut impl Write, checker: &impl Checker<LockModel>) -> io::Result<ExitCode> {
    let mut discoveries = checker.discoveries();
    let mut violated = false;
    for property in checker.model().properties() {
        let found = discoveries.remove(property.name);
        let verdict = match (&property.expectation, &found) {
            (Expectation::Sometimes, Some(_)) => "was seen",
            (Expectation::Sometimes, None) => "was not seen",
            (_, None) => "holds in what was seen",
            (_, Some(_)) => "VIOLATED",
        };
        writeln!(out, "{:32} {verdict}", property.name)?;
        if property.expectation != Expectation::Sometimes
            && let Some(path) = found
        {
            violated = true;
            trace(out, path)?;
        }
    }
    Ok(if violated { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn trace(out: &mut impl Write, path: Path<State, Action>) -> io::Result<()> {
    for (step, (state, action)) in path.into_vec().into_iter().enumerate() {
        writeln!(out, "{state}")?;
        if let Some(action) = action {
            writeln!(out, "{:3} {action:?}", step + 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use test_support::unbounded_numbers;

    use super::Arguments;

    #[test]
    fn each_number_has_its_bounds() {
        assert_eq!(unbounded_numbers(&Arguments::command()), Vec::<String>::new());
    }
}
