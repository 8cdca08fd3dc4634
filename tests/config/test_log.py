"""What stands in the log, line by line."""

from __future__ import annotations

import io
import json
import logging
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from confluent_kafka import Producer
from pydantic import SecretStr

import config
from config import log

if TYPE_CHECKING:
    from collections.abc import Iterator


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, [*root.handlers]
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def configure(stream: io.StringIO, **settings: Any) -> Any:
    secrets = [SecretStr("hunter2"), SecretStr("hunter2 and more"), None, SecretStr("")]
    log.configure(config.LogSettings(**settings), stream, secrets=secrets)
    return structlog.get_logger("worker.test")


def test_a_thing_that_happened_is_one_line_of_json() -> None:
    stream = io.StringIO()
    configure(stream).info("task_opened", topic="events", partition=3, key="a\nb")
    (line,) = lines(stream)
    assert list(line)[:4] == ["time", "level", "logger", "event"]
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "worker.test",
        "event": "task_opened",
        "topic": "events",
        "partition": 3,
        "key": "a\nb",
    }


def test_faust_tells_neither_its_service_nor_what_is_not_so_here() -> None:
    stream = io.StringIO()
    configure(stream)
    faust = logging.getLogger("faust.app.base")
    faust.warning("[^-JobApp]: Missing sensor state for rebalance #%s", 1)
    derived = logging.getLogger("worker.transport.tables")
    derived.info("[^--Recovery]: Seek stream partitions to committed offsets.")
    faust.warning("[^-JobApp]: something else")
    assert [line["event"] for line in lines(stream)] == ["something else"]


def test_auto_is_text_on_a_terminal_and_json_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, file = Terminal(), io.StringIO()
    configure(terminal).info("started")
    configure(file).info("started")
    assert "\x1b[" in terminal.getvalue()
    assert [line["event"] for line in lines(file)] == ["started"]


def test_text_has_no_colour_off_a_terminal_or_when_unwanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, terminal = io.StringIO(), Terminal()
    configure(file, format="text").info("started", partition=1)
    monkeypatch.setenv("NO_COLOR", "1")
    configure(terminal, format="text").info("started", partition=1)
    for stream in (file, terminal):
        assert "\x1b" not in stream.getvalue()
        assert "started" in stream.getvalue()
        assert "partition=1" in stream.getvalue()


def test_a_value_cannot_break_a_line_of_text() -> None:
    stream = io.StringIO()
    configure(stream, format="text").info("odd\r\nkey", key="a\nb\x1b[31m\u2028")
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_below_the_level_nothing_is_written() -> None:
    stream = io.StringIO()
    logger = configure(stream, level="warning")
    logger.info("quiet")
    logger.warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_configured_twice_a_line_is_written_once() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure(first)
    configure(second).info("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1


@pytest.mark.parametrize("name", ["faust.worker", "mode", "aiokafka.consumer", log.LIBRDKAFKA])
def test_other_libraries_go_the_same_way(name: str) -> None:
    stream, own = io.StringIO(), io.StringIO()
    logging.getLogger(name.partition(".")[0]).addHandler(logging.StreamHandler(own))
    configure(stream)
    logging.getLogger(name).warning("%s happened\nhere", "it")
    (line,) = lines(stream)
    assert (line["level"], line["logger"]) == ("warning", name)
    assert line["event"] == "it happened\nhere"
    assert own.getvalue() == ""


def test_fausts_own_talk_is_heard_only_when_debugging() -> None:
    quiet, full = io.StringIO(), io.StringIO()
    configure(quiet)
    logging.getLogger("faust").info("hello")
    configure(full, level="debug")
    logging.getLogger("faust").info("hello")
    assert quiet.getvalue() == ""
    assert len(lines(full)) == 1


def test_librdkafka_speaks_through_its_logger() -> None:
    stream = io.StringIO()
    configure(stream)
    # A setting of consumers: librdkafka warns of it at once, and hands its log over in poll.
    settings = {"fetch.min.bytes": 2, "log.queue": True}
    producer = Producer(settings, logger=logging.getLogger(log.LIBRDKAFKA))
    producer.poll(0)
    assert any("fetch.min.bytes" in line["event"] for line in lines(stream))


FAIL = "FAIL [rocstream#producer-%d] [thrd:%s]: %s: Connect to ipv4#127.0.0.1:%d failed: refused %s"


def fail(client: int, port: int, *, role: str = "/1") -> None:
    place = f"127.0.0.1:{port}{role}"
    took = f"(after {client}ms in state CONNECT, {client} identical error(s) suppressed)"
    logging.getLogger(log.LIBRDKAFKA).error(FAIL, client, place, place, port, took)


def test_what_many_clients_say_alike_is_shown_once_for_each_broker() -> None:
    stream = io.StringIO()
    configure(stream)
    for port in (9092, 9093):
        for client in range(5):
            fail(client, port)
            fail(client, port, role="/bootstrap")
    assert [":9093" in line["event"] for line in lines(stream)] == [False, True]


def test_how_many_were_alike_is_told_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    configure(stream)
    for _ in range(4):
        fail(1, 9092)
    monkeypatch.setattr(log, "ALIKE_SECONDS", 0.0)
    fail(1, 9092)
    fail(1, 9092)
    first, next_, last = (line["event"] for line in lines(stream))
    assert "more like" not in first
    assert next_.endswith("(3 more like the one before)")
    assert last == first


def test_a_lost_connection_of_librdkafka_is_told_in_words() -> None:
    """A broker that is restarted in an orderly way closes its connections: nothing is wrong."""
    stream = io.StringIO()
    configure(stream)
    fail(1, 9092)
    said = logging.getLogger(log.LIBRDKAFKA)
    head = "FAIL [rocstream#producer-1] [thrd:TxnCoordinator]: "
    closed = (
        "Disconnected: connection closed by peer: receive 0 after POLLIN (after 9ms in state UP)"
    )
    said.error("%sTxnCoordinator: kafka-1:9093: %s", head, closed)
    untrusted = "ssl://kafka-1:9093/1: SSL handshake failed: certificate verify failed (after 9ms)"
    said.error(head + untrusted)
    refused, lost, other = lines(stream)
    assert (refused["level"], lost["level"], other["level"]) == ("info", "info", "error")
    begin = "the connection to the broker"
    assert refused["event"] == f"{begin} 127.0.0.1:9092 is lost and made again: refused"
    assert (
        lost["event"] == f"{begin} kafka-1:9093 is lost and made again: connection closed by peer"
    )
    assert other["event"] == head + untrusted


LATE = "[me#producer-3] [thrd:TxnCoordinator]: TxnCoordinator/1: Timed out InitProducerIdRequest"
GETPID = "[me#producer-3] [thrd:main]: Failed to acquire transactional PID from broker"
ASKED = "and is asked again"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"REQTMOUT {LATE}", f"the broker TxnCoordinator does not answer in time, {ASKED}"),
        (
            "REQTMOUT [me#producer-3] [thrd:k:9/1]: k:9/1: Timed out 1 in-flight, 0 retry-queued",
            f"the broker k:9 does not answer in time, {ASKED}",
        ),
        (
            f"GETPID {GETPID} TxnCoordinator/1: Local: Timed out: retrying",
            f"the broker TxnCoordinator has not let a task begin yet, {ASKED}: Local: Timed out",
        ),
        (
            "TXNERR [me#producer-3] [thrd:k:9/1]: Current transaction failed in state Begin: 7",
            "a transaction has failed in state Begin: 7",
        ),
    ],
)
def test_what_passes_by_itself_is_told_in_words(line: str, words: str) -> None:
    stream = io.StringIO()
    configure(stream)
    logging.getLogger(log.LIBRDKAFKA).warning(line)
    (told,) = lines(stream)
    assert (told["level"], told["event"]) == ("info", words)


def test_lost_connections_are_not_told_to_whoever_wants_warnings() -> None:
    stream = io.StringIO()
    configure(stream, level="warning")
    fail(1, 9092)
    assert not lines(stream)


def test_a_clock_that_is_set_back_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    configure(stream)
    fail(1, 9092)
    an_hour_ago = time.time() - 3_600
    monkeypatch.setattr(time, "time", lambda: an_hour_ago)
    monkeypatch.setattr(time, "time_ns", lambda: int(an_hour_ago * 1e9))
    fail(1, 9092)
    assert len(lines(stream)) == 2


def test_at_debug_all_that_is_alike_is_shown() -> None:
    stream = io.StringIO()
    configure(stream, level="debug")
    for _ in range(3):
        fail(1, 9092)
    assert len(lines(stream)) == 3


def test_warnings_are_lines_too() -> None:
    stream = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        configure(stream)
        warnings.warn("old", stacklevel=1)
        logging.captureWarnings(capture=False)
    assert "UserWarning: old" in lines(stream)[0]["event"]


@pytest.mark.parametrize("kind", ["json", "text"])
def test_an_exception_is_told_with_its_traceback(kind: str) -> None:
    stream = io.StringIO()
    logger = configure(stream, format=kind)
    try:
        {}["hunter2"]
    except KeyError:
        logger.exception("failed")
    assert "Traceback" in stream.getvalue()
    assert "KeyError" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()
    if kind == "json":
        assert len(lines(stream)) == 1


@pytest.mark.parametrize("kind", ["json", "text"])
def test_no_line_shows_a_secret(kind: str) -> None:
    stream = io.StringIO()
    logger = configure(stream, format=kind)
    logger.info("login with hunter2 and more", user=("x", {"hunter2"}), other=SecretStr("other"))
    logger.info("client", config={"sasl.password": "other", "bytes": b"hunter2"})
    logger.info(
        "client", **dict.fromkeys(("sasl_password", "api_token"), "other"), secret=["other"]
    )
    logging.getLogger("aiokafka").warning("using %s", {"sasl_plain_password": "other"})
    logging.getLogger("aiokafka").warning("password = other, ssl.key.password: 'ot her'")
    written = stream.getvalue()
    assert "hunter2" not in written
    assert "other" not in written.replace("other=", "").replace('"other":', "")
    assert "ot her" not in written
    assert "and more" not in written
    assert "sasl.password" in written


def test_a_key_is_no_secret() -> None:
    stream = io.StringIO()
    configure(stream).info("slid", key="fraud-v3", passed=3, tokens=4)
    (line,) = lines(stream)
    assert (line["key"], line["passed"], line["tokens"]) == ("fraud-v3", 3, 4)


def test_what_is_no_json_is_written_as_it_prints() -> None:
    stream = io.StringIO()
    configure(stream).info("odd", key=b"\xff", path={1: object}, size=2**70)
    (line,) = lines(stream)
    assert (line["key"], line["size"]) == ("b'\\xff'", 2**70)


def test_stderr_of_the_moment_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(config.LogSettings())
    structlog.get_logger().info("started")
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["event"] == "started"


def test_a_secret_is_hidden_in_whatever_quotes_it_stands() -> None:
    value = "p\"a'ss\\wörd"
    stream = io.StringIO()
    log.configure(config.LogSettings(), stream, secrets=[SecretStr(value)])
    logging.getLogger("aiokafka").warning("%s", value)
    logging.getLogger("aiokafka").warning("%r", value)
    logging.getLogger("aiokafka").warning("%r", b"\0me\0" + value.encode())
    logging.getLogger("aiokafka").warning("%s", json.dumps({"with": value}))
    for line in lines(stream):
        assert log.HIDDEN in line["event"]
        assert "ss" not in line["event"]
