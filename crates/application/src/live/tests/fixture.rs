//! Fixtures of runs.

use std::sync::{Arc, atomic::Ordering};

use domain::{
    session::Status,
    workflow::{PageTree, replay},
};
use serde_json::json;

use super::{
    pass,
    small_workflow::{Run, definition},
};

#[tokio::test(start_paused = true)]
async fn a_fixture_has_the_pages_that_the_run_has_seen() {
    let dom = json!({ "via": { "dom": {} }, "fields": { "name": "#name" } });
    let definition = definition(&dom);
    let (run, author) = Run::recorded(definition.clone()).await;
    // Another look at the page would find another one.
    run.browser.changes.store(true, Ordering::SeqCst);
    run.come();
    run.browser.show("#in");
    pass(10).await;
    run.answer(true);
    pass(5).await;
    assert_eq!(run.status().await, Status::Completed);
    let definition = Arc::new(definition);
    let fixture = author.capture.as_ref().unwrap().finish(&definition).unwrap();
    let select = |tree: &PageTree, _: usize, selector: &str| -> Vec<usize> {
        let has_id =
            |at: &usize| tree.nodes[*at].attributes.get("id").is_some_and(|id| id == selector);
        (0..tree.nodes.len()).filter(has_id).collect()
    };
    let replayed = replay(&definition, &fixture, &select);
    assert_eq!(replayed.unrecorded, Vec::<String>::new());
    assert_eq!(fixture.expected.differences(&replayed.result), Vec::<String>::new());
}
