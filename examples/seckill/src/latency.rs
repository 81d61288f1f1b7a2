//! How long buyers waited: the distribution, and how it is written down.

use hdrhistogram::Histogram;

/// The waits of a mode's buyers, in microseconds.
#[derive(Debug, Clone)]
pub struct Waits {
    histogram: Histogram<u64>,
    /// The histogram knows three digits of it.
    max_us: u64,
}

impl Waits {
    /// Collects waits in microseconds.
    #[must_use]
    pub fn new(waits_us: impl IntoIterator<Item = u64>) -> Self {
        // Three digits, and the range grows as needed.
        let mut histogram =
            Histogram::new(3).expect("three significant digits are a valid precision");
        let mut max_us = 0;
        for wait in waits_us {
            histogram += wait;
            max_us = max_us.max(wait);
        }
        Self { histogram, max_us }
    }

    /// Whether nobody has been answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The shortest wait.
    #[must_use]
    pub fn min_us(&self) -> u64 {
        self.histogram.min()
    }

    /// The longest wait.
    #[must_use]
    pub fn max_us(&self) -> u64 {
        self.max_us
    }

    /// The wait that `quantile` (between 0 and 1) of the buyers did not exceed.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.max_us)
    }

    /// The number of buyers between each bound and the next.
    #[must_use]
    pub fn counts(&self, bounds_us: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; bounds_us.len().saturating_sub(1)];
        for recorded in self.histogram.iter_recorded() {
            let wait = recorded.value_iterated_to();
            let above = bounds_us.partition_point(|&bound| bound <= wait);
            if let Some(count) = above.checked_sub(1).and_then(|bin| counts.get_mut(bin)) {
                *count += recorded.count_since_last_iteration();
            }
        }
        counts
    }

    /// One line of text per range of waits, with a bar as long as the range is popular.
    #[must_use]
    pub fn bars(&self) -> String {
        const WIDTH: u64 = 40;
        if self.is_empty() {
            return String::new();
        }
        let bounds = round_bounds(self.min_us(), self.max_us());
        let counts = self.counts(&bounds);
        let most = counts.iter().copied().max().unwrap_or_default().max(1);
        bounds
            .windows(2)
            .zip(&counts)
            .map(|(range, &count)| {
                // A range with a single buyer must not look empty.
                let length = (count * WIDTH).div_ceil(most);
                let bar = "█".repeat(usize::try_from(length).unwrap_or_default());
                format!("  {:>7} to {:>7}  {bar} {count}\n", human(range[0]), human(range[1]))
            })
            .collect()
    }
}

/// Bounds of the kind 1, 2, 5, 10, ... that enclose `min` and `max`.
fn round_bounds(min: u64, max: u64) -> Vec<u64> {
    let series = (0..).map_while(|power| 10_u64.checked_pow(power));
    let series = series.flat_map(|base| [1, 2, 5].map(|step: u64| base.saturating_mul(step)));
    let mut bounds = vec![0];
    for bound in series {
        if bound <= min {
            bounds.clear();
        }
        bounds.push(bound);
        if bound > max {
            break;
        }
    }
    bounds
}

/// A time in microseconds with three digits and a unit.
#[must_use]
pub fn human(us: u64) -> String {
    let (value, unit) = match us {
        0..1_000 => return format!("{us} µs"),
        1_000..1_000_000 => (us as f64 / 1e3, "ms"),
        _ => (us as f64 / 1e6, "s"),
    };
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    let number = format!("{value:.decimals$}");
    // 5.00 ms reads as 5 ms, which matters for round bounds.
    let number = match number.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole,
        _ => &number,
    };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_is_in_exactly_one_range() {
        let waits = Waits::new([0, 1, 5, 999, 1_000, 1_001, 1_999, 2_000, 7_000_000]);
        let counts = waits.counts(&round_bounds(waits.min_us(), waits.max_us()));
        assert_eq!(counts.iter().sum::<u64>(), 9);
        assert_eq!(waits.counts(&[0, 1_000, 2_000, 5_000]), [4, 3, 1]);
        assert_eq!(waits.quantile_us(1.0), 7_000_000);
    }

    #[test]
    fn bounds_enclose() {
        assert_eq!(round_bounds(3, 11), [2, 5, 10, 20]);
        assert_eq!(round_bounds(0, 1), [0, 1, 2]);
        assert_eq!(round_bounds(10, 10), [10, 20]);
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(human(0), "0 µs");
        assert_eq!(human(999), "999 µs");
        assert_eq!(human(1_234), "1.23 ms");
        assert_eq!(human(5_000), "5 ms");
        assert_eq!(human(12_345), "12.3 ms");
        assert_eq!(human(999_999), "1000 ms");
        assert_eq!(human(61_500_000), "61.5 s");
    }
}
