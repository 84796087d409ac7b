//! Which files the lock file keeps lines of, and what may become of its text.

use super::{
    DEPLOYMENT, applied, apply, empty_repository, git, policy, repository, succeeded, undone,
};
use crate::program::stderr_of;

#[test]
fn lines_of_files_that_are_not_checked_out_stay() {
    let place = repository(1);
    place.write("other/carts.yaml", DEPLOYMENT.replace("orders", "carts"));
    let apply = ["apply", "-i", "-p", "policies", "."];
    succeeded(&place, &apply);
    git(&place, &["add", "."]);
    git(&place, &["commit", "-qm", "carts"]);
    let lock = place.read("podgraft.lock");
    git(&place, &["sparse-checkout", "set", "apps", "policies"]);
    assert!(!place.path("other").exists());
    place.write("policies/agent.yaml", policy("agent", 2));
    succeeded(&place, &apply);
    let of_carts = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("carts"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(of_carts(&place.read("podgraft.lock")), of_carts(&lock));
    git(&place, &["sparse-checkout", "disable"]);
    succeeded(&place, &["undo", "-i", "."]);
    assert_eq!(
        place.read("other/carts.yaml"),
        DEPLOYMENT.replace("orders", "carts")
    );
    // In a full checkout, a file that is not there is gone.
    succeeded(&place, &apply);
    std::fs::remove_file(place.path("other/carts.yaml")).expect("it is there");
    succeeded(&place, &apply);
    assert_eq!(of_carts(&place.read("podgraft.lock")), [""; 0]);
}

#[test]
fn the_line_of_a_workload_goes_with_it_although_its_name_is_still_a_label() {
    let place = empty_repository();
    let carts = DEPLOYMENT.replace("name: orders", "name: carts");
    let both = DEPLOYMENT.replace("name: orders   # the orders of the shop", "name: orders")
        + "---\n"
        + &carts;
    place.write("apps/shop.yaml", both);
    place.write("policies/agent.yaml", policy("agent", 1));
    apply(&place);
    let text = place.read("apps/shop.yaml");
    let (_, rest) = text.split_once("---\n").expect("there are two");
    assert!(rest.contains("app: orders"), "{rest}");
    place.write("apps/shop.yaml", rest);
    apply(&place);
    let lock = place.read("podgraft.lock");
    assert!(
        lock.contains("\"carts\"") && !lock.contains("\"orders\""),
        "{lock}"
    );
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/shop.yaml"), carts);
}

#[cfg(unix)]
#[test]
fn a_file_has_one_record_however_many_links_lead_there() {
    let place = repository(1);
    std::fs::create_dir(place.path("links")).expect("it can be made");
    std::os::unix::fs::symlink("../apps/app-0.yaml", place.path("links/app.yaml"))
        .expect("it can be made");
    let lock = place.read("podgraft.lock");
    let by_link = ["apply", "-i", "-p", "policies", "links/app.yaml"];
    succeeded(&place, &by_link);
    assert_eq!(place.read("podgraft.lock"), lock);
    succeeded(&place, &["undo", "-i", "links/app.yaml"]);
    assert!(!place.path("podgraft.lock").exists());
    succeeded(&place, &by_link);
    assert_eq!(place.read("podgraft.lock"), lock);
}

#[test]
fn what_an_editor_puts_before_and_behind_lines_is_no_record() {
    let place = applied();
    let lock = place.read("podgraft.lock");
    let marked = format!("\u{feff}{}", lock.replace('\n', "\r\n"));
    place.write("podgraft.lock", marked);
    apply(&place);
    assert_eq!(place.read("podgraft.lock"), lock);
    undone(&place);
}

#[test]
fn a_file_without_a_last_line_end_is_given_back_with_the_line_ends_of_another_system() {
    let to_windows = |text: String| text.replace('\n', "\r\n");
    let from_windows = |text: String| text.replace("\r\n", "\n");
    let unended = DEPLOYMENT.trim_end().to_owned();
    let conversions: [(String, &dyn Fn(String) -> String); 2] = [
        (unended.clone(), &to_windows),
        (to_windows(unended), &from_windows),
    ];
    for (text, convert) in conversions {
        let place = empty_repository();
        place.write("policy.yaml", policy("agent", 1));
        place.write("orders.yaml", &text);
        succeeded(&place, &["apply", "-i", "-p", "policy.yaml", "orders.yaml"]);
        for name in ["orders.yaml", "podgraft.lock"] {
            place.write(name, convert(place.read(name)));
        }
        succeeded(&place, &["undo", "-i", "orders.yaml"]);
        assert_eq!(place.read("orders.yaml"), convert(text));
    }
}

#[test]
fn a_lost_line_comes_back_as_the_message_says() {
    let place = applied();
    let lock = place.read("podgraft.lock");
    let lines = lock.lines().filter(|line| !line.starts_with("[\"item\""));
    place.write("podgraft.lock", lines.collect::<Vec<_>>().join("\n"));
    let messages = stderr_of(&place.run(&["apply", "-i", "-p", "policies", "apps"]));
    let words: Vec<&str> = messages.split_whitespace().collect();
    let wanted = "run `podgraft adopt --in-place -p policies apps` with the same policies";
    assert!(words.join(" ").contains(wanted), "{messages}");
    succeeded(&place, &["adopt", "--in-place", "-p", "policies", "apps"]);
    undone(&place);
}

#[test]
fn the_last_generation_of_a_content_is_followed_by_none() {
    let place = applied();
    let lock = place.read("podgraft.lock");
    let aged = lock.replace(",1,\"", &format!(",{},\"", u64::MAX));
    assert_ne!(aged, lock);
    place.write("podgraft.lock", aged);
    place.write("policies/agent.yaml", policy("agent", 2));
    apply(&place);
    undone(&place);
}

#[test]
fn a_record_is_kept_where_a_value_of_its_workload_is_unclear() {
    let place = empty_repository();
    let variable = "        env:\n        - name: Z\n          value: z\n";
    let manifest = format!("{DEPLOYMENT}{variable}");
    place.write("a.yaml", &manifest);
    place.write("agent.yaml", policy("agent", 1));
    let apply = ["apply", "-i", "-p", "agent.yaml", "a.yaml"];
    succeeded(&place, &apply);
    let (injected, lock) = (place.read("a.yaml"), place.read("podgraft.lock"));
    let unclear = injected.replace("value: z\n", "value: z\n          \"value\": z\n");
    assert_ne!(unclear, injected);
    place.write("a.yaml", &unclear);
    for command in [&apply[..], &["undo", "-i", "a.yaml"]] {
        let output = place.run(command);
        assert_eq!(output.status.code(), Some(2));
        let message = stderr_of(&output);
        assert!(
            message.contains("the injected content cannot be determined"),
            "{message}"
        );
        assert_eq!(place.read("a.yaml"), unclear);
        assert_eq!(place.read("podgraft.lock"), lock);
    }
    place.write("a.yaml", injected);
    succeeded(&place, &["undo", "-i", "a.yaml"]);
    assert_eq!(place.read("a.yaml"), manifest);
}

#[test]
fn a_file_that_is_moved_below_another_lock_file_takes_its_record_along() {
    let original = DEPLOYMENT.replace("{app: orders}", "{app: orders, team: own}");
    let team = "
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: team}
spec:
  onConflict: Replace
  inject: {podLabels: {team: theirs}}
";
    // Whether a run comes between the move and undo.
    for applies_again in [true, false] {
        let place = empty_repository();
        for folder in ["a", "b"] {
            let config =
                "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [../team.yaml]\n";
            place.write(format!("{folder}/podgraft.yaml"), config);
        }
        place.write("team.yaml", team);
        place.write("a/orders.yaml", &original);
        place.write(
            "b/carts.yaml",
            original.replace("orders", "carts").replace("own", "other"),
        );
        for folder in ["a", "b"] {
            succeeded(
                &place,
                &["apply", "-i", "-p", "team.yaml", "--no-config", folder],
            );
        }
        assert!(place.read("a/podgraft.lock").contains("\"own\""));
        std::fs::rename(place.path("a/orders.yaml"), place.path("b/orders.yaml"))
            .expect("it is there");
        if applies_again {
            succeeded(
                &place,
                &["apply", "-i", "-p", "team.yaml", "--no-config", "."],
            );
            assert!(place.read("b/podgraft.lock").contains("\"own\""));
            assert!(!place.path("a/podgraft.lock").exists());
        }
        succeeded(&place, &["undo", "-i", "."]);
        assert_eq!(place.read("b/orders.yaml"), original);
    }
}
