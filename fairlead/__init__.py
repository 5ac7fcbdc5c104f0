"""Fairlead's library: everything under the Dagster assets, and what consumer applications import.

Consumer applications use `fairlead.followers`, which needs only numpy and their Kafka client.
The planner uses the rest, which the extra `planner` installs.
"""
