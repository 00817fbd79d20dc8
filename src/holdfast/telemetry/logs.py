"""What does one line of the operator's log look like?

Two formats of the same facts, and one redaction for both: it stands in the formatter, because a filter would
see neither the finished text nor the traceback. Whoever logs on the way of a call, in any task or thread,
gets that call's trace and id.
"""

import logging
from datetime import UTC, datetime
from typing import IO, Literal

import orjson

from holdfast.model.current import not_to_be_shown, served
from holdfast.model.redaction import scrubbed, withheld

Format = Literal["json", "text"]


class Line(logging.Formatter):
    """Text for people: time, level, where, what, and whose call."""

    def format(self, record: logging.LogRecord) -> str:
        facts = _facts(self, record)
        whose = f" [{facts['call_id']} trace {facts['trace_id']}]" if "call_id" in facts else ""
        text = f"{facts['ts']} {facts['level']} {facts['logger']}: {facts['msg']}{whose}"
        return f"{text}\n{facts['exc']}" if "exc" in facts else text


class JsonLine(logging.Formatter):
    """One JSON object per line: ts, level, logger, msg, and where known trace_id, call_id, exc."""

    def format(self, record: logging.LogRecord) -> str:
        return orjson.dumps(_facts(self, record), option=orjson.OPT_NON_STR_KEYS).decode()


def _facts(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, str]:
    call = served()
    secret = not_to_be_shown()

    def shown(text: str) -> str:
        return scrubbed(withheld(text, secret)).encode("utf-8", "replace").decode()

    facts = {
        "ts": datetime.fromtimestamp(record.created, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "msg": shown(record.getMessage()),
    }
    if call is not None:
        facts |= {"trace_id": shown(call.trace_id), "call_id": call.id}
    if record.exc_info:
        facts["exc"] = shown(formatter.formatException(record.exc_info))
    return facts


def configure(stream: IO[str], chosen: Format | None, level: str) -> logging.Handler:
    """Send every log to `stream`; in text where a person reads along and nobody chose otherwise."""
    wanted = chosen or ("text" if stream.isatty() else "json")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Line() if wanted == "text" else JsonLine())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    return handler
