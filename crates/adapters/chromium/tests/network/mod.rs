//! A test network in namespaces: this host, an egress proxy in Germany and one in France, and an
//! Internet that all three reach.

mod internet;
mod namespace;

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use tempfile::TempDir;

pub(crate) use self::internet::Internet;
use self::namespace::Namespace;

/// The address of every site, and of the name server.
pub(crate) const SITE: &str = "11.22.33.44:80";
/// The addresses of the proxies in the Internet, and of packets that are sent without them.
pub(crate) const DE: &str = "198.51.100.2";
pub(crate) const FR: &str = "198.51.100.6";
pub(crate) const DIRECT: &str = "198.51.100.10";
/// Set if the network namespace is isolated, which it is not when ignored tests are run by hand.
const ISOLATED: &str = "TEST_IN_A_NETWORK_OF_ITS_OWN";
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs one of this program's tests in a network namespace of its own.
pub(crate) fn run_isolated(test: &str) {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--map-root-user", "--map-auto"]);
    }
    let status = command
        .env(ISOLATED, "yes")
        .args(["--net", "--mount", "--"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads", "1"])
        .status()
        .unwrap();
    assert!(status.success(), "the isolated test failed, see above");
}

pub(crate) struct Network {
    pub(crate) internet: Internet,
    /// The proxies, as an operator configures them.
    pub(crate) german: String,
    pub(crate) french: String,
    _namespaces: [Namespace; 3],
    proxies: [Child; 2],
    _folder: TempDir,
}

impl Network {
    /// Must be called in a network namespace of its own, with the rights to change it.
    pub(crate) async fn start() -> Self {
        assert!(env::var_os(ISOLATED).is_some(), "this would change the machine's own network");
        let folder = tempfile::tempdir().unwrap();
        let resolver = folder.path().join("resolv.conf");
        fs::write(&resolver, "nameserver 11.22.33.44\noptions timeout:1\n").unwrap();
        let namespaces = [(); 3].map(|()| Namespace::start());
        let [german, french, internet] = &namespaces;
        ip(None, "link set lo up");
        // From this host to the proxies, and from all three to the Internet.
        namespace::link(None, "10.77.1.1", Some(german), "10.77.1.2");
        namespace::link(None, "10.77.2.1", Some(french), "10.77.2.2");
        namespace::link(Some(german), DE, Some(internet), "198.51.100.1");
        namespace::link(Some(french), FR, Some(internet), "198.51.100.5");
        namespace::link(None, DIRECT, Some(internet), "198.51.100.9");
        ip(Some(german), "route add default via 198.51.100.1");
        ip(Some(french), "route add default via 198.51.100.5");
        ip(None, "route add default via 198.51.100.9");
        ip(Some(internet), "addr add 11.22.33.44/32 dev lo");
        for namespace in [None, Some(german), Some(french)] {
            let file = resolver.display().to_string();
            namespace::run(namespace, &["mount", "--bind", &file, "/etc/resolv.conf"]);
        }
        let sockets = internet.within(Internet::bind);
        let tinyproxy = folder.path().join("tinyproxy.conf");
        let text = "Port 8888\nListen 10.77.1.2\nTimeout 60\nMaxClients 50\nBasicAuth ada geheim\n";
        fs::write(&tinyproxy, text).unwrap();
        let file = tinyproxy.display().to_string();
        let proxies = [
            german.spawn(&["tinyproxy", "-d", "-c", &file]),
            french.spawn(&["microsocks", "-i", "10.77.2.2", "-p", "1080", "-u", "bob", "-P", "pw"]),
        ];
        for address in ["10.77.1.2:8888", "10.77.2.2:1080"] {
            let up = async {
                while tokio::net::TcpStream::connect(address).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(START_TIMEOUT, up).await.unwrap();
        }
        Self {
            internet: Internet::serve(sockets),
            german: "http://ada:geheim@10.77.1.2:8888".to_owned(),
            french: "socks5://bob:pw@10.77.2.2:1080".to_owned(),
            _namespaces: namespaces,
            proxies,
            _folder: folder,
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for proxy in &mut self.proxies {
            let _ = proxy.kill();
            let _ = proxy.wait();
        }
    }
}

fn ip(namespace: Option<&Namespace>, words: &str) {
    let words: Vec<_> = ["ip"].into_iter().chain(words.split(' ')).collect();
    namespace::run(namespace, &words);
}

/// One captured packet.
#[derive(Debug)]
pub(crate) struct Packet(String);

impl Packet {
    /// Whether the packet is between this host and a proxy, over TCP.
    pub(crate) fn is_of_a_proxy(&self) -> bool {
        let proxy = |address: &str, port: &str| {
            self.0.contains(&format!("{address}.{port} "))
                || self.0.contains(&format!("{address}.{port}:"))
        };
        self.0.contains(": tcp ") && (proxy("10.77.1.2", "8888") || proxy("10.77.2.2", "1080"))
    }
}

/// Captures every packet of this host's interfaces except loopback.
pub(crate) struct Capture {
    tcpdump: Child,
    lines: mpsc::Receiver<String>,
}

impl Capture {
    pub(crate) fn start() -> Self {
        let filter = "(ip or ip6) and not net 127.0.0.0/8";
        let mut tcpdump = Command::new("tcpdump")
            .args(["-i", "any", "-nn", "-l", "-q", "-Z", "root", filter])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, err) = (tcpdump.stdout.take().unwrap(), tcpdump.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(out)
                .lines()
                .map_while(Result::ok)
                .for_each(|line| drop(sender.send(line)));
        });
        let mut messages = BufReader::new(err).lines().map_while(Result::ok);
        assert!(messages.any(|line| line.contains("listening on")), "tcpdump does not listen");
        thread::spawn(move || messages.for_each(drop));
        Self { tcpdump, lines }
    }

    pub(crate) fn end(&mut self) -> Vec<Packet> {
        thread::sleep(Duration::from_millis(500));
        let pid = rustix::process::Pid::from_child(&self.tcpdump);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.tcpdump.wait().unwrap();
        // The kernel announces itself to neighbours on a new link (RFC 3810, RFC 4861).
        let packets =
            self.lines.iter().filter(|line| line.contains(" IP") && !line.contains("ICMP6"));
        packets.map(Packet).collect()
    }
}
