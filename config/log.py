"""Logging: one line per thing that happened, to stderr, as JSON or as text for a terminal."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final, TextIO

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import SecretStr
    from structlog.typing import EventDict, Processor, WrappedLogger

    from config.settings import LogSettings

LIBRDKAFKA: Final = "librdkafka"
"""Name of the logger to give to clients of confluent-kafka, as ``logger=``."""

HIDDEN: Final = "**********"
# What they tell at their own INFO is of no use to an operator.
_TALKATIVE: Final = ("aiokafka", "asyncio", "faust", "kafka", "mode")
_SECRET_NAME: Final = re.compile(r"pass(word|wd|phrase)?$|pwd$|secret$|token$|jaas", re.IGNORECASE)
_SECRET_TEXT: Final = re.compile(
    r"((?:password|passwd|passphrase|secret|token)[\"']?\s*[=:]\s*)"
    r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s,;}\"']+)",
    re.IGNORECASE,
)
# What Faust says of every app: that this one has no sensors, and that streams go on from committed
# offsets, where tasks go by cursors of their own.
_USELESS: Final = ("Missing sensor state", "Seek stream partitions to committed offsets")
# How Faust's services begin their lines; the logger's name says it already.
_SERVICE: Final = re.compile(r"^\[\^-*\w+\]: ")
ALIKE_SECONDS: Final = 30.0
"""For so long a line of librdkafka that says what another one said is counted and not shown."""

# What its lines of one cause differ in: the client and its thread, what a broker is needed for, and
# how long it took.
_VARYING: Final = re.compile(
    r"\[[^\]]*#[^\]]*\] |\[thrd:.*?\](?=: )|TxnCoordinator: |(?<=\d)/\w+(?=:)| \(after .*\)$"
)
# How it tells of a broker that has closed a connection, takes none, or is late; not of other
# faults, whose cause stands in the settings. Whoever has to wait for the broker says so.
_SAID_BY: Final = r" \[[^\]]*\] \[thrd:.*?\]: "
_BROKER: Final = r"(?:\w+Coordinator: )?(\S+:\d+|\w+Coordinator)(?:/\w+)?"
_CLOSED, _REFUSED = r"Disconnected: ", r"Connect to \S+ failed: "
_IN_WORDS: Final = tuple(
    (re.compile(words), meaning)
    for words, meaning in (
        (
            rf"FAIL{_SAID_BY}{_BROKER}: (?:{_CLOSED}|{_REFUSED})([^:(]*[^:( ]).*",
            r"the connection to the broker \1 is lost and made again: \2",
        ),
        (
            rf"REQTMOUT{_SAID_BY}{_BROKER}: Timed out .*",
            r"the broker \1 does not answer in time, and is asked again",
        ),
        (
            rf"GETPID{_SAID_BY}Failed to acquire \w+ PID from broker {_BROKER}: (.*): retrying",
            r"the broker \1 has not let a task begin yet, and is asked again: \2",
        ),
        (rf"TXNERR{_SAID_BY}Current transaction failed(.*)", r"a transaction has failed\1"),
    )
)
_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def configure(
    settings: LogSettings,
    stream: TextIO | None = None,
    *,
    secrets: Iterable[SecretStr | None] = (),
) -> None:
    """Send all logging of this process to one stream; may be called again.

    Parameters
    ----------
    settings
        Level, and format: ``auto`` is text on a terminal and JSON elsewhere.
    stream
        By default the stderr of the moment.
    secrets
        What must not stand in any line; what goes by a secret's name is hidden anyway.

    Notes
    -----
    Loggers of the standard library (faust, mode, aiokafka, librdkafka) go the same way. Those of
    Faust and aiokafka are heard from WARNING on, unless the level is ``debug``.
    """
    stream = sys.stderr if stream is None else stream
    terminal = stream.isatty()
    as_text = settings.format == "text" or (settings.format == "auto" and terminal)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.addFilter(_useful)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _bare],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.StackInfoRenderer(),
                structlog.processors.format_exc_info,
                _Hider(secrets),
                *(_text_processors(colours=terminal) if as_text else _JSON),
            ],
        )
    )
    root = logging.getLogger()
    for old in [one for one in root.handlers if isinstance(one.formatter, _OURS)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    _route_foreign(level)


def _route_foreign(level: int) -> None:
    """Let other libraries' loggers reach the root, and nothing beside it."""
    quiet = level if level <= logging.DEBUG else max(level, logging.WARNING)
    for name in (*_TALKATIVE, LIBRDKAFKA):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET if name == LIBRDKAFKA else quiet)
        for old in [one for one in logger.filters if isinstance(one, _Alike)]:
            logger.removeFilter(old)
    if level > logging.DEBUG:
        logging.getLogger(LIBRDKAFKA).addFilter(_Alike())
    logging.captureWarnings(capture=True)


class _Alike(logging.Filter):
    """Shows the first of lines that are alike, and says behind the next one how many there were.

    Each task has a client, and each client tells of each attempt to connect to each broker.
    """

    _MOST = 1_000

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is to be shown."""
        said = record.getMessage()
        text = _VARYING.sub("", said)
        at, more = self._shown.get(text, (0.0, 0))
        # A clock that is set back makes none of them the last for hours.
        if 0 <= record.created - at < ALIKE_SECONDS:
            self._shown[text] = (at, more + 1)
            return False
        if len(self._shown) >= self._MOST:
            self._shown.clear()
        self._shown[text] = (record.created, 0)
        for words, meaning in _IN_WORDS:
            if (found := words.fullmatch(said)) is not None:
                record.levelno, record.levelname = logging.INFO, "INFO"
                said = found.expand(meaning)
        if more:
            said = f"{said} ({more} more like the one before)"
        record.msg, record.args = said, ()
        return logging.getLogger(record.name).isEnabledFor(record.levelno)


def _useful(record: logging.LogRecord) -> bool:
    # Services log by the module that derives them, so that no logger's name tells Faust's lines.
    return not (isinstance(record.msg, str) and _SERVICE.sub("", record.msg).startswith(_USELESS))


def _bare(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Take the name of the service off a line of Faust."""
    del logger, method
    event["event"] = _SERVICE.sub("", str(event["event"]))
    return event


def _forms(secret: str) -> set[str]:
    """Return the ways in which a secret may be written: bare, and inside quoted text or bytes."""
    encoded = secret.encode("utf-8", "surrogateescape")
    quoted = (repr(secret), repr(encoded)[1:], json.dumps(secret), json.dumps(repr(encoded)[2:-1]))
    return {secret, *(text[1:-1] for text in quoted)}


class _Hider:
    """Hides secrets: by the name they go by, and known ones wherever they stand."""

    def __init__(self, secrets: Iterable[SecretStr | None]) -> None:
        plain = {one.get_secret_value() for one in secrets if one is not None} - {""}
        values = {form for value in plain for form in _forms(value)}
        longest_first = sorted(values, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if values else None

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        del logger, method
        return {str(name): self._hide(value, str(name)) for name, value in event.items()}

    def _hide(self, value: Any, name: str = "") -> Any:
        if _SECRET_NAME.search(name) and value is not None:
            return HIDDEN
        if isinstance(value, dict):
            return {str(key): self._hide(part, str(key)) for key, part in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._hide(part) for part in value]
        if isinstance(value, bool | int | float) or value is None:
            return value
        text = value if isinstance(value, str) else repr(value)
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        return _SECRET_TEXT.sub(rf"\g<1>{HIDDEN}", text)


def _one_line(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Escape line breaks and control characters, which a record's bytes may bring along."""
    del logger, method
    for name, value in event.items():
        if name not in {"exception", "stack"} and isinstance(value, str):
            event[name] = _BREAKS.sub(lambda found: repr(found[0])[1:-1], value)
    return event


def _text_processors(*, colours: bool) -> list[Processor]:
    colours = colours and not os.environ.get("NO_COLOR")
    renderer = structlog.dev.ConsoleRenderer(
        colors=colours,
        timestamp_key="time",
        exception_formatter=structlog.dev.plain_traceback,
    )
    return [_one_line, renderer]


def _in_order(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Put what every line has first, so that columns line up for the eye."""
    del logger, method
    first = {name: event[name] for name in ("time", "level", "logger", "event") if name in event}
    return {**first, **event}


_JSON: Final[list[Processor]] = [_in_order, structlog.processors.JSONRenderer()]
_OURS: Final = structlog.stdlib.ProcessorFormatter
