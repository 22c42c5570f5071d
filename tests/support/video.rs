//! Inspects recordings: their length and chapters, the text in their frames, and stored files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::service::Deployment;

/// Asserts that the recording's length is the browser's within five percent, and that its chapters
/// are the workflow's nodes and begin at the timeline's times.
pub async fn assert_length_and_chapters(deployment: &Deployment, id: &str, file: &Path) {
    let timeline = deployment.partner.get(&format!("browser-session/{id}/events")).await;
    let events = timeline.at("/data").as_array().unwrap().clone();
    let moment = |event: &Value| event["at"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    let when = |status: &str| {
        let first = events.iter().find(|event| event["status"] == status);
        moment(first.unwrap_or_else(|| panic!("{status}: {events:?}")))
    };
    let begins = when("READY");
    let lasted = (when("ERROR") - begins).as_seconds_f64();
    let probe = Command::new("ffprobe")
        .args(["-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_chapters"])
        .arg(file)
        .output()
        .unwrap();
    let probe: Value = serde_json::from_slice(&probe.stdout).unwrap();
    assert_eq!(probe["streams"][0]["codec_name"], "h264");
    let seconds = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
    let length = seconds(&probe["format"]["duration"]);
    println!("the recording lasts {length:.2} s, the browser ran for {lasted:.2} s");
    assert!((length - lasted).abs() < lasted * 0.05, "{length} s of {lasted} s");
    let chapters = probe["chapters"].as_array().unwrap();
    let names: Vec<_> = chapters.iter().map(|c| c["tags"]["title"].as_str().unwrap()).collect();
    // A node that the workflow passes without a pause has no chapter.
    let long: Vec<_> = names.into_iter().filter(|name| *name != "route").collect();
    assert_eq!(long, ["open", "linger", "login", "code", "stall"]);
    let login = chapters.iter().find(|chapter| chapter["tags"]["title"] == "login").unwrap();
    let waited = (when("AWAITING_USER") - begins).as_seconds_f64();
    let off = seconds(&login["start_time"]) - waited;
    assert!(off.abs() < 0.5, "the chapter is {off} s off");
    let ratio = took(deployment) / length;
    println!("it was encoded in {ratio:.3} of its length");
    let bytes = fs::read(file).unwrap();
    let place = |name: &[u8]| bytes.windows(4).position(|part| part == name).unwrap();
    assert!(place(b"moov") < place(b"mdat"), "the index precedes the data");
}

/// Returns the seconds of the encoding that the log reports.
fn took(deployment: &Deployment) -> f64 {
    let log = fs::read_to_string(deployment.log()).unwrap();
    let (_, rest) = log
        .split_once("took_ms\u{1b}[0m\u{1b}[2m=\u{1b}[0m")
        .or_else(|| log.split_once("took_ms="))
        .unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<f64>().unwrap() / 1000.0
}

/// Reads every frame of the recording: the pages are in it, the typed texts are not.
pub fn assert_no_secret_in_frames(file: &Path, secrets: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path();
    let cut = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(file)
        .args(["-vf", "fps=2.5,scale=2*iw:-1,format=gray"])
        .arg(frames.join("%04d.png"))
        .status();
    assert!(cut.unwrap().success());
    let mut seen = String::new();
    let mut pictures: Vec<PathBuf> =
        fs::read_dir(frames).unwrap().map(|entry| entry.unwrap().path()).collect();
    pictures.sort();
    let mut last = vec![];
    for picture in pictures {
        let content = fs::read(&picture).unwrap();
        if content == last {
            continue;
        }
        // Text in a box is recognised as a page or as single words, seldom in both ways.
        for look in ["4", "11"] {
            let mut reader = Command::new("tesseract");
            let read = reader.env("OMP_THREAD_LIMIT", "1").arg(&picture).args(["-", "--psm", look]);
            seen.push_str(&String::from_utf8_lossy(&read.output().unwrap().stdout));
        }
        last = content;
    }
    for page in ["Sign in", "Hello"] {
        assert!(seen.contains(page), "{page} is not in the frames: {seen}");
    }
    let close = seen.to_lowercase().replace(char::is_whitespace, "");
    for secret in secrets {
        assert!(!close.contains(*secret), "{secret} is in the frames: {seen}");
    }
}

/// Returns every file below a folder, except for hidden files of servers.
pub fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else if !entry.file_name().to_string_lossy().starts_with('.') {
            // A file may be deleted at this moment.
            let content = fs::read(entry.path());
            found.extend(content.map(|content| (entry.path().display().to_string(), content)));
        }
    }
    found
}

pub fn find(content: &[u8], wanted: &[u8]) -> bool {
    crate::contains(content, wanted)
}
