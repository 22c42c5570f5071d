//! What a browser in its jail is, sees, and may use.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

use std::{collections::BTreeSet, fs, net::TcpListener, path::Path, time::Duration};

use cdp::{Chromium, Jail, JailError, LaunchOptions, Launched};
use serde_json::{Value, json};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn is_an_ordinary_user_apart_from_everything_with_the_sandbox_on() {
    let (_folder, launched) = launch(vec![]).await;
    let processes = processes_of(launched.chromium.pid().unwrap());
    assert!(processes.len() >= 4, "{processes:?}");
    let mut shut = 0;
    for process in &processes {
        let Some(status) = read(process, "status") else { continue };
        let word = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let uid = word("Uid:").split_whitespace().next().unwrap();
        assert_ne!(uid, "0", "{process} is root");
        assert_eq!(word("NoNewPrivs:").trim(), "1", "{process}");
        for namespace in ["user", "net", "mnt", "ipc"] {
            let own = |process: &str| fs::read_link(format!("/proc/{process}/ns/{namespace}")).ok();
            assert_ne!(own(process), own("self"), "{process} is in our {namespace} namespace");
        }
        // Chromium's renderers filter their system calls.
        if read(process, "cmdline").is_some_and(|line| line.contains("--type=renderer")) {
            filtered(process).await;
            shut += 1;
        }
    }
    assert!(shut > 0, "there is a renderer");
    launched.chromium.end().await;
}

#[tokio::test]
async fn reaches_nothing_of_our_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_folder, launched) = launch(vec!["--no-proxy-server".into()]).await;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        "http://1.1.1.1/".to_owned(),
        "http://example.com/".to_owned(),
    ] {
        let opened = page(&launched, &url).await;
        assert!(opened["errorText"].is_string(), "{url}: {opened}");
    }
    assert!(listener.accept().is_err(), "somebody came");
    launched.chromium.end().await;
}

#[tokio::test]
async fn sees_its_own_folder_and_no_hidden_one() {
    let hidden = tempfile::tempdir().unwrap();
    fs::write(hidden.path().join("secret.key"), "canary").unwrap();
    let (folder, launched) = launch_hiding(hidden.path(), vec![]).await;
    let own = folder.path().join("b/profile");
    assert!(listing(&launched, &own).await.contains("Default"), "its own folder is there");
    let seen = listing(&launched, hidden.path()).await;
    assert!(!seen.contains("secret.key"), "{seen}");
    launched.chromium.end().await;
    assert!(!folder.path().join("b").exists(), "its folder goes with it");
}

#[tokio::test]
async fn may_use_two_cores_and_leaves_no_core_dump() {
    let (_folder, launched) = launch(vec![]).await;
    for process in processes_of(launched.chromium.pid().unwrap()) {
        let Some(limits) = read(&process, "limits") else { continue };
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
        let status = read(&process, "status").unwrap_or_default();
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"));
        let cores: u32 = cores
            .into_iter()
            .flat_map(str::chars)
            .filter_map(|c| c.to_digit(16))
            .map(u32::count_ones)
            .sum();
        assert!((1..=2).contains(&cores), "{cores} cores");
    }
    launched.chromium.end().await;
}

#[test]
fn a_kernel_that_forbids_it_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    jail(&[]).check(&folder.path().join("try")).unwrap();
    let forbids = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let helper = env!("CARGO_BIN_EXE_cdp-jail");
    let arguments = ["-U", "-r", "sh", "-c", forbids, helper].map(str::to_owned).to_vec();
    let forbidden = Jail { helper: "unshare".into(), arguments, ..jail(&[]) };
    let error = forbidden.check(&folder.path().join("try")).unwrap_err();
    assert!(matches!(&error, JailError::Forbidden(why) if !why.is_empty()), "{error:?}");
}

/// Waits until a process has its filter, which it is given shortly after it began.
async fn filtered(process: &str) {
    let ends = tokio::time::Instant::now() + PATIENCE;
    while read(process, "status").is_some_and(|status| !status.contains("Seccomp:\t2")) {
        assert!(tokio::time::Instant::now() < ends, "{process} has no filter");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn jail(hidden: &[&Path]) -> Jail {
    Jail {
        policies: None,
        helper: env!("CARGO_BIN_EXE_cdp-jail").into(),
        arguments: vec![],
        hidden: hidden.iter().map(|path| path.to_path_buf()).collect(),
        cores: 2,
    }
}

async fn launch(flags: Vec<String>) -> (TempDir, Launched) {
    launch_hiding(Path::new("/run"), flags).await
}

async fn launch_hiding(hidden: &Path, flags: Vec<String>) -> (TempDir, Launched) {
    let folder = tempfile::tempdir().unwrap();
    let options = LaunchOptions {
        executable: "chromium".into(),
        folder: folder.path().join("b"),
        flags,
        jail: Some(jail(&[&std::env::temp_dir(), hidden])),
        seat: 3,
    };
    let launched = Chromium::launch(&options).await.unwrap();
    (folder, launched)
}

/// Opens a page in a new tab; answers what the browser says of it.
async fn page(launched: &Launched, url: &str) -> Value {
    let session = tab(launched).await;
    let client = &launched.chromium.client;
    client.call(Some(&session), "Page.navigate", json!({ "url": url })).await.unwrap()
}

/// What the browser shows of a folder.
async fn listing(launched: &Launched, folder: &Path) -> String {
    let session = tab(launched).await;
    let client = &launched.chromium.client;
    let url = format!("file://{}/", folder.display());
    client.call(Some(&session), "Page.navigate", json!({ "url": url })).await.unwrap();
    let look = json!({ "expression": "document.readyState + document.body.innerText" });
    let ends = tokio::time::Instant::now() + PATIENCE;
    loop {
        let seen = client.call(Some(&session), "Runtime.evaluate", look.clone()).await.unwrap();
        let seen = seen["result"]["value"].as_str().unwrap_or_default().to_owned();
        if let Some(text) = seen.strip_prefix("complete").filter(|text| !text.is_empty()) {
            return text.to_owned();
        }
        assert!(tokio::time::Instant::now() < ends, "no listing: {seen}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn tab(launched: &Launched) -> String {
    let client = &launched.chromium.client;
    let made = client.call(None, "Target.createTarget", json!({ "url": "about:blank" })).await;
    let attach = json!({ "targetId": made.unwrap()["targetId"], "flatten": true });
    let attached = client.call(None, "Target.attachToTarget", attach).await.unwrap();
    attached["sessionId"].as_str().unwrap().to_owned()
}

/// Every process of a group.
fn processes_of(group: i32) -> BTreeSet<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    let of_group = |name: &String| {
        let stat = read(name, "stat").unwrap_or_default();
        let own = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(2));
        own.is_some_and(|own| own == group.to_string())
    };
    names.filter(of_group).collect()
}

fn read(process: &str, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/{file}")).ok()
}
