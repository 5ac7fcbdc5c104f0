"""Fixtures of the tests of plans: a store, as the store's own tests have it."""

from tests.fairlead.store.conftest import (  # noqa: F401 - fixtures
    approve,
    draft,
    engine,
    propose,
    store,
    store_url,
)
