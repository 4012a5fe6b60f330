//! Rows that are dealt, seen and said otherwise from rounds on.

use super::{Dealt, Rows, Shift, TaskError};
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::data::partition::{Partition, TestSplit};
use fedgenie_learning::data::{Dataset, Split, Stage, exchange};
use fedgenie_learning::task::Shifted;
use std::sync::Arc;

/// Indices of streams: the clients of a change, the seed of a partition that deals anew, and the noise of the first
/// change, of training and test rows.
const WHO: u32 = 24;
const ANEW: u32 = 25;
const NOISE: u32 = 64;

/// Whose rows a change is of.
struct Scope {
    /// Its clients, ascending; `None` for all.
    clients: Option<Vec<ClientId>>,
    /// Whether it is of test and validation rows, too.
    is_of_test: bool,
}

/// The changes so far.
struct Course<'a> {
    rows: &'a Rows,
    /// How many clients, and their declared amounts of data.
    clients: (usize, &'a [u32]),
    streams: &'a Streams,
    /// What the rows were at first.
    first: &'a Dealt,
    /// In which manners they were seen at first, if in any.
    skew: Option<Stage>,
    /// Who has which rows.
    train: Partition,
    test_split: Option<TestSplit>,
    /// Changes of features, each with the number of its entry.
    features: Vec<(usize, Scope)>,
    /// Changes of labels, each with the pairs of classes.
    concepts: Vec<(&'a [[u32; 2]], Scope)>,
    /// The rows as they are seen, with the labels of the data.
    seen: Arc<Split>,
}

impl Rows {
    /// The data from each change on; `seen` are those before.
    pub(super) fn shifted(
        &self,
        first: &Dealt,
        (seen, skew): (Arc<Split>, Option<Stage>),
        clients: (usize, &[u32]),
        streams: &Streams,
    ) -> Result<Vec<Shifted>, TaskError> {
        let (train, test_split) = (first.train.clone(), first.test_split.clone());
        let (features, concepts) = (Vec::new(), Vec::new());
        let rows = self;
        let mut course = Course { rows, clients, streams, first, skew, train, test_split, features, concepts, seen };
        let mut found = Vec::with_capacity(self.shifts.len());
        for (index, shift) in self.shifts.iter().enumerate() {
            course.add(index, shift)?;
            let said = course.said();
            let is_of_examples = shift.features.is_some() || shift.concept.is_some();
            let clients = if is_of_examples { course.scope(index, shift)?.clients } else { None };
            found.push(Shifted {
                clients,
                round: shift.round,
                divided_by: said.is_some().then(|| course.seen.clone()),
                data: said.map_or_else(|| course.seen.clone(), Arc::new),
                train: course.train.clone(),
                test_split: course.test_split.clone(),
            });
        }
        Ok(found)
    }
}

/// A complaint about a change.
fn refused(index: usize, key: &str, message: String) -> TaskError {
    TaskError::Setting(Complaint::new(format!("shift.{index}.{key}"), message))
}

impl<'a> Course<'a> {
    fn add(&mut self, index: usize, shift: &'a Shift) -> Result<(), TaskError> {
        let Split { train, .. } = &*self.rows.data;
        if let Some(partition) = &shift.labels {
            let anew = Streams::new(self.streams.draw(Purpose::Partition, index as u32, ANEW).bits());
            let spread = self.rows.shares.spread(partition, train, self.clients, [self.streams, &anew]);
            let spread = spread.map_err(|error| match error {
                TaskError::Partition(error) => refused(index, "labels", error.to_string()),
                other => other,
            })?;
            (self.train, self.test_split) = (spread.train, spread.test_split);
        }
        if let Some(pairs) = shift.concept.as_deref() {
            let classes = train.classes().map_or(0, |(_, classes)| classes);
            if let Some(class) = pairs.iter().flatten().find(|class| **class as usize >= classes) {
                return Err(refused(index, "concept", format!("names class {class}; there are {classes}, from 0 on")));
            }
            self.concepts.push((pairs, self.scope(index, shift)?));
        }
        if let Some(features) = &shift.features {
            if let Some(key) = features.needs_images().filter(|_| !train.shape().is_image()) {
                let message = "needs images; these examples are rows of a table: give the data a shape, or take noise";
                return Err(refused(index, &format!("features.{key}"), message.to_owned()));
            }
            self.features.push((index, self.scope(index, shift)?));
        }
        // Examples that are dealt anew are seen by whom they go to.
        let is_seen_anew = shift.labels.is_some() && (self.skew.is_some() || !self.features.is_empty());
        if shift.features.is_some() || is_seen_anew {
            self.seen = self.see(index)?;
        }
        Ok(())
    }

    /// Whose rows a change is of.
    fn scope(&self, index: usize, shift: &Shift) -> Result<Scope, TaskError> {
        let (count, _) = self.clients;
        let clients = match (&shift.clients, shift.share) {
            (Some(clients), _) => {
                if let Some(beyond) = clients.iter().find(|client| **client as usize >= count) {
                    return Err(refused(
                        index,
                        "clients",
                        format!("names client {beyond}; there are {count}, from 0 on"),
                    ));
                }
                Some(clients.iter().map(|&client| ClientId(client)).collect())
            }
            (None, Some(share)) => {
                let mut all: Vec<ClientId> = (0..count).map(ClientId::from_index).collect();
                self.streams.stream(Purpose::Partition, index as u32, WHO).shuffle(&mut all);
                all.truncate((share * count as f64).round() as usize);
                if all.is_empty() && share > 0.0 {
                    let message =
                        format!("found {share}: of {count} clients that is less than half a client; raise it");
                    return Err(refused(index, "share", message));
                }
                Some(all)
            }
            (None, None) => None,
        };
        let clients = clients.map(|mut clients: Vec<ClientId>| {
            clients.sort_unstable();
            clients.dedup();
            clients
        });
        Ok(Scope { clients, is_of_test: shift.is_of_test() })
    }

    /// The training rows that a change is of, those that clients hold out and those for validation too.
    fn rows_of(&self, scope: &Scope) -> Vec<u32> {
        let of = |client: &ClientId| {
            let own = self.first.own.as_ref().map_or_else(Vec::new, |own| own.client(*client).into_owned());
            [self.train.client(*client).into_owned(), own].concat()
        };
        let mut rows: Vec<u32> = match &scope.clients {
            Some(clients) => clients.iter().flat_map(of).collect(),
            None => (0..self.clients.0).map(ClientId::from_index).flat_map(|client| of(&client)).collect(),
        };
        if scope.is_of_test {
            rows.extend(self.first.valid.iter().flatten());
        }
        rows
    }

    /// All rows as they are seen after the changes so far, the last of which has this number.
    fn see(&self, last: usize) -> Result<Arc<Split>, TaskError> {
        let Some(later) = &self.rows.later else { return Ok(self.seen.clone()) };
        let (clients, sizes) = self.clients;
        let key = format!("{} {clients} {sizes:?} {last}", later.key);
        later.copies.of(key, || {
            let data = &self.rows.data;
            let mut stages = Vec::new();
            if let (Some(skew), Some(settings)) = (&self.skew, self.rows.shares.partition.feature_skew()) {
                let parts: Vec<&Partition> =
                    [Some(&self.train), self.first.own.as_ref()].into_iter().flatten().collect();
                let mut stage = settings.stage(data, &parts, &[], self.streams)?;
                // Who sees what nobody trains on does not change.
                stage.test.clone_from(&skew.test);
                self.first.valid.iter().flatten().for_each(|&row| stage.train[row as usize] = skew.train[row as usize]);
                stages.push(stage);
            }
            for (index, scope) in &self.features {
                let Some(change) = &self.rows.shifts[*index].features else { continue };
                let mut train = vec![None; data.train.examples()];
                self.rows_of(scope).into_iter().for_each(|row| train[row as usize] = Some(0));
                let test = if scope.is_of_test { vec![Some(0); data.test.examples()] } else { Vec::new() };
                let first = NOISE + 2 * *index as u32;
                let manners = vec![change.manner(data.train.shape().channels)];
                stages.push(Stage { manners, train, test, noise: [first, first + 1] });
            }
            Ok(data.changed(&stages, later.normalize, self.streams)?)
        })
    }

    /// The rows with the labels that they are said to have; `None` if those of the data.
    fn said(&self) -> Option<Split> {
        if self.concepts.is_empty() {
            return None;
        }
        let Split { mut train, mut test } = (*self.seen).clone();
        for (pairs, scope) in &self.concepts {
            let said = |class: u8| exchange::said(pairs, class);
            train = train.relabelled(self.rows_of(scope), said);
            if scope.is_of_test {
                test = relabelled(&test, said);
            }
        }
        Some(Split { train, test })
    }
}

fn relabelled(data: &Dataset, said: impl FnMut(u8) -> u8) -> Dataset {
    data.relabelled(0..data.examples() as u32, said)
}
