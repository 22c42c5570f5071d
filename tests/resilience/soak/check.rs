//! What is left after everything has settled.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use acceptance::{
    processes::processes_with,
    video::files,
    webhook_endpoint::{Attempt, Endpoint},
};
use chrono::{DateTime, Utc};
use hyper::Method;
use serde_json::{Value, json};

use super::{
    BROWSERS,
    faults::{Faults, Kill, Target},
    report::{Report, Webhooks},
    session::{Context, Visit, insist},
};

/// Open sessions are past their limits after this time of the test clock.
const PAST_EVERY_LIMIT_SECONDS: u32 = 9 * 24 * 3600;
const SETTLE_TIMEOUT: Duration = Duration::from_secs(180);
/// Sessions that took longer are shown with their timeline.
const SLOW: Duration = Duration::from_secs(45);
/// A fault explains what happened within this time after it.
const EFFECT: Duration = Duration::from_secs(60);

/// Ends what is still open, waits until nothing changes any more, and reports what happened and what is left.
pub(crate) async fn settle(
    mut faults: Faults,
    visits: Vec<Visit>,
    context: &Context,
    endpoint: &Endpoint,
    secrets: &HashMap<String, String>,
) -> Report {
    let mut report = Report::default();
    if !faults.all_ready().await {
        report.stuck.push("an instance is not ready".to_owned());
    }
    let body = json!({ "advanceSeconds": PAST_EVERY_LIMIT_SECONDS });
    let clock = insist(&context.partner, Method::POST, "/v1/partner/test-clock", &body, &[], 200);
    if let Err(why) = clock.await {
        report.stuck.push(why);
    }
    let mut ended = HashMap::new();
    for visit in &visits {
        report.started += 1;
        report.reloads += visit.reloads;
        let Some(id) = &visit.id else {
            report.stuck.extend(visit.stuck.clone());
            continue;
        };
        let session = until_closed(context, id).await;
        let status = session["status"].as_str().unwrap_or_default().to_owned();
        let code = session["errorCode"].as_str();
        let timeline = timeline(context, id).await;
        if session["completedAt"].is_null() {
            report.stuck.push(format!("session {id} is {status} at the end"));
        } else if visit.broken {
            report.broken += 1;
        } else if let Some(why) = &visit.stuck {
            report.stuck.push(format!("{:?}, {status} {code:?} {id}: {why}", visit.script));
        } else if visit.script.expects(&status, code) {
            *report.as_expected.entry(format!("{:?}", visit.script)).or_default() += 1;
        } else {
            let line = format!("{:?}: {status} {} {id}", visit.script, code.unwrap_or("-"));
            report.otherwise.push(format!("{line}, {} browsers lost", losses(&timeline)));
        }
        if losses(&timeline) > 0 {
            report.restarted += 1;
        }
        if visit.took >= SLOW {
            report.slow.push(format!("{visit}: {}", shown(&timeline)));
        }
        report.interruptions(&faults.kills, visit, &asked_again(&timeline));
        ended.insert(id.clone(), status);
    }
    report.kills(&faults.kills, faults.ended_by_themselves);
    until_delivered(&mut faults, endpoint, &ended, secrets).await;
    report.webhooks = webhooks(&mut faults, endpoint, &ended, secrets).await;
    left(&mut faults, &ended, &mut report).await;
    report
}

/// Returns a session once it has ended, or as it is after a time limit.
async fn until_closed(context: &Context, id: &str) -> Value {
    let ends = Instant::now() + SETTLE_TIMEOUT;
    loop {
        let path = format!("/v1/partner/browser-session/{id}");
        let session = insist(&context.partner, Method::GET, &path, &Value::Null, &[], 200).await;
        let session = session.map_or(Value::Null, |answer| answer.at("/data").clone());
        if !session["completedAt"].is_null() || Instant::now() >= ends {
            return session;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// The events of a session with the status after them and their times.
async fn timeline(context: &Context, id: &str) -> Vec<(String, String, SystemTime)> {
    let path = format!("/v1/partner/browser-session/{id}/events");
    let Ok(answer) = insist(&context.partner, Method::GET, &path, &Value::Null, &[], 200).await
    else {
        return vec![];
    };
    let lines = answer.at("/data").as_array().cloned().unwrap_or_default();
    let read = |line: &Value| {
        let text = |name: &str| line[name].as_str().map(str::to_owned);
        let at = text("at")?.parse::<DateTime<Utc>>().ok()?;
        Some((text("event")?, text("status").unwrap_or_default(), at.into()))
    };
    lines.iter().filter_map(read).collect()
}

/// The events with the seconds since the first one.
fn shown(timeline: &[(String, String, SystemTime)]) -> String {
    let began = timeline.first().map_or(UNIX_EPOCH, |(.., at)| *at);
    let lines = timeline.iter().map(|(event, status, at)| {
        let after = at.duration_since(began).unwrap_or_default().as_secs_f64();
        format!("{after:.1} s {event} {status}")
    });
    lines.collect::<Vec<_>>().join(", ")
}

fn losses(timeline: &[(String, String, SystemTime)]) -> usize {
    timeline.iter().filter(|(event, ..)| event == "BrowserLost").count()
}

/// For each browser that was lost: when the loss was noticed, and when the applicant was asked again.
fn asked_again(timeline: &[(String, String, SystemTime)]) -> Vec<(SystemTime, SystemTime)> {
    let mut found = Vec::new();
    for (at, (event, _, lost)) in timeline.iter().enumerate() {
        let mut later = timeline[at..].iter().skip(1);
        if event == "BrowserLost"
            && let Some((.., again)) = later.find(|(_, status, _)| status == "AWAITING_USER")
        {
            found.push((*lost, *again));
        }
    }
    found
}

/// The deliveries that were accepted: by session and path, with the attempts of each.
fn accepted(endpoint: &Endpoint) -> HashMap<(String, String), Vec<Attempt>> {
    let mut accepted = HashMap::<_, Vec<_>>::new();
    for attempt in endpoint.find(Attempt::accepted) {
        let name = (attempt.field("sessionId").to_owned(), attempt.path.clone());
        accepted.entry(name).or_default().push(attempt);
    }
    accepted
}

async fn until_delivered(
    faults: &mut Faults,
    endpoint: &Endpoint,
    ended: &HashMap<String, String>,
    secrets: &HashMap<String, String>,
) {
    let ends = Instant::now() + SETTLE_TIMEOUT;
    while accepted(endpoint).len() < ended.len() * secrets.len() && Instant::now() < ends {
        faults.supervise_until(Instant::now() + Duration::from_millis(500)).await;
    }
    // Time for a second delivery of what was delivered last.
    faults.supervise_until(Instant::now() + Duration::from_secs(5)).await;
}

async fn webhooks(
    faults: &mut Faults,
    endpoint: &Endpoint,
    ended: &HashMap<String, String>,
    secrets: &HashMap<String, String>,
) -> Webhooks {
    let (accepted, mut webhooks) = (accepted(endpoint), Webhooks::default());
    let database = &faults.cluster.deployment.database;
    for (id, status) in ended {
        for path in secrets.keys() {
            webhooks.owed += 1;
            match accepted.get(&(id.clone(), path.clone())) {
                None => webhooks.lost.push(format!("{status} {id} to {path}")),
                Some(attempts) => {
                    webhooks.duplicated += attempts.len() - 1;
                    for pair in attempts.windows(2) {
                        let delivery = pair[0].header("webhook-id");
                        let saved = format!(
                            "SELECT count(*)::text FROM delivery_attempts WHERE delivery::text = '{delivery}' \
                             AND status BETWEEN 200 AND 299"
                        );
                        // The result of all but the last one was not saved, and there is a reason for that.
                        let once = database.value(&saved).await == "1";
                        if once && explains(&faults.kills, pair) {
                            webhooks.explained += 1;
                        }
                    }
                }
            }
        }
    }
    for attempt in endpoint.take() {
        let status = ended.get(attempt.field("sessionId"));
        let signed = secrets.get(&attempt.path).is_some_and(|secret| attempt.signed_with(secret));
        if !signed || status.is_none_or(|status| attempt.field("status") != status) {
            webhooks.wrong.push(attempt.body);
        }
    }
    webhooks
}

/// Whether a process or server was killed between the first of two deliveries and the second.
fn explains(kills: &[Kill], pair: &[Attempt]) -> bool {
    let before = Duration::from_secs(5);
    let killed = |kill: &&Kill| {
        kill.target != Target::Browser && kill.at + before >= pair[0].at && kill.at <= pair[1].at
    };
    kills.iter().any(|kill| killed(&kill))
}

/// Counts what is left of sessions while the instances run, and of instances after they have ended.
async fn left(faults: &mut Faults, ended: &HashMap<String, String>, report: &mut Report) {
    let browsers = faults.cluster.deployment.browsers();
    let bucket = faults.servers.s3.bucket();
    let failed: HashSet<_> =
        ended.iter().filter(|(_, status)| *status == "ERROR").map(|(id, _)| id.as_str()).collect();
    let recordings = || {
        let names = files(&bucket).into_iter().map(|(name, _)| name);
        let superfluous =
            |name: &String| name.contains("/reels/") || !failed.iter().any(|id| name.contains(*id));
        names.filter(superfluous).collect::<Vec<_>>()
    };
    let folders = || folders(&browsers);
    let ends = Instant::now() + SETTLE_TIMEOUT;
    while Instant::now() < ends
        && !(processes_with(&browsers).is_empty()
            && recordings().is_empty()
            && folders().is_empty())
    {
        faults.supervise_until(Instant::now() + Duration::from_millis(500)).await;
    }
    report.left.insert("browser processes", processes_with(&browsers));
    report.left.insert("folders of browsers", folders());
    report.left.insert("recordings of sessions that must have none", recordings());
    for number in 0..BROWSERS.len() {
        faults.cluster.send_sigterm(number);
    }
    for number in 0..BROWSERS.len() {
        let status = faults.cluster.ended(number, SETTLE_TIMEOUT).await;
        if !status.success() {
            report.stuck.push(format!("instance {number} ended with {status}"));
        }
    }
    report.left.insert("other processes", descendants(&faults.cluster.deployment.data()));
}

/// What the folders of the running instances contain besides their lock, and folders of others.
fn folders(browsers: &Path) -> Vec<String> {
    let names = files(browsers).into_iter().map(|(name, _)| name);
    let mut left: Vec<_> = names.filter(|name| !name.ends_with("/lock")).collect();
    let folders = fs::read_dir(browsers).into_iter().flatten().flatten();
    let folders: Vec<_> = folders.map(|entry| entry.path().display().to_string()).collect();
    if folders.len() > BROWSERS.len() {
        left.extend(folders);
    }
    left
}

/// The processes that an instance started, by the environment that they inherited.
fn descendants(data: &Path) -> Vec<String> {
    let variable = format!("AVOUCH_DATA_DIR={}", data.display());
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let inherited = |entry: &fs::DirEntry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).split('\0').any(|one| one == variable)
    };
    let line = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    entries.filter(inherited).map(line).collect()
}

/// The last kill of certain targets before a moment, if it can be the reason for what happened then.
pub(crate) fn reason(
    kills: &[Kill],
    at: SystemTime,
    fits: impl Fn(Target) -> bool,
) -> Option<&Kill> {
    let fits = |kill: &&Kill| fits(kill.target) && kill.at <= at + Duration::from_millis(200);
    let last = kills.iter().filter(fits).max_by_key(|kill| kill.at);
    last.filter(|kill| at.duration_since(kill.at).unwrap_or_default() < EFFECT)
}

/// The moments of a page's gaps.
pub(crate) fn moments(gaps: &BTreeMap<u64, u64>) -> impl Iterator<Item = (SystemTime, SystemTime)> {
    let at = |milliseconds: &u64| UNIX_EPOCH + Duration::from_millis(*milliseconds);
    gaps.iter().map(move |(lost, again)| (at(lost), at(again)))
}
