//! The progress bar of a long run on a terminal: not shown in the first second, and removed at the end.

use std::env;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args;

/// Runs that end within this time show no bar.
const UNSEEN: Duration = Duration::from_secs(1);
/// Frames a second, at most.
const RATE: u8 = 10;
/// The bar is redrawn after this time even without progress, as the terminal may have changed its width.
const TICK: Duration = Duration::from_millis(200);

/// The bar of the current run; `None` if none is wanted.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);
/// Whether `BAR` is set. Checked for every text without the lock.
static IS_THERE: AtomicBool = AtomicBool::new(false);

/// Starts the bar of a run over so many bytes.
pub fn start(bytes: u64, output: &args::OutputArgs) {
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    let is_for_machines = output.diagnostics == Some(args::DiagnosticsFormat::Json);
    if output.quiet || is_for_machines || is_dumb || bytes == 0 || !io::stderr().is_terminal() {
        return;
    }
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{wide_bar} {percent:>3}% of {total_bytes}");
    bar.set_style(
        style
            .expect("the template is constant")
            .progress_chars("=> "),
    );
    if let Ok(mut shown) = BAR.lock() {
        *shown = Some(bar.clone());
        IS_THERE.store(true, Ordering::Relaxed);
    }
    // If the system refuses another thread, there is no bar.
    drop(Builder::new().spawn(move || show_later(&bar)));
}

fn show_later(bar: &ProgressBar) {
    thread::sleep(UNSEEN);
    // The lock keeps the bar from ending meanwhile.
    let Ok(_current) = BAR.lock() else { return };
    if !bar.is_finished() {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(RATE));
        bar.enable_steady_tick(TICK);
    }
}

/// Counts bytes that are done.
pub fn add(bytes: usize) {
    if !IS_THERE.load(Ordering::Relaxed) {
        return;
    }
    let Ok(bar) = BAR.lock() else { return };
    bar.iter().for_each(|bar| bar.inc(bytes as u64));
}

/// Removes the bar.
pub fn end() {
    IS_THERE.store(false, Ordering::Relaxed);
    let Ok(mut bar) = BAR.lock() else { return };
    bar.take()
        .into_iter()
        .for_each(|bar| bar.finish_and_clear());
}
