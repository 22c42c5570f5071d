//! What of a platform can be attested, as its author writes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A request that is made once more through a witness, who attests what was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attest {
    /// A named request, over https, of one of the hosts.
    pub request: String,
    /// What the attestor knows the platform by, and which version of this plan it is.
    pub platform: u32,
    pub version: u32,
    /// Headers beside `Cookie` and `User-Agent`, with their values: at most 20.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// In the order in which they are tried.
    pub modes: Vec<AttestMode>,
    /// Field of the output, and where the response has it: a JSON pointer. At most 32.
    pub fields: BTreeMap<String, String>,
}

/// How much the witness sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttestMode {
    /// Everything but the cookies, for which there is a proof in zero knowledge.
    ZktlsRequest,
    /// Everything, the cookies too.
    FullReveal,
}

impl AttestMode {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ZktlsRequest => "zktls-request",
            Self::FullReveal => "full-reveal",
        }
    }
}
