"""What kafka-python logs at DEBUG, without the passwords in it.

Belongs here: which of its records hold secrets. Does not: how logging is set up, which is the
application's affair. Both the planner and followers use kafka-python.
"""

import logging
from typing import Final

_REQUEST: Final = "kafka.net.connection"
#: The client's whole configuration; every byte that is sent, and each request once more.
_ALWAYS: Final = ("kafka.admin.client", "kafka.protocol.parser")


def keep_secrets() -> None:
    """Keep kafka-python from logging passwords, in this process; may be called again and again.

    It logs the configuration of an admin client, and how a client authenticates: as requests, and
    as the bytes that are sent.
    """
    for name in (_REQUEST, *_ALWAYS):
        logging.getLogger(name).addFilter(_holds_no_secret)


def _holds_no_secret(record: logging.LogRecord) -> bool:
    if record.levelno > logging.DEBUG:
        return True
    if record.name == _REQUEST:
        given = record.args if isinstance(record.args, tuple) else (record.args,)
        return not any(type(handler).__name__.startswith("Sasl") for handler in given)
    return "configuration" not in record.msg and record.name != "kafka.protocol.parser"
