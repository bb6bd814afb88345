<?php
// The database is the test's own, at the socket beside the site.
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:' . dirname(__DIR__) . '/database.sock');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_HOME', 'http://app.example');
define('WP_SITEURL', WP_HOME);
// Nothing beyond this machine is asked, and nothing runs beside the requests of the test.
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('DISABLE_WP_CRON', true);
// Application passwords without TLS.
define('WP_ENVIRONMENT_TYPE', 'local');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $of) {
    define("{$of}_KEY", "the key of $of");
    define("{$of}_SALT", "the salt of $of");
}
$table_prefix = 'wp_';
define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
