"""Tables and the plot of `make bench`.

Belongs here: printing and drawing. Belongs elsewhere: measuring (`speed`, `quality`).
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from benchmarks.harness import DOCS, Bench
from benchmarks.quality import Plan
from benchmarks.speed import Row

PLOT = DOCS / "pareto.svg"


def show(
    bench: Bench, rows: list[Row], plans: list[Plan], growth: Mapping[str, float], memory: int
) -> None:
    """Print all measurements."""
    bench.show(
        "Speed: medians, both sides warmed",
        ("work", "assignor", "seconds", "ours is", "partitions min-max", "goal"),
        _speed(rows),
    )
    bench.log(
        "Time a partition at 10^6 over that at 10^4 (goal: 2 at most): "
        + ", ".join(f"{name} {ratio:.2f}" for name, ratio in growth.items())
    )
    bench.log(
        f"Peak memory of sticky, half of the topics each, 1M partitions: {memory / 2**20:.0f} MiB"
    )
    bench.show(
        "Quality: from a round-robin start, and after 10 % jitter",
        (
            *("scenario", "assignor", "heaviest / bound", "spread", "moves", "on the front"),
            *("then: heaviest / bound", "then: moves"),
        ),
        (
            (
                *(plan.scenario, plan.assignor, f"{plan.ratio:.3f}", plan.spread, plan.moves),
                *("yes" if plan.on_front else "", f"{plan.ratio_after_jitter:.3f}"),
                f"{plan.moves_after_jitter} ({plan.moves_after_jitter / plan.partitions:.1%})",
            )
            for plan in plans
        ),
    )


def _speed(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each Fairlead assignor, and for each Kafka assignor compared with it."""
    for row in rows:
        ours = row.timings[0]
        for timing in row.timings:
            first = timing is ours
            yield (
                row.what if first else "",
                timing.name,
                f"{timing.seconds:.4f}",
                "" if first else f"{timing.seconds / ours.seconds:.1f}x faster",
                f"{timing.count_min}-{timing.count_max}",
                row.goal if first else "",
            )


def draw(plans: list[Plan], path: Path = PLOT) -> None:
    """Draw the highest load against the number of moves: a point for each assignor's plan.

    For `sticky-lag-aware`, a line shows the highest load after each number of moves.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - the same
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import, and only needed here
    from matplotlib.ticker import LogFormatter  # noqa: PLC0415 - the same

    from benchmarks.plot_style import COLOURS, GREY, STYLE  # noqa: PLC0415 - the same

    scenarios = [(name, list(group)) for name, group in groupby(plans, key=lambda p: p.scenario)]
    with rc_context(STYLE):
        figure = Figure(figsize=(13, 7.5), layout="constrained")
        axes = figure.subplots(2, 3)
        for axis, (scenario, group) in zip(axes.flat, scenarios, strict=True):
            for number, plan in enumerate(group):
                # Later markers are smaller, since several assignors may share a point.
                size = 14 - 2 * number
                style = {"color": COLOURS.get(plan.assignor), "label": plan.assignor}
                (line,) = axis.plot(plan.moves, plan.ratio, "o", markersize=size, **style)
                if plan.frontier:
                    moves, ratios = zip(*plan.frontier, strict=True)
                    axis.step(moves, ratios, where="post", color=line.get_color(), linewidth=1)
            axis.set_xscale("symlog")
            axis.xaxis.set_major_formatter("{x:,.0f}")
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.5)))
            axis.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
            axis.set_title(scenario)
            axis.set_xlabel("partitions moved")
            axis.set_ylabel("most loaded member / lower bound")
        axes.flat[0].legend(fontsize="small")
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
