<?php
// What PHP reads for the names that are asked for, as lists of [reader, source, name, value].
$found = [];
function leaves($reader, $source, $name, $value) {
    global $found;
    if (is_array($value)) {
        foreach ($value as $element) leaves($reader, $source, $name, $element);
    } elseif (is_string($value) || is_int($value) || is_float($value)) {
        $found[] = [$reader, $source, $name, (string) $value];
    }
}
function names($reader, $source, $read) {
    if (!is_array($read)) return;
    foreach (['username', 'user_name'] as $name) leaves($reader, $source, $name, $read[$name] ?? null);
    if (is_array($read['user'] ?? null)) leaves($reader, $source, $source === 'json' ? 'user.name' : 'user[name]', $read['user']['name'] ?? null);
}
names('php', 'query', $_GET);
names('php', 'form', $_POST);
// As applications read a PUT. Nobody takes what is declared as JSON for a form.
if (!preg_match('/json/i', $_SERVER['CONTENT_TYPE'] ?? '')) {
    parse_str(file_get_contents('php://input'), $parsed);
    names('php parse_str', 'form', $parsed);
}
$json = json_decode(file_get_contents('php://input'), true);
names('php json_decode', 'json', $json);
leaves('php', 'cookie', 'sid', $_COOKIE['sid'] ?? null);
leaves('php', 'basic', 'user', $_SERVER['PHP_AUTH_USER'] ?? null);
if (preg_match('/^Basic\s+(.*)$/i', $_SERVER['HTTP_AUTHORIZATION'] ?? '', $sent)) {
    leaves('php base64_decode', 'basic', 'user', explode(':', (string) base64_decode($sent[1]))[0]);
}
header('Content-Type: application/json');
echo json_encode($found, JSON_INVALID_UTF8_SUBSTITUTE);
