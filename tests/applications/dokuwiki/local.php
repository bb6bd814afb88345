<?php
$conf['title'] = 'Wiki';
$conf['useacl'] = 1;
$conf['savedir'] = dirname(DOKU_INC) . '/data';
