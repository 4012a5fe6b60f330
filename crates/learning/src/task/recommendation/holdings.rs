//! Which users' ratings each client holds, one client after the other in memory.

use crate::data::partition::Partition;
use crate::ranking::ItemLists;
use crate::ratings::RatingsSplit;
use crate::ratings::triplets::Triplet;
use fedgenie_core::id::ClientId;
use std::ops::Range;

/// No client.
const NOBODY: u32 = u32::MAX;

/// Training ratings by client and user.
#[derive(Debug)]
pub struct Holdings {
    /// Client `c` has entries `first_user[c]..first_user[c + 1]` of `users` and `ends`.
    first_user: Vec<u32>,
    users: Vec<u32>,
    /// Where each user's positives end, counted from the client's first.
    ends: Vec<u32>,
    first_positive: Vec<u32>,
    positives: Vec<u32>,
    triplets: Option<Given>,
    /// The client whose row of a user counts.
    homes: Vec<u32>,
    /// For each client the users whose home it is.
    residents: ItemLists,
}

/// Triplets by client; users are numbered within the client.
#[derive(Debug)]
struct Given {
    first: Vec<u32>,
    triplets: Vec<Triplet>,
}

fn range(firsts: &[u32], client: ClientId) -> Range<usize> {
    firsts[client.index()] as usize..firsts[client.index() + 1] as usize
}

impl Holdings {
    /// The training ratings of a split, dealt out. If `is_by_user`, client `u` is the home of user `u` in any case.
    pub fn new(split: &RatingsSplit, partition: &Partition, is_by_user: bool, triplets: Option<&[Triplet]>) -> Self {
        let clients = partition.clients();
        let mut holdings = Self {
            first_user: vec![0],
            users: Vec::new(),
            ends: Vec::new(),
            first_positive: vec![0],
            positives: Vec::with_capacity(split.train.len()),
            triplets: None,
            homes: vec![NOBODY; split.users()],
            residents: ItemLists::default(),
        };
        if is_by_user {
            holdings.homes = (0..split.users() as u32).collect();
        }
        let mut most = vec![0; split.users()];
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for client in (0..clients).map(ClientId::from_index) {
            pairs.clear();
            pairs.extend(partition.client(client).iter().map(|&example| {
                let rating = split.example(example);
                (rating.user, rating.item)
            }));
            pairs.sort_unstable();
            let mut end = 0;
            for of_user in pairs.chunk_by(|one, other| one.0 == other.0) {
                let user = of_user[0].0;
                end += of_user.len() as u32;
                holdings.users.push(user);
                holdings.ends.push(end);
                holdings.positives.extend(of_user.iter().map(|&(_, item)| item));
                if of_user.len() > most[user as usize] {
                    most[user as usize] = of_user.len();
                    holdings.homes[user as usize] = client.0;
                }
            }
            holdings.first_user.push(holdings.users.len() as u32);
            holdings.first_positive.push(holdings.positives.len() as u32);
        }
        let residents = (0..).zip(&holdings.homes).filter(|&(_, &home)| home != NOBODY);
        holdings.residents = ItemLists::new(clients, residents.map(|(user, &home)| (home, user)));
        for numbers in [&mut holdings.users, &mut holdings.ends] {
            numbers.shrink_to_fit();
        }
        holdings.triplets = triplets.map(|triplets| holdings.given(triplets));
        holdings
    }

    /// The triplets of each client: those whose positives it holds, in their order.
    fn given(&self, triplets: &[Triplet]) -> Given {
        // The holder of a pair: ratings are held once.
        let mut holders: Vec<(u32, u32, u32)> = Vec::with_capacity(self.positives.len());
        for client in (0..self.clients()).map(ClientId::from_index) {
            let mut begin = 0;
            for (&user, &end) in self.users(client).iter().zip(self.ends(client)) {
                let items = &self.positives(client)[begin as usize..end as usize];
                holders.extend(items.iter().map(|&item| (user, item, client.0)));
                begin = end;
            }
        }
        holders.sort_unstable();
        let mut dealt: Vec<(u32, Triplet)> = Vec::with_capacity(triplets.len());
        for triplet in triplets {
            let found = holders.binary_search_by(|holder| (holder.0, holder.1).cmp(&(triplet.user, triplet.positive)));
            let client = ClientId(holders[found.expect("a triplet's positive is a training rating")].2);
            let user = self.users(client).binary_search(&triplet.user).expect("the client holds the user's ratings");
            dealt.push((client.0, Triplet { user: user as u32, ..*triplet }));
        }
        // Stable: the order is that of the file.
        dealt.sort_by_key(|&(client, _)| client);
        let ends = (0..=self.clients() as u32).map(|client| dealt.partition_point(|&(of, _)| of < client) as u32);
        Given { first: ends.collect(), triplets: dealt.iter().map(|&(_, triplet)| triplet).collect() }
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.first_user.len() - 1
    }

    /// The users with training ratings at a client, ascending.
    pub fn users(&self, client: ClientId) -> &[u32] {
        &self.users[range(&self.first_user, client)]
    }

    /// A client's positives, user after user, of each user ascending.
    pub fn positives(&self, client: ClientId) -> &[u32] {
        &self.positives[range(&self.first_positive, client)]
    }

    /// Where each user's end among the client's positives.
    pub fn ends(&self, client: ClientId) -> &[u32] {
        &self.ends[range(&self.first_user, client)]
    }

    /// The positives of one of a client's users, by the place of the user's row there.
    pub fn positives_of(&self, client: ClientId, place: usize) -> &[u32] {
        let ends = self.ends(client);
        let begin = if place == 0 { 0 } else { ends[place - 1] as usize };
        &self.positives(client)[begin..ends[place] as usize]
    }

    /// A client's triplets, if there is a table of them.
    pub fn triplets(&self, client: ClientId) -> Option<&[Triplet]> {
        self.triplets.as_ref().map(|given| &given.triplets[range(&given.first, client)])
    }

    /// Number of a client's examples.
    pub fn examples(&self, client: ClientId) -> usize {
        self.triplets(client).map_or(self.positives(client).len(), <[Triplet]>::len)
    }

    /// Number of all clients' examples.
    pub fn all_examples(&self) -> u64 {
        self.triplets.as_ref().map_or(self.positives.len(), |given| given.triplets.len()) as u64
    }

    /// The users whose home a client is, ascending.
    pub fn residents(&self, client: ClientId) -> &[u32] {
        self.residents.of(client.0)
    }

    /// The home of a user, and the place of the user's row there; `None` without training ratings.
    pub fn home(&self, user: u32) -> Option<(ClientId, usize)> {
        let home = Some(self.homes[user as usize]).filter(|&home| home != NOBODY).map(ClientId)?;
        Some((home, self.users(home).binary_search(&user).ok()?))
    }
}
