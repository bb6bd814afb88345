//! What others have decided about a client: on which of the lists that follow a source it is.

/// The lists that follow a source, each with a number below [`Reputation::MOST_LISTS`], and what they say of one client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reputation {
    /// A bit for each list.
    banned: u64,
    challenged: u64,
}

impl Reputation {
    /// A configuration has no more lists that follow a source.
    pub const MOST_LISTS: usize = 64;

    /// The list with this number bans the client.
    #[must_use]
    pub fn banned_by(self, list: u8) -> Self {
        Self { banned: self.banned | bit(list), ..self }
    }

    /// The list with this number wants the client challenged.
    #[must_use]
    pub fn challenged_by(self, list: u8) -> Self {
        Self { challenged: self.challenged | bit(list), ..self }
    }

    pub fn is_banned_by(self, list: u8) -> bool {
        self.banned & bit(list) != 0
    }

    pub fn is_challenged_by(self, list: u8) -> bool {
        self.challenged & bit(list) != 0
    }
}

fn bit(list: u8) -> u64 {
    1_u64.checked_shl(list.into()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_its_own_say() {
        let reputation = Reputation::default().banned_by(0).challenged_by(63);
        assert!(reputation.is_banned_by(0) && !reputation.is_challenged_by(0));
        assert!(reputation.is_challenged_by(63) && !reputation.is_banned_by(63));
        assert_eq!(Reputation::default().banned_by(64), Reputation::default());
    }
}
