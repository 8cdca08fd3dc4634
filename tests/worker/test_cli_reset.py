"""`rocstream reset` without a broker: what it asks for, and what a crash in it leaves."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inmemory import Log, records

from config.errors import DecisionError
from worker.cli import commands
from worker.cli.reset import _milliseconds
from worker.pages import CURSOR_KEY, Cursor, StateError, key_prefix, page_key
from worker.pipeline import Outcome
from worker.reset import transactions
from worker.transport.offsets import GroupOffset, refuse_lost_state, refuse_moved_by_hand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from config import Settings

TO = 40
EVENTS = records([{"score": i % 7 / 7, "label": i % 3 == 0} for i in range(300)])


def test_help_teaches_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["reset", "--help"]) == 0
    told = capsys.readouterr().out
    assert "Example: rocstream reset -c rocstream.toml --to-datetime" in told
    for option in ("--to-earliest", "--to-latest", "--to-offset", "--dry-run", "--yes"):
        assert option in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "exactly one of --to-earliest, --to-latest, --to-datetime T and --to-offset N, not 0"),
        (["--to-earliest", "--to-latest"], "not 2"),
        (["--to-earliest", "--to-offset", "0"], "not 2"),
        (["--to-offset", "ten"], "--to-offset ten: it must be a valid integer"),
        (["--to-datetime", "yesterday"], "'yesterday' is no date and time"),
        (["--to-datetime", "2026-11-30T06:00"], "add one, such as 2026-11-30T06:00:00Z"),
        (["--to-datetime", "2026-11-30"], "has no time zone"),
        (["--to-datetime", "1969-12-31T23:59:59Z"], "use --to-earliest"),
        (["--to-earliest"], "standard input is no terminal: add --yes"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2_before_a_broker_is_asked(
    arguments: list[str],
    told: str,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert commands.run(["reset", "-c", str(file), *arguments]) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00Z", 0),
        ("2026-11-30T06:00:00Z", 1_796_018_400_000),
        ("2026-11-30T07:00+01:00", 1_796_018_400_000),
        ("2026-11-30T06:00:00.001Z", 1_796_018_400_001),
        ("2026-11-30T06:00:00.000001Z", 1_796_018_400_001),
    ],
)
def test_a_moment_is_the_next_full_millisecond(text: str, milliseconds: int) -> None:
    assert _milliseconds(text) == milliseconds


@given(st.datetimes(min_value=datetime(1970, 1, 2), timezones=st.just(UTC)))  # noqa: DTZ001 - given a zone
def test_no_record_before_the_moment_is_taken(moment: datetime) -> None:
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=1) * _milliseconds(
        moment.isoformat()
    )
    assert timedelta(0) <= since - moment < timedelta(milliseconds=1)


def left_by_crashes(settings: Settings, changelog: dict[bytes, bytes]) -> Iterator[Log]:
    """Yield the changelog as it stands after each transaction of a reset, tombstones by fives."""
    log = Log(changelog=dict(changelog))
    cursor = Cursor("events", "", TO, settings.event_fingerprint())
    for transaction in transactions(log.changelog, cursor, limit=5):
        log.commit(Outcome([], [], dict(transaction.pages), transaction.cursor))
        yield Log(changelog=dict(log.changelog))


def test_wherever_a_reset_ends_the_windows_begin_empty_where_it_sent_them(
    settings_of: Callable[..., Settings],
) -> None:
    settings = settings_of(
        """
[[monitor]]
name = "last-200"
window = { kind = "count", size = 200, slide = 3 }
[[monitor]]
name = "last-10"
window = { kind = "count", size = 10, slide = 4 }
"""
    )
    before = Log()
    for start in range(0, 300, 20):
        by_key = [
            event._replace(key=b"key-%d" % (event.offset % 9))
            for event in EVENTS[start : start + 20]
        ]
        before.run(settings, by_key)
    fresh = Log()
    pipeline = fresh.open(settings)
    pipeline.start_at(TO)
    for _ in pipeline.process(EVENTS):
        pass
    fresh.commit(pipeline.take())
    assert fresh.updates

    stops = list(left_by_crashes(settings, before.changelog))
    assert len(stops) > 3
    assert list(stops[-1].changelog) == [CURSOR_KEY]
    for log in stops:
        log.run(settings, EVENTS)
        assert log.updates == fresh.updates
        assert log.changelog == fresh.changelog


def test_what_a_worker_cannot_read_is_dropped_first(settings_of: Callable[..., Settings]) -> None:
    settings = settings_of()
    prefix = key_prefix("last-10", "k")
    changelog = {page_key(prefix, page): b"damaged" for page in range(20)}
    foreign = dict.fromkeys((b"", b"foreign", b"\x07"), b"x")
    with pytest.raises(StateError):
        Log(changelog=changelog).open(settings)
    for log in left_by_crashes(settings, changelog | foreign):
        assert not foreign.keys() & log.changelog.keys()
        assert log.open(settings).cursor.offset == TO


def test_an_empty_changelog_gets_its_cursor(settings_of: Callable[..., Settings]) -> None:
    (log,) = left_by_crashes(settings_of(), {})
    assert log.open(settings_of()).cursor.offset == TO


def test_an_offset_of_ours_or_in_its_place_is_no_hand_in_the_offsets() -> None:
    cursor = Cursor("events", "", 500, "f")
    refuse_moved_by_hand("job", 2, cursor, GroupOffset(100, ours=True))
    refuse_moved_by_hand("job", 2, cursor, GroupOffset(500, ours=False))
    with pytest.raises(DecisionError) as refused:
        refuse_moved_by_hand("job", 2, cursor, GroupOffset(100, ours=False))
    assert str(refused.value) == (
        "the offset of the group job for events, partition 2, was set to 100 by hand, while the "
        "state ends at 500: move the job with `rocstream reset`, or set the offset back to 500 to "
        "go on as before"
    )


def test_a_changelog_without_the_state_that_offsets_of_ours_tell_of_is_refused() -> None:
    refuse_lost_state("job", "changelog", "events", 2, GroupOffset(100, ours=False))
    with pytest.raises(DecisionError) as refused:
        refuse_lost_state("job", "changelog", "events", 2, GroupOffset(100, ours=True))
    assert str(refused.value) == (
        "the changelog changelog, partition 2, holds no state, while the group job has come to "
        "offset 100 of events: it was deleted or emptied, and who begins anew publishes updates "
        "again; restore it, or run `rocstream reset` to say where to begin"
    )
