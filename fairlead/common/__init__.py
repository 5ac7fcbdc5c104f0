"""Helpers that are independent of consumer groups.

`commands` quotes names for shells and SQL; `json_lines` answers lines of JSON; `nearest` suggests
names; `progress` reports progress; `tables` splits Arrow tables; `hours` parses hours of the week;
`visible` escapes control characters; `words` formats figures and times; `kafka_python` opens
clients; `librdkafka` reads clients' errors; `installed` has the package's name and version.
"""
