//! Tomcat, which cuts a path segment at `;`.

use std::fs;
use std::process::Command;

use crate::login::check;
use crate::support::Program;

const SERVER: &str = r#"<Server port="-1"><Service name="Catalina">
  <Connector address="127.0.0.1" port="PORT" protocol="HTTP/1.1"/>
  <Engine name="Catalina" defaultHost="app"><Host name="app" appBase="apps" autoDeploy="false"/></Engine>
</Service></Server>
"#;

const HOME: &str = "/usr/share/tomcat10";

const FILES: &[(&str, &str)] = &[
    ("apps/ROOT/WEB-INF/web.xml", include_str!("java/web.xml")),
    ("apps/ROOT/login.jsp", include_str!("java/login.jsp")),
    ("apps/ROOT/account/index.jsp", include_str!("java/login.jsp")),
    // Otherwise it brings what it takes from its own, which may be for its own user alone.
    ("conf/web.xml", include_str!("java/defaults.xml")),
    ("temp/.keep", ""),
];

#[test]
fn what_tomcat_reads_as_the_login_is_charged_to_it() {
    let tomcat = Program::start(FILES, |folder, address| {
        let server = SERVER.replace("PORT", &address.port().to_string());
        fs::write(folder.join("conf/server.xml"), server).expect("a file in the folder");
        let mut command = Command::new("java");
        command.arg("-cp").arg(format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar"));
        command.args([format!("-Dcatalina.home={HOME}"), format!("-Dcatalina.base={}", folder.display())]);
        command.arg(format!("-Djava.io.tmpdir={}", folder.join("temp").display()));
        command.args(["org.apache.catalina.startup.Bootstrap", "start"]);
        command
    });
    for path in ["/login", "/login.do", "/login.jsp", "/account/", "/cgi-bin/login.cgi"] {
        check(tomcat.address(), path, 40);
    }
}
