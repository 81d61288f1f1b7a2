//! One line of a table.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::run::{Measured, Results, median};

/// An implementation's results in a workload: medians of the rounds for the wall, and all rounds
/// together for the rest.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) workload: &'static str,
    pub(crate) implementation: &'static str,
    pub(crate) settings: String,
    pub(crate) rounds: usize,
    /// In each round, on average.
    pub(crate) acquisitions: u64,
    pub(crate) wall_ms: f64,
    pub(crate) wall_ms_min: f64,
    pub(crate) wall_ms_max: f64,
    /// By which implementations are compared: a cycle, the wall, or a hand-off.
    pub(crate) figure_us: f64,
    pub(crate) figure_us_min: f64,
    pub(crate) figure_us_max: f64,
    /// Of all rounds.
    pub(crate) errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_error: Option<String>,
    /// Those that clients sent.
    pub(crate) commands_per_acquisition: f64,
    /// Those that the server ran, which includes what scripts called.
    pub(crate) info_commands_per_acquisition: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
    pub(crate) client_cpu_us_per_acquisition: f64,
    pub(crate) server_cpu_us_per_acquisition: f64,
}

impl Row {
    pub(crate) fn all(results: &Results<'_>) -> Vec<Self> {
        results
            .cases
            .iter()
            .map(|measured| Self::new(results.plan.workload.name(), measured))
            .collect()
    }

    pub(super) fn new(workload: &'static str, measured: &Measured) -> Self {
        let samples = &measured.samples;
        let rounds = samples.len();
        let acquired: u64 = samples.iter().map(|sample| sample.acquired).sum();
        let [wall_ms, wall_ms_min, wall_ms_max] =
            spread(samples.iter().map(|sample| sample.wall_ms));
        let [figure_us, figure_us_min, figure_us_max] =
            spread(samples.iter().map(|sample| sample.figure_us));
        // A run in which nothing was acquired still has to be divided by something.
        let per_acquisition = |total: f64| total / acquired.max(1) as f64;
        let waits = Waits::new(samples.iter().flat_map(|sample| &sample.waits_us).copied());
        Self {
            workload,
            implementation: measured.case.kind.name(),
            settings: measured.case.settings(),
            rounds,
            acquisitions: acquired / rounds.max(1) as u64,
            wall_ms,
            wall_ms_min,
            wall_ms_max,
            figure_us,
            figure_us_min,
            figure_us_max,
            errors: samples.iter().map(|sample| sample.errors).sum(),
            first_error: samples.iter().find_map(|sample| sample.first_error.clone()),
            commands_per_acquisition: per_acquisition(
                samples.iter().map(|sample| sample.spent.sent as f64).sum(),
            ),
            info_commands_per_acquisition: per_acquisition(
                samples.iter().map(|sample| sample.spent.ran as f64).sum(),
            ),
            p50_us: waits.quantile(0.5),
            p99_us: waits.quantile(0.99),
            max_us: waits.max,
            client_cpu_us_per_acquisition: per_acquisition(
                samples.iter().map(|sample| sample.client_cpu_us).sum(),
            ),
            server_cpu_us_per_acquisition: per_acquisition(
                samples.iter().map(|sample| sample.spent.cpu.as_secs_f64() * 1e6).sum(),
            ),
        }
    }
}

/// The median, the least and the greatest.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [median(&values), least, greatest]
}

struct Waits {
    /// In nanoseconds.
    histogram: Histogram<u64>,
    /// The histogram knows three digits of it. In microseconds.
    max: f64,
}

impl Waits {
    fn new(waits_us: impl Iterator<Item = f64>) -> Self {
        let mut histogram =
            Histogram::new(3).expect("three significant digits are a valid precision");
        let mut max: f64 = 0.0;
        for wait in waits_us {
            histogram += (wait * 1e3) as u64;
            max = max.max(wait);
        }
        Self { histogram, max }
    }

    fn quantile(&self, quantile: f64) -> f64 {
        (self.histogram.value_at_quantile(quantile) as f64 / 1e3).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::{Waits, spread};

    #[test]
    fn quantiles_are_those_of_the_waits() {
        let waits = Waits::new((1..=100).map(f64::from));
        assert!((waits.quantile(0.5) - 50.0).abs() < 0.1);
        assert!((waits.quantile(0.99) - 99.0).abs() < 0.1);
        assert_eq!(waits.quantile(1.0), 100.0);
    }

    #[test]
    fn a_spread_has_its_ends() {
        assert_eq!(spread([2.0, 9.0, 1.0].into_iter()), [2.0, 1.0, 9.0]);
    }
}
