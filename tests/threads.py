"""Lets linear algebra take one thread in each process of the tests.

pytest imports it before anything else: the first conftest imports numpy, which hears it no more.
"""

from fairlead.common.threads import one_thread

one_thread()
