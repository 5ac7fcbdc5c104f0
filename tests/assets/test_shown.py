"""Metadata of steps, from results that a test makes up."""

import json

import pyarrow as pa

from assets.shown.candidates import COLUMNS, describe
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.spark.planning import CANDIDATES


def test_candidates_show_what_reported_records_take() -> None:
    """For the worst group, and in the table; empty for a group whose consumers do not report."""
    times = {str(number): [0.004, 0.005, 0.006] for number in range(3)} | {"3": [0.03, 0.04, 0.05]}
    reported = {"partitions": {"t": times}, "consumers": {"a": 0.9, "b": 0.4}}
    row = {
        "assignor": OBSERVED,
        "diagnosis": "unbalanced",
        "forecast_time_lag_s": 60.0,
        "utilisation": 1.2,
    }
    table = pa.Table.from_pylist(
        [row | {"group": "g", "reported": json.dumps(reported)}, row | {"group": "plain"}],
        pa.schema([CANDIDATES.field(name) for name in COLUMNS]),
    )
    metadata = describe(table, ["g", "plain"])
    assert metadata["Time per record"] == "t 5.0 ms, t-3 40 ms (30 to 50)"
    assert metadata["Busy"] == "a 90.0 %, b 40.0 %"
    first, second = (record.data for record in metadata["by group"].records)
    assert first["Time per record"] == metadata["Time per record"]
    assert (second["Time per record"], second["Busy"]) == ("", "")
