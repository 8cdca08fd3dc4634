"""Whatever stands in the topic: nothing raises, all is accounted for, and no cut shows."""

from __future__ import annotations

import json
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from streams import NOW, Record, columnar, configurations, outcome, rows, streams, total

from config import EventSettings
from worker.events import REASONS, Batch, Parser, Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

ELEMENTS = ("events", "unlabelled", "zero_weight", "tombstones", "heartbeats", "rejected")


def elements(record: Record) -> int:
    """Count the elements of a record that is not refused whole."""
    if record.value is None:
        return 1
    document = json.loads(record.value.removeprefix(b"\xef\xbb\xbf"))
    score = document.get("score")
    beat = document.get("heartbeat") is True
    return len(score) if isinstance(score, list) and not beat else 1


@given(streams(), configurations, st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_every_element_is_an_event_or_counted_or_refused(
    records: list[Record], event: EventSettings, limit: int
) -> None:
    batches = list(Parser(event).batches(records, limit=limit))
    counts = total(batches)
    whole = [r for batch in batches for r in batch.rejections if not r.indexes]
    refused = {rejection.offset for rejection in whole}
    expected = sum(1 if record.offset in refused else elements(record) for record in records)
    assert sum(counts[name] for name in ELEMENTS) == expected
    assert counts["records"] == len(records)
    assert counts["events"] == sum(map(len, rows(batches).values()))
    assert counts["rejected"] == sum(counts[f"rejected.{name}"] for name in REASONS)
    assert len({r.offset for batch in batches for r in batch.rejections}) == sum(
        len(batch.rejections) for batch in batches
    )
    by_offset = {record.offset: record for record in records}
    for batch in batches:
        assert batch.counts["events"] <= limit
        for rejection in batch.rejections:
            source = by_offset[rejection.offset]
            assert (rejection.key, rejection.value) == (source.key, source.value)
            assert rejection.code in REASONS
            assert len(rejection.sentence.encode()) <= 900


@given(streams(), configurations, st.integers(1, 9))
@settings(max_examples=200, deadline=None)
def test_no_limit_changes_what_comes_out(
    records: list[Record], event: EventSettings, limit: int
) -> None:
    parser = Parser(event)
    whole = outcome(list(parser.batches(records)))
    assert outcome(list(parser.batches(records, limit=limit))) == whole


@given(streams(), configurations, st.data())
@settings(max_examples=200, deadline=None)
def test_going_on_at_offset_and_index_is_like_never_having_stopped(
    records: list[Record], event: EventSettings, data: st.DataObject
) -> None:
    parser = Parser(event)

    def resumed() -> Iterator[Batch]:
        rest, index = records, 0
        while rest:
            limit = data.draw(st.integers(1, 9))
            batch = next(parser.batches(rest, index, limit))
            assert (batch.offset, batch.index) > (rest[0].offset, index)
            yield batch
            rest = [record for record in rest if record.offset >= batch.offset]
            index = batch.index

    assert outcome(list(resumed())) == outcome(list(parser.batches(records)))


def times_of(batch: Batch) -> list[int]:
    """Return the times of a batch's events in the order of the log."""
    columns = [zip(e.offsets, e.indexes, e.times, strict=True) for e in batch.keys.values()]
    return [time for _, _, time in sorted(chain(*columns))]


@given(streams(), configurations, st.integers(1, 4), st.data())
@settings(max_examples=200, deadline=None)
def test_batches_end_at_the_same_stops_however_they_are_cut(
    records: list[Record], event: EventSettings, period: int, data: st.DataObject
) -> None:
    """A stop at each multiple of a period, and behind events from a stretch before it."""
    parser = Parser(event)

    def ends(*, cut: bool) -> tuple[list[tuple[int, int, int]], list[Batch]]:
        watermark, found, batches = -1, [], []
        rest, index, limit = records, 0, 4096

        def stop() -> Stop:
            time = (watermark // period + 1) * period
            return Stop(time, watermark - 3, time - 3)

        while rest:
            if cut:
                limit = data.draw(st.integers(1, 9))
            calls = data.draw(st.integers(1, 3)) if cut else 4096
            for batch in islice(
                parser.batches(rest, index, limit, watermark=watermark, stop=stop), calls
            ):
                batches.append(batch)
                assert not any(map(stop().at, times_of(batch)[:-1]))
                if batch.watermark >= stop().time:
                    found.append((batch.offset, batch.index, batch.watermark))
                watermark = max(watermark, batch.watermark)
                rest = [record for record in rest if record.offset >= batch.offset]
                index = batch.index
        return found, batches

    whole, batches = ends(cut=False)
    pieces, cut_batches = ends(cut=True)
    assert pieces == whole
    assert outcome(cut_batches) == outcome(batches) == outcome(list(parser.batches(records)))
    assert whole or not rows(batches)


def test_a_batch_ends_right_behind_what_reaches_the_stop() -> None:
    values = [
        b'{"score": 1, "label": 1}',
        b'{"score": [1, 2, 3, 4], "label": [0, 1, 0, null], "time": [1, 5, 2, 9]}',
        b'{"heartbeat": true, "time": 7}',
        b'{"score": 1, "label": 1, "time": 7}',
    ]
    records = [Record(at, b"k", value, NOW) for at, value in enumerate(values)]
    parser = Parser(EventSettings(time=("time",)))
    stops = iter([Stop(5), Stop(7), None])
    batches = list(parser.batches(records, stop=lambda: next(stops)))
    assert [(b.offset, b.index, b.watermark) for b in batches] == [(1, 2, 5), (3, 0, 7), (4, 0, 7)]
    (batch,) = parser.batches(records, watermark=7, stop=lambda: Stop(7))
    assert batch.offset == len(records)


@given(streams(), configurations)
@settings(max_examples=300, deadline=None)
def test_the_fast_loop_takes_nothing_the_rules_do_not(
    records: list[Record], event: EventSettings
) -> None:
    general, loop = Parser(event), Parser(event)
    general._scanner = general._layout = loop._scanner = None
    assert outcome(list(loop.batches(records))) == outcome(list(general.batches(records)))


@given(columnar(), configurations)
@settings(max_examples=300, deadline=None)
def test_columns_agree_with_their_elements_as_plain_records(
    value: dict[str, Any], event: EventSettings
) -> None:
    names = ("label", "weight", "time")
    size = len(value["score"])
    assume(all(len(value[n]) == size for n in names if isinstance(value[n], list)))
    plain_values = [
        {
            "key": value["key"],
            "score": value["score"][at],
            **{n: value[n][at] if isinstance(value[n], list) else value[n] for n in names},
        }
        for at in range(size)
    ]
    assume(not any(isinstance(one[n], list) for one in plain_values for n in ("score", "label")))
    parser = Parser(event)
    whole = Record(0, b"a", json.dumps(value).encode(), NOW)
    singles = [
        Record(at, b"a", json.dumps(one).encode(), NOW) for at, one in enumerate(plain_values)
    ]
    (batch,) = parser.batches([whole])
    assume(all(rejection.indexes for rejection in batch.rejections))
    apart = list(parser.batches(singles))
    many = {key: [(*row[:4], row[5]) for row in found] for key, found in rows([batch]).items()}
    one = {key: [(*row[:4], row[4]) for row in found] for key, found in rows(apart).items()}
    assert many == one
    counts = total(apart)
    assert {name: counts[name] for name in ELEMENTS} == {
        name: batch.counts[name] for name in ELEMENTS
    }


@given(st.lists(st.binary(max_size=40), max_size=5))
@settings(max_examples=300, deadline=None)
def test_arbitrary_bytes_never_raise(garbage: list[bytes]) -> None:
    records = [Record(at, value, value, NOW) for at, value in enumerate(garbage)]
    counts = total(list(Parser(EventSettings()).batches(records)))
    assert counts["records"] == len(garbage)
