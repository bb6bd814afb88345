<?php
$cfg['blowfish_secret'] = str_repeat('k', 32);
$cfg['Servers'][1] = ['auth_type' => 'cookie', 'host' => 'localhost', 'socket' => dirname(__DIR__, 2) . '/database.sock'];
