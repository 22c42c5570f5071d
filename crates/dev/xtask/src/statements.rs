//! `cargo xtask record-release`: writes down which statements a release sends to PostgreSQL, so that
//! the migrations of the next one are tested against them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use postgres_server::{Durability, PostgresServer};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_postgres::{Client, NoTls, Statement, types::Type};

use crate::{
    Failure,
    command::{cargo, free_port, root, run},
    packages::{self, POSTGRES},
};

/// The protocol version 3.0 in a startup message; requests for encryption have another number.
const PROTOCOL: u32 = 196_608;
/// Words of statements that only tests send.
const CATALOGUES: [&str; 3] = ["pg_", "information_schema", "__diesel"];

/// The tests that send the service's statements: those of the store, and those that rotate keys, which
/// nothing else does.
const TESTS: [&[&str]; 2] = [
    &["store", "--test", "stores", "--test", "encryption"],
    &["acceptance", "--test", "resilience", "--", "secret_key::", "key_rotation::"],
];

/// A statement with the object identifiers of its parameters' types.
type Parsed = (String, Vec<u32>);

/// Runs tests through a proxy that reads the protocol, and writes what was prepared.
pub(crate) async fn record(release: &str) -> Result<(), Failure> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    if release.is_empty() || !release.chars().all(is_name) {
        return Err("a release is named by letters, digits, `.` and `-`".into());
    }
    packages::ensure(&[POSTGRES])?;
    let server = PostgresServer::start(free_port()?, Durability::NoFsync)?;
    let recorded = Arc::<Mutex<BTreeSet<Parsed>>>::default();
    let port = proxy(server.port, recorded.clone()).await?;
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    run(&mut cargo(&["build", "--package", "app", "--bins"]))?;
    for tests in TESTS {
        run(cargo(&["test", "--package"]).args(tests).env("TEST_DATABASE_URL", &url))?;
    }
    let recorded = std::mem::take(&mut *recorded.lock().unwrap_or_else(PoisonError::into_inner));

    let client = connect(&server.url).await?;
    let newest = migrate(&client).await?;
    let mut described = BTreeMap::new();
    for (statement, types) in recorded {
        let is_setting = statement.starts_with("SET ");
        if is_setting || CATALOGUES.iter().any(|word| statement.contains(word)) {
            continue;
        }
        match describe(&client, &statement, &types).await {
            // The one with the fewest rows is the first.
            Ok(line) => drop(described.entry(outline(&statement)).or_insert(line)),
            Err(error) => eprintln!("left out, since it is not one of this schema: {error}"),
        }
    }
    write(release, &newest, &described.into_values().collect::<Vec<_>>())
}

/// Forwards connections to a server on this machine, and collects what their clients prepare. Returns
/// the proxy's port.
async fn proxy(server: u16, recorded: Arc<Mutex<BTreeSet<Parsed>>>) -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((theirs, _)) = listener.accept().await {
            let recorded = recorded.clone();
            tokio::spawn(async move {
                let Ok(ours) = TcpStream::connect(("127.0.0.1", server)).await else { return };
                let (mut from_client, mut to_client) = theirs.into_split();
                let (mut from_server, mut to_server) = ours.into_split();
                let answers = tokio::io::copy(&mut from_server, &mut to_client);
                let requests = async {
                    let (mut messages, mut buffer) = (Messages::default(), vec![0; 1 << 16]);
                    while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
                        let Some(bytes) = buffer.get(..count) else { return };
                        let found = messages.feed(bytes);
                        recorded.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                        if to_server.write_all(bytes).await.is_err() {
                            return;
                        }
                    }
                };
                tokio::select! {
                    _ = answers => (),
                    () = requests => (),
                }
            });
        }
    });
    Ok(port)
}

/// What a client has sent and has not been read yet.
#[derive(Default)]
struct Messages {
    buffer: Vec<u8>,
    is_started: bool,
}

impl Messages {
    /// Takes bytes of the stream; returns the statements of the messages that are complete.
    fn feed(&mut self, bytes: &[u8]) -> Vec<Parsed> {
        self.buffer.extend_from_slice(bytes);
        let mut found = Vec::new();
        loop {
            // Messages before and including the startup message have no type.
            let head = usize::from(self.is_started);
            let Some(length) = self.buffer.get(head..).and_then(number) else { return found };
            let Ok(length) = usize::try_from(length) else { return found };
            let Some(message) = self.buffer.get(..head + length) else { return found };
            if self.is_started {
                found.extend(message.strip_prefix(b"P").and_then(parse));
            } else {
                self.is_started = message.get(4..).and_then(number) == Some(PROTOCOL);
            }
            self.buffer.drain(..head + length);
        }
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Reads a message `Parse` after its type: length, name, statement, and types of parameters.
fn parse(message: &[u8]) -> Option<Parsed> {
    let mut texts = message.get(4..)?.splitn(3, |byte| *byte == 0);
    let (_, statement, rest) = (texts.next()?, texts.next()?, texts.next()?);
    let types = rest.get(2..)?.chunks(4).filter_map(number).collect();
    Some((String::from_utf8(statement.to_vec()).ok()?, types))
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Applies all migrations; returns the name of the last one.
async fn migrate(client: &Client) -> Result<String, Failure> {
    let folder = fs::read_dir(migrations().join("postgres"))?;
    let mut steps: Vec<_> = folder.flatten().map(|step| step.path()).collect();
    steps.sort();
    for step in &steps {
        let text = fs::read_to_string(step.join("up.sql"))?;
        // Nobody else uses this database; in one message, which is one transaction, no index could be
        // created concurrently.
        client.batch_execute(&text.replace(" CONCURRENTLY", "")).await?;
    }
    let newest = steps.last().and_then(|step| step.file_name()).ok_or("there is no migration")?;
    Ok(newest.to_string_lossy().into_owned())
}

/// Returns a line about a statement: its text, and the types of its parameters and columns.
async fn describe(client: &Client, text: &str, types: &[u32]) -> Result<String, Failure> {
    let types = types.iter().map(|oid| Type::from_oid(*oid).unwrap_or(Type::UNKNOWN));
    let prepared: Statement = client
        .prepare_typed(text, &types.collect::<Vec<_>>())
        .await
        .map_err(|error| format!("{text}: {error}"))?;
    let parameters: Vec<_> = prepared.params().iter().map(Type::name).collect();
    let columns = prepared.columns().iter();
    let columns: Vec<_> = columns.map(|column| [column.name(), column.type_().name()]).collect();
    Ok(json!({ "sql": text, "parameters": parameters, "columns": columns }).to_string())
}

/// Returns what statements have in common that differ in their number of rows only, from two on.
fn outline(statement: &str) -> String {
    let mut parts = statement.split('$');
    let first = parts.next().unwrap_or_default().to_owned();
    let outline = parts.fold(first, |outline, part| {
        outline + "$" + part.trim_start_matches(|c: char| c.is_ascii_digit())
    });
    let mut rows: Vec<_> = outline.split("), (").collect();
    // The first part has what is before the first row.
    rows.dedup_by(|row, before| before.rsplit('(').next() == Some(&**row));
    rows.join("), (")
}

/// Writes the statements and the release's newest migration. Statements of the release before are
/// removed: a release is compatible with the one before it, not with older ones.
fn write(release: &str, newest: &str, lines: &[String]) -> Result<(), Failure> {
    for entry in fs::read_dir(migrations())?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("statements-") {
            fs::remove_file(entry.path())?;
        }
    }
    let file = migrations().join(format!("statements-{release}.jsonl"));
    fs::write(&file, lines.join("\n") + "\n")?;
    let list = migrations().join("releases.tsv");
    let before = fs::read_to_string(&list).unwrap_or_default();
    let others = before.lines().filter(|line| !line.starts_with(&format!("{release}\t")));
    let others: String = others.flat_map(|line| [line, "\n"]).collect();
    fs::write(&list, format!("{others}{release}\t{newest}\n"))?;
    println!("{} statements in {}", lines.len(), file.display());
    Ok(())
}

fn migrations() -> PathBuf {
    root().join("migrations")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_in_a_stream_however_it_is_cut() {
        let mut stream = vec![0, 0, 0, 8, 4, 210, 22, 47];
        stream.extend([0, 0, 0, 9, 0, 3, 0, 0, 0]);
        stream.extend(*b"Q\0\0\0\x0dSELECT 1\0");
        stream.extend(*b"P\0\0\0\x19name\0SELECT $1\0\0\x01\0\0\x0b\x86");
        stream.extend(*b"S\0\0\0\x04");
        for size in [1, 2, 7, stream.len()] {
            let mut messages = Messages::default();
            let found: Vec<_> =
                stream.chunks(size).flat_map(|bytes| messages.feed(bytes)).collect();
            assert_eq!(found, [("SELECT $1".to_owned(), vec![2950])], "in pieces of {size}");
        }
    }

    #[test]
    fn statements_that_differ_in_the_number_of_their_rows_have_one_outline() {
        let rows =
            |values: &str| outline(&format!("INSERT INTO a (b, c) VALUES {values} RETURNING b"));
        let two = rows("($1, $2), ($3, $4)");
        assert_eq!(two, "INSERT INTO a (b, c) VALUES ($, $), ($, $) RETURNING b");
        assert_eq!(two, rows("($1, $2), ($3, $4), ($5, $6), ($7, $8)"));
        assert_ne!(two, rows("($1, $2), ($3, DEFAULT), ($4, $5)"));
    }
}
