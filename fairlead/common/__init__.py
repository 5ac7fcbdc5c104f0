"""What knows nothing of consumer groups: text, tables and hours, cut the way Fairlead wants them.

`kafka_python_log` keeps passwords out of a log; `json_lines` and `toml_lines` say where in a text something is wrong; `nearest` what was meant;
`tables` cuts Arrow tables; `hours` reads times of the week.
"""
