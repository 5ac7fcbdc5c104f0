"""Fairlead's library: the code that Dagster assets call and that consumer applications import.

Consumer applications use `fairlead.followers`, which needs only numpy and the application's Kafka
client. The planner uses the other modules, which also need the packages of the extra `planner`.
"""
