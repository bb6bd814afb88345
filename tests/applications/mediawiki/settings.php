
# The application's own limit is off: it is the gateway's that is tried.
$wgPasswordAttemptThrottle = [];
$wgHooks['AuthManagerLoginAuthenticateAudit'][] = function ($response, $user, $name) {
    $names = MediaWiki\MediaWikiServices::getInstance()->getUserNameUtils();
    file_put_contents(__DIR__ . '/told', 'judged ' . lcfirst($names->getCanonical($name) ?: $name) . "\n", FILE_APPEND);
};
