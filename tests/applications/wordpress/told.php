<?php
// What WordPress loads by itself: every password that it judges is told of, by the account it is judged for.
function told($name) {
    $user = get_user_by('login', $name) ?: get_user_by('email', $name);
    $name = $user ? $user->user_login : $name;
    file_put_contents(dirname(ABSPATH) . '/told', "judged $name\n", FILE_APPEND);
}

add_filter('authenticate', function ($user, $name, $password) {
    if ($name !== '' && $password !== '') {
        told($name);
    }
    return $user;
}, 1, 3);
add_action('application_password_failed_authentication', fn () => told($_SERVER['PHP_AUTH_USER'] ?? ''));

// Mail is taken and thrown away.
function wp_mail() {
    return true;
}
