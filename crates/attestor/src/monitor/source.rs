//! Where a log is read from: a web server or a folder.

use std::{
    fs::File,
    io::{self, Read as _},
    path::PathBuf,
};

use calls::{BaseUrl, HttpClient};

use super::Finding;

pub(super) enum Source {
    Web(Box<HttpClient>, BaseUrl),
    Folder(PathBuf),
}

impl Source {
    /// An address with a scheme, or else a folder.
    pub(super) fn new(log: &str) -> Result<Self, Finding> {
        if !log.contains("://") {
            return Ok(Self::Folder(log.into()));
        }
        let address = log.parse();
        let address = address.map_err(|error| Finding::State(format!("its address {error}")))?;
        let caller = HttpClient::new().map_err(|error| Finding::State(error.to_string()))?;
        Ok(Self::Web(Box::new(caller), address))
    }

    /// A file of up to so many bytes; none where it is not there. Redirects are not followed.
    pub(super) async fn get(&self, path: &str, longest: usize) -> Result<Option<Vec<u8>>, Finding> {
        let failed = |why: String| Finding::Unreachable(format!("{path}: {why}"));
        let bytes = match self {
            Self::Web(caller, address) => {
                let answer = caller.get(&address.join(path)).await;
                let answer = answer.map_err(|error| failed(error.to_string()))?;
                match answer.status {
                    200 => Some(answer.body),
                    404 | 410 => None,
                    status => return Err(failed(format!("the answer has the status {status}"))),
                }
            }
            Self::Folder(folder) => match File::open(folder.join(path)) {
                Ok(file) => {
                    let mut bytes = vec![];
                    let most = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
                    let read = file.take(most).read_to_end(&mut bytes);
                    read.map_err(|error| failed(error.to_string()))?;
                    Some(bytes)
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(failed(error.to_string())),
            },
        };
        if bytes.as_ref().is_some_and(|bytes| bytes.len() > longest) {
            return Err(Finding::Rewritten(format!("{path} is longer than {longest} bytes")));
        }
        Ok(bytes)
    }
}
