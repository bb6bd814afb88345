<?php
$conf['title'] = 'Wiki';
$conf['useacl'] = 1;
$conf['savedir'] = dirname(realpath(DOKU_INC)) . '/data';
