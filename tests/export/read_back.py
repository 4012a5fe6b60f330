"""Reads exported tables back: by pandas and polars, from CSV and Parquet, and checks them by their dictionary.

Call: read_back.py RESULTS CSV PARQUET, the result folder and its two exports. Needs pandas, polars, pyarrow and frictionless.
"""

import json
import pathlib
import sys

import frictionless
import pandas
import polars
import polars.testing

KEY = ["folder", "policy", "seed", "point"]
PANDAS = {"string": "string", "integer": "Int64", "number": "Float64"}
# Reading a number as it was written: the default from version 3 on.
EXACT = {} if int(pandas.__version__.split(".")[0]) >= 3 else {"float_precision": "round_trip"}
POLARS = {"string": polars.String, "integer": polars.Int64, "number": polars.Float64}


def fields(package, table):
    """The fields of a table, by name."""
    resource = next(resource for resource in package["resources"] if resource["name"] == table)
    return {field["name"]: field for field in resource["schema"]["fields"]}


def validated(folder):
    """Checks types, required cells, primary and foreign keys by the dictionary alone."""
    report = frictionless.validate(str(folder / "datapackage.json"))
    package = json.loads((folder / "datapackage.json").read_text())
    left = []
    for task in report.tasks:
        about = fields(package, task.name)
        for error in task.errors:
            # It reads an empty cell of integers in Parquet as the number NaN, and calls that no integer.
            field = about.get(getattr(error, "field_name", None), {})
            is_empty = task.place.endswith(".parquet") and field.get("type") == "integer" and "constraints" not in field
            if not (error.type == "type-error" and is_empty and error.cell == "nan"):
                left.append((task.name, error.message))
    assert not left and not report.errors, f"{len(left)} errors: {left[:10]}"
    print(f"frictionless {frictionless.__version__}: {folder.name}: {len(report.tasks)} tables are valid")


def in_pandas(csv, parquet, package):
    """The tables by pandas, the same from both."""
    tables = {}
    for resource in package["resources"]:
        name = resource["name"]
        types = {field: PANDAS[about["type"]] for field, about in fields(package, name).items()}
        # Types are inferred first: a number is never taken for an integer, nor an integer for a number.
        inferred = pandas.read_csv(csv / f"{name}.csv", **EXACT, dtype_backend="numpy_nullable", na_values=[""],
                                   keep_default_na=False)
        assert list(inferred.columns) == list(types), name
        for field in inferred.columns[inferred.notna().any()]:
            found, wanted = str(inferred[field].dtype), types[field]
            assert found == wanted or wanted == "string", f"{name}.{field} is read as {found}, and is {wanted}"
            if field.isidentifier() and not hasattr(pandas.DataFrame, field):
                assert getattr(inferred, field) is not None
        read = pandas.read_csv(csv / f"{name}.csv", **EXACT, dtype=types, na_values=[""], keep_default_na=False)
        other = pandas.read_parquet(parquet / f"{name}.parquet", dtype_backend="numpy_nullable")
        assert {field: str(dtype) for field, dtype in other.dtypes.items()} == types, f"{name}: {other.dtypes}"
        pandas.testing.assert_frame_equal(read, other, check_exact=True)
        tables[name] = read
    return tables


def in_polars(csv, parquet, package):
    """The tables by polars, the same from both."""
    for resource in package["resources"]:
        name = resource["name"]
        types = {field: POLARS[about["type"]] for field, about in fields(package, name).items()}
        read = polars.read_csv(csv / f"{name}.csv", schema=types)
        other = polars.read_parquet(parquet / f"{name}.parquet")
        assert dict(other.schema) == types, f"{name}: {other.schema}"
        polars.testing.assert_frame_equal(read, other, check_exact=True)


def joined(tables):
    """Joins runs with their rounds, targets, controls and clients: no row is lost or doubled."""
    runs = tables["runs"]
    for name in ["rounds", "targets", "controls", "clients"]:
        rows = tables[name]
        found = rows[KEY].merge(runs, on=KEY, how="left", validate="many_to_one", indicator=True)
        assert len(found) == len(rows) and (found["_merge"] == "both").all(), name
    clients, large = tables["clients"], runs.unique_clients.sum()
    if len(clients):
        assert (clients.selections > 0).sum() == large
    told = clients.dropna(subset=["down_bytes"])
    sums = told.groupby(KEY)[["down_bytes", "up_bytes", "compute_s"]].sum()
    of_runs = runs.set_index(KEY).loc[sums.index]
    assert (sums.down_bytes == of_runs.down_bytes).all() and (sums.up_bytes == of_runs.up_bytes).all()
    assert ((sums.compute_s - of_runs.compute_s).abs() <= 1e-9 * of_runs.compute_s).all()


def recomputed(tables, package, summary):
    """The mean time to each target, from the table of targets, against summary.json. Returns how many there were."""
    folder = tables["runs"].folder.iloc[0]
    count = 0
    for arm in summary["arms"]:
        for key, value in arm["values"].items():
            what, _, target = key.partition(".")
            if what != "time_to":
                continue
            rows = tables["targets"].query("folder == @folder and policy == @arm['arm'] and point == @arm['point'] and target == @target")
            horizon = arm["until"][key].get("horizon", float("inf"))
            mean = rows.time_s.fillna(horizon).clip(upper=horizon).mean()
            assert abs(mean - value["mean"]) <= 1e-9 * value["mean"], f"{arm['arm']} at {arm['point']}: {mean} and {value}"
            # The same number under its name in runs and in comparisons.
            column = next(name for name, field in fields(package, "runs").items() if field.get("quantity") == key)
            runs = tables["runs"].query("policy == @arm['arm'] and point == @arm['point']")
            assert runs[column].notna().sum() == rows.time_s.notna().sum()
            told = tables["comparisons"].query("run_column == @column and policy == @arm['arm'] and point == @arm['point']")
            assert told[told.against.isna()].value.tolist() == [value["mean"]]
            count += 1
    return count


def controlled(tables, summary):
    """The mean of each control at each point, from the table of controls, against summary.json. Returns how many there were."""
    # A control belongs to a world: policies of one seed have the same, or there is none in the summary.
    worlds = tables["controls"].drop_duplicates(["seed", "point", "control", "metric"])
    means = worlds.groupby(["point", "control", "metric"]).value.mean()
    count = 0
    for point, controls in enumerate(summary["controls"]):
        for control, metrics in controls.items():
            for metric, value in metrics.items():
                found = means[point, control, metric]
                assert abs(found - value["mean"]) <= 1e-12 * abs(found), f"{control} {metric} at {point}: {found} and {value}"
                count += 1
    return count


def main():
    results, csv, parquet = map(pathlib.Path, sys.argv[1:])
    summary = json.loads((results / "summary.json").read_text())
    package = json.loads((csv / "datapackage.json").read_text())
    for folder in [csv, parquet]:
        validated(folder)
    tables = in_pandas(csv, parquet, package)
    in_polars(csv, parquet, package)
    joined(tables)
    count = recomputed(tables, package, summary)
    controls = controlled(tables, summary)
    rows = {name: len(table) for name, table in tables.items()}
    print(f"pandas {pandas.__version__}, polars {polars.__version__}: {rows}; {count} mean times to targets "
          f"and {controls} means of controls are those of summary.json")


main()
