"""Compare assignors with Kafka's own, in speed and quality of plans: `python -m benchmarks`.

Belongs here: running `speed` and `quality`, and writing results.json. Belongs elsewhere: measuring.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks import harness, quality, report, speed

RESULTS: Final = Path(__file__).with_name("results.json")


def main() -> None:
    """Measure, print the tables, and write results.json and the plot."""
    options = harness.parser(__doc__)
    options.add_argument(
        "--only",
        nargs="*",
        metavar="WORK",
        choices=[work.what for work in speed.WORK],
        help="of the speed, by the names in the table; growth and memory are left out then",
    )
    with harness.measuring(options, RESULTS) as bench:
        only = bench.options.only
        plans = quality.measure_all()
        if bench.keeps:
            report.draw(plans)
        rows = speed.measure_all(bench.log, only)
        growth = speed.growth() if only is None else {}
        memory = speed.peak_memory() if only is None else 0
        bench.write(
            {
                "speed": [asdict(row) for row in rows],
                "growth_10k_to_1m": growth,
                "peak_memory_bytes": memory,
                "quality": [asdict(plan) for plan in plans],
            }
        )
        report.show(bench, rows, plans, growth, memory)


if __name__ == "__main__":
    main()
