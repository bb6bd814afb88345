<?php
// What frameworks take for the method: a header, or a field of the query or of a form.
$said = [
    $_SERVER['REQUEST_METHOD'],
    $_SERVER['HTTP_X_HTTP_METHOD_OVERRIDE'] ?? '',
    $_SERVER['HTTP_X_HTTP_METHOD'] ?? '',
    $_SERVER['HTTP_X_METHOD_OVERRIDE'] ?? '',
    $_GET['_method'] ?? '',
    $_GET['_METHOD'] ?? '',
    $_POST['_method'] ?? '',
    $_POST['_METHOD'] ?? '',
];
$named = fn ($said) => is_string($said) ? array_map('trim', explode(',', strtoupper($said))) : [];
echo in_array('PUT', array_merge(...array_map($named, $said)), true) ? 'THE LOGIN of PUT' : 'another method';
