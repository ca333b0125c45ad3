//! Names of users and groups, looked up in /etc/passwd and /etc/group.
//!
//! What it does not do: ask other sources (LDAP, systemd); write the number there.

use std::cell::OnceCell;

/// Which kind of account a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    User,
    Group,
}

impl Account {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Account::User => "user",
            Account::Group => "group",
        }
    }

    pub(crate) fn file(self) -> &'static str {
        match self {
            Account::User => "/etc/passwd",
            Account::Group => "/etc/group",
        }
    }
}

/// The account files, each read once, when the first name is looked up.
#[derive(Default)]
pub(crate) struct Accounts {
    users: OnceCell<String>,
    groups: OnceCell<String>,
}

impl Accounts {
    /// The number of a user or group.
    pub(crate) fn number(&self, account: Account, name: &str) -> Option<u32> {
        self.entries(account).find(|(entry, _)| *entry == name).map(|(_, number)| number)
    }

    /// All names, for suggestions.
    pub(crate) fn names(&self, account: Account) -> Vec<&str> {
        self.entries(account).map(|(name, _)| name).collect()
    }

    fn entries(&self, account: Account) -> impl Iterator<Item = (&str, u32)> {
        let cell = match account {
            Account::User => &self.users,
            Account::Group => &self.groups,
        };
        let text = cell.get_or_init(|| std::fs::read_to_string(account.file()).unwrap_or_default());
        text.lines().filter_map(entry)
    }
}

/// `name:password:number:...`
fn entry(line: &str) -> Option<(&str, u32)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let number = fields.nth(1)?.parse().ok()?;
    Some((name, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_number_zero_and_nobody_else() {
        let accounts = Accounts::default();
        assert_eq!(accounts.number(Account::User, "root"), Some(0));
        assert_eq!(accounts.number(Account::Group, "root"), Some(0));
        assert_eq!(accounts.number(Account::User, "no such user"), None);
        assert!(accounts.names(Account::User).contains(&"root"));
        assert_eq!(entry("broken line"), None);
    }
}
