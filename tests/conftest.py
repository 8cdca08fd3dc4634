"""Fixtures of all rooms: one real Kafka for the session, topics of a test's own, and its log."""

from __future__ import annotations

import importlib.util
import re
import signal
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

HERE = Path(__file__).resolve().parent

# A shell starts what runs in its background with SIGINT ignored, and everything started from there
# inherits that: tests of Ctrl-C would then test nothing but the shell.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes, or the making of one, is the machine's affair: no test asserts it.
hypothesis.settings.register_profile(
    "rocstream", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("rocstream")


def _load(name: str) -> ModuleType:
    # By its path: with tests/ on sys.path, its folders would hide the packages of the same names.
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# From here on tests can say `import brokers`.
brokers = _load("brokers")


@pytest.fixture(scope="session")
def kafka() -> Iterator[Any]:
    """One running broker (`brokers.Broker`) for the whole session; leave it running."""
    yield from _broker(own=False)


@pytest.fixture
def own_kafka() -> Iterator[Any]:
    """A broker of this test alone, to stop, kill and start again on the same port and data."""
    yield from _broker(own=True)


def _broker(*, own: bool) -> Iterator[Any]:
    try:
        broker = brokers.find(own=own)
    except brokers.NoBrokerError as error:
        pytest.fail(str(error), pytrace=False)
    try:
        try:
            broker.start()
        except brokers.NoBrokerError as error:
            pytest.fail(str(error), pytrace=False)
        yield broker
    finally:
        broker.close()


@pytest.fixture
def new_topic(kafka: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Create topics of this test's own: `new_topic("events", partitions=3, **config)`.

    The name returned is unique. Settings take underscores: ``cleanup_policy="compact"``.
    """
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    test = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name).strip("-")[:60]
    made: list[str] = []

    def create(label: str = "topic", partitions: int = 1, **config: str) -> str:
        name = f"{test}-{label}-{uuid.uuid4().hex[:8]}"
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        topic = NewTopic(name, partitions, 1, config=settings)
        admin.create_topics([topic], operation_timeout=20)[name].result(timeout=20)
        made.append(name)
        return name

    yield create
    # Ours goes away as a whole; somebody else's is left as it was.
    if made and not kafka.ours:
        for deleted in admin.delete_topics(made, operation_timeout=20).values():
            deleted.result(timeout=20)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the end of the broker's log beside the failure of a test that used one."""
    outcome: Any = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for fixture in ("kafka", "own_kafka"):
        broker = getattr(item, "funcargs", {}).get(fixture)
        if broker is not None:
            report.sections.append((f"log of {broker.name}", broker.log_tail()))
