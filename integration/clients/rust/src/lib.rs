//! What the checks of each crate need: the lines that they print are described at the type message in
//! integration/cluster.

use std::fmt::Debug;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};

pub const PATIENCE: Duration = Duration::from_secs(30); // for what should happen soon
pub const SESSION: Duration = Duration::from_secs(4);
const LONGEST: Duration = Duration::from_secs(120); // for one check, which kills three servers

pub type Outcome<T = ()> = Result<T, String>;

/// A check by name. The client has no means for one without a body.
pub type Check = (&'static str, Option<fn() -> Outcome>);

/// Runs checks, each in a thread of its own, so that one which panics or hangs fails alone.
pub fn run(checks: &[Check]) {
    for (name, body) in checks {
        let Some(body) = *body else {
            say(json!({"check": name, "absent": true}));
            continue;
        };
        let (done, outcome) = mpsc::channel();
        thread::spawn(move || done.send(body()));
        let outcome = outcome.recv_timeout(LONGEST).unwrap_or_else(|e| Err(format!("no outcome: {e}")));
        say(json!({"check": name, "ok": outcome.is_ok(), "detail": outcome.err().unwrap_or_default()}));
    }
    say(json!({"end": checks.len()}));
    std::process::exit(0);
}

/// The connect string.
pub fn hosts() -> String {
    std::env::args().nth(1).expect("the connect string is missing")
}

/// Asks the test to do something to a server, and waits until it is done.
pub fn ask(message: Value) -> Outcome {
    say(message);
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(text)?;
    equal(line.as_str(), "done\n")
}

fn say(message: Value) {
    println!("{message}");
}

/// Fails unless both are equal.
pub fn equal<T: PartialEq + Debug>(got: T, want: T) -> Outcome {
    if got == want {
        return Ok(());
    }
    Err(format!("got {got:?}, want {want:?}"))
}

/// The text of any error.
pub fn text(e: impl Debug) -> String {
    format!("{e:?}")
}
