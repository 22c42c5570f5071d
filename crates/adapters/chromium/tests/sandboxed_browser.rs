//! The sandbox of a browser: its user, its namespaces, the files that it sees, and its limits.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

mod processes;

use std::{
    collections::BTreeSet, fs, net::TcpListener, os::unix::fs::PermissionsExt as _, path::Path,
    time::Duration,
};

use chromium::{Chromium, Installation, LaunchOptions, Launched, Sandbox, SandboxError};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::processes::{gone, parent_of, processes_of, read};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn is_an_unprivileged_user_in_namespaces_of_its_own_with_chromiums_sandbox() {
    let (_folder, launched) = launch(vec![]).await;
    // Starts a renderer.
    listing(&launched, Path::new("/")).await;
    let outermost = launched.chromium.pid().unwrap().to_string();
    let processes = processes_of(launched.chromium.pid().unwrap());
    assert!(processes.len() >= 6, "{processes:?}");
    let mut renderers = 0;
    for process in &processes {
        let Some(status) = read(process, "status") else { continue };
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let uid = field("Uid:").split_whitespace().next().unwrap();
        assert_ne!(uid, "0", "{process} is root");
        assert_eq!(field("NoNewPrivs:").trim(), "1", "{process}");
        // The launcher is not in the PID namespace, and as root not in the user namespace.
        let outermost = *process == outermost;
        let inner: &[_] = if outermost { &[] } else { &["user", "pid"] };
        assert_eq!(field("Seccomp:").trim(), "2", "{process} has no filter");
        for namespace in ["net", "mnt", "ipc", "uts", "cgroup"].iter().chain(inner) {
            let own = |process: &str| fs::read_link(format!("/proc/{process}/ns/{namespace}")).ok();
            assert_ne!(own(process), own("self"), "{process} is in our {namespace} namespace");
        }
        // Chromium's renderers filter their system calls.
        if read(process, "cmdline").is_some_and(|line| line.contains("--type=renderer")) {
            wait_for_filter(process).await;
            renderers += 1;
        }
    }
    assert!(renderers > 0, "there is no renderer");
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
    assert!(listener.accept().is_err(), "a connection was accepted");
    launched.chromium.end().await;
}

#[tokio::test]
async fn sees_only_its_own_folder_and_its_installation() {
    let (folder, launched) = launch(vec![]).await;
    let own = folder.path().join("b/profile");
    assert!(listing(&launched, &own).await.contains("Default"), "its own folder is there");
    let root = listing(&launched, Path::new("/")).await;
    let seen: BTreeSet<_> = root.lines().filter_map(|line| line.split('/').next()).collect();
    for folder in ["home", "root", "var", "srv", "run", "sys", "boot", "bin", "mnt", "opt"] {
        assert!(!seen.contains(folder), "{folder}: {root}");
    }
    for (folder, others) in [("/tmp", 1), ("/usr", 4), ("/usr/share", 5), ("/etc", 6)] {
        let listed = listing(&launched, Path::new(folder)).await;
        let count = listed.lines().filter(|line| line.contains("/\t")).count();
        assert!(count <= others, "{folder}: {listed}");
    }
    launched.chromium.end().await;
    assert!(!folder.path().join("b").exists(), "its folder goes with it");
}

#[tokio::test]
async fn all_processes_end_with_the_launcher_the_init_process_or_the_browser() {
    for victim in 0..3 {
        let (_folder, launched) = launch(vec![]).await;
        let outermost = launched.chromium.pid().unwrap();
        let all = processes_of(outermost);
        // The launcher, its child (the init process), and the child of that (the browser).
        let mut chain = vec![outermost.to_string()];
        for _ in 0..victim {
            let parent = chain.last().unwrap().clone();
            let child = all.iter().find(|one| parent_of(one).as_deref() == Some(&*parent));
            chain.push(child.unwrap().clone());
        }
        let pid = rustix::process::Pid::from_raw(chain[victim].parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        gone(&all).await;
        let call = launched.chromium.client.call(None, "Browser.getVersion", json!({})).await;
        assert!(call.is_err(), "its end is noticed");
        launched.chromium.end().await;
    }
}

#[tokio::test]
async fn a_browser_that_does_not_exit_by_itself_ends_with_the_service() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    let mut command =
        Sandbox { installation: Installation::find("sleep".as_ref()).unwrap(), ..sandbox() }
            .command(&folder.path().join("b"), 3)
            .unwrap();
    let (service, socket) = std::os::unix::net::UnixStream::pair().unwrap();
    command.arg(fs::canonicalize("/usr/bin/sleep").unwrap()).arg("600");
    let mut helper = command.stdin(std::os::fd::OwnedFd::from(socket)).spawn().unwrap();
    drop(command);
    let group = i32::try_from(helper.id()).unwrap();
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while processes_of(group).len() < 3 {
        assert!(tokio::time::Instant::now() < deadline, "the processes do not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let all = processes_of(group);
    // The kernel closes the socket when the service is killed.
    drop(service);
    helper.wait().unwrap();
    gone(&all).await;
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
fn a_kernel_that_forbids_namespaces_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    sandbox().check(&folder.path().join("try")).unwrap();
    let forbids = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let helper = helper();
    let arguments = ["-U", "-r", "sh", "-c", forbids, &helper].map(str::to_owned).to_vec();
    let forbidden = Sandbox { helper: "unshare".into(), arguments, ..sandbox() };
    let error = forbidden.check(&folder.path().join("try")).unwrap_err();
    assert!(matches!(&error, SandboxError::Forbidden(why) if !why.is_empty()), "{error:?}");
}

#[test]
fn a_helper_that_says_nothing_is_named_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let check = |script: &str| {
        let arguments = ["-c", script].map(str::to_owned).to_vec();
        let silent = Sandbox { helper: "sh".into(), arguments, ..sandbox() };
        silent.check(&folder.path().join("try")).unwrap_err()
    };
    let began = std::time::Instant::now();
    // It closes its socket, and a child of it holds the pipe of its errors.
    for script in ["sleep 60 <&- & exit 1", "exec sleep 60 <&-", "exit 3"] {
        let error = check(script);
        assert!(matches!(error, SandboxError::NotResponding), "{script}: {error:?}");
        assert!(!error.to_string().is_empty());
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_browser_in_a_home_folder_runs_without_seeing_other_files_of_it() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let own = home.path().join("ada/.cache/ms-playwright/chromium-1234/chrome-linux");
    fs::create_dir_all(own.join("locales")).unwrap();
    fs::write(home.path().join("ada/secret.txt"), "canary").unwrap();
    for folder in ["", "locales"] {
        for file in fs::read_dir(Path::new("/usr/lib/chromium").join(folder)).unwrap().flatten() {
            let to = own.join(folder).join(file.file_name());
            if file.path().is_file() && fs::hard_link(file.path(), &to).is_err() {
                fs::copy(file.path(), to).unwrap();
            }
        }
    }
    fs::rename(own.join("chromium"), own.join("chrome")).unwrap();
    let installation = Installation::find(&own.join("chrome")).unwrap();
    let (_folder, launched) = launch_with(Sandbox { installation, ..sandbox() }, vec![]).await;
    let seen = listing(&launched, &home.path().join("ada")).await;
    assert!(seen.contains(".cache") && !seen.contains("secret.txt"), "{seen}");
    launched.chromium.end().await;
}

#[tokio::test]
async fn a_browser_runs_under_a_service_that_creates_private_files() {
    let arguments = ["-c", "umask 077 && exec \"$0\" \"$@\"", &helper()].map(str::to_owned);
    let private = Sandbox { helper: "sh".into(), arguments: arguments.to_vec(), ..sandbox() };
    let (_folder, launched) = launch_with(private, vec![]).await;
    launched.chromium.end().await;
}

#[test]
fn all_tests_pass_if_the_service_is_an_unprivileged_user() {
    if !rustix::process::geteuid().is_root() {
        // Then the other tests cover this case.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let [program, helper] = ["test", "helper"].map(|name| folder.path().join(name));
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_cdp-jail"), &helper).unwrap();
    let status = std::process::Command::new("setpriv")
        .args(["--reuid", "60701", "--regid", "60701", "--clear-groups", "--"])
        .arg(program)
        .args(["--test-threads", "1"])
        .env("TEST_HELPER", helper)
        .env("TMPDIR", folder.path())
        .env("HOME", folder.path())
        .current_dir("/")
        .status()
        .unwrap();
    assert!(status.success(), "the tests failed as an unprivileged user, see above");
}

/// Waits until a renderer has Chromium's own seccomp filter in addition to ours, which it installs
/// shortly after its start.
async fn wait_for_filter(process: &str) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while read(process, "status").is_some_and(|status| status.contains("Seccomp_filters:\t1\n")) {
        assert!(tokio::time::Instant::now() < deadline, "{process} has no filter of its own");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn helper() -> String {
    let built = env!("CARGO_BIN_EXE_cdp-jail").to_owned();
    std::env::var("TEST_HELPER").unwrap_or(built)
}

fn sandbox() -> Sandbox {
    Sandbox {
        policies: None,
        helper: helper().into(),
        arguments: vec![],
        installation: Installation::find("chromium".as_ref()).unwrap(),
        cores: 2,
    }
}

async fn launch(flags: Vec<String>) -> (TempDir, Launched) {
    launch_with(sandbox(), flags).await
}

async fn launch_with(sandbox: Sandbox, flags: Vec<String>) -> (TempDir, Launched) {
    let folder = tempfile::tempdir().unwrap();
    let options = LaunchOptions {
        executable: "chromium".into(),
        folder: folder.path().join("b"),
        flags,
        sandbox: Some(sandbox),
        slot: 3,
    };
    let launched = Chromium::launch(&options).await.unwrap();
    (folder, launched)
}

/// Opens a page in a new tab, and returns the reply of the browser.
async fn page(launched: &Launched, url: &str) -> Value {
    let session = tab(launched).await;
    let client = &launched.chromium.client;
    client.call(Some(&session), "Page.navigate", json!({ "url": url })).await.unwrap()
}

/// Returns the browser's listing of a folder.
async fn listing(launched: &Launched, folder: &Path) -> String {
    let session = tab(launched).await;
    let client = &launched.chromium.client;
    let url = format!("file://{}/", folder.display());
    client.call(Some(&session), "Page.navigate", json!({ "url": url })).await.unwrap();
    let params = json!({ "expression": "document.readyState + document.body.innerText" });
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    loop {
        let seen = client.call(Some(&session), "Runtime.evaluate", params.clone()).await.unwrap();
        let seen = seen["result"]["value"].as_str().unwrap_or_default().to_owned();
        if let Some(text) = seen.strip_prefix("complete").filter(|text| !text.is_empty()) {
            return text.to_owned();
        }
        assert!(tokio::time::Instant::now() < deadline, "no listing: {seen}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn tab(launched: &Launched) -> String {
    let client = &launched.chromium.client;
    let created = client.call(None, "Target.createTarget", json!({ "url": "about:blank" })).await;
    let attach = json!({ "targetId": created.unwrap()["targetId"], "flatten": true });
    let attached = client.call(None, "Target.attachToTarget", attach).await.unwrap();
    attached["sessionId"].as_str().unwrap().to_owned()
}
