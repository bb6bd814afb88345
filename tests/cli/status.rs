//! `portcullis status` against a running gateway.

use crate::support::{Ended, Folder, Gateway, unused_address};

fn status(admin: &str, arguments: &[&str]) -> Ended {
    Folder::empty().run(&[&["status"], arguments, &["--admin", admin]].concat())
}

#[test]
fn the_status_is_readable_for_people_and_programs() {
    let gateway = Gateway::start("admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\n");
    let admin = format!("http://{}", gateway.admin());
    let human = status(&admin, &[]);
    assert_eq!(human.code, Some(0), "{human:?}");
    // Without colours, because this is no terminal.
    assert!(
        human.stdout.starts_with("All is well. No request came in the last minute.\n")
            && !human.stdout.contains('\u{1b}'),
        "{human:?}"
    );
    for line in
        ["configuration portcullis.yaml, loaded 20", "store         memory, up", "last minute   0 passed, 0 denied"]
    {
        assert!(human.stdout.contains(&format!("\n{line}")), "{line}: {human:?}");
    }
    assert_eq!(status(&admin, &["--format", "json"]).json()["store"]["kind"], "memory");
    gateway.reload("admin: {address: 127.0.0.1:0}\n");
    let refused = status(&admin, &[]).stdout;
    assert!(refused.starts_with("The reload of 20") && refused.contains(" stays in force: "), "{refused}");
}

#[test]
fn a_gateway_that_is_not_there_is_exit_3() {
    let ended = status(&format!("http://{}", unused_address()), &[]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
}
