"""Looks at groups: where their partitions stood, moment by moment.

`look` lays one out, a row a group; `arrays` and `stacks` hand a group's looks, or those of many at
once, to what computes; `lag` says how far behind partitions are; `questions` asks the judgement.
"""
