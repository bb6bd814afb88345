//! `portcullis recipe`.

use std::collections::BTreeSet;
use std::fs;

use crate::support::Folder;

fn names() -> Vec<String> {
    let listed = Folder::empty().run(&["recipe", "--format", "json"]).json();
    let listed = listed.as_array().expect("a list").clone();
    listed.iter().map(|recipe| recipe["name"].as_str().expect("a name").to_owned()).collect()
}

/// The printed recipe, which passes `check` without a warning in a folder without any other file.
#[track_caller]
fn printed(arguments: &[&str]) -> (Folder, String) {
    let folder = Folder::empty();
    let printed = folder.run(&[&["recipe"], arguments].concat());
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""), "{arguments:?}: {printed:?}");
    folder.write("portcullis.yaml", &printed.stdout);
    let checked = folder.run(&["check", "--deny-warnings"]);
    assert_eq!(checked.code, Some(0), "{arguments:?}: {}{}", checked.stdout, checked.stderr);
    (folder, printed.stdout)
}

#[test]
fn every_recipe_is_listed_with_what_it_is_for() {
    let list = Folder::empty().run(&["recipe"]);
    assert_eq!((list.code, list.stderr.as_str()), (Some(0), ""), "{list:?}");
    for name in names() {
        let line = list.stdout.lines().find(|line| line.split(' ').next() == Some(name.as_str()));
        assert!(line.is_some_and(|line| line.len() > name.len() + 10), "{name}: {}", list.stdout);
    }
    // The book says where each file stands.
    let of_folder = fs::read_dir("config").expect("the folder").map(|entry| entry.expect("a file").file_name());
    let of_folder = of_folder.filter_map(|name| name.into_string().ok()?.strip_suffix(".yaml").map(str::to_owned));
    let recipes = of_folder.filter(|name| name.starts_with("login") || name == "second-factor" || name == "api");
    let recipes: BTreeSet<String> =
        recipes.map(|name| name.strip_prefix("login-").unwrap_or(&name).to_owned()).collect();
    assert_eq!(names().into_iter().collect::<BTreeSet<_>>(), recipes);
}

#[test]
fn every_recipe_passes_check_and_is_the_file_of_the_repository() {
    for name in names() {
        let (_, text) = printed(&[&name]);
        let files = [format!("config/{name}.yaml"), format!("config/login-{name}.yaml")];
        let file = files.iter().find_map(|file| fs::read_to_string(file).ok()).expect("the file of the recipe");
        assert_eq!(text, file, "{name}");
    }
}

#[test]
fn below_a_prefix_every_recipe_passes_check_and_no_path_stays_where_it_was() {
    for name in names() {
        let (folder, text) = printed(&[&name, "--prefix", "/my.site/blog/"]);
        let rules = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        for line in rules.filter(|line| !line.contains("webhook") && !line.contains("body: ")) {
            let paths = line.match_indices('/').filter(|(at, _)| {
                let before = &line[..*at];
                before.ends_with([' ', '"', '^']) && !before.ends_with("# ")
            });
            for (at, _) in paths {
                let is_moved = line[at..].starts_with("/my.site/blog/") || line[at..].starts_with(r"/my\\.site/blog/");
                assert!(is_moved, "{name}: {line}");
            }
        }
        let explained = folder.run(&["explain", "--format", "json", "-X", "POST", "/my.site/blog/login"]);
        assert_eq!(explained.code, Some(0), "{name}: {explained:?}");
    }
}

#[test]
fn a_moved_login_takes_its_route() {
    for (name, login, route) in [
        ("wordpress", "/blog/wp-login.php", "wp-login"),
        ("wordpress", "/blog/xmlrpc.php", "wp-xmlrpc"),
        ("dokuwiki", "/blog/lib/exe/jsonrpc.php", "wiki-remote-json"),
        ("dokuwiki", "/blog/start", "wiki-form"),
        ("roundcube", "/blog/?_task=login", "mail-login"),
        ("django", "/blog/admin/login/", "admin-login"),
        ("keycloak", "/blog/realms/main/login-actions/authenticate", "login"),
    ] {
        let (folder, _) = printed(&[name, "--prefix", "/blog"]);
        let route_of = |target: &str| folder.run(&["explain", "--format", "json", "-X", "POST", target]).json();
        assert_eq!(route_of(login)["route"], route, "{name}");
        assert!(route_of(&login.replacen("/blog", "", 1))["route"].is_null(), "{name}");
    }
    let (_, second_factor) = printed(&["second-factor", "--prefix", "/blog"]);
    assert!(second_factor.contains(r#"location: "/blog/login/code*""#), "{second_factor}");
}

#[test]
fn a_recipe_stands_in_front_of_the_application_that_is_named() {
    for name in names() {
        for upstream in ["https://app.internal:8443", "http://[::1]:8000"] {
            let (_, text) = printed(&[&name, "--upstream", upstream]);
            assert!(text.contains(upstream) && !text.contains("127.0.0.1:8000"), "{name}: {text}");
        }
    }
}

#[test]
fn what_is_no_recipe_prefix_or_url_is_told() {
    let folder = Folder::empty();
    for (arguments, code, expected) in [
        (&["recipe", "wordpres"][..], 2, "wordpress"),
        (&["recipe", "wordpress", "--prefix", "blog"], 2, "it begins with a slash"),
        (&["recipe", "wordpress", "--prefix", "/a b"], 2, "letters, digits"),
        (&["recipe", "wordpress", "--upstream", "ftp://app"], 1, "ftp"),
        (&["recipe", "wordpress", "--format", "json"], 2, "--format"),
        (&["recipe", "--prefix", "/blog"], 2, "<NAME>"),
    ] {
        let ended = folder.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{arguments:?}: {ended:?}");
    }
}
