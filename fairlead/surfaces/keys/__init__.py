"""The report on a topic's keys, for people and programs.

Belongs here: its rows, sentences and page. Does not: what is found (`fairlead.domain.key_report`).
"""
