//! Encodes recordings with `ffmpeg`, which reads the frames from a pipe, so that they are never in
//! a file.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use async_trait::async_trait;
use domain::recording::Recording;
use ports::recording::{EncodeError, Encoder};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    sync::Semaphore,
};

/// Frames per second.
const FRAMES_PER_SECOND: u32 = 5;
/// Encoding an hour of recording takes some five minutes.
const ENCODE_TIMEOUT: Duration = Duration::from_secs(900);
const MAX_STDERR_BYTES: u64 = 4096;
/// The maximum length; longer recordings are cut.
const MAX_DURATION: Duration = Duration::from_secs(2 * 3600);

/// Encodes recordings one after another, with lower priority than the service.
pub struct Ffmpeg {
    folder: PathBuf,
    permit: Semaphore,
}

impl Ffmpeg {
    /// Creates an encoder whose files are in this folder while it encodes. They are not encrypted: where
    /// the process is killed meanwhile, they remain until the folder is removed.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, permit: Semaphore::new(1) }
    }
}

#[async_trait]
impl Encoder for Ffmpeg {
    async fn encode(&self, recording: Recording) -> Result<Vec<u8>, EncodeError> {
        let turn = self.permit.acquire().await;
        let _turn = turn.map_err(|_| EncodeError::Failed("the encoder was closed".into()))?;
        let output = tokio::time::timeout(ENCODE_TIMEOUT, make(&self.folder, &recording)).await;
        output.unwrap_or_else(|_| Err(EncodeError::Failed("encoding timed out".into())))
    }
}

async fn make(parent: &Path, recording: &Recording) -> Result<Vec<u8>, EncodeError> {
    let failed = |what: &'static str| {
        move |error: std::io::Error| EncodeError::Failed(format!("{what}: {error}"))
    };
    let folder = tempfile::tempdir_in(parent).map_err(failed("failed to create a folder"))?;
    let (metadata, output) = (folder.path().join("chapters"), folder.path().join("film.mp4"));
    tokio::fs::write(&metadata, chapters(recording))
        .await
        .map_err(failed("failed to write the chapters"))?;
    let (width, height) = size(recording)?;
    let mut child = command(&metadata, &output, width, height)
        .spawn()
        .map_err(|error| EncodeError::Impossible(format!("failed to run ffmpeg: {error}")))?;
    let (mut stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let feed = async {
        if let Some(pipe) = &mut stdin {
            // A broken pipe shows in the exit status of the program.
            let _ = feed(recording, pipe).await;
        }
        drop(stdin.take());
    };
    let stderr_text = async {
        let mut text = String::new();
        if let Some(stderr) = stderr {
            let _ = stderr.take(MAX_STDERR_BYTES).read_to_string(&mut text).await;
        }
        text
    };
    let (status, (), stderr_text) = tokio::join!(child.wait(), feed, stderr_text);
    let status = status.map_err(failed("ffmpeg"))?;
    if !status.success() {
        return Err(EncodeError::Failed(format!("ffmpeg: {status}: {}", stderr_text.trim())));
    }
    tokio::fs::read(&output).await.map_err(failed("failed to read the result"))
}

fn command(metadata: &Path, output: &Path, width: u16, height: u16) -> Command {
    // Frames of another size, for example of a new window, are centered.
    let filter = format!(
        "scale={width}:{height}:force_original_aspect_ratio=decrease,\
         pad={width}:{height}:(ow-iw)/2:(oh-ih)/2,format=yuv420p"
    );
    let mut command = Command::new("nice");
    command
        .args(["-n", "10", "ffmpeg", "-v", "error", "-f", "image2pipe", "-c:v", "mjpeg"])
        .args([
            "-framerate",
            &FRAMES_PER_SECOND.to_string(),
            "-i",
            "pipe:0",
            "-f",
            "ffmetadata",
            "-i",
        ])
        .arg(metadata)
        .args(["-map", "0:v", "-map_metadata", "1", "-map_chapters", "1", "-vf", &filter])
        .args(["-c:v", "libx264", "-preset", "veryfast", "-crf", "28", "-threads", "1"])
        .args(["-movflags", "+faststart", "-y"])
        .arg(output)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Writes each frame as many times as it is visible.
async fn feed(recording: &Recording, pipe: &mut tokio::process::ChildStdin) -> std::io::Result<()> {
    let step = Duration::from_secs(1) / FRAMES_PER_SECOND;
    let length = recording.length.min(MAX_DURATION);
    let ends = recording.pictures.iter().skip(1).map(|(from, _)| *from).chain([length]);
    let mut shown = Duration::ZERO;
    for ((_, jpeg), end) in recording.pictures.iter().zip(ends) {
        while shown < end.min(length) {
            pipe.write_all(jpeg).await?;
            shown += step;
        }
    }
    pipe.shutdown().await
}

/// Returns the size of the largest frame, rounded up to even numbers, which the encoder requires.
fn size(recording: &Recording) -> Result<(u16, u16), EncodeError> {
    let pictures =
        recording.pictures.iter().filter_map(|(_, jpeg)| jpeg_delta::JpegImage::decode(jpeg).ok());
    let sizes = pictures.map(|picture| (picture.width(), picture.height()));
    let largest = sizes.max_by_key(|(width, height)| u32::from(*width) * u32::from(*height));
    let (width, height) =
        largest.ok_or_else(|| EncodeError::Impossible("nothing was recorded".into()))?;
    Ok((width.next_multiple_of(2), height.next_multiple_of(2)))
}

/// Formats the chapters as ffmpeg metadata, version 1.
fn chapters(recording: &Recording) -> String {
    let mut text = String::from(";FFMETADATA1\n");
    for chapter in &recording.chapters {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_of_an_encoding_are_in_the_folder_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let recording =
            || Recording { pictures: vec![], chapters: vec![], length: Duration::from_secs(1) };
        let encoder = Ffmpeg::new(folder.path().to_owned());
        let nothing = encoder.encode(recording()).await;
        assert!(matches!(nothing, Err(EncodeError::Impossible(_))), "{nothing:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");

        // Where the folder is gone, no other one is taken.
        drop(folder);
        let failed = encoder.encode(recording()).await;
        assert!(
            matches!(&failed, Err(EncodeError::Failed(why)) if why.contains("create a folder")),
            "{failed:?}"
        );
    }
}
