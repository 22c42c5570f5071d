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
    /// Exactly one, which [`Self::mode`] answers. It is a list because definitions had two once.
    pub modes: Vec<AttestMode>,
    /// Field of the output, and where the response has it: a JSON pointer. At most 32.
    pub fields: BTreeMap<String, String>,
}

impl Attest {
    /// The one mode: it is chosen here, before any connection, and nothing that happens later
    /// changes it. Of a definition that was stored with two it is the one that reveals less. None
    /// where the list is empty, which no definition that was checked has.
    #[must_use]
    pub fn mode(&self) -> Option<AttestMode> {
        self.modes.iter().copied().min_by_key(|mode| match mode {
            AttestMode::ZktlsFull => 0,
            AttestMode::ZktlsRequest => 1,
            AttestMode::FullReveal => 2,
        })
    }
}

/// How much the witness sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttestMode {
    /// What is declared: of the response its structure and the attested fields. For the rest, and
    /// for the cookies, there is a proof in zero knowledge.
    ZktlsFull,
    /// Everything but the cookies, for which there is a proof in zero knowledge.
    ZktlsRequest,
    /// Everything, the cookies too.
    FullReveal,
}

impl AttestMode {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ZktlsFull => "zktls-full",
            Self::ZktlsRequest => "zktls-request",
            Self::FullReveal => "full-reveal",
        }
    }
}
