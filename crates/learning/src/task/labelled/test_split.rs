//! Which test examples belong to each edge server.
//!
//! # Definition
//! Where the servers are those of a partition on two levels, each has its share of each class: the share that was drawn
//! for it, rounded by largest remainders, or by draws where the partition draws. Where the partition keeps groups
//! whole, test examples belong to the server whose clients train on their group. Otherwise, a class is divided by how
//! many training examples of it the servers' clients have, rounded by largest remainders.
//!
//! Examples of a class or group that nobody trains on, and those that have none, are divided by the numbers of training
//! examples. Every test example belongs to one server; a server may have none.

use super::Labelled;
use crate::data::Split;
use crate::data::partition::TestSplit;
use crate::data::partition::two_level::{clients_of, split_by_owners, split_by_shares};
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Streams;
use ndarray::{Array2, s};

impl Labelled {
    /// The test examples of each server; `servers` are the clients of each.
    pub(super) fn deal_test(&self, servers: &[Vec<ClientId>], streams: &Streams) -> Vec<Vec<u32>> {
        let test = &self.divided().test;
        let parts = match (self.test_groups(servers), test.classes()) {
            (Some(owners), _) => split_by_owners(&owners, &self.sizes(servers), streams),
            (None, Some((_, classes))) => {
                let (shares, is_drawn) = self.test_shares(servers, classes);
                split_by_shares(test, &shares, is_drawn, streams)
                    .expect("shares are of the classes of the test data, for at least one server")
            }
            (None, None) => split_by_owners(&vec![None; test.examples()], &self.sizes(servers), streams),
        };
        (0..servers.len()).map(|server| parts.client(ClientId::from_index(server)).into_owned()).collect()
    }

    /// The examples with the labels that decide.
    fn divided(&self) -> &Split {
        self.divided_by.as_ref().unwrap_or(&self.data)
    }

    /// For each test example, the server whose clients train on its group; `None` if groups are not kept whole.
    fn test_groups(&self, servers: &[Vec<ClientId>]) -> Option<Vec<Option<usize>>> {
        let TestSplit::Groups = self.test_split.as_ref()? else { return None };
        let (train, test) = (self.divided().train.groups()?, self.divided().test.groups()?);
        let numbers = train.iter().max().map_or(0, |&largest| largest as usize + 1);
        let mut server_of = vec![None; numbers];
        for (server, members) in servers.iter().enumerate() {
            for example in members.iter().flat_map(|&client| self.partition.client(client).into_owned()) {
                server_of[train[example as usize] as usize] = Some(server);
            }
        }
        Some(test.iter().map(|&group| server_of.get(group as usize).copied().flatten()).collect())
    }

    /// The shares of classes by which test examples are divided among servers, servers × classes of the test data, and
    /// whether examples are drawn by them.
    fn test_shares(&self, servers: &[Vec<ClientId>], classes: usize) -> (Array2<f64>, bool) {
        let clients = self.partition.clients();
        let (of_partition, is_drawn) = match &self.test_split {
            Some(TestSplit::Rounded(shares)) => (Some(shares), false),
            Some(TestSplit::Drawn(shares)) => (Some(shares), true),
            Some(TestSplit::Groups) | None => (None, false),
        };
        let are_its = servers.iter().enumerate().all(|(server, members)| {
            clients_of(server, servers.len(), clients).eq(members.iter().map(|client| client.index()))
        });
        let of_partition = of_partition.filter(|shares| are_its && shares.nrows() == servers.len());
        let mut shares = Array2::zeros((servers.len(), classes));
        if let Some(known) = of_partition {
            let both = known.ncols().min(classes);
            shares.slice_mut(s![.., ..both]).assign(&known.slice(s![.., ..both]));
        } else if let Some((labels, _)) = self.divided().train.classes() {
            for (mut row, members) in shares.rows_mut().into_iter().zip(servers) {
                for example in members.iter().flat_map(|&client| self.partition.client(client).into_owned()) {
                    if let Some(count) = row.get_mut(usize::from(labels[example as usize])) {
                        *count += 1.0;
                    }
                }
            }
        }
        for mut column in shares.columns_mut() {
            if column.iter().all(|&share| share == 0.0) {
                column.iter_mut().zip(self.sizes(servers)).for_each(|(share, size)| *share = size);
            }
        }
        (shares, is_drawn && of_partition.is_some())
    }

    /// Training examples of each server's clients.
    fn sizes(&self, servers: &[Vec<ClientId>]) -> Vec<f64> {
        let size = |members: &Vec<ClientId>| members.iter().map(|&client| self.partition.size(client)).sum::<usize>();
        servers.iter().map(|members| size(members) as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::partition::{Partition, PartitionConfig};
    use crate::data::{Dataset, Targets};
    use crate::model::SoftmaxRegression;
    use std::sync::Arc;

    fn labelled(labels: &[u8], groups: Option<&[u32]>) -> Dataset {
        let targets = Targets::Classes { labels: labels.to_vec(), classes: 3 };
        let data = Dataset::new(Array2::zeros((labels.len(), 1)), targets);
        match groups {
            Some(groups) => data.with_groups(groups.to_vec()),
            None => data,
        }
    }

    fn task(train: Dataset, test: Dataset, partition: Partition) -> Labelled {
        Labelled::new(Arc::new(Split { train, test }), Box::new(SoftmaxRegression::new(1, 3)), partition, None)
    }

    fn clients(numbers: &[u32]) -> Vec<ClientId> {
        numbers.iter().copied().map(ClientId).collect()
    }

    #[test]
    fn a_group_is_tested_where_it_trains() {
        let train = labelled(&[0; 10], Some(&[0, 0, 1, 1, 1, 1, 2, 2, 3, 3]));
        // Group 4 trains nowhere: its ten examples are divided as 4 : 6.
        let groups = [0, 1, 2, 3, 3, 1, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4];
        let test = labelled(&[1; 16], Some(&groups));
        let config: PartitionConfig = serde_json::from_str(r#"{"by-column": {}}"#).unwrap();
        let streams = Streams::new(2);
        let mut task = task(train.clone(), test, config.build(&train, 4, &[], &streams).unwrap());
        task.test_split = config.test_split(&train, &streams).unwrap();
        let parts = task.deal_test(&[clients(&[0, 2]), clients(&[1, 3])], &streams);
        let of = |server: usize| {
            let mut known: Vec<u32> = parts[server].iter().copied().filter(|&example| example < 6).collect();
            known.sort_unstable();
            (known, parts[server].len())
        };
        assert_eq!((of(0), of(1)), ((vec![0, 2], 2 + 4), (vec![1, 3, 4, 5], 4 + 6)));
    }

    #[test]
    fn shares_that_were_drawn_are_for_the_servers_of_the_partition_alone() {
        let train = labelled(&[0, 0, 0, 0, 1, 1, 1, 1], None);
        let test = labelled(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2], None);
        // Clients 0 and 1 have class 0, 2 and 3 class 1; nobody has class 2.
        let mut task = task(train, test, Partition::deal((0..8).collect(), &[2; 4]));
        let shares = ndarray::array![[0.25, 1.0, 0.0], [0.75, 0.0, 0.0]];
        for (split, is_drawn) in [(TestSplit::Rounded as fn(Array2<f64>) -> TestSplit, false), (TestSplit::Drawn, true)]
        {
            task.test_split = Some(split(shares.clone()));
            let (found, drawn) = task.test_shares(&[clients(&[0, 1]), clients(&[2, 3])], 3);
            assert_eq!((found, drawn), (ndarray::array![[0.25, 1.0, 4.0], [0.75, 0.0, 4.0]], is_drawn));
            // Other servers: by the training examples of each class.
            let (found, drawn) = task.test_shares(&[clients(&[0, 2, 3]), clients(&[1])], 3);
            assert_eq!((found, drawn), (ndarray::array![[2.0, 4.0, 6.0], [2.0, 0.0, 2.0]], false));
        }
        let parts = task.deal_test(&[clients(&[0, 1]), clients(&[2, 3])], &Streams::new(1));
        assert!((4..8).all(|example| parts[0].contains(&example)), "{parts:?}");
    }
}
