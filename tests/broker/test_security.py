"""Encryption, credentials and permissions, with every client there is, on a broker that asks."""

from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import secured as support
from commands import HERE, rocstream
from computed import assert_exactly, expected_updates, reference_h, tied_events
from confluent_kafka.admin import AclBinding, AclBindingFilter
from jobs import MONITOR, Job

from worker.rights import NEEDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.broker

VARIABLE = "ROCSTREAM__KAFKA__SECURITY__PASSWORD"
WRONG = "no-such-password"
TALKATIVE = '[kafka.client]\ndebug = "all"\nlog_level = 7\n'


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[support.Secured]:
    import brokers  # noqa: PLC0415 - there once tests/conftest.py is loaded

    try:
        found = support.start(tmp_path_factory.mktemp("secured"))
    except brokers.NoBrokerError as error:
        pytest.fail(str(error), pytrace=False)
    yield found
    found.close()


@pytest.fixture
def new_job(secured: support.Secured, tmp_path: Path) -> Callable[..., Job]:
    """Make jobs that come to a listener of theirs: `new_job(server, protocol, **security)`."""

    def make(server: str, protocol: str, *, more: str = "", **security: object) -> Job:
        job = Job(secured.broker.bootstrap_servers, tmp_path, MONITOR, 2)
        lines = "".join(f'{name} = "{value}"\n' for name, value in security.items())
        text = job.path.read_text().replace(secured.broker.bootstrap_servers, server)
        job.path.write_text(f'{text}\n[kafka.security]\nprotocol = "{protocol}"\n{lines}\n{more}\n')
        return job

    return make


@pytest.fixture
def new_sasl_job(secured: support.Secured, new_job: Callable[..., Job]) -> Callable[..., Job]:
    """Make jobs that come in by SASL_SSL: what is given goes before what is right."""

    def make(server: str | None = None, **security: object) -> Job:
        right = {
            "ca_file": secured.authority.certificate,
            "mechanism": "SCRAM-SHA-512",
            "username": support.USER,
        }
        return new_job(server or secured.sasl, "SASL_SSL", **{**right, **security})

    return make


def all_commands(job: Job, folder: Path, *first: str) -> list[str]:
    """Run what a job needs and what a person asks of it; return all that was said."""
    events = tied_events(2_000, keys=3)
    expected = expected_updates(events, reference_h)
    lines = folder / "events.jsonl"
    lines.write_bytes(
        b"\n".join(
            orjson.dumps({"key": key.decode(), **orjson.loads(value)}) for key, value in events
        )
    )
    said = []

    def run(*arguments: object) -> str:
        done = rocstream(*first, *arguments, "-c", job.path)
        assert done.code == 0, done.out + done.err[-3000:]
        said.extend((done.out, done.err))
        return done.out

    run("topics", "create")
    run("check")
    run("send", lines)
    with job.worker(*first) as worker:
        updates = job.updates(len(expected))
        assert_exactly(updates, expected)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
        said.append(worker.text())
    assert len(run("tail", "--once", "--json").splitlines()) == len(expected)
    replayed = folder / "replayed.jsonl"
    run("replay", "-o", replayed)
    assert len(replayed.read_text().splitlines()) == len(expected)
    assert "Nothing was changed" in run("reset", "--to-earliest", "--dry-run")
    return said


def test_every_command_comes_in_with_a_password_that_stands_nowhere(
    secured: support.Secured,
    new_sasl_job: Callable[..., Job],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that clients and commands can say is asked for, and what they log is read."""
    job = new_sasl_job(more=TALKATIVE)
    job.path.write_text(job.path.read_text().replace('format = "json"', 'level = "debug"'))
    monkeypatch.setenv(VARIABLE, secured.password)
    said = all_commands(job, tmp_path, "--debug")
    assert any("sasl.password" in text for text in said), "librdkafka told no settings"
    for text in (*said, rocstream("schema", "config").out):
        assert secured.password not in text


def test_every_command_comes_in_with_a_certificate(
    secured: support.Secured, new_job: Callable[..., Job], tmp_path: Path
) -> None:
    job = new_job(
        secured.tls,
        "SSL",
        ca_file=secured.authority.certificate,
        cert_file=secured.client.certificate,
        key_file=secured.client.key,
    )
    all_commands(job, tmp_path)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_worker_comes_in_with_each_mechanism(
    secured: support.Secured, new_sasl_job: Callable[..., Job], tmp_path: Path, mechanism: str
) -> None:
    file = tmp_path / "password"
    file.write_text(f"{secured.password}\n")
    job = new_sasl_job(mechanism=mechanism, password_file=file, more=TALKATIVE)
    job.path.write_text(job.path.read_text().replace('format = "json"', 'level = "debug"'))
    job.create_topics()
    events = tied_events(1_000, keys=2)
    expected = expected_updates(events, reference_h)
    job.produce(events)
    with job.worker() as worker:
        assert_exactly(job.updates(len(expected)), expected)
        assert secured.password not in worker.text()


def test_the_examples_of_the_operations_page_let_a_job_in(
    secured: support.Secured, new_job: Callable[..., Job], tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text(secured.password)
    page = (HERE / "docs" / "operations.md").read_text()
    section = page.partition("## Encryption and credentials")[2].partition("\n## ")[0]
    examples = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    assert len(examples) == 2
    for example, server in zip(examples, (secured.sasl, secured.tls), strict=True):
        for name, ours in (
            ("/run/secrets/kafka", file),
            ("/etc/rocstream/ca.pem", secured.authority.certificate),
            ("/etc/rocstream/client.pem", secured.client.certificate),
            ("/etc/rocstream/client.key", secured.client.key),
            ('"fraud-metrics"', f'"{support.USER}"'),
        ):
            example = example.replace(name, str(ours))  # noqa: PLW2901 - step by step
        job = new_job(server, "PLAINTEXT")
        text = job.path.read_text()
        job.path.write_text(text[: text.index("[kafka.security]")] + example)
        done = rocstream("topics", "create", "--dry-run", "-c", job.path)
        assert done.code == 0, done.err


def refused_jobs(
    secured: support.Secured, new_job: Callable[..., Job], new_sasl_job: Callable[..., Job]
) -> dict[str, tuple[Job, int, tuple[str, ...]]]:
    """Jobs that must not come in: each with its exit code and what the sentence has in it."""
    right = {"password": secured.password}
    trusted = {"ca_file": secured.authority.certificate}
    sasl = {**right, "mechanism": "PLAIN", "username": support.USER}
    foreign = secured.stranger.sign("foreign")
    by_name = secured.sasl.replace("127.0.0.1", "localhost")
    return {
        "wrong password": (
            new_sasl_job(password=WRONG),
            2,
            (f'kafka.security.username = "{support.USER}"', "kafka.security.password"),
        ),
        "wrong password, PLAIN": (
            new_sasl_job(password=WRONG, mechanism="PLAIN"),
            2,
            ("does not take this user with the password", "kafka.security.password"),
        ),
        "unknown authority": (
            new_sasl_job(ca_file=secured.stranger.certificate, **right),
            2,
            (f'kafka.security.ca_file = "{secured.stranger.certificate}"', "its authority"),
        ),
        "authority not of the system": (
            new_job(secured.sasl, "SASL_SSL", **sasl),
            2,
            ("kafka.security.ca_file is missing", "give the file with its authority"),
        ),
        "wrong name": (
            new_sasl_job(by_name, **right),
            2,
            (f'kafka.bootstrap_servers = "{by_name}"', "is for 127.0.0.1", "write a name"),
        ),
        "expired": (
            new_sasl_job(secured.old, **right),
            1,
            (secured.old, "has expired", "renew it there"),
        ),
        "plain on TLS": (
            new_job(secured.sasl, "PLAINTEXT"),
            2,
            ('kafka.security.protocol = "PLAINTEXT"', "speaks TLS", '"SSL" or "SASL_SSL"'),
        ),
        "plain on SASL": (
            new_job(secured.open, "PLAINTEXT"),
            2,
            ('kafka.security.protocol = "PLAINTEXT"', "SCRAM-SHA-512", '"SASL_PLAINTEXT"'),
        ),
        "TLS without SASL": (
            new_job(secured.sasl, "SSL", **trusted),
            2,
            ('kafka.security.protocol = "SSL"', "asks for user and password", '"SASL_SSL"'),
        ),
        "TLS on plain": (
            new_job(secured.broker.bootstrap_servers, "SASL_SSL", **sasl, **trusted),
            2,
            ('kafka.security.protocol = "SASL_SSL"', "speaks no TLS", '"SASL_PLAINTEXT"'),
        ),
        "SASL on plain": (
            new_job(secured.broker.bootstrap_servers, "SASL_PLAINTEXT", **sasl),
            2,
            ("asks for no user and password", '"PLAINTEXT"'),
        ),
        "no certificate": (
            new_job(secured.tls, "SSL", **trusted),
            2,
            ("kafka.security.cert_file is missing", "asks for a certificate"),
        ),
        "foreign certificate": (
            new_job(
                secured.tls, "SSL", **trusted, cert_file=foreign.certificate, key_file=foreign.key
            ),
            2,
            (f'kafka.security.cert_file = "{foreign.certificate}"', "does not take"),
        ),
    }


def test_who_is_not_let_in_is_told_the_setting_and_the_cure(
    secured: support.Secured, new_job: Callable[..., Job], new_sasl_job: Callable[..., Job]
) -> None:
    jobs = refused_jobs(secured, new_job, new_sasl_job)
    with ThreadPoolExecutor(4) as threads:
        asked = {
            name: threads.submit(rocstream, "topics", "create", "-c", job.path)
            for name, (job, _, _) in jobs.items()
        }
    for name, (_, code, parts) in jobs.items():
        done = asked[name].result()
        assert done.code == code, (name, done)
        assert done.err.count("\n") == 1, (name, done.err)
        assert done.err.startswith("rocstream: ")
        for part in parts:
            assert part in done.err, name
        assert secured.password not in done.err


def test_each_command_tells_it_alike(
    secured: support.Secured, new_sasl_job: Callable[..., Job], tmp_path: Path
) -> None:
    job = new_sasl_job(password=WRONG)
    lines = tmp_path / "events.jsonl"
    lines.write_text('{"key": "k", "score": 1, "label": 1}\n')
    commands: dict[str, tuple[Any, ...]] = {
        "check": ("check",),
        "send": ("send", lines),
        "worker": ("worker",),
        "tail": ("tail",),
        "replay": ("replay", "-o", tmp_path / "out.jsonl"),
        "reset": ("reset", "--to-latest", "--dry-run"),
    }
    with ThreadPoolExecutor(3) as threads:
        asked = {
            name: threads.submit(rocstream, *arguments, "-c", job.path)
            for name, arguments in commands.items()
        }
    sentence = f'kafka.security.username = "{support.USER}": the broker at {secured.sasl}'
    for name in commands:
        done = asked[name].result()
        assert done.code == 2, (name, done)
        assert sentence in (done.out if name == "check" else done.err), (name, done)
        assert "Traceback" not in done.err
        assert WRONG not in done.out + done.err


def test_a_traceback_shows_no_password(
    secured: support.Secured, new_sasl_job: Callable[..., Job]
) -> None:
    job = new_sasl_job(server=secured.old, password=secured.password, more=TALKATIVE)
    done = rocstream("--debug", "topics", "create", "-c", job.path)
    assert "Traceback" in done.err
    assert secured.password not in done.out + done.err


@pytest.fixture
def guest_job(
    secured: support.Secured, new_sasl_job: Callable[..., Job]
) -> Iterator[tuple[Job, Callable[[AclBinding], None], Callable[[AclBinding], None]]]:
    """A job with its topics, of a user who may nothing; and what grants and what revokes."""
    job = new_sasl_job(username=support.GUEST, password=secured.password)
    job.create_topics()
    admin = secured.admin()

    def grant(right: AclBinding) -> None:
        for future in admin.create_acls([right]).values():
            future.result(20)

    def revoke(right: AclBinding) -> None:
        what = AclBindingFilter(
            right.restype,
            right.name,
            right.resource_pattern_type,
            right.principal,
            right.host,
            right.operation,
            right.permission_type,
        )
        for future in admin.delete_acls([what]).values():
            future.result(20)

    yield job, grant, revoke
    for right in support.grants(job).values():
        revoke(right)


def test_check_names_each_permission_that_lacks_until_a_worker_works(
    guest_job: tuple[Job, Callable[[AclBinding], None], Callable[[AclBinding], None]],
) -> None:
    job, grant, _ = guest_job
    topics, group = job.settings.topics, job.settings.kafka.group
    rights = support.grants(job)

    def check() -> tuple[int, str]:
        done = rocstream("check", "-c", job.path)
        return done.code, done.out

    code, out = check()
    assert code == 1
    for name in (topics.events, topics.updates, topics.rejected, f"{group}-windows-changelog"):
        assert f"the user may not see the topic {name}" in out
    grant(rights["READ events"])
    grant(rights["WRITE updates"])
    grant(rights["WRITE rejected"])
    grant(rights["READ <group>-windows-changelog"])
    code, out = check()
    assert code == 1
    assert f"the user may not write the topic {group}-windows-changelog" in out
    assert out.count("may not see") == 0
    assert f"the user may not read the group {group}: grant READ on it" in out
    assert f"transactional id {group}-0 and 1 more: grant WRITE" in out
    for name in ("WRITE <group>-windows-changelog", "READ kafka.group", "WRITE <group>-"):
        grant(rights[name])
    code, out = check()
    assert code == 0, out
    assert "grant DESCRIBE_CONFIGS" in out
    events = tied_events(1_000, keys=2)
    expected = expected_updates(events, reference_h)
    job.produce(events)
    with job.worker() as worker:
        assert_exactly(job.updates(len(expected)), expected)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
    code, out = check()
    assert code == 0, out
    assert "the state fits the log" in out


COMMANDS: dict[str, tuple[str, ...]] = {
    "tail": ("tail", "--once", "--json"),
    "replay": ("replay", "-o", "-"),
    "send": ("send", "-"),
    "reset": ("reset", "--to-earliest", "--yes"),
    "topics create": ("topics", "create"),
}


@pytest.mark.slow
def test_each_command_does_with_its_rights_and_names_the_one_that_lacks(
    secured: support.Secured, new_sasl_job: Callable[..., Job]
) -> None:
    """Each case is a job of its own, so that all can be asked at once."""
    needed = {name: [one for one in NEEDED if name in one.commands] for name in COMMANDS}
    # Some rights go the same way as others, and each case is a process.
    alike = {
        "reset": {"topics.events", "topics.updates", "topics.rejected"},
        "topics create": {"topics.events", "topics.updates", "topics.rejected"},
    }
    cases = [
        (name, lacking, new_sasl_job(username=support.GUEST, password=secured.password))
        for name, rights in needed.items()
        for lacking in (None, *rights)
        if lacking is None or lacking.name not in alike.get(name, ())
    ]
    events = tied_events(200, keys=2)
    for name, _, job in cases:
        if name != "topics create":
            job.create_topics()
        if name in {"replay", "reset"}:
            job.produce(events)
    given = [
        support.binding(right, job)
        for name, lacking, job in cases
        for right in needed[name]
        if right is not lacking
    ]
    admin = secured.admin()
    for future in admin.create_acls(given).values():
        future.result(20)
    with ThreadPoolExecutor(3) as threads:
        asked = [
            (name, lacking, job, threads.submit(rocstream, *COMMANDS[name], "-c", job.path))
            for name, lacking, job in cases
        ]
    for name, lacking, job, answer in asked:
        done = answer.result()
        if lacking is None:
            assert done.code == 0, (name, done)
            continue
        assert done.code == 1, (name, lacking, done)
        assert f"{lacking.operation} on " in done.err, (name, lacking, done)
        assert lacking.of(job.settings) in done.err, (name, lacking, done)
        assert done.err.startswith("rocstream: the user may not "), (name, lacking, done)
        assert "Traceback" not in done.err


def test_a_replay_needs_to_read_the_events_topic_and_nothing_else(
    guest_job: tuple[Job, Callable[[AclBinding], None], Callable[[AclBinding], None]],
) -> None:
    job, grant, revoke = guest_job
    events_read, *_ = NEEDED
    read, see = support.binding(events_read, job), support.binding(events_read, job, "DESCRIBE")
    events = tied_events(1_000, keys=2)
    job.produce(events)
    grant(read)
    done = rocstream("replay", "-c", job.path, "-o", "-")
    assert done.code == 0, done
    assert len(done.out.splitlines()) == len(expected_updates(events, reference_h))
    grant(see)
    revoke(read)
    done = rocstream("replay", "-c", job.path, "-o", "-")
    assert done.code == 1, done
    assert f"may not read the topic {job.settings.topics.events}: grant READ on it" in done.err


def test_a_worker_that_lacks_a_permission_ends_with_what_to_grant(
    guest_job: tuple[Job, Callable[[AclBinding], None], Callable[[AclBinding], None]],
) -> None:
    job, grant, revoke = guest_job
    rights = support.grants(job)
    for right in rights.values():
        grant(right)
    with job.worker() as worker:
        worker.wait_until_ready()
        revoke(rights["WRITE updates"])
        job.produce(tied_events(1_000, keys=2))
        assert worker.exit_code(40) == 1, worker.text()[-3000:]
        assert "`rocstream check` tells what to grant" in worker.text()
    grant(rights["WRITE updates"])
    with job.worker() as worker:
        worker.wait_until_ready()
        revoke(rights["READ events"])
        assert worker.exit_code(40) == 1, worker.text()[-3000:]
        last = worker.text().splitlines()[-1]
        assert f"may not read the topic {job.settings.topics.events} any more: grant READ" in last
        assert "Traceback" not in worker.text()
    grant(rights["READ events"])
    revoke(rights["WRITE updates"])
    unseen = f"the user may not see the topic {job.settings.topics.updates} (topics.updates)"
    with job.worker() as worker:
        assert worker.exit_code(40) == 1, worker.text()[-3000:]
        assert unseen in worker.text()
    grant(rights["WRITE updates"])
    for name in ("WRITE <group>-", "WRITE <group>-windows-changelog"):
        revoke(rights[name])
    with job.worker() as worker:
        assert worker.exit_code(40) == 1, worker.text()[-3000:]
        last = worker.text().splitlines()[-1]
        assert "grant WRITE on the transactional ids with the prefix" in last
        assert "the user may not write the topic" in last
        assert "Traceback" not in worker.text()
