//! Activates a control of the outline: scrolls to it, and clicks or touches its middle.

use std::time::Duration;

use ports::browser::{Input, MouseButton, MouseKind, TouchKind, TouchPoint};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::DevToolsClient;

/// The time within which a page must tell where a control is.
const PLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time after which Chromium knows where a frame with a process of its own is, once it or the page
/// was scrolled. Input that arrives earlier goes to what was there before: to the page around a frame
/// that comes into view, and to a frame that is gone.
const FRAME_DELAY: Duration = Duration::from_millis(300);

/// The activation of one control.
pub(super) struct Activation {
    pub(super) control: Control,
    /// Whether the applicant's device has a touch screen rather than a mouse.
    pub(super) touch: bool,
}

/// A control of a page.
pub(super) struct Control {
    /// The DevTools session of its page.
    pub(super) page: String,
    /// The DevTools session of the process that renders it.
    pub(super) session: String,
    /// The backend node identifier in that process.
    pub(super) node: u32,
    /// The frames with a process of their own that it is in, the innermost first, each with the DevTools
    /// session of its element.
    pub(super) frames: Vec<(String, String)>,
    /// Whether its page has frames at all.
    pub(super) is_beside_frames: bool,
}

/// A rectangle: left, top, right and bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rectangle([f64; 4]);

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
                    node = self.control.node,
                    "a control has no place on the page; it is focused"
                );
                let session = Some(self.control.session.as_str());
                client.send_no_reply(session, "DOM.focus", self.params());
                vec![]
            }
        }
    }

    /// Returns the middle of the visible part of the control.
    async fn place(&self, client: &DevToolsClient) -> Option<(f64, f64)> {
        let Control { page, session, frames, is_beside_frames, .. } = &self.control;
        let session = Some(session.as_str());
        let quads = async || client.call(session, "DOM.getContentQuads", self.params()).await.ok();
        let before = if *is_beside_frames { quads().await } else { None };
        client.call(session, "DOM.scrollIntoViewIfNeeded", self.params()).await.ok()?;
        let mut quads_now = quads().await?;
        // In a frame, the pages around it may have been scrolled instead.
        if *is_beside_frames && (!frames.is_empty() || before.as_ref() != Some(&quads_now)) {
            tokio::time::sleep(FRAME_DELAY).await;
            quads_now = quads().await?;
        }
        let mut windows = vec![];
        for (around, frame) in frames {
            windows.push(content_of_frame(client, around, frame).await?);
        }
        let metrics = client.call(Some(page), "Page.getLayoutMetrics", json!({})).await.ok()?;
        let viewport = metrics.get("cssVisualViewport")?.clone();
        let viewport: VisualViewport = serde_json::from_value(viewport).ok()?;
        let viewport = Rectangle([0.0, 0.0, viewport.client_width, viewport.client_height]);
        let quads = quads_now.get("quads")?.as_array()?.iter().filter_map(Rectangle::around);
        let mut visible = quads.filter_map(|quad| quad.seen_through(&windows)?.within(viewport));
        visible.next().map(Rectangle::middle)
    }

    fn params(&self) -> Value {
        json!({ "backendNodeId": self.control.node })
    }
}

/// Returns where the content of a frame is, in the process of its element.
async fn content_of_frame(client: &DevToolsClient, around: &str, frame: &str) -> Option<Rectangle> {
    let frame = json!({ "frameId": frame });
    let owner = client.call(Some(around), "DOM.getFrameOwner", frame).await.ok()?;
    let owner = json!({ "backendNodeId": owner.get("backendNodeId")? });
    let model = client.call(Some(around), "DOM.getBoxModel", owner).await.ok()?;
    Rectangle::around(model.pointer("/model/content")?)
}

impl Rectangle {
    /// Returns the rectangle around a quadrilateral of Chromium, whose corners are relative to the
    /// viewport.
    fn around(quad: &Value) -> Option<Self> {
        let corners: Vec<f64> = serde_json::from_value(quad.clone()).ok()?;
        let side = |first: usize| {
            let along = corners.iter().copied().skip(first).step_by(2);
            let from = along.clone().fold(f64::INFINITY, f64::min);
            (from, along.fold(f64::NEG_INFINITY, f64::max))
        };
        let ((left, right), (top, bottom)) = (side(0), side(1));
        (corners.len() == 8).then_some(Self([left, top, right, bottom]))
    }

    /// Returns what is left of it in another one; `None` if that is smaller than a pixel.
    fn within(self, Self([left, top, right, bottom]): Self) -> Option<Self> {
        let Self([own_left, own_top, own_right, own_bottom]) = self;
        let (left, top) = (own_left.max(left), own_top.max(top));
        let (right, bottom) = (own_right.min(right), own_bottom.min(bottom));
        (right - left >= 1.0 && bottom - top >= 1.0).then_some(Self([left, top, right, bottom]))
    }

    /// Returns what is seen of it through frames, the innermost first, where the outermost one is.
    fn seen_through(self, frames: &[Self]) -> Option<Self> {
        frames.iter().try_fold(self, |Self([left, top, right, bottom]), frame| {
            let Self([x, y, _, _]) = *frame;
            Self([left + x, top + y, right + x, bottom + y]).within(*frame)
        })
    }

    fn middle(self) -> (f64, f64) {
        let Self([left, top, right, bottom]) = self;
        (f64::midpoint(left, right), f64::midpoint(top, bottom))
    }
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

    fn quad(left: f64, top: f64, right: f64, bottom: f64) -> Value {
        json!([left, top, right, top, right, bottom, left, bottom])
    }

    #[test]
    fn the_middle_is_that_of_the_visible_part() {
        let viewport = Rectangle([0.0, 0.0, 400.0, 300.0]);
        let middle =
            |quad: Value| Rectangle::around(&quad)?.within(viewport).map(Rectangle::middle);
        assert_eq!(middle(quad(10.0, 20.0, 30.0, 60.0)), Some((20.0, 40.0)));
        assert_eq!(middle(quad(-100.0, 200.0, 100.0, 9000.0)), Some((50.0, 250.0)));
        assert_eq!(middle(quad(10.0, 20.0, 10.5, 60.0)), None, "narrower than a pixel");
        assert_eq!(middle(quad(10.0, 400.0, 30.0, 460.0)), None, "below the viewport");
        for malformed in [json!([]), json!([1.0]), json!("quad"), json!([1, 2, "3", 4])] {
            assert_eq!(middle(malformed), None);
        }
    }

    #[test]
    fn a_control_is_seen_through_its_frames() {
        let control = Rectangle([10.0, 20.0, 110.0, 60.0]);
        let (inner, outer) = ([5.0, 5.0, 105.0, 305.0], [200.0, 100.0, 400.0, 150.0]);
        let seen = |frames: &[[f64; 4]]| {
            let frames: Vec<_> = frames.iter().copied().map(Rectangle).collect();
            control.seen_through(&frames).map(|Rectangle(seen)| seen)
        };
        assert_eq!(seen(&[]), Some([10.0, 20.0, 110.0, 60.0]));
        assert_eq!(seen(&[inner]), Some([15.0, 25.0, 105.0, 65.0]));
        assert_eq!(seen(&[inner, outer]), Some([215.0, 125.0, 305.0, 150.0]));
        assert_eq!(seen(&[[0.0, 0.0, 400.0, 10.0]]), None, "scrolled out of its frame");
    }
}
