//! Kills processes and restarts servers, and measures how long it takes until they are ready again.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    time::{Duration, Instant, SystemTime},
};

use acceptance::{
    cluster::Cluster, partner::Partner, postgres::OwnPostgres, processes::process_ids_with,
};
use hyper::Method;
use rustix::process::{Pid, Signal, kill_process};
use testkit::{redis::RedisServer, s3::S3Server};

use super::BROWSERS;

const INTERVAL: Duration = Duration::from_secs(10);
const SUPERVISION_INTERVAL: Duration = Duration::from_millis(100);
/// A process that is not ready after this time counts as stuck.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The servers that the instances share.
pub(crate) struct Servers {
    pub(crate) postgres: OwnPostgres,
    pub(crate) redis: RedisServer,
    pub(crate) s3: S3Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Target {
    /// An instance without browsers.
    ApiInstance,
    BrowserInstance,
    /// The first process of one browser of the service.
    Browser,
    Postgres,
    Redis,
    S3,
    Balancer,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiInstance => "instance without browsers",
            Self::BrowserInstance => "instance with browsers",
            Self::Browser => "browser",
            Self::Postgres => "PostgreSQL",
            Self::Redis => "Redis",
            Self::S3 => "S3 server",
            Self::Balancer => "HAProxy",
        })
    }
}

/// A process that was killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kill {
    pub(crate) target: Target,
    pub(crate) at: SystemTime,
    /// How long it took until it was ready again; `None` if it was not in time. A browser is not started
    /// again by itself.
    pub(crate) ready_after: Option<Duration>,
}

pub(crate) struct Faults {
    pub(crate) cluster: Cluster,
    pub(crate) servers: Servers,
    pub(crate) kills: Vec<Kill>,
    /// How often an instance had ended by itself and was started again.
    pub(crate) ended_by_themselves: usize,
}

impl Faults {
    pub(crate) fn new(cluster: Cluster, servers: Servers) -> Self {
        Self { cluster, servers, kills: Vec::new(), ended_by_themselves: 0 }
    }

    /// Kills a process every ten seconds; each server is restarted once, at equal distances.
    pub(crate) async fn inject_until(&mut self, ends: Instant) {
        let began = Instant::now();
        let length = ends.saturating_duration_since(began);
        let restarts = [Target::Redis, Target::Postgres, Target::S3, Target::Balancer];
        let mut restarts = restarts.into_iter().zip(1_u32..).peekable();
        let mut next = began + INTERVAL;
        while Instant::now() < ends {
            self.supervise_until(next.min(ends)).await;
            if Instant::now() >= ends {
                return;
            }
            let due = restarts.next_if(|(_, part)| began.elapsed() >= length * *part / 5);
            let target = due.map_or_else(Self::any_process, |(server, _)| (server, 0));
            self.strike(target).await;
            next = (next + INTERVAL).max(Instant::now());
        }
    }

    /// Starts instances again that have ended by themselves, until then.
    pub(crate) async fn supervise_until(&mut self, then: Instant) {
        loop {
            self.supervise();
            if Instant::now() >= then {
                return;
            }
            tokio::time::sleep(SUPERVISION_INTERVAL).await;
        }
    }

    pub(crate) fn supervise(&mut self) {
        for number in 0..BROWSERS.len() {
            if self.cluster.restart_if_ended(number) {
                self.ended_by_themselves += 1;
            }
        }
    }

    /// An instance, or one of the browsers.
    fn any_process() -> (Target, usize) {
        let drawn = chance(BROWSERS.len() + 1);
        match BROWSERS.get(drawn) {
            Some(0) => (Target::ApiInstance, drawn),
            Some(_) => (Target::BrowserInstance, drawn),
            None => (Target::Browser, 0),
        }
    }

    async fn strike(&mut self, (target, number): (Target, usize)) {
        let at = SystemTime::now();
        match target {
            Target::ApiInstance | Target::BrowserInstance => {
                self.cluster.kill(number);
                self.cluster.begin(number);
            }
            Target::Browser if !self.kill_browser() => return,
            Target::Browser => (),
            Target::Postgres => self.servers.postgres.crash(),
            Target::Redis => {
                self.servers.redis.stop();
                self.servers.redis.run();
            }
            Target::S3 => {
                self.servers.s3.stop();
                self.servers.s3.run();
            }
            Target::Balancer => self.cluster.restart_balancer(),
        }
        let deployment = &self.cluster.deployment;
        let addresses = match target {
            Target::ApiInstance | Target::BrowserInstance => {
                vec![format!("http://{}", self.cluster.address(number))]
            }
            Target::Browser => vec![],
            Target::Postgres | Target::Redis | Target::S3 => self.addresses(),
            Target::Balancer => deployment.setting("AVOUCH_PUBLIC_URL").into_iter().collect(),
        };
        let ready_after = self.until_ready(&addresses, at).await;
        println!("killed: {target} {number}, ready after {ready_after:?}");
        self.kills.push(Kill { target, at, ready_after });
    }

    fn addresses(&self) -> Vec<String> {
        let numbers = 0..BROWSERS.len();
        numbers.map(|number| format!("http://{}", self.cluster.address(number))).collect()
    }

    /// Waits until all of these answer that they are ready, and returns how long that took.
    async fn until_ready(&mut self, addresses: &[String], began: SystemTime) -> Option<Duration> {
        let ends = Instant::now() + READY_TIMEOUT;
        for address in addresses {
            let partner = Partner::new(address, None);
            loop {
                let asked = partner.try_send(Method::GET, "/readyz", String::new(), &[]);
                let answer = tokio::time::timeout(Duration::from_secs(5), asked).await;
                if matches!(answer, Ok(Ok(answer)) if answer.status == 200) {
                    break;
                }
                if Instant::now() >= ends {
                    return None;
                }
                self.supervise();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        began.elapsed().ok()
    }

    /// Waits until all instances are ready.
    pub(crate) async fn all_ready(&mut self) -> bool {
        let addresses = self.addresses();
        self.until_ready(&addresses, SystemTime::now()).await.is_some()
    }

    /// Kills the first process of a browser of the service, if there is one.
    fn kill_browser(&self) -> bool {
        let all = process_ids_with(&self.cluster.deployment.browsers());
        let first = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains("--remote-debugging-pipe")
                && !line.contains("--type=")
                && !line.contains(" jail {")
        };
        let all: Vec<_> = all.into_iter().filter(first).collect();
        let drawn = all.get(chance(all.len().max(1)));
        let pid = drawn.and_then(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
        pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }
}

/// A number below `count`.
fn chance(count: usize) -> usize {
    let drawn = RandomState::new().hash_one(0) % u64::try_from(count).unwrap_or(1);
    usize::try_from(drawn).unwrap_or_default()
}
