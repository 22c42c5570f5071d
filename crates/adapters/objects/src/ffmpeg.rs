//! Films made by `ffmpeg`, which gets pictures through a pipe and never a file of them.

use std::{fmt::Write as _, path::Path, process::Stdio, time::Duration};

use async_trait::async_trait;
use domain::recording::Recording;
use ports::recording::{EncodeError, Encoder};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    sync::Semaphore,
};

/// Pictures a second.
const FRAME_INTERVAL: u32 = 5;
/// An hour of film takes some five minutes.
const ENCODE_TIMEOUT: Duration = Duration::from_secs(900);
const MAX_STDERR_BYTES: u64 = 4096;
/// Longer films are cut there.
const MAX_DURATION: Duration = Duration::from_secs(2 * 3600);

/// Makes films one after another, below the service's own priority.
pub struct Ffmpeg {
    one: Semaphore,
}

impl Default for Ffmpeg {
    fn default() -> Self {
        Self { one: Semaphore::new(1) }
    }
}

#[async_trait]
impl Encoder for Ffmpeg {
    async fn encode(&self, film: Recording) -> Result<Vec<u8>, EncodeError> {
        let turn = self.one.acquire().await;
        let _turn = turn.map_err(|_| EncodeError::Failed("no more films are made".into()))?;
        let made = tokio::time::timeout(ENCODE_TIMEOUT, make(&film)).await;
        made.unwrap_or_else(|_| Err(EncodeError::Failed("it took too long".into())))
    }
}

async fn make(film: &Recording) -> Result<Vec<u8>, EncodeError> {
    let failed = |what: &'static str| {
        move |error: std::io::Error| EncodeError::Failed(format!("{what}: {error}"))
    };
    let folder = tempfile::tempdir().map_err(failed("no folder"))?;
    let (notes, made) = (folder.path().join("chapters"), folder.path().join("film.mp4"));
    tokio::fs::write(&notes, chapters(film)).await.map_err(failed("no notes"))?;
    let (width, height) = size(film)?;
    let mut child = command(&notes, &made, width, height)
        .spawn()
        .map_err(|error| EncodeError::Impossible(format!("ffmpeg cannot be run: {error}")))?;
    let (mut stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let feed = async {
        if let Some(pipe) = &mut stdin {
            // A broken pipe shows in how the program ends.
            let _ = feed(film, pipe).await;
        }
        drop(stdin.take());
    };
    let complaint = async {
        let mut text = String::new();
        if let Some(stderr) = stderr {
            let _ = stderr.take(MAX_STDERR_BYTES).read_to_string(&mut text).await;
        }
        text
    };
    let (status, (), complaint) = tokio::join!(child.wait(), feed, complaint);
    let status = status.map_err(failed("ffmpeg"))?;
    if !status.success() {
        return Err(EncodeError::Failed(format!("ffmpeg: {status}: {}", complaint.trim())));
    }
    tokio::fs::read(&made).await.map_err(failed("no film"))
}

fn command(notes: &Path, made: &Path, width: u16, height: u16) -> Command {
    // Pictures of another size, as of a window that opened, are put into the middle.
    let shape = format!(
        "scale={width}:{height}:force_original_aspect_ratio=decrease,\
         pad={width}:{height}:(ow-iw)/2:(oh-ih)/2,format=yuv420p"
    );
    let mut command = Command::new("nice");
    command
        .args(["-n", "10", "ffmpeg", "-v", "error", "-f", "image2pipe", "-c:v", "mjpeg"])
        .args(["-framerate", &FRAME_INTERVAL.to_string(), "-i", "pipe:0", "-f", "ffmetadata", "-i"])
        .arg(notes)
        .args(["-map", "0:v", "-map_metadata", "1", "-map_chapters", "1", "-vf", &shape])
        .args(["-c:v", "libx264", "-preset", "veryfast", "-crf", "28", "-threads", "1"])
        .args(["-movflags", "+faststart", "-y"])
        .arg(made)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Gives each picture as often as it is to be seen.
async fn feed(film: &Recording, pipe: &mut tokio::process::ChildStdin) -> std::io::Result<()> {
    let step = Duration::from_secs(1) / FRAME_INTERVAL;
    let length = film.length.min(MAX_DURATION);
    let ends = film.pictures.iter().skip(1).map(|(from, _)| *from).chain([length]);
    let mut shown = Duration::ZERO;
    for ((_, jpeg), end) in film.pictures.iter().zip(ends) {
        while shown < end.min(length) {
            pipe.write_all(jpeg).await?;
            shown += step;
        }
    }
    pipe.shutdown().await
}

/// The largest picture's size, in even numbers, as the coder wants them.
fn size(film: &Recording) -> Result<(u16, u16), EncodeError> {
    let pictures =
        film.pictures.iter().filter_map(|(_, jpeg)| jpeg_delta::JpegImage::decode(jpeg).ok());
    let sizes = pictures.map(|picture| (picture.width(), picture.height()));
    let largest = sizes.max_by_key(|(width, height)| u32::from(*width) * u32::from(*height));
    let (width, height) =
        largest.ok_or_else(|| EncodeError::Impossible("nothing was recorded".into()))?;
    Ok((width.next_multiple_of(2), height.next_multiple_of(2)))
}

/// The chapters in the form that ffmpeg reads (its own metadata format, version 1).
fn chapters(film: &Recording) -> String {
    let mut text = String::from(";FFMETADATA1\n");
    for chapter in &film.chapters {
        let (from, to) = (chapter.from.as_millis(), chapter.to.as_millis());
        let name: String = chapter.name.chars().flat_map(escaped).collect();
        // Writing to a string does not fail.
        let _ = write!(text, "[CHAPTER]\nTIMEBASE=1/1000\nSTART={from}\nEND={to}\ntitle={name}\n");
    }
    text
}

fn escaped(letter: char) -> impl Iterator<Item = char> {
    let special = matches!(letter, '=' | ';' | '#' | '\\' | '\n');
    special.then_some('\\').into_iter().chain([letter])
}
