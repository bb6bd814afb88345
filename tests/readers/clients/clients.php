<?php
// What PHP sends: curl, and streams. Argument: the address to send it to.
$to = $argv[1];
$plain = ['username' => 'alice', 'password' => 'secret'];
$awkward = ['username' => "Zoë O'Neil", 'password' => "pässword &=+%;\"\n"];

function with_curl($url, $body, $headers = []) {
    $curl = curl_init($url);
    curl_setopt_array($curl, [
        CURLOPT_POST => true, CURLOPT_POSTFIELDS => $body, CURLOPT_HTTPHEADER => $headers, CURLOPT_RETURNTRANSFER => true, CURLOPT_PROXY => '',
    ]);
    curl_exec($curl);
}

with_curl("$to/php-curl/plain", http_build_query($plain));
with_curl("$to/php-curl/form", http_build_query($awkward));
with_curl("$to/php-curl/multipart", $awkward);
with_curl("$to/php-curl/file", $awkward + ['photo' => new CURLStringFile('a file', 'photo.png', 'image/png')]);
with_curl("$to/php-curl/json", json_encode($awkward), ['Content-Type: application/json']);

function with_stream($url, $type, $body) {
    $http = ['method' => 'POST', 'header' => "Content-Type: $type\r\n", 'content' => $body];
    file_get_contents($url, false, stream_context_create(['http' => $http]));
}

with_stream("$to/php-streams/form", 'application/x-www-form-urlencoded', http_build_query($awkward));
with_stream("$to/php-streams/json", 'application/json', json_encode($awkward));
