//! Apache with PHP and CGI, content negotiation, and a rewrite to the application's front controller.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::login::check;
use crate::methods;
use crate::site::{SITE, open};
use crate::support::Program;

const CONFIG: &str = r#"
ServerName app.example
ServerRoot FOLDER
PidFile FOLDER/pid
ErrorLog FOLDER/error.log
Listen LISTEN
KeepAlive Off
StartServers 8
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so
LoadModule rewrite_module /usr/lib/apache2/modules/mod_rewrite.so
LoadModule negotiation_module /usr/lib/apache2/modules/mod_negotiation.so
LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so
LoadModule php_module PHP
TypesConfig /etc/mime.types
DocumentRoot FOLDER/site
ScriptAlias /cgi-bin/ FOLDER/site/cgi-bin/
AddHandler cgi-script .cgi .pl
DirectoryIndex index.html index.cgi index.php
<FilesMatch ".+\.ph(?:ar|p|tml)$">
    SetHandler application/x-httpd-php
</FilesMatch>
<Directory FOLDER/site>
    Options FollowSymLinks ExecCGI MultiViews
    AllowOverride All
    Require all granted
</Directory>
"#;

fn apache() -> Program {
    let modules = fs::read_dir("/usr/lib/apache2/modules").expect("it is installed: tests/run does that");
    let mut modules = modules.filter_map(|module| module.ok()?.path().into_os_string().into_string().ok());
    let php = modules.find(|module| module.contains("/libphp")).expect("it is installed: tests/run does that");
    Program::start(SITE, |folder, address| {
        open(folder);
        let config = CONFIG.replace("FOLDER", folder.to_str().expect("a plain name")).replace("PHP", &php);
        fs::write(folder.join("apache.conf"), config.replace("LISTEN", &address.to_string())).expect("a file");
        let mut command = Command::new("apache2");
        // Asked to end, it asks its whole group.
        command.arg("-DFOREGROUND").arg("-f").arg(folder.join("apache.conf")).process_group(0);
        command
    })
}

#[test]
fn what_apache_reads_as_the_login_is_charged_to_it() {
    let apache = apache();
    for path in ["/wp-login.php", "/signin.cgi", "/signin.pl", "/cgi-bin/login"] {
        check(apache.address(), path, 100);
    }
    for path in ["/login", "/index.php/login", "/account/"] {
        check(apache.address(), path, 20);
    }
    check(apache.address(), "/account/index.php", 100);
}

#[test]
fn what_apache_hands_on_as_the_method_is_charged_to_it() {
    methods::check(apache().address());
}
