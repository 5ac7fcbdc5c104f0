"""Plans as data: the document that is published, how one is chosen, approved and published.

`document` and `partition_sets` are the wire format, which followers read too: standard library and
numpy alone.
"""
