//! nginx with php-fpm, configured as in Debian's snippet and as in most guides, and nginx in front of a plain server.

use crate::fpm::Fpm;
use crate::gunicorn;
use crate::login::check;
use crate::support::Nginx;

#[test]
fn what_nginx_with_the_snippet_of_debian_reads_as_the_login_is_charged_to_it() {
    let fpm = Fpm::start();
    let nginx = Nginx::start(
        &format!(
            "server {{
                listen LISTEN; {} index index.php;
                location / {{ try_files $uri $uri/ /index.php?$args; }}
                location ~ \\.php$ {{
                    fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
                    try_files $fastcgi_script_name =404;
                    set $path_info $fastcgi_path_info;
                    fastcgi_param PATH_INFO $path_info;
                    fastcgi_index index.php;
                    include /etc/nginx/fastcgi.conf;
                    fastcgi_pass {};
                }}
            }}",
            fpm.root(),
            fpm.address()
        ),
        &[],
    );
    check(nginx.address(), "/wp-login.php", 100);
    for path in ["/login", "/account/", "/account/index.php"] {
        check(nginx.address(), path, 30);
    }
}

#[test]
fn what_nginx_that_takes_any_path_for_a_script_reads_as_the_login_is_charged_to_it() {
    let fpm = Fpm::start();
    let nginx = Nginx::start(
        &format!(
            "server {{
                listen LISTEN; {} index index.php;
                location / {{ try_files $uri $uri/ /index.php$is_args$args; }}
                location ~ \\.php(/|$) {{
                    fastcgi_split_path_info ^(.+\\.php)(/.*)$;
                    include /etc/nginx/fastcgi.conf;
                    fastcgi_param PATH_INFO $fastcgi_path_info;
                    fastcgi_pass {};
                }}
            }}",
            fpm.root(),
            fpm.address()
        ),
        &[],
    );
    check(nginx.address(), "/wp-login.php", 200);
    for path in ["/login", "/index.php/login", "/account/", "/account/index.php"] {
        check(nginx.address(), path, 30);
    }
}

#[test]
fn what_a_server_behind_nginx_is_asked_for_anew_is_charged_to_it() {
    let gunicorn = gunicorn::start();
    let nginx = Nginx::start(
        &format!(
            "server {{ listen LISTEN; location / {{ proxy_pass http://{}$uri$is_args$args; }} }}",
            gunicorn.address()
        ),
        &[],
    );
    check(nginx.address(), "/login", 100);
}
