"""Where the producer's default partitioner puts keys, as a Spark column.

Belongs here: the Spark side of `assignors.partitioner`, to see how keys would spread over another
number of partitions. Does not: the hash itself.
"""

import pandas as pd
from pyspark.sql import Column
from pyspark.sql.pandas.functions import pandas_udf

from assignors.partitioner import partitions_of


def key_partition(key: Column, partitions: int) -> Column:
    """Return the partition, of `partitions`, that each key's records go to.

    Parameters
    ----------
    key
        The serialised keys, binary, or strings that are serialised as UTF-8. A null key has no
        partition of its own, records without a key take turns: null.
    partitions
        Number of partitions the topic has, or would have; positive.

    Returns
    -------
    An integer column.
    """

    def hash_keys(keys: pd.Series) -> pd.Series:
        known = keys.notna()
        found = pd.Series(pd.NA, index=keys.index, dtype="Int32")
        found[known] = partitions_of([bytes(key) for key in keys[known]], partitions)
        return found

    # The stubs know the old form alone, in which the kind of function is no type hint.
    as_column = pandas_udf(hash_keys, "int")  # type: ignore[call-overload]
    hashed: Column = as_column(key.cast("binary"))
    return hashed
