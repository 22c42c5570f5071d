//! The applicant's input as DevTools commands.

use ports::browser::{Input, MouseButton, MouseKind, TouchKind};
use serde_json::{Value, json};

/// Pixels of the frame, as it is shown, per CSS pixel of the page: 0.1 to 10.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PageScale(f64);

impl PageScale {
    /// Returns the scale that Chromium reports; 1 if it is not within the bounds.
    pub(crate) fn new(scale: f64) -> Self {
        if (0.1..=10.0).contains(&scale) { Self(scale) } else { Self::default() }
    }
}

impl Default for PageScale {
    fn default() -> Self {
        Self(1.0)
    }
}

/// Returns the command that performs this input in the page; `None` if it is not a single command.
///
/// Positions are those on the frame. Chromium takes them in CSS pixels and multiplies them by the
/// page's scale: a phone shows a page that has no viewport of its own with a scale below 1, and a
/// page that was zoomed with one above 1.
pub(crate) fn command(input: &Input, page_scale: PageScale) -> Option<(&'static str, Value)> {
    let css = |frame_pixels: f64| frame_pixels / page_scale.0;
    Some(match input {
        Input::Mouse { kind, x, y, button, buttons, clicks, modifiers } => (
            "Input.dispatchMouseEvent",
            json!({
                "type": match kind {
                    MouseKind::Moved => "mouseMoved",
                    MouseKind::Pressed => "mousePressed",
                    MouseKind::Released => "mouseReleased",
                },
                "x": css(*x), "y": css(*y), "buttons": buttons, "clickCount": clicks, "modifiers": modifiers,
                "button": match button {
                    MouseButton::None => "none",
                    MouseButton::Left => "left",
                    MouseButton::Middle => "middle",
                    MouseButton::Right => "right",
                },
            }),
        ),
        Input::Wheel { x, y, dx, dy, modifiers } => (
            "Input.dispatchMouseEvent",
            json!({
                "type": "mouseWheel", "x": css(*x), "y": css(*y), "deltaX": dx, "deltaY": dy,
                "modifiers": modifiers,
            }),
        ),
        Input::Key { down, key, code, key_code, repeat, modifiers } => {
            let text = inserted_text(key, *modifiers).filter(|_| *down);
            let kind = match (down, &text) {
                (true, Some(_)) => "keyDown",
                (true, None) => "rawKeyDown",
                (false, _) => "keyUp",
            };
            let mut params = json!({
                "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": key_code,
                "autoRepeat": repeat, "modifiers": modifiers,
            });
            if let (Some(text), Some(object)) = (text, params.as_object_mut()) {
                object.insert("text".into(), text.into());
            }
            ("Input.dispatchKeyEvent", params)
        }
        Input::Touch { kind, points, modifiers } => {
            let points: Vec<_> = points
                .iter()
                .map(|point| json!({ "id": point.id, "x": css(point.x), "y": css(point.y) }))
                .collect();
            let kind = match kind {
                TouchKind::Started => "touchStart",
                TouchKind::Moved => "touchMove",
                TouchKind::Ended => "touchEnd",
                TouchKind::Cancelled => "touchCancel",
            };
            let touch = json!({ "type": kind, "touchPoints": points, "modifiers": modifiers });
            ("Input.dispatchTouchEvent", touch)
        }
        Input::Text(text) => ("Input.insertText", json!({ "text": text })),
        Input::Composing(text) => {
            // Chromium counts in UTF-16 code units, as JavaScript does.
            let end = text.encode_utf16().count();
            let composing = json!({ "text": text, "selectionStart": end, "selectionEnd": end });
            ("Input.imeSetComposition", composing)
        }
        Input::Reload => ("Page.reload", json!({})),
        Input::Fill(_)
        | Input::Activate(_)
        | Input::Answer { .. }
        | Input::ClosePage
        | Input::Back
        | Input::Resize(_) => return None,
    })
}

/// Returns the text that a key inserts, if any: a single character, or a line break. With Control or
/// Meta held a key is a command (bits 2 and 4 of the protocol's modifiers).
fn inserted_text(key: &str, modifiers: u8) -> Option<String> {
    if key == "Enter" {
        return Some("\r".to_owned());
    }
    let is_command = modifiers & 0b110 != 0;
    let single = key.chars().count() == 1;
    (single && !is_command).then(|| key.to_owned())
}
