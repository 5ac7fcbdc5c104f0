"""What knows nothing of consumer groups: text, tables and hours, cut the way Fairlead wants them.

`commands` quotes names for commands and SQL; `json_lines` answers lines of JSON; `nearest` says
what was meant; `progress` how far something is; `tables` cuts Arrow tables; `hours` reads times of
the week; `visible` writes out what a terminal would not show; `kafka_python` opens clients;
`installed` knows the package's name and version.
"""
