<?php
/** Tells of every password that the wiki judges, by the name it is judged for. */
class action_plugin_told extends DokuWiki_Action_Plugin {
    public function register(Doku_Event_Handler $controller) {
        $controller->register_hook('AUTH_LOGIN_CHECK', 'BEFORE', $this, 'tell');
    }

    public function tell(Doku_Event $event) {
        if ($event->data['user'] && $event->data['password']) {
            file_put_contents(dirname(realpath(DOKU_INC)) . '/told', "judged {$event->data['user']}\n", FILE_APPEND);
        }
    }
}
