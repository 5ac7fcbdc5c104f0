"""Measure, print the tables, and write results.json and the plot: `python -m benchmarks`."""

import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks import quality, report, speed

RESULTS = Path(__file__).with_name("results.json")


def main() -> None:
    """Run every benchmark."""
    console = Console(width=180)
    plans = quality.measure_all()
    report.draw(plans)
    rows = speed.measure_all(console.log)
    growth = speed.growth()
    memory = speed.peak_memory()
    results = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "speed": [asdict(row) for row in rows],
        "growth_10k_to_1m": growth,
        "peak_memory_bytes": memory,
        "quality": [asdict(plan) for plan in plans],
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    report.print_tables(console, rows, plans, growth, memory)


if __name__ == "__main__":
    main()
