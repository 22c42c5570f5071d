//! Examines browsers: the sandbox, the browser in it, its fonts, and its way to the network.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use domain::{
    egress::Egress,
    egress_proxy::{EgressProxies, EgressProxy},
};
use futures_util::future::join_all;
use ports::diagnostic::{Diagnosis, Diagnostic};
use tokio::net::TcpStream;
use url::Url;

use crate::{
    fleet::{Fleet, error_chain},
    fleet_address::FleetAddress,
    launch::{Chromium, LaunchOptions},
    sandbox::{Installation, Sandbox, SandboxError},
    upstream::tunnel,
};

/// How long an egress proxy may take to connect.
const PROXY_TIMEOUT: Duration = Duration::from_secs(15);
/// Entries of a folder of fonts that are looked at, and levels of folders.
const MAX_FONT_ENTRIES: usize = 20_000;
const MAX_FONT_DEPTH: usize = 6;
/// The folders of fonts that a sandbox has.
const FONT_FOLDERS: [&str; 2] = ["/usr/share/fonts", "/usr/local/share/fonts"];
const FONT_TYPES: [&str; 5] = ["ttf", "otf", "ttc", "otc", "pfb"];
/// The address of the metadata service of clouds.
const METADATA_SERVICE: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

/// A browser on this machine that is examined.
#[derive(Debug, Clone)]
pub struct ExaminedBrowser {
    /// A name in `PATH`, or a path.
    pub executable: PathBuf,
    /// A folder that this process alone uses.
    pub folder: PathBuf,
    /// The program and the arguments of the sandbox's helper, and the cores of a browser; `None` without
    /// a sandbox.
    pub sandbox: Option<(PathBuf, Vec<String>, usize)>,
}

impl ExaminedBrowser {
    fn sandbox(&self) -> Option<Result<Sandbox, Diagnosis>> {
        let (helper, arguments, cores) = self.sandbox.clone()?;
        let found = Installation::find(&self.executable).map_err(|error| {
            let advice = "install Chromium (Debian: chromium), or set browser to its path";
            Diagnosis::error("not found", &error, advice)
        });
        Some(found.map(|installation| Sandbox {
            helper,
            arguments,
            installation,
            policies: None,
            cores,
        }))
    }
}

/// Examines whether the kernel and the container permit the sandbox, without a browser.
pub struct SandboxDiagnostic(pub ExaminedBrowser);

#[async_trait]
impl Diagnostic for SandboxDiagnostic {
    fn subject(&self) -> &'static str {
        "sandbox"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let sandbox = match self.0.sandbox() {
            Some(Ok(sandbox)) => sandbox,
            Some(Err(failed)) => return vec![failed],
            None => {
                let detail = "browsers run without it: a page that breaks out of Chromium has the \
                              rights of the service";
                return vec![Diagnosis::warning(detail, "set browser_jail=on")];
            }
        };
        let (summary, folder) = (sandbox.summary(), self.0.folder.join("doctor-try"));
        let checked = tokio::task::spawn_blocking(move || sandbox.check(&folder)).await;
        match checked.unwrap_or_else(|error| Err(SandboxError::Helper(io::Error::other(error)))) {
            Ok(missing) => {
                let optional = missing.descriptions().map(|missing| {
                    Diagnosis::warning(missing, "a newer kernel, or nothing: it is not required")
                });
                [Diagnosis::ok(summary)].into_iter().chain(optional).collect()
            }
            Err(error) => vec![Diagnosis::error("refused", &error, error.hint())],
        }
    }
}

/// Examines whether a browser starts, in its sandbox if it has one, and which fonts it finds.
pub struct BrowserDiagnostic(pub ExaminedBrowser);

#[async_trait]
impl Diagnostic for BrowserDiagnostic {
    fn subject(&self) -> &'static str {
        "browser"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let sandbox = match self.0.sandbox().transpose() {
            Ok(sandbox) => sandbox,
            Err(failed) => return vec![failed],
        };
        let options = LaunchOptions {
            executable: self.0.executable.clone(),
            folder: self.0.folder.join("d"),
            flags: vec![],
            sandbox,
            // As the last of 64 users, which a service beside this has the least use for.
            slot: 63,
        };
        let started = match Chromium::launch(&options).await {
            Ok(launched) => {
                launched.chromium.end().await;
                let way = if options.sandbox.is_some() { "in its sandbox" } else { "unprotected" };
                Diagnosis::ok(format!("{} started {way}", version(&launched.user_agent)))
            }
            Err(error) => {
                let advice = "look at the line of the sandbox; is there memory, and space in the \
                              folder for temporary files?";
                Diagnosis::error("did not start", &error, advice)
            }
        };
        let fonts = tokio::task::spawn_blocking(|| Fonts::find(&FONT_FOLDERS)).await;
        let fonts = fonts.unwrap_or_default().diagnoses();
        [started].into_iter().chain(fonts).collect()
    }
}

/// Returns the browser and its version, as a user agent names them.
fn version(user_agent: &str) -> &str {
    user_agent.split(' ').find(|part| part.contains("Chrome/")).unwrap_or("a browser")
}

/// The fonts of this machine.
#[derive(Debug, Default)]
struct Fonts {
    count: usize,
    has_cjk: bool,
    has_emoji: bool,
}

impl Fonts {
    fn find(folders: &[&str]) -> Self {
        let mut fonts = Self::default();
        let mut rest: Vec<_> = folders.iter().map(|folder| (PathBuf::from(folder), 0)).collect();
        let mut seen = 0_usize;
        while let Some((folder, depth)) = rest.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                seen = seen.saturating_add(1);
                if seen > MAX_FONT_ENTRIES {
                    return fonts;
                }
                let path = entry.path();
                if path.is_dir() && depth < MAX_FONT_DEPTH {
                    rest.push((path, depth.saturating_add(1)));
                } else {
                    fonts.add(&path);
                }
            }
        }
        fonts
    }

    fn add(&mut self, path: &Path) {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        if FONT_TYPES.contains(&extension.as_str()) {
            let name = path.to_string_lossy().to_ascii_lowercase();
            self.count = self.count.saturating_add(1);
            self.has_cjk |= ["cjk", "wqy", "ipa", "nanum"].iter().any(|part| name.contains(part));
            self.has_emoji |= name.contains("emoji");
        }
    }

    fn diagnoses(&self) -> Vec<Diagnosis> {
        if self.count == 0 {
            let folders = FONT_FOLDERS.join(" and ");
            let detail = format!("there are no fonts in {folders}: pages have no text");
            return vec![Diagnosis::failed(detail, "install fonts (Debian: fonts-liberation)")];
        }
        let mut found = vec![Diagnosis::ok(format!("{} files of fonts", self.count))];
        for (has, what, package) in [
            (self.has_cjk, "Chinese, Japanese and Korean", "fonts-noto-cjk"),
            (self.has_emoji, "emoji", "fonts-noto-color-emoji"),
        ] {
            if !has {
                let advice = format!("install them (Debian: {package})");
                found.push(Diagnosis::warning(
                    format!("there seem to be no fonts for {what}"),
                    advice,
                ));
            }
        }
        found
    }
}

/// Examines whether a fleet has a browser, and whether it uses our proxy. The service must not run with the
/// same address of the proxy meanwhile.
pub struct FleetDiagnostic(pub FleetAddress);

#[async_trait]
impl Diagnostic for FleetDiagnostic {
    fn subject(&self) -> &'static str {
        "browser"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let advice = "see Browsers elsewhere in the operator's guide; while the service runs on this \
                      machine, its proxy has the address";
        let fleet = match Fleet::listen(self.0.clone()).await {
            Ok(fleet) => fleet,
            Err(error) => return vec![Diagnosis::error("the fleet's proxy", &error, advice)],
        };
        let examined = fleet.examine().await.into_iter().map(|(endpoint, result)| match result {
            Ok(user_agent) => {
                let version = version(&user_agent);
                Diagnosis::ok(format!("{}: {version}, which uses our proxy", endpoint.name))
            }
            Err(error) if error.is_full() => Diagnosis::warning(
                format!("{}: all browsers are in use", endpoint.name),
                "examine it again when one is free",
            ),
            Err(error) => {
                Diagnosis::failed(format!("{}: {}", endpoint.name, error_chain(&error)), advice)
            }
        });
        examined.collect()
    }
}

/// Examines the way of browsers to the network: the egress proxies, and the exceptions of the policy.
pub struct EgressDiagnostic {
    pub egress: Egress,
    pub proxies: EgressProxies,
    /// The page that returns the country of a request; the proxies are asked to connect to it.
    pub country_check_url: Option<String>,
}

#[async_trait]
impl Diagnostic for EgressDiagnostic {
    fn subject(&self) -> &'static str {
        "egress"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let mut found = vec![];
        if self.egress.permits_any_port("169.254.169.254", METADATA_SERVICE) {
            let detail =
                "pages and webhooks may reach 169.254.169.254, where clouds serve credentials";
            found.push(Diagnosis::failed(detail, "name smaller networks in egress_allow"));
        }
        if !self.proxies.are_used() {
            found.push(Diagnosis::ok("browsers connect from the network of this machine"));
            return found;
        }
        let proxies = self.proxies.of_each_entry("doctor");
        let examined = proxies.iter().zip(1..).map(|(proxy, number)| self.proxy(proxy, number));
        found.extend(join_all(examined).await);
        found
    }
}

impl EgressDiagnostic {
    async fn proxy(&self, proxy: &EgressProxy, number: usize) -> Diagnosis {
        // Neither user nor password.
        let place = format!("proxy {number} ({}:{})", proxy.host, proxy.port);
        let target = self.country_check_url.as_deref().and_then(host_and_port);
        let connect = async {
            match &target {
                Some((host, port)) => tunnel(proxy, host, *port).await.map(drop),
                None => TcpStream::connect((proxy.host.as_str(), proxy.port)).await.map(drop),
            }
        };
        match tokio::time::timeout(PROXY_TIMEOUT, connect).await {
            Ok(Ok(())) if target.is_some() => Diagnosis::ok(format!("{place} connects")),
            Ok(Ok(())) => Diagnosis::warning(
                format!("{place} is reached; whether it connects is not known"),
                "set egress_check_url, with which the country is verified as well",
            ),
            Ok(Err(error)) => {
                Diagnosis::error(&place, &error, "correct this entry of egress_proxy")
            }
            Err(_) => Diagnosis::failed(
                format!("{place}: no answer within {} s", PROXY_TIMEOUT.as_secs()),
                "correct this entry of egress_proxy",
            ),
        }
    }
}

fn host_and_port(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok()?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use ports::diagnostic::DiagnosisState::{Failed, Ok, Warning};

    use super::*;

    #[test]
    fn missing_fonts_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let states = || {
            let path = folder.path().display().to_string();
            let found = Fonts::find(&[path.as_str()]).diagnoses();
            found.into_iter().map(|found| found.state).collect::<Vec<_>>()
        };
        assert_eq!(states(), [Failed]);
        fs::create_dir(folder.path().join("truetype")).unwrap();
        fs::write(folder.path().join("truetype/LiberationSans.ttf"), "").unwrap();
        fs::write(folder.path().join("emoji.txt"), "").unwrap();
        assert_eq!(states(), [Ok, Warning, Warning]);
        fs::write(folder.path().join("truetype/NotoSansCJK-Regular.ttc"), "").unwrap();
        fs::write(folder.path().join("truetype/NotoColorEmoji.ttf"), "").unwrap();
        assert_eq!(states(), [Ok]);
    }

    #[tokio::test]
    async fn proxies_that_do_not_connect_and_open_policies_are_told() {
        let examine = async |allow: &str, proxies: &str| {
            let diagnostic = EgressDiagnostic {
                egress: Egress::allowing(allow).unwrap(),
                proxies: proxies.parse().unwrap(),
                country_check_url: None,
            };
            diagnostic.examine().await
        };
        let states = |found: &[Diagnosis]| found.iter().map(|one| one.state).collect::<Vec<_>>();
        assert_eq!(states(&examine("", "").await), [Ok]);
        assert_eq!(states(&examine("169.254.0.0/16", "").await), [Failed, Ok]);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let reached = format!("http://ada:geheim@{address}");
        let refused = "socks5://ada:geheim@127.0.0.1:1";
        let found = examine("", &format!("{reached} {refused}")).await;
        assert_eq!(states(&found), [Warning, Failed]);
        assert!(!format!("{found:?}").contains("geheim"), "{found:?}");
    }
}
