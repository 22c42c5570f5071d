//! What is kept of what a session's browsers showed, and the film that is made of it.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// How long the last picture is shown where nobody says when it was over.
const TAIL: Duration = Duration::from_millis(500);

/// Something that was seen, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedItem {
    pub at: DateTime<Utc>,
    pub what: RecordedContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedContent {
    /// A picture as JPEG, with what is secret covered.
    Picture(Vec<u8>),
    /// The workflow came to the node of this name.
    Node(String),
    /// Nothing more comes of this browser.
    End,
}

/// Pictures with their places in time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// From when each picture is shown, in order; the first from the beginning.
    pub pictures: Vec<(Duration, Vec<u8>)>,
    /// In order, one after the other, none of no length.
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
    /// Puts reels together, one for each browser in their order: time between two browsers is left
    /// out. `None` where there is no picture.
    #[must_use]
    pub fn of(reels: Vec<Vec<RecordedItem>>) -> Option<Self> {
        let mut film = Self::default();
        for reel in reels {
            film.append(reel);
        }
        film.pictures.first_mut()?.0 = Duration::ZERO;
        Some(film)
    }

    fn append(&mut self, reel: Vec<RecordedItem>) {
        let Some(begins) = reel.iter().map(|shot| shot.at).min() else { return };
        let offset = self.length;
        let mut last = Duration::ZERO;
        let mut ended = None;
        let mut nodes = vec![];
        for RecordedItem { at, what } in reel {
            // A clock that was set back moves nothing back.
            last = last.max((at - begins).to_std().unwrap_or_default());
            match what {
                RecordedContent::Picture(jpeg) => self.pictures.push((offset + last, jpeg)),
                RecordedContent::Node(name) => nodes.push((offset + last, name)),
                RecordedContent::End => ended = Some(offset + last),
            }
        }
        self.length = ended.unwrap_or(offset + last + TAIL);
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

    fn picture(name: u8) -> RecordedContent {
        RecordedContent::Picture(vec![name])
    }

    fn node(name: &str) -> RecordedContent {
        RecordedContent::Node(name.into())
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_film_lasts_from_the_first_shot_to_the_end() {
        let reel = vec![
            at(0, node("open")),
            at(120, picture(1)),
            at(800, node("route")),
            at(800, node("login")),
            at(900, picture(2)),
            at(4000, RecordedContent::End),
        ];
        let film = Recording::of(vec![reel]).unwrap();
        assert_eq!(film.pictures, [(ms(0), vec![1]), (ms(900), vec![2])]);
        assert_eq!(film.length, ms(4000));
        let chapters: Vec<_> =
            film.chapters.iter().map(|c| (c.name.as_str(), c.from, c.to)).collect();
        assert_eq!(chapters, [("open", ms(0), ms(800)), ("login", ms(800), ms(4000))]);
    }

    #[test]
    fn the_reels_of_two_browsers_follow_one_another() {
        let first = vec![at(0, picture(1)), at(1000, node("open"))];
        let second = vec![at(90_000, picture(2)), at(92_000, RecordedContent::End)];
        let film = Recording::of(vec![first, vec![], second]).unwrap();
        assert_eq!(film.pictures, [(ms(0), vec![1]), (ms(1500), vec![2])]);
        assert_eq!(film.length, ms(3500));
        assert_eq!(film.chapters.len(), 1);
    }

    #[test]
    fn nothing_seen_is_no_film_and_time_never_runs_back() {
        assert_eq!(Recording::of(vec![]), None);
        assert_eq!(
            Recording::of(vec![vec![at(0, node("open")), at(9, RecordedContent::End)]]),
            None
        );
        let film = Recording::of(vec![vec![at(500, picture(1)), at(0, picture(2))]]).unwrap();
        assert!(film.pictures.is_sorted_by_key(|(from, _)| *from));
    }
}
