//! Killed at any moment, run twice at once, and edited by somebody else meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::common::{IN_PLACE, POLICY, Place, assert_exit, assert_refused, deployment, stderr};

const FILES: usize = 60;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// The old and the new bytes of every file.
struct Files {
    old: BTreeMap<String, String>,
    new: BTreeMap<String, String>,
}

impl Files {
    /// Writes the files, and finds what they become.
    fn make(place: &Place) -> Self {
        let name = |number: usize| format!("m/{}/{number}.yaml", number % 7);
        // Files of many sizes: a write of the larger ones takes some time.
        let text = |number: usize| {
            deployment(&format!("w{number}")) + &"# filler\n".repeat(number * number % 300)
        };
        let old: BTreeMap<String, String> = (0..FILES)
            .map(|number| (name(number), text(number)))
            .collect();
        let files = Files {
            old,
            new: BTreeMap::new(),
        };
        files.restore(place);
        assert_exit(&place.apply_in_place(&["m"]), 0);
        let new = files
            .old
            .keys()
            .map(|name| (name.clone(), place.read(name)))
            .collect();
        Files { new, ..files }
    }

    fn restore(&self, place: &Place) {
        self.old
            .iter()
            .for_each(|(name, text)| place.write(name, text));
    }

    /// The number of files that are new; none is anything but old or new.
    fn count_new(&self, place: &Place) -> usize {
        let is_new = |(name, old): (&String, &String)| {
            let now = place.read(name);
            assert!(
                now == *old || now == self.new[name],
                "{name} is neither the old file nor the new one"
            );
            now == self.new[name]
        };
        self.old.iter().filter(|&file| is_new(file)).count()
    }
}

/// Moments of a run: somewhere in it, or soon after its first hidden file is there.
/// In memory where that is possible: a kill does not care, and many runs are done sooner.
fn place() -> Place {
    let place = Place::in_memory();
    place.write("policy.yaml", POLICY);
    place
}

fn wait(place: &Place, number: u64, random: u64, whole: Duration) {
    let up_to = |most: u128| {
        Duration::from_micros(u64::try_from(u128::from(random) % most.max(1)).expect("it is short"))
    };
    if number.is_multiple_of(2) {
        return thread::sleep(up_to(whole.as_micros()));
    }
    let (started, first) = (Instant::now(), place.path("m/0/.0.yaml.podgraft-tmp"));
    while !first.exists() && started.elapsed() < whole {}
    thread::sleep(up_to(whole.as_micros() / 5));
}

#[test]
fn a_killed_run_leaves_every_file_old_or_new_and_the_next_run_does_the_rest() {
    let place = place();
    let files = Files::make(&place);
    files.restore(&place);
    let started = Instant::now();
    assert_exit(&place.apply_in_place(&["m"]), 0);
    let whole = started.elapsed();
    let kills = number("KILLS", 40);
    let (mut before, mut midway, mut after, mut left, mut random) =
        (0, 0, 0, 0, number("SEED", 1) | 1 << 40);
    for number in 0..kills {
        files.restore(&place);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut run = place
            .command(&IN_PLACE)
            .arg("m")
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        wait(&place, number, random, whole);
        run.kill().expect("it can be killed");
        run.wait().expect("it has ended");
        match files.count_new(&place) {
            0 => before += 1,
            FILES => after += 1,
            _ => midway += 1,
        }
        left += place.leftovers().len();
        assert_exit(&place.apply_in_place(&["m"]), 0);
        assert_eq!(files.count_new(&place), FILES);
        assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
    }
    eprintln!(
        "{kills} kills: {before} before, {midway} during, {after} after the renaming; {left} hidden files swept"
    );
}

/// Three runs at once over the files. Returns how many of them were refused.
#[track_caller]
fn run_three_at_once(place: &Place, files: &Files) -> usize {
    let spawn = || {
        place
            .command(&IN_PLACE)
            .arg("m")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs")
    };
    let mut refused = 0;
    for run in [spawn(), spawn(), spawn()] {
        let output = run.wait_with_output().expect("it ends");
        let is_clear = [
            "another podgraft process is writing",
            "changed during the run",
            "cannot be read",
        ]
        .iter()
        .any(|words| stderr(&output).contains(words));
        assert!(
            output.status.code() == Some(0) || output.status.code() == Some(2) && is_clear,
            "{output:?}"
        );
        refused += usize::from(output.status.code() == Some(2));
    }
    assert_eq!(
        files.count_new(place),
        FILES,
        "one of the runs does its work"
    );
    assert!(place.leftovers().is_empty());
    refused
}

#[test]
fn two_runs_at_once_lose_nothing() {
    let place = place();
    let files = Files::make(&place);
    let mut refused = 0;
    for _ in 0..10 {
        files.restore(&place);
        refused += run_three_at_once(&place, &files);
    }
    eprintln!("{refused} of 30 runs were refused");
}

#[test]
fn runs_at_once_that_find_no_lock_file_lose_nothing() {
    let place = place();
    let files = Files::make(&place);
    let records = place.read("m/podgraft.lock");
    let mut refused = 0;
    for _ in 0..20 {
        files.restore(&place);
        fs::remove_file(place.path("m/podgraft.lock")).expect("it is there");
        refused += run_three_at_once(&place, &files);
        assert_eq!(place.read("m/podgraft.lock"), records);
    }
    eprintln!("{refused} of 60 runs were refused");
}

#[test]
fn a_file_that_changes_during_the_run_keeps_the_change() {
    let place = Place::with_policy(POLICY);
    place.write("a.yaml", deployment("a"));
    place.write("b.yaml", deployment("b"));
    assert!(
        std::process::Command::new("mkfifo")
            .arg(place.path("slow.yaml"))
            .status()
            .is_ok_and(|made| made.success())
    );
    // The first file is read before the pipe; what comes out of the pipe holds the run up until the edit is done.
    let mut command = place.command(&["apply", "-q", "-i", "-p", "slow.yaml", "a.yaml", "b.yaml"]);
    let run = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut pipe = fs::OpenOptions::new()
        .write(true)
        .open(place.path("slow.yaml"))
        .expect("the program reads it");
    let edited = deployment("a") + "# an edit by hand\n";
    place.write("a.yaml", &edited);
    std::io::Write::write_all(&mut pipe, place.read("policy.yaml").as_bytes())
        .expect("the program reads it");
    drop(pipe);
    let output = run.wait_with_output().expect("it ends");
    assert_refused(&output, "`a.yaml` was changed during the run");
    assert!(stderr(&output).ends_with("podgraft: 1 error; nothing was written\n"));
    assert_eq!(
        (place.read("a.yaml"), place.read("b.yaml")),
        (edited, deployment("b"))
    );
    assert!(place.leftovers().is_empty());
}

#[test]
fn more_files_are_replaced_than_may_be_open() {
    let place = Place::with_policy(POLICY);
    for number in 0..200 {
        place.write(
            format!("m/{}/{number}.yaml", number % 50),
            deployment(&format!("w{number}")),
        );
    }
    let limited = format!("ulimit -n 64; exec \"$0\" {} m", IN_PLACE.join(" "));
    let mut shell = std::process::Command::new("sh");
    let program = env!("CARGO_BIN_EXE_podgraft");
    let output = shell
        .args(["-c", &limited, program])
        .current_dir(place.path(""))
        .output()
        .expect("there is a shell");
    assert_exit(&output, 0);
    assert!((0..200).all(|number| {
        place
            .read(format!("m/{}/{number}.yaml", number % 50))
            .contains("AGENT")
    }));
}
