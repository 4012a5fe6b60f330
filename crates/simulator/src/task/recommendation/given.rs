//! Triplets that a scenario gives: read, and checked to be of every rating.

use crate::task::TaskError;
use fedgenie_core::config::Complaint;
use fedgenie_learning::data::DataError;
use fedgenie_learning::ratings::RatingsSplit;
use fedgenie_learning::ratings::triplets::{Missing, Triplets, read_triplets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// `missing_triplets = "skip"`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingTriplets {
    /// They are an error.
    #[default]
    Refuse,
    /// They are counted, and not trained on.
    Skip,
}

impl MissingTriplets {
    pub(super) const fn is_refuse(&self) -> bool {
        matches!(self, Self::Refuse)
    }

    /// Reads the triplets, with warnings about ratings that have none.
    pub(super) fn read(self, path: &Path, split: &RatingsSplit) -> Result<(Triplets, Vec<String>), TaskError> {
        let wrong = |error: DataError| TaskError::Setting(Complaint::new("triplets", error.to_string()));
        let triplets = read_triplets(path, split).map_err(wrong)?;
        let Some(Missing { train, valid, first: (user, item) }) = triplets.missing else {
            return Ok((triplets, Vec::new()));
        };
        let (user, item) = (split.data.user_ids.name(user), split.data.item_ids.name(item));
        let counted = [(train, "training"), (valid, "validation")];
        let counted: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, part)| format!("{count} rating{} for {part}", if count == 1 { "" } else { "s" }))
            .collect();
        let what = counted.join(" and ");
        let has = if train + valid == 1 { "has" } else { "have" };
        let path = path.display();
        if self == Self::Refuse {
            let message = format!(
                "{path}: there is no triplet of user {user}, item {item}; {what} {has} none; give them, or write \
                 missing_triplets = \"skip\", which leaves them out"
            );
            return Err(TaskError::Setting(Complaint::new("triplets", message)));
        }
        let note = format!("{path}: {what} {has} no triplet and are left out; the first is user {user}, item {item}");
        Ok((triplets, vec![note]))
    }
}
