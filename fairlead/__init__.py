"""Fairlead's library: the code that Dagster assets call and that consumer applications import.

Consumer applications use `fairlead.followers`, which needs only numpy and their Kafka client.
The planner uses the rest, which also needs the packages of the extra `planner`.
"""
