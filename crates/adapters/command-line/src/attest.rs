//! `avouch attest …`: for those who declare attestations, or run an attestor.

use std::{
    convert::Infallible, fmt, fs::File, io::Read as _, path::Path, path::PathBuf, str::FromStr,
};

use clap::{Args, Subcommand, ValueEnum};
use domain::{secret::Secret, workflow::AttestMode};

use crate::CommandError;

/// Maximum length of a file of root certificates.
const MAX_ROOTS_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Subcommand)]
pub enum AttestCommand {
    /// Tells whether the answer of an https URL can be attested, in which modes, and why not, by a few
    /// handshakes and one GET. The exit code is 0 if it can be attested, 1 if it cannot, and 2 if the
    /// arguments are wrong or the server does not answer
    Probe(ProbeArguments),
}

#[derive(Debug, Args)]
pub struct ProbeArguments {
    /// The URL of the request that is to be attested
    pub url: String,
    /// The only mode of interest; the exit code is 0 if the answer can be attested in it
    #[arg(long, value_enum)]
    pub mode: Option<ProbedMode>,
    /// A PEM file of root certificates that are trusted in addition to the public ones
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Connects to this address in place of the URL's
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: Option<String>,
    /// A header of the request, `Name: value`; may be repeated. Its value is not printed
    #[arg(long, value_name = "HEADER")]
    pub header: Vec<HeaderArgument>,
    /// How the report is printed; by default as text on a terminal, and else as JSON
    #[arg(long, value_enum)]
    pub format: Option<ProbeFormat>,
}

/// A mode of attestation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProbedMode {
    ZktlsFull,
    ZktlsRequest,
    FullReveal,
}

impl From<ProbedMode> for AttestMode {
    fn from(mode: ProbedMode) -> Self {
        match mode {
            ProbedMode::ZktlsFull => Self::ZktlsFull,
            ProbedMode::ZktlsRequest => Self::ZktlsRequest,
            ProbedMode::FullReveal => Self::FullReveal,
        }
    }
}

/// The format of the report of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProbeFormat {
    Text,
    /// One object
    Json,
}

/// A header whose value may be a credential.
#[derive(Clone)]
pub struct HeaderArgument(pub Secret);

impl FromStr for HeaderArgument {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(Secret::new(text.to_owned())))
    }
}

/// Leaves out the text.
impl fmt::Debug for HeaderArgument {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HeaderArgument")
    }
}

/// Reads a PEM file that is not longer than root certificates may be.
///
/// # Errors
/// It cannot be read, or is longer.
pub fn read_pem(file: &Path) -> Result<Vec<u8>, CommandError> {
    let path = file.display();
    let unreadable = |error| format!("{path} cannot be read: {error}");
    let mut bytes = vec![];
    let reader = File::open(file).map_err(unreadable)?;
    reader.take(MAX_ROOTS_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len())? > MAX_ROOTS_BYTES {
        return Err(format!("{path} is too long: at most {MAX_ROOTS_BYTES} bytes").into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{Cli, Command};

    #[test]
    fn a_probe_has_a_url_and_options() {
        let probe = parse(&["https://a.example/me"]).unwrap();
        assert_eq!(probe.url, "https://a.example/me");
        assert!(probe.mode.is_none() && probe.ca.is_none() && probe.connect.is_none());
        assert!(probe.header.is_empty() && probe.format.is_none());
        let options = "https://a.example/ --mode zktls-request --ca root.pem --connect [::1]:443 \
                       --header accept:a --header cookie:b --format json";
        let probe = parse(&options.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!(probe.mode.map(AttestMode::from), Some(AttestMode::ZktlsRequest));
        assert_eq!(probe.ca, Some("root.pem".into()));
        assert_eq!(probe.connect.as_deref(), Some("[::1]:443"));
        let headers: Vec<_> = probe.header.iter().map(|header| header.0.expose()).collect();
        assert_eq!(
            (headers, probe.format),
            (vec!["accept:a", "cookie:b"], Some(ProbeFormat::Json))
        );
    }

    #[test]
    fn modes_are_named_as_in_definitions() {
        for mode in [AttestMode::ZktlsFull, AttestMode::ZktlsRequest, AttestMode::FullReveal] {
            let probe = parse(&["https://a.example/", "--mode", mode.as_str()]).unwrap();
            assert_eq!(probe.mode.map(AttestMode::from), Some(mode));
        }
    }

    #[test]
    fn wrong_arguments_exit_with_2() {
        for arguments in
            [&[][..], &["https://a.example/", "--mode", "all"], &["a", "--format", "xml"]]
        {
            assert_eq!(parse(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn given_headers_are_not_printed() {
        let probe = parse(&["https://a.example/", "--header", "Cookie: SECRET"]).unwrap();
        assert!(!format!("{probe:?}").contains("SECRET"));
    }

    #[test]
    fn files_of_roots_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots.pem");
        for (length, is_read) in [(0, true), (MAX_ROOTS_BYTES, true), (MAX_ROOTS_BYTES + 1, false)]
        {
            File::create(&file).unwrap().set_len(length).unwrap();
            assert_eq!(read_pem(&file).is_ok(), is_read, "{length}");
        }
        assert!(read_pem(Path::new("/nowhere.pem")).is_err());
    }

    fn parse(arguments: &[&str]) -> Result<ProbeArguments, clap::Error> {
        let arguments = ["avouch", "attest", "probe"].iter().chain(arguments);
        let command = Cli::try_parse_from(arguments)?.command;
        let Command::Attest(AttestCommand::Probe(probe)) = command else { panic!("{command:?}") };
        Ok(probe)
    }
}
