"""Questions and answers of `fairlead decide` as JSON.

Belongs here: parsing a question (`lines`) with its reports (`reports`) and its memory (`memory`),
and writing an answer. Belongs elsewhere: the analysis (`fairlead.domain.analysis`).
"""
