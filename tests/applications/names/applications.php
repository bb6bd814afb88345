<?php
// What PHP applications make of a name, by their own code. A line is a name in base64; so is each column of what is printed,
// in the order of COLUMNS; an empty column is a name that the application refuses.
const COLUMNS = ['wordpress', 'wordpress_de', 'wordpress_da', 'dokuwiki', 'roundcube', 'mediawiki'];

// WordPress: cleaned before the password is checked, and again when the account is looked up.
define('WPINC', 'wp-includes');
define('ABSPATH', '/usr/share/wordpress/');
$locale = 'en_US';
function get_locale() { global $locale; return $locale; }
function apply_filters($name, $value) { return $value; }
function mbstring_binary_safe_encoding() {}
function reset_mbstring_encoding() {}
require ABSPATH . 'wp-includes/formatting.php';

function wordpress($name, $language) {
    global $locale;
    $locale = $language;
    return trim(sanitize_user(trim(sanitize_user($name))));
}

// DokuWiki, with the settings of a new wiki.
define('DOKU_INC', '/usr/share/dokuwiki/');
define('UTF8_MBSTRING', 1);
foreach (['Asian', 'Clean', 'PhpString', 'Table', 'Unicode'] as $class) {
    require DOKU_INC . "inc/Utf8/$class.php";
}
require DOKU_INC . 'inc/pageutils.php';
require DOKU_INC . 'inc/common.php';

function dokuwiki($name) {
    global $conf, $cache_cleanid;
    $conf = ['sepchar' => '_', 'deaccent' => 1, 'useslash' => 0];
    $cache_cleanid = [];
    return cleanID(str_replace([':', '/', ';'], '_', stripctl($name)));
}

// Roundcube, as its login reads the field and spells it for the mail server.
function roundcube($name) {
    $name = strip_tags($name);
    mb_substitute_character('none');
    return mb_strtolower(trim(mb_convert_encoding($name, 'UTF-8', 'UTF-8')));
}

// MediaWiki: asked with all other names at once, of the program that stands behind the first argument.
function mediawiki($names) {
    global $argv;
    $program = proc_open(['php', __DIR__ . '/mediawiki.php'], [['pipe', 'r'], ['file', $argv[2], 'w'], STDERR], $pipes, null, ['MW_CONFIG_FILE' => $argv[1]] + getenv());
    fwrite($pipes[0], implode("\n", array_map('base64_encode', $names)));
    fclose($pipes[0]);
    proc_close($program);
    return array_map('base64_decode', file($argv[2], FILE_IGNORE_NEW_LINES));
}

$names = array_map('base64_decode', file('php://stdin', FILE_IGNORE_NEW_LINES));
$canonical = mediawiki($names);
foreach ($names as $place => $name) {
    echo implode("\t", array_map('base64_encode', [
        wordpress($name, 'en_US'), wordpress($name, 'de_DE'), wordpress($name, 'da_DK'), dokuwiki($name),
        roundcube($name), $canonical[$place],
    ])), "\n";
}
