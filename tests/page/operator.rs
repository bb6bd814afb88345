//! What an operator does on the page, with the keyboard alone.

use fantoccini::key::Key;

use crate::browser::Browser;
use crate::support::eventually;

impl Browser {
    /// Writes into a field, in place of what stands there.
    #[track_caller]
    pub(crate) fn fill(&self, field: &str, text: &str) {
        self.tab_to(field);
        self.write(text);
    }

    /// Presses a button.
    #[track_caller]
    pub(crate) fn push(&self, button: &str) {
        self.tab_to(button);
        self.press(Key::Enter);
    }

    /// Opens a session with a token, once the page asks for one.
    #[track_caller]
    pub(crate) fn open_session(&self, token: &str) {
        self.says("#session", "Token of the admin API");
        self.fill("#token", token);
        self.press(Key::Enter);
    }

    /// Fills in the form of bans and sends it. The page asks again.
    #[track_caller]
    pub(crate) fn ask_to_ban(&self, address: &str, span: &str) {
        self.fill("#ban-part-0", address);
        self.fill("#ban-for", span);
        self.press(Key::Enter);
        self.says("#ask", &format!("Ban {address} for {span}?"));
    }

    /// Says yes to the question that the page asks before a change.
    #[track_caller]
    pub(crate) fn confirm(&self, question: &str) {
        self.says("#ask", question);
        self.push("#ask-yes");
        eventually("the question is gone", || self.text("#ask").is_empty());
    }

    /// Goes back from that question without a change.
    #[track_caller]
    pub(crate) fn decline(&self, key: Key) {
        self.press(key);
        eventually("the question is gone", || self.text("#ask").is_empty());
    }
}
