//! Reads a response as it comes, more leniently than an attestor, so that everything that is wrong
//! with it can be said at once.

#[cfg(test)]
mod tests;

use attestation::{
    http::response::{CREDENTIAL_HEADERS, MAX_HEAD_BYTES, MAX_RESPONSE_BYTES},
    json,
};

use crate::{
    json_value::shortest_value,
    observation::{BodyFraming, Completeness, ConnectionEnd, JsonSyntax, ResponseObserved},
    text::{printable, printable_bytes},
};

/// Maximum number of names of cookies and headers that are reported.
const MAX_NAMES: usize = 20;
const MAX_CHUNK_SIZE_DIGITS: usize = 8;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A response that is being read.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    bytes: Vec<u8>,
    head: Option<Head>,
    body: Vec<u8>,
    /// Where the next chunk, or the rest of the body, starts.
    at: usize,
    completeness: Option<Completeness>,
}

#[derive(Debug)]
struct Head {
    length: usize,
    status: u16,
    version: String,
    /// Names in lower case.
    headers: Vec<(String, Vec<u8>)>,
    framing: BodyFraming,
    content_length: usize,
}

impl ResponseReader {
    /// Adds bytes of the server. Bytes after the end of the response are ignored.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.completeness.is_some() {
            return;
        }
        let searched = self.bytes.len().saturating_sub(HEAD_END.len() - 1);
        let room = (MAX_RESPONSE_BYTES + 1).saturating_sub(self.bytes.len());
        self.bytes.extend(bytes.get(..room).unwrap_or(bytes));
        if self.head.is_none() {
            self.read_head(searched);
        }
        if self.completeness.is_none() && self.head.is_some() {
            self.read_body();
        }
        if self.completeness.is_none() && self.bytes.len() > MAX_RESPONSE_BYTES {
            self.completeness = Some(Completeness::TooLong);
        }
    }

    /// Returns whether nothing more has to be read.
    pub(crate) const fn is_over(&self) -> bool {
        self.completeness.is_some()
    }

    /// Returns whether the response is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.completeness == Some(Completeness::Complete)
    }

    /// States how the response ended, unless it is over: a body that ends with the connection is
    /// complete then.
    pub(crate) fn end(&mut self, end: Completeness) {
        let is_close = self.head.as_ref().is_some_and(|head| head.framing == BodyFraming::Close);
        if self.completeness.is_none() {
            let closed = is_close && end == Completeness::Truncated;
            self.completeness = Some(if closed { Completeness::Complete } else { end });
        }
    }

    /// Returns what was read.
    ///
    /// # Errors
    /// The response has no head that can be read.
    pub(crate) fn observed(
        self,
        request_bytes: usize,
        end: ConnectionEnd,
    ) -> Result<ResponseObserved, String> {
        let completeness = self.completeness.unwrap_or(Completeness::Truncated);
        let Some(head) = self.head else {
            return Err(match completeness {
                Completeness::Malformed(why) => why,
                Completeness::TimedOut => "the server did not answer the request in time".into(),
                Completeness::Complete | Completeness::Truncated | Completeness::TooLong
                    if self.bytes.is_empty() =>
                {
                    "the server closed the connection without a response".into()
                }
                Completeness::Complete | Completeness::Truncated | Completeness::TooLong => {
                    "the server closed the connection within the headers of its response".into()
                }
            });
        };
        let find = |name: &str| {
            head.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
        };
        let encoding = find("content-encoding");
        let is_plain = encoding.is_none_or(|value| value == b"identity");
        let (json, shortest_value) = if is_plain && completeness == Completeness::Complete {
            match json::read(&self.body) {
                Ok(value) => (JsonSyntax::Valid, shortest_value(&value)),
                Err(error) => (JsonSyntax::Invalid(printable(&error.to_string())), None),
            }
        } else {
            (JsonSyntax::Unknown, None)
        };
        let mut credentials: Vec<_> = head.headers.iter().map(|(name, _)| name.clone()).collect();
        credentials.retain(|name| CREDENTIAL_HEADERS.contains(&name.as_str()));
        credentials.sort();
        credentials.dedup();
        let cookies = head.headers.iter().filter(|(name, _)| name == "set-cookie");
        Ok(ResponseObserved {
            status: head.status,
            content_type: find("content-type").map(printable_bytes),
            content_encoding: encoding.map(printable_bytes),
            json,
            shortest_value,
            framing: head.framing,
            head_bytes: head.length,
            body_bytes: self.body.len(),
            total_bytes: self.bytes.len(),
            request_bytes,
            completeness,
            cookies: cookies.map(|(_, value)| cookie_name(value)).take(MAX_NAMES).collect(),
            credential_headers: credentials,
            location: find("location").map(location),
            end,
            http_version: head.version,
        })
    }

    fn read_head(&mut self, searched: usize) {
        let rest = self.bytes.get(searched..).unwrap_or_default();
        let found = rest.windows(HEAD_END.len()).position(|window| window == HEAD_END);
        let length = found.map(|at| searched + at + HEAD_END.len());
        if length.unwrap_or(self.bytes.len()) > MAX_HEAD_BYTES {
            let why = format!("the headers of the response are longer than {MAX_HEAD_BYTES} bytes");
            self.completeness = Some(Completeness::Malformed(why));
            return;
        }
        let Some(length) = length else { return };
        self.head = parse_head(self.bytes.get(..length).unwrap_or_default());
        if self.head.is_none() {
            let why = "the server does not answer with a response of HTTP/1.x";
            self.completeness = Some(Completeness::Malformed(why.into()));
        }
        self.at = length;
    }

    fn read_body(&mut self) {
        let Some(head) = &self.head else { return };
        // These have no body, whatever their headers say (RFC 9112, section 6.3).
        if matches!(head.status, 204 | 304) {
            self.completeness = Some(Completeness::Complete);
            return;
        }
        match head.framing {
            BodyFraming::Chunked => self.read_chunks(),
            BodyFraming::ContentLength => {
                let missing = head.content_length.saturating_sub(self.body.len());
                self.take_body(missing);
                if self.body.len() >= self.head.as_ref().map_or(0, |head| head.content_length) {
                    self.completeness = Some(Completeness::Complete);
                }
            }
            BodyFraming::Close | BodyFraming::Ambiguous => self.take_body(usize::MAX),
        }
    }

    fn take_body(&mut self, most: usize) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..most).unwrap_or(rest);
        self.at += taken.len();
        self.body.extend(taken);
    }

    /// Reads whole chunks (RFC 9112, section 7.1), and skips extensions and trailers.
    fn read_chunks(&mut self) {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(end) = rest.windows(2).take(MAX_HEAD_BYTES).position(|pair| pair == b"\r\n")
            else {
                return;
            };
            let line = rest.get(..end).unwrap_or_default();
            let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let Some(size) = chunk_size(digits.trim_ascii()) else {
                let why = "the chunks of the response are malformed";
                self.completeness = Some(Completeness::Malformed(why.into()));
                return;
            };
            let chunk = rest.get(end + 2..).unwrap_or_default();
            if size == 0 {
                // Trailers end with an empty line, as the headers do.
                let trailers = rest.get(end..).unwrap_or_default();
                if trailers.windows(HEAD_END.len()).any(|window| window == HEAD_END) {
                    self.completeness = Some(Completeness::Complete);
                }
                return;
            }
            if chunk.len() < size.saturating_add(2) {
                return;
            }
            self.body.extend(chunk.get(..size).unwrap_or_default());
            self.at += end + 2 + size + 2;
        }
    }
}

fn chunk_size(digits: &[u8]) -> Option<usize> {
    let valid = (1..=MAX_CHUNK_SIZE_DIGITS).contains(&digits.len());
    let text = std::str::from_utf8(digits).ok().filter(|_| valid)?;
    usize::from_str_radix(text, 16).ok()
}

fn parse_head(bytes: &[u8]) -> Option<Head> {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let first = lines.next()?;
    let rest = first.strip_prefix(b"HTTP/1.")?;
    let (version, rest) = rest.split_at_checked(1)?;
    let status = rest.strip_prefix(b" ")?.get(..3)?;
    let status = std::str::from_utf8(status).ok()?.parse().ok()?;
    let header = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = String::from_utf8_lossy(line.get(..colon)?).to_ascii_lowercase();
        Some((name, line.get(colon + 1..)?.trim_ascii().to_vec()))
    };
    let headers: Vec<_> = lines.filter_map(header).collect();
    let all = |name: &str| {
        let values = headers.iter().filter(|(known, _)| known == name);
        values.map(|(_, value)| value.as_slice()).collect::<Vec<_>>()
    };
    let length = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok();
    let (framing, content_length) =
        match (all("content-length").as_slice(), all("transfer-encoding").as_slice()) {
            ([], []) => (BodyFraming::Close, 0),
            ([value], []) => length(value)
                .map_or((BodyFraming::Ambiguous, 0), |length| (BodyFraming::ContentLength, length)),
            ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => (BodyFraming::Chunked, 0),
            (_, _) => (BodyFraming::Ambiguous, 0),
        };
    let version = format!("HTTP/1.{}", printable_bytes(version));
    Some(Head { length: bytes.len(), status, version, headers, framing, content_length })
}

/// Returns the name of a cookie. A cookie without a name has its value first (RFC 6265bis, section
/// 5.7), of which nothing is kept.
fn cookie_name(value: &[u8]) -> String {
    let pair = value.split(|byte| *byte == b';').next().unwrap_or_default();
    let equals = pair.iter().position(|byte| *byte == b'=');
    let name = equals.and_then(|at| pair.get(..at)).unwrap_or_default().trim_ascii();
    if name.is_empty() { "(without a name)".to_owned() } else { printable_bytes(name) }
}

/// Returns an address without what may be credentials: user, query and fragment.
fn location(value: &[u8]) -> String {
    let end = value.iter().position(|byte| matches!(byte, b'?' | b'#'));
    let text = String::from_utf8_lossy(value.get(..end.unwrap_or(value.len())).unwrap_or_default());
    let has_user = text
        .split_once("//")
        .is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@'));
    if has_user { "(an address with a user)".to_owned() } else { printable(&text) }
}
