//! Migrations are compatible with the release before: they expand the schema, and contract it only
//! once a release has been recorded that does not use what goes. `migrations/README.md` has the rules.

mod rules;

use std::{collections::BTreeSet, fs};

use acceptance::root;

use self::rules::{Database, Directives, Rules};

/// Migrations from before the rules. Processes of a release before these cannot run beside a new one.
const BEFORE_THE_RULES: [&str; 27] = [
    "0001_first",
    "0002_partner_api",
    "0003_catalogue_revision",
    "0004_recordings",
    "0005_embedding",
    "0006_deliveries",
    "0007_attestations",
    "0008_notifications",
    "0009_portal",
    "0010_account_links",
    "0011_reference",
    "0012_receivers",
    "0013_email_templates",
    "0014_branding",
    "0015_passkeys",
    "0016_identity",
    "0017_nodes",
    "0018_suppressions",
    "0019_devices",
    "0020_deployment_key",
    "0021_identity",
    "0022_data_keys",
    "0023_initial_passwords",
    "0024_links_by_team",
    "0025_privacy_url",
    "0026_platform_versions",
    "0027_definition_drafts",
];

#[test]
fn migrations_are_compatible_with_the_release_before() {
    let (releases, deleted_from) = (releases(), deleted_from());
    let mut faults = Vec::new();
    for (folder, database) in [("postgres", Database::Postgres), ("sqlite", Database::Sqlite)] {
        let names = steps(folder);
        let missing: Vec<_> =
            BEFORE_THE_RULES.iter().filter(|name| !names.contains(&(**name).to_owned())).collect();
        assert!(missing.is_empty(), "{folder} lacks {missing:?}");
        for name in names.iter().filter(|name| !BEFORE_THE_RULES.contains(&name.as_str())) {
            let path = root().join("migrations").join(folder).join(name).join("up.sql");
            let sql = fs::read_to_string(path).unwrap();
            let found = check(name, &sql, database, &names, &releases, &deleted_from);
            faults.extend(found.into_iter().map(|fault| format!("{folder}/{name}: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn incompatible_migrations_are_refused() {
    let refused = [
        ("DROP TABLE brands", "only a contract step"),
        ("ALTER TABLE users DROP COLUMN subject", "only a contract step"),
        ("ALTER TABLE users ALTER COLUMN subject DROP NOT NULL", "only a contract step"),
        ("ALTER TABLE users ALTER COLUMN passkeys DROP DEFAULT", "only a contract step"),
        (
            "ALTER TABLE users ADD CONSTRAINT a CHECK (passkeys < 9) NOT VALID",
            "only a contract step",
        ),
        ("DROP INDEX users_by_team", "only a contract step"),
        ("CREATE UNIQUE INDEX a ON users (subject)", "only a contract step"),
        ("ALTER TABLE users RENAME COLUMN subject TO name", "nothing is renamed"),
        ("ALTER TABLE users RENAME TO people", "nothing is renamed"),
        ("ALTER TABLE users ALTER COLUMN passkeys TYPE bigint", "changed in its type"),
        ("ALTER TABLE users ALTER COLUMN subject SET NOT NULL", "nothing is renamed or changed"),
        ("ALTER TABLE users ADD COLUMN a text NOT NULL", "has a default"),
        ("ALTER TABLE users ADD COLUMN a uuid DEFAULT gen_random_uuid()", "rewrites the table"),
        ("ALTER TABLE users ADD COLUMN a text UNIQUE", "all rows would be read"),
        ("ALTER TABLE users ADD COLUMN a int CHECK (a > 0)", "all rows would be read"),
        ("ALTER TABLE users ADD COLUMN a uuid REFERENCES sign_ins (id)", "ON DELETE CASCADE"),
        ("CREATE TABLE a (b uuid REFERENCES sign_ins (id))", "ON DELETE CASCADE"),
        ("CREATE TABLE a AS SELECT * FROM users", "filled by a query"),
        ("ALTER TABLE users ADD CONSTRAINT a CHECK (passkeys < 9)", "NOT VALID"),
        ("CREATE INDEX a ON sessions (status)", "CONCURRENTLY"),
        ("UPDATE users SET role = 'x'", "few-rows"),
        ("DELETE FROM users", "few-rows"),
        ("INSERT INTO platforms (id) VALUES (1)", "few-rows"),
        ("CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "not known"),
        ("LOCK TABLE users", ""),
        ("CREATE FUNCTION f() RETURNS void LANGUAGE sql AS ''; SELECT f()", "not known"),
        ("-- avouch:partition users\nSELECT pg_sleep(1)", "of the migration itself"),
        ("-- avouch:partition\nSELECT 1", "not understood"),
        ("DROP FUNCTION f()", "not known"),
        ("-- avouch:concurrently\nCREATE INDEX CONCURRENTLY a ON users (role)", "two statements"),
        (
            "-- avouch:concurrently\nDROP INDEX CONCURRENTLY IF EXISTS a; CREATE INDEX b ON users (role)",
            "two statements",
        ),
        ("-- avouch:few-rows users\nDELETE FROM users", "not understood"),
        ("-- Why.\n-- avouch:concurrently\nSELECT 1", "not understood"),
        ("-- avouch:contract-of 0027_absent since 0.1.0\nDROP TABLE brands", "no migration before"),
        (
            "-- avouch:contract-of 0027_definition_drafts since 9.9.9\nDROP TABLE brands",
            "not recorded",
        ),
        (
            "-- avouch:contract-of 0028_expand since 0.1.0\nDROP TABLE brands",
            "did not have 0028_expand",
        ),
    ];
    for (sql, part) in refused {
        let faults = sample(sql, Database::Postgres);
        assert!(faults.iter().any(|fault| fault.contains(part)), "{sql}: {faults:?}");
    }
}

#[test]
fn compatible_migrations_are_accepted() {
    let contract = "-- avouch:contract-of 0027_definition_drafts since 0.1.0\n";
    let accepted = [
        "CREATE TABLE a (b uuid PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE, c text NOT NULL);
         CREATE UNIQUE INDEX a_by_c ON a (c); INSERT INTO a SELECT id, role FROM users;
         ALTER TABLE a ALTER COLUMN c TYPE varchar",
        "ALTER TABLE users ADD COLUMN a text, ADD COLUMN b int NOT NULL DEFAULT -1,
         ADD COLUMN c timestamptz NOT NULL DEFAULT now(), ADD COLUMN d uuid REFERENCES teams (id)",
        "ALTER TABLE users ALTER COLUMN passkeys SET DEFAULT 1",
        "-- avouch:few-rows brands: one row for each team\nUPDATE brands SET colour = lower(colour)",
        "-- avouch:concurrently\n-- Why.\nDROP INDEX CONCURRENTLY IF EXISTS a;\n
         CREATE INDEX CONCURRENTLY a ON sessions (status) WHERE closed_at IS NULL;",
        "ALTER TABLE users VALIDATE CONSTRAINT a",
        "-- avouch:partition users\nCREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'SELECT 1';
         SELECT f(); DROP FUNCTION f(); CREATE VIEW parts AS SELECT 1 AS a",
    ];
    for sql in accepted {
        assert_eq!(sample(sql, Database::Postgres), Vec::<String>::new(), "{sql}");
    }
    let contracts = [
        "DROP TABLE brands",
        "ALTER TABLE users DROP COLUMN subject, ADD CONSTRAINT a CHECK (passkeys < 9) NOT VALID",
        "ALTER TABLE users ALTER COLUMN subject DROP NOT NULL",
    ];
    for sql in contracts.map(|sql| format!("{contract}{sql}")) {
        assert_eq!(sample(&sql, Database::Postgres), Vec::<String>::new(), "{sql}");
    }
    let concurrent = format!(
        "-- avouch:concurrently\n{contract}DROP INDEX CONCURRENTLY IF EXISTS a;
         CREATE UNIQUE INDEX CONCURRENTLY a ON users (subject)"
    );
    assert_eq!(sample(&concurrent, Database::Postgres), Vec::<String>::new());
    assert_eq!(sample("CREATE INDEX a ON sessions (status)", Database::Sqlite), [""; 0]);
}

/// Checks a migration that would be the next one but one.
fn sample(sql: &str, database: Database) -> Vec<String> {
    let names = ["0027_definition_drafts", "0028_expand", "0029_next"].map(str::to_owned);
    let releases = [("0.1.0".to_owned(), "0027_definition_drafts".to_owned())];
    let deleted_from = ["sign_ins".to_owned()].into();
    check("0029_next", sql, database, &names, &releases, &deleted_from)
}

/// Returns what is wrong with a migration.
fn check(
    name: &str,
    sql: &str,
    database: Database,
    names: &[String],
    releases: &[(String, String)],
    deleted_from: &BTreeSet<String>,
) -> Vec<String> {
    let directives = match Directives::of(sql) {
        Ok(directives) => directives,
        Err(fault) => return vec![fault],
    };
    let mut faults = Rules { database, directives: &directives, deleted_from }.faults(sql);
    if let Some((of, since)) = &directives.contract {
        let newest = releases.iter().find(|(release, _)| release == since);
        if !names.contains(of) || of.as_str() >= name {
            faults.push(format!("there is no migration before it called {of}"));
        }
        match newest {
            None => faults.push(format!("release {since} is not recorded in releases.tsv")),
            Some((_, newest)) if of > newest => {
                faults.push(format!("release {since} did not have {of}"));
            }
            Some(_) => (),
        }
    }
    faults
}

/// Returns the names of the migrations of a database, in their order.
fn steps(folder: &str) -> Vec<String> {
    let folder = fs::read_dir(root().join("migrations").join(folder)).unwrap();
    let names = folder.map(|step| step.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Returns the recorded releases with their newest migrations.
fn releases() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("migrations/releases.tsv")).unwrap();
    let releases = text.lines().map(|line| line.split_once('\t').expect("RELEASE and MIGRATION"));
    let releases: Vec<_> =
        releases.map(|(release, newest)| (release.to_owned(), newest.to_owned())).collect();
    assert!(!releases.is_empty());
    releases
}

/// Returns the tables from which the newest recorded release deletes rows.
fn deleted_from() -> BTreeSet<String> {
    let (release, _) = releases().pop().unwrap();
    let file = root().join(format!("migrations/statements-{release}.jsonl"));
    let text = fs::read_to_string(file).unwrap();
    let tables = text.split("DELETE FROM \\\"").skip(1);
    let tables: BTreeSet<_> =
        tables.filter_map(|rest| Some(rest.split_once("\\\"")?.0.to_owned())).collect();
    assert!(tables.contains("sign_ins") && tables.len() > 5, "{tables:?}");
    tables
}
