"""Limit linear algebra to one thread in all test processes.

pytest imports this module before the first conftest imports numpy.
"""

from fairlead.common.threads import one_thread

one_thread()
