//! The contract of [`ports::browser::BrowserPool`]: **releasing takes precedence over starting**,
//! and no process remains.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use domain::{id::BrowserId, request::Location, workflow::ElementRead};
use ports::browser::{BrowserPool, BrowserSpec, Device, Locale, ObservedSignals, StartError};
use serde_json::json;
use uuid::Uuid;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of releases, at different moments of a start.
const ROUNDS: u32 = 6;

/// A pool with two slots, and a page that its browsers can reach.
pub struct Pool {
    pub pool: Arc<dyn BrowserPool>,
    /// A page with the text `hello` in the element `h1`.
    pub page: String,
    /// The host of the page.
    pub host: String,
    /// Counts the browsers of this pool that the machine runs.
    pub running: Box<dyn Fn() -> usize + Send + Sync>,
    pub guard: Box<dyn std::any::Any + Send + Sync>,
}

pub async fn starts_a_browser_that_shows_pages(pool: &Pool) {
    let browser = pool.pool.start(spec(pool)).await.unwrap();
    browser.navigate(&pool.page).await.unwrap();
    let reads = ["h1", "h2"].map(ElementRead::text);
    let texts = browser.read(&reads).await.unwrap();
    assert_eq!(texts, [json!("hello"), json!(null)]);
    let captured = browser.capture(&reads, false).await.unwrap();
    assert_eq!(captured.values.unwrap(), texts);
    let nodes = captured.tree.unwrap().nodes;
    assert!(nodes.iter().any(|node| node.text.as_deref() == Some("hello")), "{nodes:?}");
    let frame = tokio::time::timeout(TIMEOUT, browser.frame(0)).await.unwrap().unwrap();
    assert!(frame.jpeg.starts_with(&[0xFF, 0xD8]), "a JPEG");
    assert!(frame.origin.contains(&pool.host), "{}", frame.origin);
}

pub async fn starts_no_browser_with_a_released_identifier(pool: &Pool) {
    let spec = spec(pool);
    pool.pool.release(spec.id).await;
    let refusal = pool.pool.start(spec).await.map(drop).unwrap_err();
    assert!(matches!(refusal, StartError::Released), "{refusal:?}");
    assert_eq!((pool.running)(), 0);
}

pub async fn ends_a_browser_released_during_its_start(pool: &Pool) {
    for round in 0..ROUNDS {
        let spec = spec(pool);
        let (id, starter) = (spec.id, pool.pool.clone());
        let start = tokio::spawn(async move { starter.start(spec).await.map(drop) });
        tokio::time::sleep(Duration::from_millis(60) * round).await;
        pool.pool.release(id).await;
        match start.await.unwrap() {
            Ok(()) | Err(StartError::Released) => (),
            Err(error) => panic!("{error}"),
        }
        until_running(pool, 0).await;
    }
}

pub async fn returns_the_running_browser_for_a_second_start(pool: &Pool) {
    let spec = spec(pool);
    pool.pool.start(spec.clone()).await.unwrap();
    pool.pool.start(spec).await.unwrap();
    assert_eq!((pool.running)(), 1);
}

pub async fn releases_an_unknown_browser(pool: &Pool) {
    let id = spec(pool).id;
    pool.pool.release(id).await;
    pool.pool.release(id).await;
}

pub async fn refuses_a_start_without_a_free_slot(pool: &Pool) {
    let first = spec(pool);
    pool.pool.start(first.clone()).await.unwrap();
    pool.pool.start(spec(pool)).await.unwrap();
    let refusal = pool.pool.start(spec(pool)).await.map(drop).unwrap_err();
    assert!(matches!(refusal, StartError::NoRoom), "{refusal:?}");
    pool.pool.release(first.id).await;
    pool.pool.start(spec(pool)).await.unwrap();
}

pub async fn reports_the_end_of_a_browser(pool: &Pool) {
    let spec = spec(pool);
    let browser = pool.pool.start(spec.clone()).await.unwrap();
    pool.pool.release(spec.id).await;
    tokio::time::timeout(TIMEOUT, browser.ended()).await.unwrap();
    assert_eq!(browser.frame(u64::MAX).await, None);
    until_running(pool, 0).await;
}

async fn until_running(pool: &Pool, count: usize) {
    let ends = tokio::time::Instant::now() + TIMEOUT;
    while (pool.running)() != count {
        assert!(tokio::time::Instant::now() < ends, "{} browsers run", (pool.running)());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn spec(pool: &Pool) -> BrowserSpec {
    BrowserSpec {
        id: BrowserId::from_uuid(Uuid::new_v4()),
        hosts: BTreeSet::from([pool.host.clone()]),
        watch: ObservedSignals::default(),
        device: Device::default(),
        locale: Locale::default(),
        place: Location { country: "US".into(), region: None, city: None },
    }
}
