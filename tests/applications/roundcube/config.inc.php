<?php
// Everything is the test's own, beside this file.
$beside = dirname(__DIR__);
$config = [
    'db_dsnw' => "sqlite:///$beside/mail.sqlite?mode=0640",
    'imap_host' => '127.0.0.1:' . getenv('IMAP_PORT'),
    'des_key' => 'abcdefghijklmnopqrstuvwx',
    'log_dir' => "$beside/",
    'temp_dir' => "$beside/",
    'plugins' => [],
    'skin' => 'elastic',
    // The application's own limit is off: it is the gateway's that is tried.
    'login_rate_limit' => 0,
];
