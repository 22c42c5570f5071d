//! Certificates for servers and clients of tests, issued by a test authority.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    PublicKeyData as _, date_time_ymd,
};

/// A certificate authority of a test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, both as PEM.
#[derive(Clone)]
pub struct Certified {
    pub certificate: String,
    pub key: String,
}

impl Certified {
    /// Returns the SHA-256 hash of the public key in DER, by which Chromium's
    /// `--ignore-certificate-errors-spki-list` names it.
    pub fn public_key_sha256(&self) -> Vec<u8> {
        let key = KeyPair::from_pem(&self.key).unwrap().subject_public_key_info();
        ring::digest::digest(&ring::digest::SHA256, &key).as_ref().to_vec()
    }
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for these hosts that is valid now.
    pub fn valid(&self, hosts: &[&str]) -> Certified {
        self.certify(&params(hosts))
    }

    /// Issues a certificate for these hosts that expired in 2021.
    pub fn expired(&self, hosts: &[&str]) -> Certified {
        let mut params = params(hosts);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.certify(&params)
    }

    /// Issues a certificate for a client with this `PostgreSQL` user name.
    pub fn client(&self, name: &str) -> Certified {
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        self.certify(&params)
    }

    fn certify(&self, params: &CertificateParams) -> Certified {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Certified { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

fn params(hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
}
