"""Everything of the planner on one machine, in one command: `fairlead up`, and `make dev` on top.

Belongs here: which processes that takes, and whether anything is planned. Does not: keeping
processes running (`fairlead.sandbox.supervisor`).
"""

from fairlead.surfaces.up.before import check, require_free
from fairlead.surfaces.up.planning_switch import Planning
from fairlead.surfaces.up.running import At, running

__all__ = ["At", "Planning", "check", "require_free", "running"]
