//! What the program says about itself: its version, completion scripts and man pages.

use crate::common::Place;
use std::process::Command;

/// users 7: `--version` was the version alone.
#[test]
fn users_7_the_version_names_its_build() {
    let place = Place::new();
    let done = place.run(&["--version"]);
    let lines: Vec<&str> = done.out.lines().collect();
    let first = format!("vervet {} (", env!("CARGO_PKG_VERSION"));
    assert!(lines[0].starts_with(&first) && lines[0].ends_with(')'), "{lines:?}");
    assert_eq!(lines[1], "web console: yes");
    assert_eq!(lines[2], format!("Parquet: {}", if cfg!(feature = "parquet") { "yes" } else { "no" }));
    assert!(lines[3].starts_with("kernels for GPUs: "), "{lines:?}");
    assert!(lines[4].contains(std::env::consts::ARCH), "{lines:?}");
    assert_eq!(place.run(&["-V"]).out.trim_end(), lines[0]);
}

#[test]
fn each_shell_has_completions_with_all_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = place.run(&["completions", shell]);
        assert_eq!(done.code, 0, "{done:?}");
        for word in ["serve", "backup", "man-pages", "--durability", "--language"] {
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            assert!(done.out.contains(word), "{shell} without {word}");
        }
    }
    assert_eq!(place.run(&["completions", "dos"]).code, 2);
}

/// Bash runs the script and completes three lines with it.
#[test]
fn bash_completes_commands_options_and_values() {
    let place = Place::new();
    place.file("vervet.bash", &place.run(&["completions", "bash"]).out);
    let complete = |words: &str| {
        let script = format!(
            "source ./vervet.bash; COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); \
             _vervet vervet \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let bash = Command::new("bash").args(["--norc", "-c", &script]).current_dir(place.root()).output();
        let Ok(output) = bash else {
            println!("skipped: there is no bash");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    };
    for (words, expected) in [
        ("vervet re", "restore recover"),
        ("vervet export --fo", "--format"),
        ("vervet query db --language ''", "sparql gremlin"),
    ] {
        let Some(found) = complete(words) else { return };
        assert_eq!(found, expected, "{words}");
    }
}

#[test]
fn each_command_has_a_man_page() {
    let place = Place::new();
    let done = place.run(&["man-pages", "man/man1"]);
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    let page = |name: &str| std::fs::read_to_string(place.path(&format!("man/man1/{name}.1")));
    let program = page("vervet").expect("the page of the program");
    for command in ["load", "query", "serve", "completions"] {
        assert!(program.contains(&format!("vervet\\-{command}(1)")), "{program}");
        let text = page(&format!("vervet-{command}")).expect("the page of a command");
        assert!(text.contains(".TH") && text.contains(".SH OPTIONS"), "{text}");
    }
    assert!(page("vervet-serve").expect("a page").contains("\\-\\-durability"));
    place.file("file", "");
    assert_eq!(place.run(&["man-pages", "file"]).code, 1);
}
