<?php
// The entrance of an application that finds its way by the path, as most frameworks do: by what stands behind the
// script, or by the target without the script.
$target = rawurldecode(explode('?', $_SERVER['REQUEST_URI'], 2)[0]);
$target = preg_replace('#^/index\.php#', '', $target);
foreach ([$target, $_SERVER['PATH_INFO'] ?? ''] as $path) {
    if (trim($path, '/') === 'login') {
        exit('THE LOGIN of index.php');
    }
}
echo 'another page';
