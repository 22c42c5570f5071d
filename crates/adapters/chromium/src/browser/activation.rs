//! Activates a control of the outline: scrolls to it, and clicks or touches its middle.

use std::time::Duration;

use ports::browser::{Input, MouseButton, MouseKind, TouchKind, TouchPoint};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::DevToolsClient;

/// The time within which a page must tell where a control is.
const PLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// The activation of one control.
pub(super) struct Activation {
    /// The DevTools session of the control's page.
    pub(super) session: String,
    /// The backend node identifier of Chromium.
    pub(super) node: u32,
    /// Whether the applicant's device has a touch screen rather than a mouse.
    pub(super) touch: bool,
}

/// The part of a page that the frame shows, in CSS pixels.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VisualViewport {
    client_width: f64,
    client_height: f64,
}

impl Activation {
    /// Scrolls to the control, and returns the input that clicks or touches it, in CSS pixels of the
    /// page. A control that takes no space is focused only; for one that is gone, nothing happens.
    pub(super) async fn inputs(&self, client: &DevToolsClient) -> Vec<Input> {
        match tokio::time::timeout(PLACE_TIMEOUT, self.place(client)).await {
            Ok(Some((x, y))) if self.touch => touches(x, y),
            Ok(Some((x, y))) => clicks(x, y),
            Ok(None) | Err(_) => {
                tracing::debug!(
                    node = self.node,
                    "a control has no place on the page; it is focused"
                );
                client.send_no_reply(Some(&self.session), "DOM.focus", self.params());
                vec![]
            }
        }
    }

    /// Returns the middle of the visible part of the control.
    async fn place(&self, client: &DevToolsClient) -> Option<(f64, f64)> {
        let session = Some(self.session.as_str());
        client.call(session, "DOM.scrollIntoViewIfNeeded", self.params()).await.ok()?;
        let quads = client.call(session, "DOM.getContentQuads", self.params()).await.ok()?;
        let metrics = client.call(session, "Page.getLayoutMetrics", json!({})).await.ok()?;
        let viewport = metrics.get("cssVisualViewport")?.clone();
        let viewport = serde_json::from_value(viewport).ok()?;
        let quads = quads.get("quads")?.as_array()?;
        quads.iter().find_map(|quad| middle(quad, &viewport))
    }

    fn params(&self) -> Value {
        json!({ "backendNodeId": self.node })
    }
}

/// Returns the middle of the part of a quadrilateral that is within the viewport; `None` if that is
/// smaller than a pixel. Its corners are relative to the viewport.
fn middle(quad: &Value, viewport: &VisualViewport) -> Option<(f64, f64)> {
    let corners: Vec<f64> = serde_json::from_value(quad.clone()).ok()?;
    let side = |first: usize, end: f64| {
        let along = corners.iter().skip(first).step_by(2);
        let from = along.clone().copied().fold(f64::INFINITY, f64::min).max(0.0);
        let to = along.copied().fold(f64::NEG_INFINITY, f64::max).min(end);
        (to - from >= 1.0).then(|| f64::midpoint(from, to))
    };
    Some((side(0, viewport.client_width)?, side(1, viewport.client_height)?))
}

fn clicks(x: f64, y: f64) -> Vec<Input> {
    let mouse = |kind, button, buttons, clicks| Input::Mouse {
        kind,
        x,
        y,
        button,
        buttons,
        clicks,
        modifiers: 0,
    };
    vec![
        mouse(MouseKind::Moved, MouseButton::None, 0, 0),
        mouse(MouseKind::Pressed, MouseButton::Left, 1, 1),
        mouse(MouseKind::Released, MouseButton::Left, 0, 1),
    ]
}

fn touches(x: f64, y: f64) -> Vec<Input> {
    let touch = |kind, points| Input::Touch { kind, points, modifiers: 0 };
    vec![
        touch(TouchKind::Started, vec![TouchPoint { id: 0, x, y }]),
        touch(TouchKind::Ended, vec![]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_that_of_the_visible_part() {
        let viewport = VisualViewport { client_width: 400.0, client_height: 300.0 };
        let rectangle = |left: f64, top: f64, right: f64, bottom: f64| {
            json!([left, top, right, top, right, bottom, left, bottom])
        };
        let middle = |quad: Value| super::middle(&quad, &viewport);
        assert_eq!(middle(rectangle(10.0, 20.0, 30.0, 60.0)), Some((20.0, 40.0)));
        assert_eq!(middle(rectangle(-100.0, 200.0, 100.0, 9000.0)), Some((50.0, 250.0)));
        assert_eq!(middle(rectangle(10.0, 20.0, 10.5, 60.0)), None, "narrower than a pixel");
        assert_eq!(middle(rectangle(10.0, 400.0, 30.0, 460.0)), None, "below the viewport");
        for malformed in [json!([]), json!([1.0]), json!("quad"), json!([1, 2, "3", 4])] {
            assert_eq!(middle(malformed), None);
        }
    }
}
