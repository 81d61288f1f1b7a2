//! The latency picture: one strip per mode over a common logarithmic axis.

use std::fmt::Write;

use crate::latency::{Waits, human};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 56.0;
const STRIP: f64 = 110.0;
const BARS: f64 = 64.0;
const REMARK: f64 = 13.0;
const BINS_PER_DECADE: i32 = 12;

/// What is drawn of a mode.
#[derive(Debug)]
pub struct Strip<'a> {
    /// The mode's name.
    pub name: &'a str,
    /// A few words each, below the name.
    pub remarks: Vec<String>,
    /// The distribution.
    pub waits: &'a Waits,
}

/// Draws the waits of each mode as an SVG document.
#[must_use]
pub fn svg(title: &str, modes: &[Strip<'_>]) -> String {
    let modes: Vec<_> = modes.iter().filter(|mode| !mode.waits.is_empty()).collect();
    let shortest = modes.iter().map(|mode| mode.waits.min_us()).min().unwrap_or(1).max(1);
    let longest = modes.iter().map(|mode| mode.waits.max_us()).max().unwrap_or(1).max(1);
    let axis = Axis::enclosing(shortest, longest);
    let bottom = TOP + STRIP * modes.len() as f64;
    let height = bottom + 48.0;

    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"26\" font-size=\"15\">{title}</text>\n",
        title = escaped(title),
    );
    for power in axis.low..=axis.high {
        let bound = 10_f64.powi(power);
        let x = axis.x(bound);
        let label = human(bound as u64);
        line(
            &mut out,
            &format!(
                "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                bottom + 18.0
            ),
        );
    }
    line(
        &mut out,
        &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">wait from the opening of the \
             doors to the answer</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            bottom + 38.0
        ),
    );
    let mut top = TOP;
    for mode in modes {
        strip(&mut out, &axis, mode, top);
        top += STRIP;
    }
    out.push_str("</svg>\n");
    out
}

fn strip(out: &mut String, axis: &Axis, mode: &Strip<'_>, top: f64) {
    let Strip { name, remarks, waits } = mode;
    let base = top + STRIP - 12.0;
    line(
        out,
        &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-weight=\"bold\">{}</text>",
            LEFT - 10.0,
            base - REMARK * remarks.len() as f64,
            escaped(name)
        ),
    );
    for (below, remark) in remarks.iter().rev().enumerate() {
        line(
            out,
            &format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"10\" \
                 fill=\"#666\">{}</text>",
                LEFT - 10.0,
                base - REMARK * below as f64,
                escaped(remark)
            ),
        );
    }
    let bounds = axis.bins();
    let counts = waits.counts(&bounds);
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    for (range, &count) in bounds.windows(2).zip(&counts).filter(|(_, count)| **count > 0) {
        let (from, to, share) =
            (axis.x(range[0] as f64), axis.x(range[1] as f64), count as f64 / most as f64);
        line(
            out,
            &format!(
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"#4878a8\"><title>{} to {}: {count}</title></rect>",
                base - BARS * share,
                (to - from - 0.5).max(0.5),
                BARS * share,
                human(range[0]),
                human(range[1])
            ),
        );
    }
    line(out, &format!("<path d=\"M{LEFT} {base:.1}H{:.1}\" stroke=\"#222\"/>", WIDTH - RIGHT));
    marks(out, axis, waits, top, base);
}

fn marks(out: &mut String, axis: &Axis, waits: &Waits, top: f64, base: f64) {
    let waits = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]
        .map(|(label, quantile)| (label, waits.quantile_us(quantile)));
    // The texts stay inside the picture, and the next mark begins below the text that it would
    // cross otherwise.
    let to_the_left = axis.x(waits[2].1 as f64) > WIDTH / 2.0;
    let (anchor, shift, heights) = if to_the_left {
        ("end", -3.0, [30.0, 20.0, 10.0])
    } else {
        ("start", 3.0, [10.0, 20.0, 30.0])
    };
    for ((label, wait), height) in waits.into_iter().zip(heights) {
        let x = axis.x(wait as f64);
        line(
            out,
            &format!(
                "<path d=\"M{x:.1} {base:.1}V{:.1}\" stroke=\"#c23b22\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" font-size=\"10\" \
                 fill=\"#c23b22\">{label} {}</text>",
                top + height - 6.0,
                x + shift,
                top + height,
                human(wait)
            ),
        );
    }
}

/// A logarithmic axis from `10^low` to `10^high` microseconds.
struct Axis {
    low: i32,
    high: i32,
}

impl Axis {
    fn enclosing(shortest: u64, longest: u64) -> Self {
        let power = |us: u64| i32::try_from(us.ilog10()).unwrap_or_default();
        Self { low: power(shortest), high: power(longest) + 1 }
    }

    fn x(&self, us: f64) -> f64 {
        let share = (us.max(1.0).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn bins(&self) -> Vec<u64> {
        let count = (self.high - self.low) * BINS_PER_DECADE;
        let bound = |bin: i32| {
            10_f64.powf(f64::from(self.low) + f64::from(bin) / f64::from(BINS_PER_DECADE))
        };
        let mut bins: Vec<u64> = (0..=count).map(|bin| bound(bin).round() as u64).collect();
        // The lowest bin takes a wait of zero too; single microseconds make some bins coincide.
        bins[0] = 0;
        bins.dedup();
        bins
    }
}

fn line(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{text}");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
