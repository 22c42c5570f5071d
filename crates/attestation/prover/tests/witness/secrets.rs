//! The secrets of all connections to a server, from its key log.

use std::sync::{Arc, Mutex};

use rustls::KeyLog;

/// Secrets of TLS connections with their labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Arc<Mutex<Vec<LabelledSecret>>>);

type LabelledSecret = (String, Vec<u8>);

impl Secrets {
    pub(crate) fn all(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().iter().map(|(_, secret)| secret.clone()).collect()
    }

    /// Returns the secrets that decrypt application data.
    pub(crate) fn application_secrets(&self) -> Vec<Vec<u8>> {
        let secrets = self.0.lock().unwrap();
        let of_data = secrets.iter().filter(|(name, _)| !name.contains("HANDSHAKE"));
        of_data.map(|(_, secret)| secret.clone()).collect()
    }
}

impl KeyLog for Secrets {
    fn log(&self, name: &str, _: &[u8], secret: &[u8]) {
        self.0.lock().unwrap().push((name.to_owned(), secret.to_vec()));
    }
}
