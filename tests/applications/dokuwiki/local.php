<?php
$conf['title'] = 'Wiki';
$conf['useacl'] = 1;
$conf['remote'] = 1;
$conf['remoteuser'] = '';
$conf['savedir'] = dirname(realpath(DOKU_INC)) . '/data';
