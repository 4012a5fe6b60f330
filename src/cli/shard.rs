//! The part of an experiment that a process carries out, also as a cluster numbers its tasks.

use fedgenie::error::Error;
use fedgenie::experiment::Shard;

/// Variables of an array job of Slurm.
const SLURM: [&str; 4] =
    ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_STEP"];
/// The number of a pod in an indexed job of Kubernetes.
const INDEX: &str = "JOB_COMPLETION_INDEX";
/// The number of parts, where nobody else says it.
const SHARDS: &str = "FEDGENIE_SHARDS";

/// The part that `--shard` names; `variable` looks up a variable of the environment.
///
/// # Errors
/// If it is none, or with `auto` if the variables name none.
pub(super) fn shard_of(written: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Shard, Error> {
    if written == "auto" {
        return automatic(variable);
    }
    let message = || {
        format!(
            "found --shard {written}; expected I/N with I from 0 to N-1, such as 0/4, or auto for the task of a cluster"
        )
    };
    Shard::parse(written).ok_or_else(|| Error::Usage(message()))
}

/// The number that a variable holds, if it is set.
fn number(variable: impl Fn(&str) -> Option<String>, name: &str) -> Result<Option<usize>, Error> {
    let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Error::Usage(format!("--shard auto: found {name}={text:?}; expected a whole number"))),
    }
}

fn automatic(variable: impl Fn(&str) -> Option<String>) -> Result<Shard, Error> {
    let read = |name: &str| number(&variable, name);
    let [id, least, count, step] = SLURM;
    let found = (read(id)?, read(INDEX)?, read(SHARDS)?);
    let (index, parts, names) = match found {
        (Some(_), Some(_), _) => {
            return Err(Error::Usage(format!(
                "--shard auto: both {id} and {INDEX} are set; unset the one of the cluster that this is not"
            )));
        }
        (Some(task), None, None) => {
            let (Some(least), Some(count)) = (read(least)?, read(count)?) else {
                return Err(Error::Usage(format!("--shard auto: {id} is set, and {least} or {count} is not")));
            };
            let step = read(step)?.unwrap_or(1).max(1);
            let from_least = task.checked_sub(least).filter(|distance| distance % step == 0);
            let index = from_least.map(|distance| distance / step).filter(|index| *index < count);
            let Some(index) = index else {
                return Err(Error::Usage(format!(
                    "--shard auto: task {task} is none of {count} from {least} in steps of {step}, because the array has \
                     gaps; give one without, or the number of parts of the whole in {SHARDS}: tasks then count from 0"
                )));
            };
            return Ok(Shard::new(index, count).expect("the index is less than the count"));
        }
        // Some tasks of an array again: their own count says nothing about the whole.
        (Some(task), None, Some(parts)) => (task, parts, [id, SHARDS]),
        (None, Some(index), Some(parts)) => (index, parts, [INDEX, SHARDS]),
        (None, Some(_), None) => {
            return Err(Error::Usage(format!(
                "--shard auto: {INDEX} is set; set {SHARDS} to the number of parts as well"
            )));
        }
        (None, None, _) => {
            return Err(Error::Usage(format!(
                "--shard auto found no task of a cluster: neither Slurm's {}, nor {INDEX} of Kubernetes with {SHARDS}; \
                 give --shard I/N",
                SLURM.join(", ")
            )));
        }
    };
    Shard::new(index, parts).ok_or_else(|| {
        let [of_index, of_parts] = names;
        let message = format!(
            "--shard auto: found {of_index}={index} and {of_parts}={parts}; expected an index from 0 to the number of \
             parts less 1"
        );
        Error::Usage(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<String, String> {
        let look = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        shard_of("auto", look).map(|shard| shard.to_string()).map_err(|error| error.to_string())
    }

    fn slurm(id: &str, least: &str, count: &str, step: &str) -> Result<String, String> {
        found(&[SLURM[0], SLURM[1], SLURM[2], SLURM[3]].into_iter().zip([id, least, count, step]).collect::<Vec<_>>())
    }

    /// As `sbatch --array=` numbers tasks: 0-3, 1-4, 5-11:2.
    #[test]
    fn tasks_of_slurm_count_from_the_least() {
        assert_eq!(slurm("0", "0", "4", "1").unwrap(), "0/4");
        assert_eq!(slurm("4", "1", "4", "1").unwrap(), "3/4");
        let all: Vec<String> = ["5", "7", "9", "11"].map(|id| slurm(id, "5", "4", "2").unwrap()).into();
        assert_eq!(all, ["0/4", "1/4", "2/4", "3/4"]);
        assert_eq!(slurm("2", "1", "2", "").unwrap(), "1/2", "an empty step is none");
        let error = slurm("7", "1", "3", "1").unwrap_err();
        assert!(error.contains("has gaps") && error.contains("FEDGENIE_SHARDS"), "{error}");
        assert!(slurm("6", "5", "4", "2").unwrap_err().contains("has gaps"));
        // Task 3 of 16 alone, submitted again.
        let again = [("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_ARRAY_TASK_COUNT", "1"), ("FEDGENIE_SHARDS", "16")];
        assert_eq!(found(&again).unwrap(), "3/16");
    }

    #[test]
    fn pods_of_kubernetes_are_told_how_many_there_are() {
        assert_eq!(found(&[(INDEX, "2"), (SHARDS, "3")]).unwrap(), "2/3");
        assert!(found(&[(INDEX, "2")]).unwrap_err().contains("set FEDGENIE_SHARDS"));
        assert!(found(&[(INDEX, "3"), (SHARDS, "3")]).unwrap_err().contains("from 0 to the number of parts less 1"));
        assert!(found(&[(INDEX, "x"), (SHARDS, "3")]).unwrap_err().contains("JOB_COMPLETION_INDEX=\"x\""));
    }

    #[test]
    fn without_a_cluster_all_variables_are_named() {
        for variables in [&[][..], &[(SHARDS, "4")], &[(SLURM[0], ""), (INDEX, "")]] {
            let error = found(variables).unwrap_err();
            assert!(SLURM.iter().chain(&[INDEX, SHARDS]).all(|name| error.contains(name)), "{error}");
        }
        assert!(found(&[(SLURM[0], "1"), (INDEX, "1")]).unwrap_err().contains("both"));
        assert!(found(&[(SLURM[0], "1")]).unwrap_err().contains("SLURM_ARRAY_TASK_COUNT is not"));
    }

    #[test]
    fn a_part_is_named_by_hand_as_well() {
        assert_eq!(shard_of("1/4", |_| None).unwrap().to_string(), "1/4");
        assert!(shard_of("4/4", |_| None).unwrap_err().to_string().contains("or auto"));
    }
}
