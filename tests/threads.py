"""Limit linear algebra to one thread in each process of the tests.

pytest imports this module before the first conftest imports numpy.
"""

from fairlead.common.threads import one_thread

one_thread()
