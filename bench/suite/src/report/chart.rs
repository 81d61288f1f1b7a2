//! Charts, drawn by hand on plotters' surface: bars with their values beside them, and lines with
//! their names at the end.

use std::path::Path;

use plotters::{
    prelude::{Circle, IntoDrawingArea, PathElement, RGBColor, Rectangle, SVGBackend, Text},
    style::{
        Color, IntoFont, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use crate::Error;

/// One hue; what is ours is full, what is written by hand is in between, peers are pale.
const OURS: RGBColor = RGBColor(21, 88, 160);
const BY_HAND: RGBColor = RGBColor(110, 158, 208);
const PEER: RGBColor = RGBColor(185, 208, 232);
const INK: RGBColor = RGBColor(30, 36, 44);
const FAINT: RGBColor = RGBColor(120, 128, 138);
const GRID: RGBColor = RGBColor(228, 232, 237);

/// Whose a bar or line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    ByHand,
    Peer,
}

impl Whose {
    fn colour(self) -> RGBColor {
        match self {
            Self::Ours => OURS,
            Self::ByHand => BY_HAND,
            Self::Peer => PEER,
        }
    }

    /// Pale lines would be hard to see.
    fn line_colour(self) -> RGBColor {
        if self == Self::Peer { RGBColor(150, 170, 192) } else { self.colour() }
    }
}

#[derive(Debug)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    /// The value for people.
    pub(super) text: String,
    pub(super) whose: Whose,
    /// Drawn as an outline: it did not do what the others did.
    pub(super) failed: bool,
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) label: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) whose: Whose,
}

/// A scale from values to pixels, by powers of ten if it has to be.
struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    logarithmic: bool,
}

impl Scale {
    fn place(&self, value: f64) -> i32 {
        let map = |value: f64| if self.logarithmic { value.ln() } else { value };
        let share = (map(value) - map(self.from)) / (map(self.to) - map(self.from));
        (self.start + share * (self.end - self.start)).round() as i32
    }

    /// A few round numbers in its range: powers of ten if it has several, or else also their
    /// double and fivefold.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let steps: &[f64] = if self.to / self.from > 200.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let powers = (-12..=12).map(|power| 10_f64.powi(power));
            let range = self.from * 0.999..=self.to * 1.001;
            powers
                .flat_map(|power| steps.iter().map(move |step| step * power))
                .filter(|tick| range.contains(tick))
                .collect()
        } else {
            let step = round_step((self.to - self.from) / 4.0);
            (0..).map(|index| f64::from(index) * step).take_while(|&tick| tick <= self.to).collect()
        }
    }
}

/// Round numbers need no decimals: 1 ms instead of 1.00 ms.
fn short(text: String) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = match number.split_once('.') {
        Some(_) => number.trim_end_matches('0').trim_end_matches('.'),
        None => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// 1, 2 or 5 times a power of ten, not below.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= least * 0.999).unwrap_or(power)
}

const WIDTH: u32 = 860;
const LEFT: i32 = 270;
const TOP: i32 = 64;

fn style(size: i32, colour: RGBColor, horizontal: HPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour).pos(Pos::new(horizontal, VPos::Center))
}

/// Horizontal bars. The scale is logarithmic if the longest is more than twenty times the shortest.
pub(super) fn bars(
    file: &Path,
    title: &str,
    subtitle: &str,
    bars: &[Bar],
    unit: impl Fn(f64) -> String,
) -> Result<(), Error> {
    const STEP: i32 = 24;
    let least = bars.iter().map(|bar| bar.value).fold(f64::INFINITY, f64::min);
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let logarithmic = most / least > 20.0;
    let from = if logarithmic { 10_f64.powf(least.log10().floor()) } else { 0.0 };
    let scale = Scale {
        from,
        to: most,
        start: f64::from(LEFT),
        end: f64::from(WIDTH) - 150.0,
        logarithmic,
    };
    let bottom = TOP + STEP * bars.len() as i32;
    let height = (bottom + 34) as u32;
    let root = SVGBackend::new(file, (WIDTH, height)).into_drawing_area();
    root.fill(&RGBColor(255, 255, 255))?;
    let note =
        if logarithmic { format!("{subtitle}; logarithmic scale") } else { subtitle.to_owned() };
    root.draw(&Text::new(title.to_owned(), (16, 20), style(17, INK, HPos::Left)))?;
    root.draw(&Text::new(note, (16, 42), style(13, FAINT, HPos::Left)))?;
    for tick in scale.ticks() {
        let x = scale.place(tick);
        root.draw(&PathElement::new(vec![(x, TOP - 2), (x, bottom)], GRID.stroke_width(1)))?;
        root.draw(&Text::new(short(unit(tick)), (x, bottom + 14), style(12, FAINT, HPos::Center)))?;
    }
    for (index, bar) in bars.iter().enumerate() {
        let middle = TOP + STEP * index as i32 + STEP / 2;
        let x = scale.place(bar.value).max(LEFT + 2);
        let corners = [(LEFT, middle - 8), (x, middle + 8)];
        let colour = bar.whose.colour();
        let fill = if bar.failed { colour.stroke_width(2) } else { colour.filled() };
        root.draw(&Rectangle::new(corners, fill))?;
        let label = style(13, INK, HPos::Right);
        root.draw(&Text::new(bar.label.clone(), (LEFT - 8, middle), label))?;
        root.draw(&Text::new(bar.text.clone(), (x + 6, middle), style(13, INK, HPos::Left)))?;
    }
    Ok(root.present()?)
}

/// Lines over powers of two, both scales logarithmic.
pub(super) fn lines(
    file: &Path,
    title: &str,
    subtitle: &str,
    x_label: &str,
    lines: &[Line],
    unit: impl Fn(f64) -> String,
) -> Result<(), Error> {
    const HEIGHT: u32 = 460;
    const AXIS: i32 = 70;
    let points = || lines.iter().flat_map(|line| &line.points);
    let [least, most] = [
        points().map(|point| point.1).fold(f64::INFINITY, f64::min),
        points().map(|point| point.1).fold(0.0, f64::max),
    ];
    let [first, last] = [
        points().map(|point| point.0).fold(f64::INFINITY, f64::min),
        points().map(|point| point.0).fold(0.0, f64::max),
    ];
    let bottom = f64::from(HEIGHT) - 52.0;
    let y = Scale {
        from: least * 0.8,
        to: most * 1.2,
        start: bottom,
        end: f64::from(TOP),
        logarithmic: true,
    };
    let x = Scale {
        from: first,
        to: last.max(first * 2.0),
        start: f64::from(AXIS),
        end: f64::from(WIDTH) - 230.0,
        logarithmic: true,
    };
    let root = SVGBackend::new(file, (WIDTH, HEIGHT)).into_drawing_area();
    root.fill(&RGBColor(255, 255, 255))?;
    let note = format!("{subtitle}; logarithmic scales");
    root.draw(&Text::new(title.to_owned(), (16, 20), style(17, INK, HPos::Left)))?;
    root.draw(&Text::new(note, (16, 42), style(13, FAINT, HPos::Left)))?;
    for tick in y.ticks() {
        let height = y.place(tick);
        let line = vec![(AXIS, height), (x.end as i32, height)];
        root.draw(&PathElement::new(line, GRID.stroke_width(1)))?;
        root.draw(&Text::new(
            short(unit(tick)),
            (AXIS - 8, height),
            style(12, FAINT, HPos::Right),
        ))?;
    }
    let mut columns: Vec<f64> = points().map(|point| point.0).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    for column in columns {
        let at = (x.place(column), bottom as i32 + 14);
        root.draw(&Text::new(column.to_string(), at, style(12, FAINT, HPos::Center)))?;
    }
    let at = ((AXIS + x.end as i32) / 2, bottom as i32 + 36);
    root.draw(&Text::new(x_label.to_owned(), at, style(13, FAINT, HPos::Center)))?;
    // Ours last, on top of the others.
    let mut in_order: Vec<&Line> = lines.iter().collect();
    in_order.sort_by_key(|line| line.whose == Whose::Ours);
    for line in in_order {
        let colour = line.whose.line_colour();
        let width = if line.whose == Whose::Ours { 3 } else { 2 };
        let path: Vec<_> =
            line.points.iter().map(|point| (x.place(point.0), y.place(point.1))).collect();
        for &point in &path {
            root.draw(&Circle::new(point, 3, colour.filled()))?;
        }
        root.draw(&PathElement::new(path, colour.stroke_width(width)))?;
    }
    for (line, height) in labels(lines, &y) {
        let colour = if line.whose == Whose::Ours { OURS } else { INK };
        let at = (x.end as i32 + 10, height);
        root.draw(&Text::new(line.label.clone(), at, style(13, colour, HPos::Left)))?;
    }
    Ok(root.present()?)
}

/// Where the names stand: beside the ends of their lines, but not on one another.
fn labels<'a>(lines: &'a [Line], y: &Scale) -> Vec<(&'a Line, i32)> {
    const APART: i32 = 17;
    let mut labels: Vec<_> =
        lines.iter().filter_map(|line| Some((line, y.place(line.points.last()?.1)))).collect();
    labels.sort_by_key(|(_, height)| *height);
    for index in 1..labels.len() {
        labels[index].1 = labels[index].1.max(labels[index - 1].1 + APART);
    }
    // What was pushed below the axis goes up again, and takes those above it along.
    let mut lowest = y.start as i32;
    for label in labels.iter_mut().rev() {
        label.1 = label.1.min(lowest);
        lowest = label.1 - APART;
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_ticks() {
        let scale = Scale { from: 0.0, to: 73.0, start: 0.0, end: 730.0, logarithmic: false };
        assert_eq!(scale.ticks(), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(scale.place(20.0), 200);
        let scale = Scale { from: 1.0, to: 1000.0, start: 0.0, end: 300.0, logarithmic: true };
        assert_eq!(scale.ticks(), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(scale.place(10.0), 100);
        let scale = Scale { from: 3.0, to: 30.0, start: 0.0, end: 300.0, logarithmic: true };
        assert_eq!(scale.ticks(), [5.0, 10.0, 20.0]);
    }

    #[test]
    fn names_of_lines_do_not_cover_each_other() {
        let y = Scale { from: 1.0, to: 10.0, start: 100.0, end: 0.0, logarithmic: true };
        let line =
            |value| Line { label: String::new(), points: vec![(1.0, value)], whose: Whose::Peer };
        let lines = [line(1.0), line(1.01), line(10.0)];
        let heights: Vec<i32> = labels(&lines, &y).iter().map(|(_, height)| *height).collect();
        assert_eq!(heights, [0, 83, 100]);
    }
}
