//! Modifies a connection with its secrets, as a dishonest prover can. The keys are derived here
//! independently according to the RFC, without the code under test.

use chacha20::{
    ChaCha20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};
use ring::{aead, digest, hmac};

use crate::setup::Session;

/// The plaintext of an encrypted record.
#[derive(Debug, Clone)]
pub(crate) struct Inner {
    pub(crate) kind: u8,
    pub(crate) content: Vec<u8>,
    pub(crate) padding: usize,
}

impl Inner {
    pub(crate) fn new(kind: u8, content: &[u8]) -> Self {
        Self { kind, content: content.to_vec(), padding: 0 }
    }
}

/// The parts of a connection.
pub(crate) struct Parts {
    pub(crate) client_hello: Vec<u8>,
    pub(crate) server_hello: Vec<u8>,
    /// Messages of the server's flight.
    pub(crate) flight: Vec<Vec<u8>>,
    pub(crate) client: Vec<Inner>,
    pub(crate) server: Vec<Inner>,
    /// Content type of the flight's records.
    pub(crate) flight_kind: u8,
    /// Whether the server's Finished is recomputed.
    pub(crate) finish: bool,
    /// Traffic secrets for each side's data; derived from the handshake if `None`.
    pub(crate) client_data: Option<[u8; 32]>,
    pub(crate) server_data: Option<[u8; 32]>,
    secret: Vec<u8>,
}

impl Session {
    /// Splits a connection with ChaCha20-Poly1305 into its parts.
    pub(crate) fn parts(&self) -> Parts {
        let (mut client, mut server) = (records(&self.client), records(&self.server));
        let (client_hello, server_hello) = (client.remove(0).1, server.remove(0).1);
        let sealed = |records: &mut Vec<(u8, Vec<u8>)>| records.retain(|(kind, _)| *kind == 23);
        sealed(&mut client);
        sealed(&mut server);
        let hellos = sha256(&[&client_hello, &server_hello]);
        let mut keys = Keys::new(&derive(&self.secret, "s hs traffic", &hellos));
        let (mut stream, mut used) = (vec![], 0);
        while used < server.len() {
            let inner = keys.open(&server[used].1);
            used += 1;
            stream.extend(inner.content);
            if messages(&stream).last().is_some_and(|message| message[0] == 20) {
                break;
            }
        }
        let flight = messages(&stream);
        let all: Vec<&[u8]> = [client_hello.as_slice(), &server_hello]
            .into_iter()
            .chain(flight.iter().map(Vec::as_slice))
            .collect();
        let transcript = sha256(&all);
        let master = master(&self.secret);
        let open = |label: &str, records: &[(u8, Vec<u8>)]| {
            let mut keys = Keys::new(&derive(&master, label, &transcript));
            records.iter().map(|(_, body)| keys.open(body)).collect::<Vec<_>>()
        };
        Parts {
            client: open("c ap traffic", &client[1..]),
            server: open("s ap traffic", &server[used..]),
            client_hello,
            server_hello,
            flight,
            flight_kind: 22,
            finish: true,
            client_data: None,
            server_data: None,
            secret: self.secret.clone(),
        }
    }

    /// Returns the traffic secret of the client's data.
    pub(crate) fn client_data(&self) -> [u8; 32] {
        let parts = self.parts();
        let all = [&parts.client_hello, &parts.server_hello].into_iter().chain(&parts.flight);
        let transcript = sha256(&all.map(Vec::as_slice).collect::<Vec<_>>());
        derive(&master(&self.secret), "c ap traffic", &transcript).try_into().unwrap()
    }

    /// Returns the same connection with modified parts; everything after a modification is
    /// encrypted accordingly.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Parts)) -> Self {
        let mut parts = self.parts();
        change(&mut parts);
        let (client, server) = parts.seal();
        Self { client, server, ..self.clone() }
    }
}

impl Parts {
    fn seal(mut self) -> (Vec<u8>, Vec<u8>) {
        let hellos = sha256(&[&self.client_hello, &self.server_hello]);
        let server_secret = derive(&self.secret, "s hs traffic", &hellos);
        let client_secret = derive(&self.secret, "c hs traffic", &hellos);
        let plaintext = |parts: &Self| {
            let all = [&parts.client_hello, &parts.server_hello].into_iter().chain(&parts.flight);
            sha256(&all.map(Vec::as_slice).collect::<Vec<_>>())
        };
        if self.finish {
            let own = self.flight.pop().unwrap();
            let finished = finished(&server_secret, &plaintext(&self));
            self.flight.push([&own[..4], &finished].concat());
        }
        let transcript = plaintext(&self);
        let master = master(&self.secret);
        let ccs = [20, 3, 3, 0, 1, 1];
        let mut client = first(&self.client_hello);
        client.extend(ccs);
        let own = finished(&client_secret, &transcript);
        let own = [&[20, 0, 0, 32], own.as_slice()].concat();
        client.extend(Keys::new(&client_secret).seal(&Inner::new(22, &own)));
        let secret = |own: Option<[u8; 32]>, label| {
            own.map_or_else(|| derive(&master, label, &transcript), Vec::from)
        };
        let mut keys = Keys::new(&secret(self.client_data, "c ap traffic"));
        client.extend(self.client.iter().flat_map(|inner| keys.seal(inner)));
        let mut server = plain(&self.server_hello);
        server.extend(ccs);
        let (mut keys, kind) = (Keys::new(&server_secret), self.flight_kind);
        server.extend(self.flight.iter().flat_map(|message| keys.seal(&Inner::new(kind, message))));
        let mut keys = Keys::new(&secret(self.server_data, "s ap traffic"));
        server.extend(self.server.iter().flat_map(|inner| keys.seal(inner)));
        (client, server)
    }
}

/// The same for a client's first message, whose record has an older version.
pub(crate) fn first(message: &[u8]) -> Vec<u8> {
    let mut record = plain(message);
    record[2] = 1;
    record
}

/// Returns a handshake message in its own record.
pub(crate) fn plain(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    [&[22, 3, 3], length.as_slice(), message].concat()
}

/// Returns the types and bodies of records.
pub(crate) fn records(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = vec![];
    while let [kind, _, _, high, low, rest @ ..] = bytes {
        let (body, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        found.push((*kind, body.to_vec()));
        bytes = rest;
    }
    found
}

fn messages(mut stream: &[u8]) -> Vec<Vec<u8>> {
    let mut found = vec![];
    while let [_, high, middle, low, ..] = stream {
        let length = 4 + u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        if stream.len() < length {
            break;
        }
        let (message, rest) = stream.split_at(length);
        found.push(message.to_vec());
        stream = rest;
    }
    found
}

struct Keys {
    key: aead::LessSafeKey,
    iv: Vec<u8>,
    count: u64,
}

impl Keys {
    fn new(secret: &[u8]) -> Self {
        let key = aead::UnboundKey::new(&aead::CHACHA20_POLY1305, &expand(secret, "key", &[], 32));
        let key = aead::LessSafeKey::new(key.unwrap());
        Self { key, iv: expand(secret, "iv", &[], 12), count: 0 }
    }

    fn nonce(&mut self) -> aead::Nonce {
        let count = [[0; 4].as_slice(), &self.count.to_be_bytes()].concat();
        self.count += 1;
        let nonce: Vec<u8> = self.iv.iter().zip(count).map(|(a, b)| a ^ b).collect();
        aead::Nonce::try_assume_unique_for_key(&nonce).unwrap()
    }

    fn open(&mut self, body: &[u8]) -> Inner {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        let aad = aead::Aad::from([23, 3, 3, length[0], length[1]]);
        let (nonce, mut content) = (self.nonce(), body.to_vec());
        let length = self.key.open_in_place(nonce, aad, &mut content).unwrap().len();
        content.truncate(length);
        let end = content.iter().rposition(|byte| *byte != 0).unwrap();
        Inner { kind: content[end], content: content[..end].to_vec(), padding: length - end - 1 }
    }

    fn seal(&mut self, inner: &Inner) -> Vec<u8> {
        let mut body = inner.content.clone();
        body.push(inner.kind);
        body.extend(vec![0; inner.padding]);
        let length = u16::try_from(body.len() + 16).unwrap().to_be_bytes();
        let header = [23, 3, 3, length[0], length[1]];
        let nonce = self.nonce();
        self.key.seal_in_place_append_tag(nonce, aead::Aad::from(header), &mut body).unwrap();
        [header.as_slice(), &body].concat()
    }
}

/// Returns the IV of a traffic secret, and the tag keys of its first records.
pub(crate) fn iv_and_tag_keys(secret: &[u8; 32], records: usize) -> ([u8; 12], Vec<[u8; 32]>) {
    let iv = expand(secret, "iv", &[], 12);
    let key: [u8; 32] = expand(secret, "key", &[], 32).try_into().unwrap();
    let tag_key = |sequence: u64| {
        let sequence = [[0; 4].as_slice(), &sequence.to_be_bytes()].concat();
        let nonce: Vec<u8> = iv.iter().zip(sequence).map(|(a, b)| a ^ b).collect();
        let nonce: [u8; 12] = nonce.try_into().unwrap();
        let mut stream = [0; 32];
        ChaCha20::new(&key.into(), &nonce.into()).apply_keystream(&mut stream);
        stream
    };
    let records = u64::try_from(records).unwrap();
    (iv.clone().try_into().unwrap(), (0..records).map(tag_key).collect())
}

fn sha256(parts: &[&[u8]]) -> Vec<u8> {
    digest::digest(&digest::SHA256, &parts.concat()).as_ref().to_vec()
}

fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn expand(secret: &[u8], label: &str, context: &[u8], length: u8) -> Vec<u8> {
    let label = format!("tls13 {label}");
    let head = [0, length, u8::try_from(label.len()).unwrap()];
    let context = [&[u8::try_from(context.len()).unwrap()], context, &[1]].concat();
    let mut block = mac(secret, &[&head, label.as_bytes(), &context].concat());
    block.truncate(length.into());
    block
}

fn derive(secret: &[u8], label: &str, hash: &[u8]) -> Vec<u8> {
    expand(secret, label, hash, 32)
}

fn master(secret: &[u8]) -> Vec<u8> {
    mac(&derive(secret, "derived", &sha256(&[])), &[0; 32])
}

fn finished(secret: &[u8], transcript: &[u8]) -> Vec<u8> {
    mac(&expand(secret, "finished", &[], 32), transcript)
}
