//! Recorded items of a session's browsers, and the recording that is assembled from them.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// How long the last frame is shown if the segment has no end.
const LAST_FRAME_DURATION: Duration = Duration::from_millis(500);

/// A recorded item and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedItem {
    pub at: DateTime<Utc>,
    pub what: RecordedContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedContent {
    /// A redacted frame as JPEG.
    Picture(Vec<u8>),
    /// The workflow entered the node of this name.
    Node(String),
    /// The last item of a browser.
    End,
}

/// The frames and chapters of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// The frames in order, each with the time from which it is shown; the first is shown from the
    /// start.
    pub pictures: Vec<(Duration, Vec<u8>)>,
    /// The chapters in order, without overlap, each longer than zero.
    pub chapters: Vec<Chapter>,
    pub length: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chapter {
    pub from: Duration,
    pub to: Duration,
    pub name: String,
}

impl Recording {
    /// Joins segments, one per browser and in their order; the time between two browsers is
    /// omitted. `None` if there is no frame.
    #[must_use]
    pub fn of(segments: Vec<Vec<RecordedItem>>) -> Option<Self> {
        let mut recording = Self::default();
        for segment in segments {
            recording.append(segment);
        }
        recording.pictures.first_mut()?.0 = Duration::ZERO;
        Some(recording)
    }

    fn append(&mut self, segment: Vec<RecordedItem>) {
        let Some(start) = segment.iter().map(|item| item.at).min() else { return };
        let offset = self.length;
        let mut last = Duration::ZERO;
        let mut end = None;
        let mut nodes = vec![];
        for RecordedItem { at, what } in segment {
            // The times must not decrease, even if the clock was set back.
            last = last.max((at - start).to_std().unwrap_or_default());
            match what {
                RecordedContent::Picture(jpeg) => self.pictures.push((offset + last, jpeg)),
                RecordedContent::Node(name) => nodes.push((offset + last, name)),
                RecordedContent::End => end = Some(offset + last),
            }
        }
        self.length = end.unwrap_or(offset + last + LAST_FRAME_DURATION);
        let ends = nodes.iter().skip(1).map(|(from, _)| *from).chain([self.length]);
        let ends: Vec<_> = ends.collect();
        let chapters =
            nodes.into_iter().zip(ends).filter(|((from, _), to)| from.as_millis() < to.as_millis());
        self.chapters.extend(chapters.map(|((from, name), to)| Chapter { from, to, name }));
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(millis: i64, what: RecordedContent) -> RecordedItem {
        let noon = DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default();
        RecordedItem { at: noon + TimeDelta::milliseconds(millis), what }
    }

    fn frame(name: u8) -> RecordedContent {
        RecordedContent::Picture(vec![name])
    }

    fn node(name: &str) -> RecordedContent {
        RecordedContent::Node(name.into())
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_recording_lasts_from_the_first_item_to_the_end() {
        let segment = vec![
            at(0, node("open")),
            at(120, frame(1)),
            at(800, node("route")),
            at(800, node("login")),
            at(900, frame(2)),
            at(4000, RecordedContent::End),
        ];
        let recording = Recording::of(vec![segment]).unwrap();
        assert_eq!(recording.pictures, [(ms(0), vec![1]), (ms(900), vec![2])]);
        assert_eq!(recording.length, ms(4000));
        let chapters: Vec<_> =
            recording.chapters.iter().map(|c| (c.name.as_str(), c.from, c.to)).collect();
        assert_eq!(chapters, [("open", ms(0), ms(800)), ("login", ms(800), ms(4000))]);
    }

    #[test]
    fn the_segments_of_two_browsers_follow_one_another() {
        let first = vec![at(0, frame(1)), at(1000, node("open"))];
        let second = vec![at(90_000, frame(2)), at(92_000, RecordedContent::End)];
        let recording = Recording::of(vec![first, vec![], second]).unwrap();
        assert_eq!(recording.pictures, [(ms(0), vec![1]), (ms(1500), vec![2])]);
        assert_eq!(recording.length, ms(3500));
        assert_eq!(recording.chapters.len(), 1);
    }

    #[test]
    fn a_recording_needs_a_frame_and_its_times_never_decrease() {
        assert_eq!(Recording::of(vec![]), None);
        assert_eq!(
            Recording::of(vec![vec![at(0, node("open")), at(9, RecordedContent::End)]]),
            None
        );
        let recording = Recording::of(vec![vec![at(500, frame(1)), at(0, frame(2))]]).unwrap();
        assert!(recording.pictures.is_sorted_by_key(|(from, _)| *from));
    }
}
