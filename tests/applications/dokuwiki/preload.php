<?php
// The configuration is the test's own, beside the wiki.
if (!defined('DOKU_CONF')) {
    define('DOKU_CONF', dirname(realpath(DOKU_INC)) . '/conf/');
}
