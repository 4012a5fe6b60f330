//! Lists of items, one for each user, one after the other in memory.

/// For each user, items in ascending order without repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemLists {
    /// User `u` has `items[offsets[u]..offsets[u + 1]]`.
    offsets: Vec<usize>,
    items: Vec<u32>,
}

impl ItemLists {
    /// Lists of so many users from pairs (user, item) in any order; a pair that is there twice counts once.
    ///
    /// # Panics
    /// If a user's number is not below `users`.
    pub fn new(users: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0; users + 1];
        for (user, _) in pairs.clone() {
            offsets[user as usize + 1] += 1;
        }
        for user in 0..users {
            offsets[user + 1] += offsets[user];
        }
        let mut items = vec![0; offsets[users]];
        let mut next = offsets.clone();
        for (user, item) in pairs {
            items[next[user as usize]] = item;
            next[user as usize] += 1;
        }
        let mut kept = 0;
        for user in 0..users {
            let (begin, end) = (offsets[user], offsets[user + 1]);
            items[begin..end].sort_unstable();
            offsets[user] = kept;
            for place in begin..end {
                if place == begin || items[place] != items[place - 1] {
                    // `kept` never overtakes `place`, so that the next entry is still there.
                    let item = items[place];
                    items[kept] = item;
                    kept += 1;
                }
            }
        }
        offsets[users] = kept;
        items.truncate(kept);
        items.shrink_to_fit();
        Self { offsets, items }
    }

    /// The items of a user, ascending.
    ///
    /// # Panics
    /// If there is no such user.
    pub fn of(&self, user: u32) -> &[u32] {
        &self.items[self.offsets[user as usize]..self.offsets[user as usize + 1]]
    }

    /// Number of users.
    pub fn users(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Number of items of all users together.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no user has an item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Users without an item.
    pub fn empty_users(&self) -> usize {
        self.offsets.windows(2).filter(|ends| ends[0] == ends[1]).count()
    }

    /// All pairs (user, item), ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + Clone {
        (0..self.users() as u32).flat_map(|user| self.of(user).iter().map(move |&item| (user, item)))
    }

    /// For each user the items in either list.
    ///
    /// # Panics
    /// If the numbers of users differ.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        assert_eq!(self.users(), other.users(), "the same users have both lists");
        Self::new(self.users(), self.pairs().chain(other.pairs()))
    }
}
