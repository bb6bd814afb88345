<?php
// Installs the site in `site`, as its installer does. Arguments: the password, then the names.
$_SERVER += ['HTTP_HOST' => 'app.example', 'REQUEST_METHOD' => 'GET', 'SERVER_PROTOCOL' => 'HTTP/1.1'];
define('WP_INSTALLING', true);
require 'site/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
[, $password, $owner] = $argv;
wp_install('Blog', $owner, "$owner@example.com", true, '', $password);
foreach (array_slice($argv, 3) as $name) {
    wp_create_user($name, $password, "$name@example.com");
}
// From the first one on they are judged.
WP_Application_Passwords::create_new_application_password(1, ['name' => 'program']);
