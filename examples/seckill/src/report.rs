//! What a run found, for people and for programs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::audit::Audit;
use crate::buyers::{Answer, Outcome, STALLED_BUYER};
use crate::cli::Mode;
use crate::latency::{Waits, human};
use crate::processes::{LockCounts, Process, share};

/// What became of the buyer who froze.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stall {
    /// Its late write was refused, for this reason.
    Refused(String),
    /// Its late write was accepted.
    Wrote,
    /// It did not get as far.
    NeverWrote(String),
}

/// So many different reasons are listed; the others are summed up.
const REASONS_SHOWN: usize = 5;

/// What was seen of a mode's run, beside the inventory.
#[derive(Debug, Clone)]
pub struct Sale {
    /// What the buyers were told.
    pub answers: Vec<Answer>,
    /// From the opening of the doors to the last answer.
    pub wall: Duration,
    /// Commands that Redis was sent.
    pub commands: Option<u64>,
    /// Who sold.
    pub processes: Vec<Process>,
}

/// What a mode's run found.
#[derive(Debug, Clone)]
pub struct ModeReport {
    /// The mode.
    pub mode: Mode,
    /// All buyers.
    pub buyers: u32,
    /// What items and orders say.
    pub audit: Audit,
    /// Buyers who were told that nothing is left.
    pub turned_away: usize,
    /// Buyers who were told neither.
    pub errors: usize,
    /// What those were told, and how many of them.
    pub reasons: BTreeMap<String, usize>,
    /// From the opening of the doors to the last answer.
    pub wall: Duration,
    /// Buyers who got an answer, per second.
    pub throughput: f64,
    /// How long they waited for it.
    pub waits: Waits,
    /// Commands that Redis was sent, per buyer.
    pub redis_commands: Option<f64>,
    /// The processes, where they have shared locks.
    pub processes: Vec<Process>,
    /// How the buyers came to their locks, as far as their processes have told.
    pub locks: LockCounts,
    /// What became of the buyer who froze, if one was to.
    pub stall: Option<Stall>,
}

impl ModeReport {
    /// Puts together what `buyers` buyers were told and what the audit found.
    #[must_use]
    pub fn new(mode: Mode, buyers: u32, stall: bool, sale: &Sale, audit: Audit) -> Self {
        let Sale { answers, wall, commands, processes } = sale;
        let (mut bought, mut turned_away) = (0, 0);
        let mut reasons = BTreeMap::new();
        for answer in answers {
            match &answer.outcome {
                Outcome::Bought => bought += 1,
                Outcome::SoldOut => turned_away += 1,
                Outcome::Refused(reason) | Outcome::Failed(reason) => {
                    *reasons.entry(reason.clone()).or_default() += 1;
                }
            }
        }
        let unanswered = buyers as usize - answers.len();
        if unanswered > 0 {
            reasons.insert("the buyer's process died".to_owned(), unanswered);
        }
        let frozen = answers.iter().find(|answer| answer.buyer == STALLED_BUYER);
        Self {
            mode,
            buyers,
            audit,
            turned_away,
            errors: buyers as usize - bought - turned_away,
            reasons,
            wall: *wall,
            throughput: answers.len() as f64 / wall.as_secs_f64().max(1e-6),
            waits: Waits::new(answers.iter().map(|answer| answer.wait_us)),
            redis_commands: commands.map(|commands| commands as f64 / f64::from(buyers)),
            processes: match processes.len() {
                2.. if mode.takes_lock() => processes.clone(),
                _ => Vec::new(),
            },
            locks: processes.iter().filter_map(|process| process.locks).sum(),
            stall: (stall && mode.takes_lock()).then(|| match frozen.map(|a| &a.outcome) {
                Some(Outcome::Refused(reason)) => Stall::Refused(reason.clone()),
                Some(Outcome::Bought) => Stall::Wrote,
                Some(Outcome::SoldOut) => Stall::NeverWrote("it found nothing left".to_owned()),
                Some(Outcome::Failed(reason)) => Stall::NeverWrote(reason.clone()),
                None => Stall::NeverWrote("its process died".to_owned()),
            }),
        }
    }

    fn is_sound(&self) -> bool {
        self.audit.oversold == 0 && self.audit.lost == 0
    }

    /// What the mode does not promise: nothing is safe without exclusion, and a lock alone is
    /// not safe once its lease has ended.
    fn damage_is_expected(&self) -> bool {
        self.mode == Mode::Naive || (self.mode == Mode::Lock && self.stall.is_some())
    }

    /// What buyers were told who got no answer, the most frequent first. One error is the very
    /// thing that `--stall` is for, and is none here.
    fn unanswered(&self) -> Vec<(&str, usize)> {
        let expected = |reason: &str| {
            usize::from(matches!(&self.stall, Some(Stall::Refused(refusal)) if refusal == reason))
        };
        let mut reasons: Vec<_> = self
            .reasons
            .iter()
            .map(|(reason, times)| (reason.as_str(), times - expected(reason)))
            .filter(|(_, times)| *times > 0)
            .collect();
        reasons.sort_by_key(|(_, times)| Reverse(*times));
        reasons
    }

    /// How many buyers got no answer, and why most of them.
    fn gap(&self) -> Option<String> {
        let reasons = self.unanswered();
        let (reason, times) = *reasons.first()?;
        let all: usize = reasons.iter().map(|(_, times)| times).sum();
        let mostly = if times < all { format!("{times} of them: ") } else { String::new() };
        Some(format!(
            "{all} of {} buyers in {} got no answer ({mostly}{reason})",
            self.buyers,
            self.mode.name()
        ))
    }

    /// The stall's outcome, for programs.
    fn stall_outcome(&self) -> Option<&'static str> {
        Some(match self.stall.as_ref()? {
            Stall::Refused(_) => "refused",
            Stall::Wrote if self.mode == Mode::Lock && !self.is_sound() => "damage",
            Stall::Wrote => "not refused",
            Stall::NeverWrote(_) => "not tried",
        })
    }

    /// What is wrong with this mode, in words.
    fn failure(&self) -> Option<String> {
        let name = self.mode.name();
        if !self.is_sound() && !self.damage_is_expected() {
            let Audit { oversold, lost, .. } = self.audit;
            return Some(format!("{name} oversold {oversold} and lost {lost}"));
        }
        match &self.stall {
            Some(Stall::Wrote) if self.mode == Mode::Fenced => {
                Some(format!("{name} accepted the stale write"))
            }
            Some(Stall::NeverWrote(reason)) if self.mode == Mode::Fenced => Some(format!(
                "{name} was not put to the test: the frozen buyer wrote nothing ({reason})"
            )),
            _ => None,
        }
    }

    /// What a lock cost, in a few words.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        if !self.mode.takes_lock() {
            return Vec::new();
        }
        let local = self.locks.local_share().map(|share| format!("local {}", percent(share)));
        let redis = self.redis_commands.map(|number| format!("Redis/buyer {number:.2}"));
        redis.into_iter().chain(local).collect()
    }

    fn note(&self) -> Option<String> {
        let name = self.mode.name();
        let text = match (&self.stall, self.mode) {
            (Some(Stall::Wrote), Mode::Lock) if !self.is_sound() => format!(
                "{name}: one buyer slept through the end of its lease and wrote over what others \
                 had sold; this damage is expected, a lock alone cannot prevent it"
            ),
            (Some(Stall::NeverWrote(reason)), Mode::Lock) => format!(
                "{name}: the buyer who was to sleep through the end of its lease wrote nothing \
                 ({reason}), so this run shows no damage"
            ),
            (Some(Stall::Refused(_)), _) => format!(
                "{name}: one buyer slept through the end of its lease, and its late write was \
                 refused"
            ),
            (_, Mode::Naive) if self.is_sound() => {
                format!(
                    "{name}: sold nothing twice this time, so this run proves little; raise --think"
                )
            }
            _ => return None,
        };
        Some(text)
    }
}

/// What all the modes' runs found.
#[derive(Debug, Clone)]
pub struct Report {
    /// In the order in which they ran.
    pub modes: Vec<ModeReport>,
}

/// A mode in the JSON output.
#[derive(Serialize)]
struct JsonMode<'a> {
    mode: Mode,
    sold: i64,
    left: i64,
    oversold: i64,
    turned_away: usize,
    errors: usize,
    wall_ms: f64,
    throughput: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    redis_commands_per_purchase: Option<f64>,
    lost: i64,
    stall: Option<&'static str>,
    reasons: &'a BTreeMap<String, usize>,
    local_hand_over_share: Option<f64>,
    processes: Option<Vec<JsonProcess>>,
}

/// One of the processes in the JSON output.
#[derive(Serialize)]
struct JsonProcess {
    buyers: u32,
    bought: u64,
    acquired: Option<u64>,
    handed_over: Option<u64>,
}

impl From<&Process> for JsonProcess {
    fn from(process: &Process) -> Self {
        let Process { buyers, bought, locks } = *process;
        let (acquired, handed_over) =
            (locks.map(|locks| locks.acquired), locks.map(|locks| locks.handed_over));
        Self { buyers, bought, acquired, handed_over }
    }
}

#[derive(Serialize)]
struct JsonReport<'a> {
    modes: Vec<JsonMode<'a>>,
    ok: bool,
}

impl Report {
    /// Whether every mode kept what it promises.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.modes.iter().all(|mode| mode.failure().is_none())
    }

    /// One JSON object.
    ///
    /// # Errors
    /// None that numbers can cause; the signature is that of serde_json.
    pub fn json(&self) -> serde_json::Result<String> {
        let modes = self.modes.iter().map(|mode| JsonMode {
            mode: mode.mode,
            sold: mode.audit.sold,
            left: mode.audit.left,
            oversold: mode.audit.oversold,
            turned_away: mode.turned_away,
            errors: mode.errors,
            wall_ms: rounded(mode.wall.as_secs_f64() * 1e3),
            throughput: rounded(mode.throughput),
            p50_ms: ms(mode.waits.quantile_us(0.50)),
            p95_ms: ms(mode.waits.quantile_us(0.95)),
            p99_ms: ms(mode.waits.quantile_us(0.99)),
            max_ms: ms(mode.waits.max_us()),
            redis_commands_per_purchase: mode.redis_commands.map(rounded),
            lost: mode.audit.lost,
            stall: mode.stall_outcome(),
            reasons: &mode.reasons,
            local_hand_over_share: mode.locks.local_share().map(rounded),
            processes: (!mode.processes.is_empty())
                .then(|| mode.processes.iter().map(JsonProcess::from).collect()),
        });
        serde_json::to_string(&JsonReport { modes: modes.collect(), ok: self.is_ok() })
    }

    /// Table, distributions, remarks and verdict.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.table() + &self.shares();
        for mode in self.modes.iter().filter(|mode| !mode.waits.is_empty()) {
            text += &format!("\nWaits of {}\n{}", mode.mode.name(), mode.waits.bars());
        }
        text += "\n";
        for mode in &self.modes {
            if let Some(note) = mode.note() {
                text += &format!("{note}.\n");
            }
            let (name, reasons) = (mode.mode.name(), mode.unanswered());
            let (shown, others) = reasons.split_at(reasons.len().min(REASONS_SHOWN));
            for (reason, times) in shown {
                text += &format!("{name}: {times} x {reason}.\n");
            }
            if !others.is_empty() {
                let buyers: usize = others.iter().map(|(_, times)| times).sum();
                text +=
                    &format!("{name}: and {buyers} others, for {} more reasons.\n", others.len());
            }
        }
        text + &self.verdict() + "\n"
    }

    fn table(&self) -> String {
        let head = [
            "mode",
            "sold",
            "left",
            "oversold",
            "lost",
            "turned away",
            "errors",
            "wall",
            "buyers/s",
            "p50",
            "p95",
            "p99",
            "max",
            "Redis/buyer",
            "local",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.modes.iter().map(|mode| {
            let mark = if mode.damage_is_expected() && !mode.is_sound() { " *" } else { "" };
            let quantile = |quantile| human(mode.waits.quantile_us(quantile));
            [
                format!("{}{mark}", mode.mode.name()),
                mode.audit.sold.to_string(),
                mode.audit.left.to_string(),
                mode.audit.oversold.to_string(),
                mode.audit.lost.to_string(),
                mode.turned_away.to_string(),
                mode.errors.to_string(),
                human(mode.wall.as_micros().try_into().unwrap_or(u64::MAX)),
                format!("{:.0}", mode.throughput),
                quantile(0.50),
                quantile(0.95),
                quantile(0.99),
                human(mode.waits.max_us()),
                or_dash(mode.redis_commands.map(|number| format!("{number:.2}"))),
                or_dash(mode.locks.local_share().map(percent)),
            ]
        }));
        let mut text = aligned(&rows);
        if self.modes.iter().any(|mode| mode.damage_is_expected() && !mode.is_sound()) {
            text += "* expected: nothing in this mode prevents it\n";
        }
        text
    }

    /// What each process had of the sale and of the locks.
    fn shares(&self) -> String {
        let head =
            ["mode", "process", "buyers", "bought", "share", "locks", "handed over", "local"];
        let mut rows = vec![head.map(str::to_owned)];
        for mode in &self.modes {
            let bought = mode.processes.iter().map(|process| process.bought).sum();
            rows.extend(mode.processes.iter().zip(1..).map(|(process, number)| {
                let locks = process.locks;
                [
                    mode.mode.name().to_owned(),
                    number.to_string(),
                    process.buyers.to_string(),
                    process.bought.to_string(),
                    or_dash(share(process.bought, bought).map(percent)),
                    or_dash(locks.map(|locks| locks.acquired.to_string())),
                    or_dash(locks.map(|locks| locks.handed_over.to_string())),
                    or_dash(locks.and_then(LockCounts::local_share).map(percent)),
                ]
            }));
        }
        if rows.len() == 1 { String::new() } else { format!("\n{}", aligned(&rows)) }
    }

    fn verdict(&self) -> String {
        let failures: Vec<_> = self.modes.iter().filter_map(ModeReport::failure).collect();
        let gaps: Vec<_> = self.modes.iter().filter_map(ModeReport::gap).collect();
        if !failures.is_empty() {
            return format!("FAILED: {}.", [failures, gaps].concat().join("; "));
        }
        if !gaps.is_empty() {
            return format!("INCOMPLETE: {}; {}.", gaps.join("; "), self.findings());
        }
        format!("OK: {}.", self.findings())
    }

    /// What the audit says where no mode has failed.
    fn findings(&self) -> String {
        let names = |sound: bool| {
            let names: Vec<_> = self
                .modes
                .iter()
                .filter(|mode| mode.is_sound() == sound)
                .map(|mode| mode.mode.name())
                .collect();
            names.join(", ")
        };
        let (sound, unsound) = (names(true), names(false));
        match (sound.is_empty(), unsound.is_empty()) {
            (false, true) => format!("an order for every piece sold in {sound}"),
            (true, _) => format!("orders and stock disagree in {unsound}, as expected"),
            (false, false) => format!(
                "an order for every piece sold in {sound}; orders and stock disagree in {unsound}, \
                 as expected"
            ),
        }
    }
}

/// Columns as wide as their widest cell; names to the left, numbers to the right.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells: Vec<_> = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        text += &format!("{}\n", cells.join("  "));
    }
    text
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// A share as a percentage.
fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn ms(us: u64) -> f64 {
    us as f64 / 1e3
}

/// Three decimals.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
