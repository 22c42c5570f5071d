//! The source of a log's files: a web server or a folder.

use std::{
    fs::File,
    io::{self, Read as _},
    path::PathBuf,
};

use http_client::{BaseUrl, HttpClient};

use super::MonitorError;

pub(super) enum LogSource {
    Web(Box<HttpClient>, BaseUrl),
    Folder(PathBuf),
}

impl LogSource {
    /// Parses an address with a scheme; anything else is a folder.
    pub(super) fn new(log: &str) -> Result<Self, MonitorError> {
        if !log.contains("://") {
            return Ok(Self::Folder(log.into()));
        }
        let address = log.parse();
        let address =
            address.map_err(|error| MonitorError::State(format!("its address {error}")))?;
        let caller = HttpClient::new().map_err(|error| MonitorError::State(error.to_string()))?;
        Ok(Self::Web(Box::new(caller), address))
    }

    /// Returns a file of at most `max_bytes`, or `None` if it does not exist. Does not follow
    /// redirects.
    pub(super) async fn get(
        &self,
        path: &str,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, MonitorError> {
        let failed = |why: String| MonitorError::Unreachable(format!("{path}: {why}"));
        let bytes = match self {
            Self::Web(caller, address) => {
                let answer = caller.get(&address.join(path)).await;
                let answer = answer.map_err(|error| failed(error.to_string()))?;
                match answer.status {
                    200 => Some(answer.body),
                    404 | 410 => None,
                    status => return Err(failed(format!("the response has the status {status}"))),
                }
            }
            Self::Folder(folder) => match File::open(folder.join(path)) {
                Ok(file) => {
                    let mut bytes = vec![];
                    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
                    let read = file.take(limit).read_to_end(&mut bytes);
                    read.map_err(|error| failed(error.to_string()))?;
                    Some(bytes)
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(failed(error.to_string())),
            },
        };
        if bytes.as_ref().is_some_and(|bytes| bytes.len() > max_bytes) {
            return Err(MonitorError::Rewritten(format!(
                "{path} is longer than {max_bytes} bytes"
            )));
        }
        Ok(bytes)
    }
}
