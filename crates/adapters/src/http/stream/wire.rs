//! What the page says and is told, as JSON. Everything the page sends has a bound here.

use ports::{
    browser::{Input, MouseButton, MouseKind, Viewport},
    driving::{Act, View},
};
use serde::Deserialize;
use serde_json::{Value, json};

const LONGEST_TEXT: usize = 4096;

pub(super) fn state(view: &View) -> Value {
    let prompt = view.prompt.as_ref().map(|prompt| {
        json!({
            "kind": prompt.kind,
            "text": prompt.text,
            "deadline": domain::webhook::wire_time(prompt.deadline),
            "share": prompt.share,
        })
    });
    let outcome = view
        .outcome
        .as_ref()
        .map(|outcome| json!({ "text": outcome.text, "shared": outcome.shared }));
    json!({
        "t": "state",
        "status": view.status,
        "progress": view.progress,
        "platform": view.platform,
        "prompt": prompt,
        "outcome": outcome,
    })
}

/// The first message of the page.
#[derive(Deserialize)]
pub(super) struct Hello {
    pub(super) token: String,
    width: u16,
    height: u16,
    pub(super) language: Option<String>,
}

impl Hello {
    pub(super) fn viewport(&self) -> Viewport {
        Viewport { width: self.width.clamp(320, 1600), height: self.height.clamp(320, 1200) }
    }
}

/// What the page says. **Invariant:** no `Debug`: keys and text may be a password.
#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum FromPage {
    /// A picture was drawn.
    Ack {
        seq: u32,
    },
    /// A picture could not be drawn: what is there is to be sent anew.
    Refresh,
    Mouse {
        k: Mouse,
        x: f64,
        y: f64,
        button: u8,
        buttons: u8,
        clicks: u8,
        modifiers: u8,
    },
    Wheel {
        x: f64,
        y: f64,
        dx: f64,
        dy: f64,
        modifiers: u8,
    },
    Key {
        down: bool,
        key: String,
        code: String,
        key_code: u16,
        repeat: bool,
        modifiers: u8,
    },
    Text {
        text: String,
    },
    Share {
        share: bool,
    },
    Cancel,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mouse {
    Move,
    Down,
    Up,
}

impl FromPage {
    /// The act, where it is within bounds.
    pub(super) fn act(self) -> Option<Act> {
        let place = |x: f64, y: f64| {
            (0.0..=4096.0).contains(&x).then_some(x).zip((0.0..=4096.0).contains(&y).then_some(y))
        };
        let input = match self {
            Self::Ack { .. } | Self::Refresh => return None,
            Self::Share { share } => return Some(Act::Share(share)),
            Self::Cancel => return Some(Act::Cancel),
            Self::Mouse { k, x, y, button, buttons, clicks, modifiers } => {
                let (x, y) = place(x, y)?;
                let (kind, button) = match k {
                    Mouse::Move => (MouseKind::Moved, MouseButton::None),
                    Mouse::Down => (MouseKind::Pressed, mouse_button(button)?),
                    Mouse::Up => (MouseKind::Released, mouse_button(button)?),
                };
                let (buttons, modifiers) = (buttons & 7, modifiers & 15);
                Input::Mouse { kind, x, y, button, buttons, clicks: clicks.min(3), modifiers }
            }
            Self::Wheel { x, y, dx, dy, modifiers } => {
                let (x, y) = place(x, y)?;
                let turn = |delta: f64| delta.clamp(-5000.0, 5000.0);
                Input::Wheel { x, y, dx: turn(dx), dy: turn(dy), modifiers: modifiers & 15 }
            }
            Self::Key { down, key, code, key_code, repeat, modifiers } => {
                if key.len() > 32 || code.len() > 32 {
                    return None;
                }
                Input::Key { down, key, code, key_code, repeat, modifiers: modifiers & 15 }
            }
            Self::Text { text } => {
                if text.chars().count() > LONGEST_TEXT {
                    return None;
                }
                Input::Text(text)
            }
        };
        Some(Act::Input(input))
    }
}

const fn mouse_button(button: u8) -> Option<MouseButton> {
    match button {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    }
}
