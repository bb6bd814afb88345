<?php
// The entrance of an application that finds its way by the path, as most frameworks do: by what stands behind the
// script, or by the target without the script, which some split and others parse as a URL.
$target = rawurldecode(explode('?', $_SERVER['REQUEST_URI'], 2)[0]);
$parsed = rawurldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '');
$paths = preg_replace('#^/index\.php#', '', [$target, $parsed]);
foreach ([...$paths, $_SERVER['PATH_INFO'] ?? ''] as $path) {
    if (trim($path, '/') === 'login') {
        exit('THE LOGIN of index.php');
    }
}
echo 'another page';
