"""What a consumer application pays for the follower."""

import subprocess
import sys

PROBE = """
import sys, time
import kafka
before = set(sys.modules)
started = time.perf_counter()
import fairlead.followers.kafka_python
print(time.perf_counter() - started)
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_follower_imports_fast_and_needs_numpy_alone() -> None:
    """Beside kafka-python: under 0.3 s, and no package that the planner needs."""
    result = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
    )
    seconds, modules = result.stdout.splitlines()
    assert float(seconds) < 0.3
    third_party = set(modules.split()) - sys.stdlib_module_names
    assert {name for name in third_party if not name.startswith("_")} == {
        "assignors",
        "fairlead",
        "numpy",
    }
