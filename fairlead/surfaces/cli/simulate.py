"""`fairlead simulate`: what would come of a group, by who decides about it.

Belongs here: the command's arguments, and showing its answer. Does not: simulating
(`fairlead.simulation`).
"""

from typing import Annotated, Any

import typer

from fairlead.surfaces.cli.arguments import Json
from fairlead.surfaces.cli.output import print_json, print_table

_SCENARIOS = {"scenario": "scenario", "kind": "kind", "what": "what happens"}
_COURSES = {
    "scenario": "scenario",
    "controller": "who decides",
    "late": "late, partition-minutes",
    "p99_s": "p99 behind, s",
    "plans": "plans",
    "moves": "moved by plans",
    "rebalances": "rebalances",
    "rebalance_moves": "moved by rebalances",
    "stuck": "stuck, partition-minutes",
}


def simulate(
    scenario: Annotated[
        list[str] | None, typer.Argument(help="Scenarios by name; none: list them.")
    ] = None,
    *,
    controller: Annotated[
        list[str] | None,
        typer.Option(help="Who decides; can be repeated. Default: each in turn."),
    ] = None,
    client: Annotated[
        str | None, typer.Option(help="Kind of consumer. Default: the scenario's.")
    ] = None,
    hours: Annotated[float, typer.Option(help="How long, in hours.", min=0.1, max=1000)] = 48.0,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal arrivals.", min=0)] = 0,
    look: Annotated[float, typer.Option(help="Seconds between looks.", min=10)] = 60.0,
    decide: Annotated[float, typer.Option(help="Seconds between decisions.", min=10)] = 900.0,
    pause: Annotated[
        float, typer.Option(help="Seconds that a moved partition stands still.", min=0)
    ] = 10.0,
    as_json: Json = False,
) -> None:
    """Simulate a consumer group in a closed loop: arrivals, reading, commits, looks, plans.

    Late is what is more than 60 s behind, counted after the first six hours.
    """
    from fairlead.simulation import catalogue, registry
    from fairlead.simulation.loop import Cadence
    from fairlead.simulation.run_figures import RunFigures
    from fairlead.simulation.world import World

    if not scenario:
        listed = [
            {"scenario": each.name, "kind": each.kind, "what": each.what}
            for each in catalogue.SCENARIOS.values()
        ]
        if as_json:
            print_json(listed)
        else:
            print_table(listed, _SCENARIOS)
        return
    cadence = Cadence(look_s=look, decision_s=decide, pause_s=pause)
    names = controller or list(registry.CONTROLLERS)
    chosen = [catalogue.scenario(name, client) for name in scenario]
    for name in names:  # a misspelt name is said before anything runs
        registry.controller(name, chosen[0], cadence)
    rows: list[dict[str, Any]] = []
    for each in chosen:
        world = World.of(each, seed=seed, hours=hours)
        for name in names:
            course = RunFigures.of(registry.simulate(world, each, name, cadence))
            rows.append({"scenario": each.name, "controller": name, **course.as_dict()})
    if as_json:
        print_json(rows)
    else:
        print_table(rows, _COURSES)
