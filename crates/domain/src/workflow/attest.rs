//! The attestation of a platform, as the author of its definition declares it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request that is repeated through the attestor, which attests its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attest {
    /// The name of a request, over https and to one of the hosts.
    pub request: String,
    /// The number by which the attestor identifies the platform.
    pub platform: u32,
    /// The version of this declaration.
    pub version: u32,
    /// Headers in addition to `Cookie` and `User-Agent`, with their values: at most 20.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Exactly one mode, which [`Self::mode`] returns. It is a list because earlier definitions
    /// had two.
    pub modes: Vec<AttestMode>,
    /// The fields of the output, each with the JSON pointer to its value in the response: at
    /// most 32.
    pub fields: BTreeMap<String, String>,
}

impl Attest {
    /// Returns the mode. It is fixed before any connection is made, and nothing later changes it.
    /// For a definition that was stored with two modes it is the one that reveals less. `None` if
    /// the list is empty, which no validated definition has.
    #[must_use]
    pub fn mode(&self) -> Option<AttestMode> {
        self.modes.iter().copied().min_by_key(|mode| match mode {
            AttestMode::ZktlsFull => 0,
            AttestMode::ZktlsRequest => 1,
            AttestMode::FullReveal => 2,
        })
    }
}

/// How much of the exchange the attestor sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AttestMode {
    /// The attestor sees what is declared: the structure of the response and the attested fields.
    /// A zero-knowledge proof covers the rest and the cookies.
    ZktlsFull,
    /// The attestor sees everything except the cookies, which a zero-knowledge proof covers.
    ZktlsRequest,
    /// The attestor sees everything, including the cookies.
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
