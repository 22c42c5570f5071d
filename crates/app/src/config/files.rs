//! Secrets in files, as container platforms provide them.

use std::collections::BTreeMap;

use system::secret_file::read_secret;

use super::SECRETS;

/// Replaces the keys that name files by the contents of the files.
pub(super) fn take(values: &mut BTreeMap<String, String>, faults: &mut Vec<String>) {
    for key in SECRETS {
        let in_file = format!("{key}_file");
        let Some(path) = values.remove(&in_file) else { continue };
        if values.contains_key(*key) {
            faults.push(format!("{key} and {in_file} are both set"));
            continue;
        }
        match read_secret(&path) {
            Ok(text) => {
                values.insert((*key).to_owned(), text);
            }
            Err(error) => faults.push(format!("{in_file}: {path} {error}")),
        }
    }
}

/// Returns the value of a variable; for a secret also from the file that the variable with the
/// suffix `_FILE` names.
pub(super) fn variable(
    name: &str,
    key: &str,
    environment: &impl Fn(&str) -> Option<String>,
    faults: &mut Vec<String>,
) -> Option<String> {
    let value = environment(name);
    if !SECRETS.contains(&key) {
        return value;
    }
    let in_file = format!("{name}_FILE");
    let Some(path) = environment(&in_file) else { return value };
    if value.is_some() {
        faults.push(format!("{name} and {in_file} are both set"));
        return value;
    }
    read_secret(&path).map_err(|error| faults.push(format!("{in_file}: {path} {error}"))).ok()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path};

    use crate::config::Config;

    const FEW: &str = "postgres://ada:geheim@127.0.0.1/avouch";

    fn load(file: Option<&Path>, set: &[(&str, &str)]) -> Result<Config, String> {
        let set: BTreeMap<_, _> =
            set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Config::load(file, |name| set.get(name).cloned()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_secret_may_be_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let path = path.to_str().unwrap();
        let key = format!("1={}", "A".repeat(43));
        let secrets = [
            ("DATABASE_URL", FEW),
            ("SEAL_KEYS", key.as_str()),
            ("BROWSER", "chromium"),
            ("EGRESS_PROXY", "http://ada:geheim@exit.example:80"),
            ("SMTP_URL", "smtp://ada:geheim@mail.example"),
            ("REDIS_URL", "redis://:geheim@127.0.0.1"),
        ];
        for (name, value) in secrets {
            for end in ["", "\n", "\r\n"] {
                std::fs::write(path, format!("{value}{end}")).unwrap();
                let config = load(None, &[(&format!("AVOUCH_{name}_FILE"), path)]).unwrap();
                let direct = load(None, &[(&format!("AVOUCH_{name}"), value)]).unwrap();
                assert_eq!(format!("{config:?}"), format!("{direct:?}"), "{name}");
            }
        }
        for (all, of_three) in [
            (["WHATSAPP_URL", "WHATSAPP_TEMPLATE", "WHATSAPP_TOKEN"], "x"),
            (["SMS_URL", "SMS_FROM", "SMS_KEY"], "a:b"),
            (["OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"], "x"),
        ] {
            std::fs::write(path, format!("{of_three}\n")).unwrap();
            let [url, other, secret] = all.map(|name| format!("AVOUCH_{name}"));
            let template = if url.contains("WHATS") { "a:en" } else { "+15550100" };
            let set = [
                (url.as_str(), "https://api.example/1"),
                (other.as_str(), template),
                (&format!("{secret}_FILE"), path),
            ];
            load(None, &set).unwrap();
        }
        std::fs::write(path, "tls://token@127.0.0.1:1\n").unwrap();
        let attestor =
            [("AVOUCH_ATTESTOR_URL_FILE", path), ("AVOUCH_ATTESTOR_KEY", &"a".repeat(64))];
        assert_eq!(load(None, &attestor).unwrap().attesting.attestor.unwrap().token, "token");
    }

    #[test]
    fn a_key_of_the_file_may_name_a_file_too() {
        let folder = tempfile::tempdir().unwrap();
        let (toml, secret) = (folder.path().join("avouch.toml"), folder.path().join("secret"));
        std::fs::write(&secret, format!("{FEW}\n")).unwrap();
        let named = format!("database_url_file = {secret:?}\n");
        std::fs::write(&toml, &named).unwrap();
        let config = load(Some(&toml), &[]).unwrap();
        assert_eq!(format!("{:?}", config.database_url), "postgres://127.0.0.1:5432");
        // A variable takes precedence, as for all settings.
        let sqlite = [("AVOUCH_DATABASE_URL", "sqlite://x.db")];
        assert_eq!(load(Some(&toml), &sqlite).unwrap().database_url.file(), Some("x.db"));
        std::fs::write(&toml, format!("database_url = \"sqlite://y\"\n{named}")).unwrap();
        let both = load(Some(&toml), &[]).unwrap_err();
        assert!(both.contains("database_url and database_url_file are both set"), "{both}");
        std::fs::write(&toml, "listen_file = \"x\"\n").unwrap();
        assert!(load(Some(&toml), &[]).unwrap_err().contains("`listen_file`"), "no secret");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_without_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let name = path.to_str().unwrap();
        let fault = |set: &[(&str, &str)]| load(None, set).unwrap_err();
        let file = ("AVOUCH_DATABASE_URL_FILE", name);
        assert!(fault(&[file]).contains("cannot be read"), "missing");
        std::fs::write(&path, FEW).unwrap();
        let both = fault(&[file, ("AVOUCH_DATABASE_URL", FEW)]);
        let told = "AVOUCH_DATABASE_URL and AVOUCH_DATABASE_URL_FILE are both set";
        assert!(both.contains(told) && !both.contains("geheim"), "{both}");
        for (text, told) in [
            (vec![b'\n'], "is empty"),
            (b"geheim\xff".to_vec(), "is not UTF-8"),
            (b"geheim".repeat(20_000), "has more than 65536 bytes"),
        ] {
            std::fs::write(&path, text).unwrap();
            let fault = fault(&[file]);
            assert!(fault.contains(told) && !fault.contains("geheim"), "{fault}");
        }
    }
}
