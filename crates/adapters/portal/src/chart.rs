//! The chart of sessions by day: stacked bars with axes, as SVG that needs no script.

use chrono::NaiveDate;
use domain::session::Status;
use ports::driving::DailyCounts;
use serde::Serialize;

use crate::{
    message::{Message, message},
    page::{long_date, short_date},
};

/// The kinds of a bar's parts, from the bottom up: the class of the part, and its label.
pub(crate) const KINDS: [(&str, Message); KIND_COUNT] = [
    ("good", message("Completed")),
    ("part", message("Partially completed")),
    ("bad", message("Failed")),
    ("left", message("Canceled or terminated")),
    ("open", message("In progress")),
];
const KIND_COUNT: usize = 5;
/// Units of the chart. The width of the plot is divisible by the number of days of every range.
const PLOT_WIDTH: usize = 1260;
const PLOT_HEIGHT: usize = 240;
const LEFT: usize = 56;
const RIGHT: usize = 24;
/// Leaves space for the minimum height of each kind above the highest bar.
const TOP: usize = 24;
const BOTTOM: usize = 36;
/// The minimum height of a part.
const MIN_HEIGHT: usize = 2;
/// The maximum number of dates at the horizontal axis.
const MAX_DATES: usize = 7;

/// What the template draws.
#[derive(Serialize)]
pub(crate) struct Chart {
    width: usize,
    height: usize,
    left: usize,
    right: usize,
    bottom: usize,
    lines: Vec<GridLine>,
    days: Vec<Day>,
}

/// A horizontal line of the grid, and its value.
#[derive(Serialize)]
struct GridLine {
    y: usize,
    value: usize,
}

#[derive(Serialize)]
struct Day {
    date: String,
    /// In the order of [`KINDS`].
    counts: [usize; KIND_COUNT],
    /// The lines that a pointer over the day shows.
    tooltip: Vec<Message>,
    /// The date at the axis, for some of the days.
    label: Option<Message>,
    x: usize,
    width: usize,
    middle: usize,
    bars: Vec<Bar>,
}

#[derive(Serialize)]
struct Bar {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    kind: &'static str,
}

impl Chart {
    pub(crate) fn new(days: &[DailyCounts]) -> Self {
        let counts: Vec<_> = days.iter().map(|day| (day.date, counts(day))).collect();
        let highest = counts.iter().map(|(_, counts)| counts.iter().sum()).max().unwrap_or(0);
        let scale = scale(highest);
        let width = PLOT_WIDTH / days.len().max(1);
        let every = days.len().div_ceil(MAX_DATES).max(1);
        let day = |(index, (date, counts)): (usize, &(NaiveDate, _))| {
            let is_labelled = (days.len() - 1 - index).is_multiple_of(every);
            Day::new(*date, *counts, (LEFT + index * width, width), (scale, is_labelled))
        };
        let line = |value: usize| GridLine { y: TOP + PLOT_HEIGHT - height(value, scale), value };
        Self {
            width: LEFT + PLOT_WIDTH + RIGHT,
            height: TOP + PLOT_HEIGHT + BOTTOM,
            left: LEFT,
            right: LEFT + PLOT_WIDTH,
            bottom: TOP + PLOT_HEIGHT,
            lines: vec![line(0), line(scale / 2), line(scale)],
            days: counts.iter().enumerate().map(day).collect(),
        }
    }
}

impl Day {
    fn new(
        date: NaiveDate,
        counts: [usize; KIND_COUNT],
        (x, width): (usize, usize),
        (scale, is_labelled): (usize, bool),
    ) -> Self {
        let (mut bars, mut top) = (vec![], TOP + PLOT_HEIGHT);
        let gap = width / 8;
        for (count, (kind, _)) in counts.iter().zip(KINDS) {
            if *count > 0 {
                let height = height(*count, scale).max(MIN_HEIGHT);
                top = top.saturating_sub(height);
                bars.push(Bar { x: x + gap, y: top, width: width - 2 * gap, height, kind });
            }
        }
        let parts = counts.iter().zip(KINDS).filter(|(count, _)| **count > 0);
        let parts = parts.map(|(count, (_, name))| {
            message("{kind}: {count}").with("kind", name).with("count", *count)
        });
        let total: usize = counts.iter().sum();
        let heading = message("{date}, sessions: {count}").with("date", long_date(date));
        let tooltip = std::iter::once(heading.with("count", total)).chain(parts).collect();
        let label = is_labelled.then(|| short_date(date));
        let middle = x + width / 2;
        Self { date: date.to_string(), counts, tooltip, label, x, width, middle, bars }
    }
}

fn height(count: usize, scale: usize) -> usize {
    count * PLOT_HEIGHT / scale
}

/// Returns the value at the top of the vertical axis: 2, 4 or 10 times a power of ten, so that the
/// half of it is an integer.
fn scale(highest: usize) -> usize {
    let mut power = 1;
    loop {
        for factor in [2, 4, 10] {
            if factor * power >= highest {
                return factor * power;
            }
        }
        power *= 10;
    }
}

fn counts(day: &DailyCounts) -> [usize; KIND_COUNT] {
    let [mut completed, mut part, mut failed, mut left, mut open] = [0; KIND_COUNT];
    for (status, count) in &day.counts {
        let kind = match status {
            Status::Completed => &mut completed,
            Status::PartialComplete => &mut part,
            Status::Error => &mut failed,
            Status::Cancelled | Status::Terminated => &mut left,
            Status::Created
            | Status::Initializing
            | Status::Ready
            | Status::Connected
            | Status::LoadingTree
            | Status::Running
            | Status::AwaitingUser
            | Status::CollectingData
            | Status::Verifying => &mut open,
        };
        *kind += count;
    }
    [completed, part, failed, left, open]
}

#[cfg(test)]
mod tests {
    use chrono::Days;

    use super::*;

    fn days(counts: &[&[(Status, usize)]]) -> Vec<DailyCounts> {
        let first = NaiveDate::from_ymd_opt(2026, 1, 29).unwrap();
        let dates = (0..).map(|day| first + Days::new(day));
        let day = |(date, counts): (NaiveDate, &&[(Status, usize)])| DailyCounts {
            date,
            counts: counts.to_vec(),
        };
        dates.zip(counts).map(day).collect()
    }

    #[test]
    fn bars_stand_on_each_other_and_within_the_chart() {
        let many =
            [(Status::Completed, 100), (Status::Error, 1), (Status::Terminated, 1)].as_slice();
        let chart = Chart::new(&days(&[many, &[], &[(Status::Error, 1)], &[]]));
        let bars = chart.days.iter().flat_map(|day| &day.bars);
        let bars: Vec<_> =
            bars.map(|bar| (bar.x, bar.y, bar.width, bar.height, bar.kind)).collect();
        assert_eq!(
            bars,
            [
                (95, 144, 237, 120, "good"),
                (95, 142, 237, 2, "bad"),
                (95, 140, 237, 2, "left"),
                (725, 262, 237, 2, "bad"),
            ]
        );
        let lines: Vec<_> = chart.lines.iter().map(|line| (line.y, line.value)).collect();
        assert_eq!(lines, [(264, 0), (144, 100), (24, 200)]);
        let tooltip = |day: usize| {
            let lines = chart.days[day].tooltip.iter().map(ToString::to_string);
            lines.collect::<Vec<_>>().join("\n")
        };
        let expected =
            "Jan 29, 2026, sessions: 102\nCompleted: 100\nFailed: 1\nCanceled or terminated: 1";
        assert_eq!(tooltip(0), expected);
        assert_eq!(tooltip(1), "Jan 30, 2026, sessions: 0");
        let labels = chart.days.iter().filter_map(|day| day.label.as_ref());
        let labels: Vec<_> = labels.map(ToString::to_string).collect();
        assert_eq!(labels, ["Jan 29", "Jan 30", "Jan 31", "Feb 1"]);
    }

    #[test]
    fn long_ranges_have_a_few_dates_and_end_with_today() {
        for count in [7, 30, 90] {
            let chart = Chart::new(&days(&vec![[].as_slice(); count]));
            let labelled = chart.days.iter().filter(|day| day.label.is_some()).count();
            assert!((2..=MAX_DATES).contains(&labelled), "{count}: {labelled}");
            assert!(chart.days.last().is_some_and(|day| day.label.is_some()));
            let end = chart.days.last().map(|day| day.x + day.width);
            assert_eq!(end, Some(LEFT + PLOT_WIDTH), "{count}");
        }
    }

    #[test]
    fn the_axis_ends_at_a_round_number() {
        for (highest, expected) in
            [(0, 2), (1, 2), (3, 4), (5, 10), (11, 20), (41, 100), (101, 200)]
        {
            assert_eq!(scale(highest), expected, "{highest}");
        }
    }
}
