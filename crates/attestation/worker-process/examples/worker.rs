//! A worker process whose jobs the tests control.

use std::{process::ExitCode, time::Duration};

use worker_process::{Bounds, serve};

fn main() -> ExitCode {
    let bounds = Bounds { memory: 512 * 1024 * 1024, idle_timeout: Duration::from_millis(300) };
    serve(bounds, |job| match job {
        b"die" => std::process::abort(),
        b"sleep" => {
            std::thread::sleep(Duration::from_secs(60));
            vec![]
        }
        b"eat" => {
            std::hint::black_box(vec![1; 1024 * 1024 * 1024]).split_off(1024 * 1024 * 1024 - 1)
        }
        b"write" => {
            let file = std::env::temp_dir().join(std::process::id().to_string());
            let written = std::fs::write(&file, "x");
            let _ = std::fs::remove_file(file);
            written.map_or(b"no".to_vec(), |()| vec![])
        }
        b"who" => std::process::id().to_string().into_bytes(),
        b"see" => std::env::vars().count().to_string().into_bytes(),
        job => job.to_vec(),
    })
}
