<?php
// The name of the account that MediaWiki takes each name for, in base64, a line each; an empty line where it takes none.
require '/usr/share/mediawiki/maintenance/Maintenance.php';

class CanonicalNames extends Maintenance {
    public function execute() {
        $names = MediaWiki\MediaWikiServices::getInstance()->getUserNameUtils();
        foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $line) {
            // As a request's text is: valid, and NFC.
            $name = UtfNormal\Validator::cleanUp(base64_decode($line));
            echo base64_encode($names->getCanonical($name, MediaWiki\User\UserRigorOptions::RIGOR_USABLE) ?: ''), "\n";
        }
    }
}

$maintClass = CanonicalNames::class;
require RUN_MAINTENANCE_IF_MAIN;
