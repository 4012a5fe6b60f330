//! Data that change over time: what a scenario says about it. `describe task/classification` has the definition.

use fedgenie_core::config::{Complaint, check};
use fedgenie_learning::data::exchange::check_pairs;
use fedgenie_learning::data::manner::{COLOURS, DEVIATIONS, Manner, ROTATIONS};
use fedgenie_learning::data::partition::PartitionConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of the data from a round on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Shift {
    /// The first round with the data changed, from 1.
    pub round: u32,
    /// The partition by which the same training examples are dealt anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<PartitionConfig>,
    /// How features are changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<FeatureShift>,
    /// Pairs of a class and the class that its examples are said to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concept: Option<Vec<[u32; 2]>>,
    /// The clients whose examples are changed; all if neither these nor `share` are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<u32>>,
    /// The share of all clients whose examples are changed, drawn by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Whether test examples are changed as well, and rows for validation; if left out, where all clients' are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
}

/// `features = { rotation = 30, noise = 0.1, colour = { contrast = 0.8, brightness = 0.1 } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FeatureShift {
    /// Degrees by which images are turned, counter-clockwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<f64>,
    /// Standard deviation of the noise that is added to each feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// How the colours of images are changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<ColourShift>,
}

/// What becomes of each number of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ColourShift {
    /// It is multiplied by this.
    #[serde(default = "one")]
    pub contrast: f64,
    /// Then this is added.
    #[serde(default)]
    pub brightness: f64,
}

const fn one() -> f64 {
    1.0
}

impl Shift {
    /// Whether test examples and rows for validation are changed as well.
    pub fn is_of_test(&self) -> bool {
        self.test.unwrap_or(self.clients.is_none() && self.share.is_none())
    }

    /// Checks one change.
    ///
    /// # Errors
    /// A complaint with a path below it.
    fn check(&self) -> Result<(), Complaint> {
        if self.labels.is_none() && self.features.is_none() && self.concept.is_none() {
            return Err(Complaint::new("", "changes nothing; give labels, features or concept, or take it out"));
        }
        if let Some(labels) = &self.labels {
            labels.check().map_err(|complaint| complaint.below("labels"))?;
            let is_refused = matches!(labels, PartitionConfig::Overlapping(_)) || labels.is_declared();
            if is_refused || labels.feature_skew().is_some() {
                let message = format!(
                    "deals the examples that there are anew, each to one client and as they are seen; {} does not, \
                     take another partition",
                    labels.kind()
                );
                return Err(Complaint::new("labels", message));
            }
        }
        let of_some =
            [("clients", self.clients.is_some()), ("share", self.share.is_some()), ("test", self.test.is_some())];
        let is_dealt_alone = self.features.is_none() && self.concept.is_none();
        if let Some((key, _)) = of_some.into_iter().find(|(_, is_given)| *is_given && is_dealt_alone) {
            return Err(Complaint::new(
                key,
                "is of features and concept; labels are dealt anew to all clients, take it out",
            ));
        }
        if self.clients.is_some() && self.share.is_some() {
            return Err(Complaint::new(
                "share",
                "says whose examples change, as clients does; take one of the two out",
            ));
        }
        if let Some(clients) = &self.clients {
            let mut sorted = clients.clone();
            sorted.sort_unstable();
            if clients.is_empty() {
                return Err(Complaint::new("clients", "names none; expected at least one, or take the entry out"));
            }
            if let Some(twice) = sorted.windows(2).find(|two| two[0] == two[1]) {
                return Err(Complaint::new("clients", format!("names client {} twice", twice[0])));
            }
        }
        if let Some(share) = self.share {
            check("share", share, 0.0..=1.0, "a number from 0 to 1")?;
        }
        self.features
            .as_ref()
            .map_or(Ok(()), |features| features.check().map_err(|complaint| complaint.below("features")))?;
        self.concept
            .as_deref()
            .map_or(Ok(()), |pairs| check_pairs(pairs).map_err(|complaint| complaint.below("concept")))
    }
}

impl FeatureShift {
    fn check(&self) -> Result<(), Complaint> {
        let Self { rotation, noise, colour } = self;
        if rotation.is_none() && noise.is_none() && colour.is_none() {
            return Err(Complaint::new("", "changes nothing; give rotation, noise or colour"));
        }
        let colour = colour.as_ref();
        let given = [
            ("rotation", *rotation, ROTATIONS),
            ("noise", *noise, DEVIATIONS),
            ("colour.contrast", colour.map(|colour| colour.contrast), COLOURS),
            ("colour.brightness", colour.map(|colour| colour.brightness), COLOURS),
        ];
        for (key, number, range) in given {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            number.map_or(Ok(0.0), |number| check(key, number, range, &expected))?;
        }
        self.check_effect()
    }

    /// Refuses what leaves all features as they are.
    fn check_effect(&self) -> Result<(), Complaint> {
        match self.manner(1).is_plain() {
            true => Err(Complaint::new("", "changes nothing: every feature stays as it is; take it out")),
            false => Ok(()),
        }
    }

    /// The key that needs images, if one does.
    pub fn needs_images(&self) -> Option<&'static str> {
        match (self.rotation, &self.colour) {
            (Some(_), _) => Some("rotation"),
            (None, Some(_)) => Some("colour"),
            (None, None) => None,
        }
    }

    /// The manner in which examples with so many channels are seen.
    pub fn manner(&self, channels: usize) -> Manner {
        let colour = |ColourShift { contrast, brightness }: &ColourShift| vec![[*contrast, *brightness]; channels];
        Manner {
            rotation: self.rotation.unwrap_or(0.0),
            colour: self.colour.as_ref().map_or_else(Vec::new, colour),
            noise: self.noise.unwrap_or(0.0),
        }
    }
}

/// Checks the changes of a task.
///
/// # Errors
/// A complaint with a path below `shift`.
pub fn check_all(shifts: &[Shift]) -> Result<(), Complaint> {
    for (index, shift) in shifts.iter().enumerate() {
        let before = if index == 0 { 0 } else { shifts[index - 1].round };
        if shift.round <= before {
            let message = format!(
                "found {}; expected rounds that ascend, numbered from 1, and more than {before} here",
                shift.round
            );
            return Err(Complaint::new(format!("{index}.round"), message));
        }
        shift.check().map_err(|complaint| complaint.below(&index.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_shift_is_refused() {
        for (shifts, path, said) in [
            (json!([{ "round": 0, "concept": [[0, 1]] }]), "0.round", "found 0"),
            (
                json!([{ "round": 3, "concept": [[0, 1]] }, { "round": 3, "concept": [[0, 1]] }]),
                "1.round",
                "more than 3",
            ),
            (json!([{ "round": 3 }]), "0", "changes nothing"),
            (json!([{ "round": 3, "features": {} }]), "0.features", "changes nothing"),
            (json!([{ "round": 3, "features": { "rotation": 360 } }]), "0.features", "changes nothing"),
            (json!([{ "round": 3, "features": { "noise": 0, "colour": {} } }]), "0.features", "changes nothing"),
            (json!([{ "round": 3, "concept": [[0, 1]], "clients": [] }]), "0.clients", "names none"),
            (json!([{ "round": 3, "concept": [[0, 1]], "clients": [4, 1, 4] }]), "0.clients", "client 4 twice"),
            (json!([{ "round": 3, "features": { "noise": -1 } }]), "0.features.noise", "found -1"),
            (json!([{ "round": 3, "concept": [] }]), "0.concept", "pairs of two classes"),
            (json!([{ "round": 3, "concept": [[0, 1], [0, 2]] }]), "0.concept", "pairs of two classes"),
            (json!([{ "round": 3, "concept": [[4, 4]] }]), "0.concept", "class 4 said to be itself"),
            (json!([{ "round": 3, "concept": [[0, 1]], "share": 1.5 }]), "0.share", "found 1.5"),
            (json!([{ "round": 3, "concept": [[0, 1]], "share": 0.5, "clients": [1] }]), "0.share", "one of the two"),
            (json!([{ "round": 3, "labels": { "iid": {} }, "share": 0.5 }]), "0.share", "is of features and concept"),
            (json!([{ "round": 3, "labels": { "iid": {} }, "test": true }]), "0.test", "is of features and concept"),
            (json!([{ "round": 3, "labels": { "declared": {} } }]), "0.labels", "declared does not"),
            (json!([{ "round": 3, "labels": { "overlapping": { "size": 3 } } }]), "0.labels", "overlapping does not"),
            (json!([{ "round": 3, "labels": { "dirichlet": { "alpha": 0 } } }]), "0.labels.dirichlet.alpha", "found 0"),
        ] {
            let shifts: Vec<Shift> = serde_json::from_value(shifts).unwrap();
            let refused = check_all(&shifts).unwrap_err();
            assert!(refused.path == path && refused.message.contains(said), "{refused}");
        }
    }

    #[test]
    fn test_examples_change_with_all_clients() {
        let of = |more: &str| {
            let text = format!(r#"{{ "round": 3, "concept": [[0, 1]]{more} }}"#);
            serde_json::from_str::<Shift>(&text).unwrap().is_of_test()
        };
        assert!(of("") && !of(r#", "share": 0.3"#) && !of(r#", "clients": [1]"#));
        assert!(!of(r#", "test": false"#) && of(r#", "share": 0.3, "test": true"#));
    }
}
