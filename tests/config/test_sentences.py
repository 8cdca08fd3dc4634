"""What a person reads who got a setting wrong."""

# ruff: noqa: E501 -- sentences stand on one line, as they are read

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import config
from config.values import listed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Refusal = Callable[..., str]

A_DURATION = 'a duration is a number with one of the units ms, s, m, h, d, such as "100ms" or "1h"'
ALL_METRICS = listed(config.METRICS)
A_MONITOR_NAME = (
    'a name has 1 to 64 letters, digits, ".", "_" or "-" and begins with a letter or digit'
)
WINDOW = 'window = { kind = "count", size = 10, slide = 2 }'


def monitor(**changed: str) -> str:
    lines = {"name": '"m"', "window": '{ kind = "count", size = 10, slide = 2 }'} | changed
    return "\n".join(f"{name} = {value}" for name, value in lines.items())


def window(text: str) -> str:
    return monitor(window=f"{{ {text} }}")


@pytest.mark.parametrize(
    ("section", "lines", "sentence"),
    [
        ("topics", 'evnts = "x"', 'topics.evnts = "x": there is no such setting: did you mean topics.events?'),
        ("topics", "window = 1", "topics.window = 1: there is no such setting: did you mean monitor.window?"),
        ("log", "zzz = 1", 'log.zzz = 1: there is no such setting: the settings here are "level" and "format"'),
        ("more", "[kafak]\nx = 1", 'kafak = {"x": 1}: there is no such setting: did you mean kafka?'),
        ("more", "[qqq]", 'qqq = {}: there is no such setting: the sections here are "kafka", "topics", "event", "log" and "monitor"'),
        ("kafka", 'commit_intervall = "1s"', 'kafka.commit_intervall = "1s": there is no such setting: did you mean kafka.commit_interval?'),
        ("kafka", "commit_interval = 100", 'kafka.commit_interval = 100: a duration is text with a unit: write "100ms", or with s, m, h, d'),
        ("kafka", 'commit_interval = "100"', f'kafka.commit_interval = "100": {A_DURATION}'),
        ("kafka", 'commit_interval = "1 week"', f'kafka.commit_interval = "1 week": {A_DURATION}'),
        ("kafka", 'commit_interval = "-1s"', f'kafka.commit_interval = "-1s": {A_DURATION}'),
        ("kafka", 'commit_interval = "0ms"', 'kafka.commit_interval = "0ms": it must be from 1ms to 60s'),
        ("kafka", 'commit_interval = "2m"', 'kafka.commit_interval = "2m": it must be from 1ms to 60s'),
        ("kafka", 'commit_interval = "999999999999999d"', 'kafka.commit_interval = "999999999999999d": the duration is too long'),
        ("kafka", "client_id = 1", "kafka.client_id = 1: it must be text in quotes"),
        ("kafka", 'client_id = " a"', 'kafka.client_id = " a": it must be text without control characters and without outer blanks'),
        ("topics", "partitions = 0", "topics.partitions = 0: it must be a whole number from 1 to 100,000"),
        ("topics", "partitions = true", "topics.partitions = true: it must be a whole number from 1 to 100,000"),
        ("topics", 'partitions = "4"', 'topics.partitions = "4": it must be a whole number from 1 to 100,000'),
        ("topics", "replication = 0", "topics.replication = 0: it must be a whole number from 1 to 100, or -1"),
        ("topics", 'start = "earlist"', 'topics.start = "earlist": the choices are "earliest" and "latest"; did you mean "earliest"?'),
        ("topics", "start = 5", 'topics.start = 5: the choices are "earliest" and "latest"'),
        ("log", 'level = "loud"', 'log.level = "loud": the choices are "debug", "info", "warning" and "error"'),
        ("event", "numbers_as_text = 1", "event.numbers_as_text = 1: it must be true or false"),
        ("event", 'numbers_as_text = "true"', 'event.numbers_as_text = "true": it must be true or false'),
        ("event", 'max_ahead = "40000d"', 'event.max_ahead = "40000d": it must be from 0s to 36500d'),
        ("event", 'time_unit = "ns"', 'event.time_unit = "ns": the choices are "ms", "s" and "us"'),
        ("event", "score = 1", "event.score = 1: a path is text in quotes, such as \"score\" or 'model.score'"),
        ("event", 'score = ""', 'event.score = "": a part of the path is empty: write names with single dots between'),
        ("event", 'score = "a..b"', 'event.score = "a..b": a part of the path is empty: write names with single dots between'),
        ("event", 'score = "$key"', 'event.score = "$key": this field comes from the record\'s value: give a path'),
        ("event", 'time = "$key"', 'event.time = "$key": this field comes from the record\'s value: give a path or "$timestamp"'),
        ("event", 'key = "$topic"', 'event.key = "$topic": only "$key" and "$timestamp" are the record\'s own; quote a field whose name begins with $: \'"$name"\''),
        ("event", 'label = "score"', 'event.label = "score": event.score is "score" as well: give each a field of its own'),
        ("event", 'label = "score.a"', 'event.label = "score.a": event.score is "score", and a field cannot lie in another: mend one'),
        ("event", "labels = { fraud = 1 }", 'event.labels = {"fraud": 1}: both classes need a label, such as { fraud = 1, ok = 0 }'),
        ("event", "labels = { fraud = 2, ok = 0 }", "event.labels.fraud = 2: a class is 1 (positive) or 0 (negative)"),
        ("event", "labels = { fraud = true, ok = 0 }", "event.labels.fraud = true: a class is 1 (positive) or 0 (negative)"),
        ("event", "labels = { fraud = 1.0, ok = 0 }", "event.labels.fraud = 1.0: a class is 1 (positive) or 0 (negative)"),
        ("event", "labels = 3", "event.labels = 3: it must be a table of labels with their classes: { fraud = 1, ok = 0 }"),
        ("monitor", window('kind = "count", size = 0, slide = 1'), 'monitor "m": window.size = 0: it must be a whole number from 1 to 100,000,000'),
        ("monitor", window('kind = "count", size = -5, slide = 1'), 'monitor "m": window.size = -5: it must be a whole number from 1 to 100,000,000'),
        ("monitor", window('kind = "count", size = 1e4, slide = 1'), 'monitor "m": window.size = 10000.0: it must be a whole number from 1 to 100,000,000'),
        ("monitor", window('kind = "count", size = 100_000_001, slide = 1'), 'monitor "m": window.size = 100000001: it must be a whole number from 1 to 100,000,000'),
        ("monitor", window('kind = "count", size = 10, slide = 0'), 'monitor "m": window.slide = 0: it must be a whole number from 1 to 100,000,000'),
        ("monitor", window('kind = "count", size = 10, slide = 11'), 'monitor "m": window.slide = 11: it is larger than the window\'s size 10, so that events would be missed: slide by at most the size'),
        ("monitor", window('kind = "time", size = 10, slide = 1'), 'monitor "m": window.kind = "time": the only choice is "count"'),
        ("monitor", window('kind = "cuont", size = 10, slide = 1'), 'monitor "m": window.kind = "cuont": the only choice is "count"; did you mean "count"?'),
        ("monitor", window('kind = "count", size = 10'), 'monitor "m": window.slide is missing: give it, such as 100'),
        ("monitor", window('kind = "count", size = 10, slide = 1, step = 1'), 'monitor "m": window.step = 1: there is no such setting: the settings here are "kind", "size" and "slide"'),
        ("monitor", 'name = "m"', 'monitor "m": window is missing: give it, such as { kind = "count", size = 10000, slide = 100 }'),
        ("monitor", monitor(window="5"), 'monitor "m": window = 5: it must be a table'),
        ("monitor", WINDOW, 'monitor number 1: name is missing: give it, such as "last-10k"'),
        ("monitor", monitor(name='"a b"'), f'monitor "a b": name = "a b": {A_MONITOR_NAME}'),
        ("monitor", monitor(name='""'), f'monitor "": name = "": {A_MONITOR_NAME}'),
        ("monitor", monitor(name='".a"'), f'monitor ".a": name = ".a": {A_MONITOR_NAME}'),
        ("monitor", monitor(name="7"), f"monitor number 1: name = 7: {A_MONITOR_NAME}"),
        ("monitor", monitor(metrics="[]"), 'monitor "m": metrics = []: it must be a list of metrics; there are ' + ALL_METRICS),
        ("monitor", monitor(metrics='"auc"'), 'monitor "m": metrics = "auc": it must be a list of metrics; there are ' + ALL_METRICS),
        ("monitor", monitor(metrics='["acu"]'), 'monitor "m": metrics[0] = "acu": there is no such metric: did you mean "auc"? there are ' + ALL_METRICS),
        ("monitor", monitor(metrics="[1]"), 'monitor "m": metrics[0] = 1: there is no such metric: there are ' + ALL_METRICS),
        ("monitor", monitor(metrics='["h", "auc", "h"]'), 'monitor "m": metrics[2] = "h": the metric is named twice: name it once'),
        ("monitor", monitor(h="{ alpha = 0 }"), 'monitor "m": h.alpha = 0: it must be a number from 0.001 to 1000'),
        ("monitor", monitor(h="{ beta = nan }"), 'monitor "m": h.beta = NaN: it must be a number from 0.001 to 1000'),
        ("monitor", monitor(h="{ beta = inf }"), 'monitor "m": h.beta = Infinity: it must be a number from 0.001 to 1000'),
        ("monitor", monitor(h='{ beta = "2" }'), 'monitor "m": h.beta = "2": it must be a number from 0.001 to 1000'),
        ("monitor", monitor(key_tll='"1h"'), 'monitor "m": key_tll = "1h": there is no such setting: did you mean monitor.key_ttl?'),
        ("monitor", monitor(key_ttl="3600"), 'monitor "m": key_ttl = 3600: a duration is text with a unit: write "3600ms", or with s, m, h, d'),
        ("monitor", monitor(key_ttl='"1w"'), 'monitor "m": key_ttl = "1w": a duration is a number with one of the units ms, s, m, h, d, such as "100ms" or "1h"'),
        ("monitor", monitor(key_ttl='"0s"'), 'monitor "m": key_ttl = "0s": it must be from 1ms to 36500d'),
        ("monitor", monitor(key_limit="0"), 'monitor "m": key_limit = 0: it must be a whole number from 1 to 100,000,000'),
        ("monitor", monitor(key_limit="1e6"), 'monitor "m": key_limit = 1000000.0: it must be a whole number from 1 to 100,000,000'),
        ("monitor", monitor(key_limit='"many"'), 'monitor "m": key_limit = "many": it must be a whole number from 1 to 100,000,000'),
        ("monitor", monitor(ttl='"1h"'), 'monitor "m": ttl = "1h": there is no such setting: did you mean monitor.key_ttl?'),
        ("more", f"[[monitor]]\n{monitor()}", 'monitor "m": name = "m": two monitors have this name: give each its own'),
        ("client", '"linger.mss" = 5', 'kafka.client."linger.mss" = 5: librdkafka\'s clients here take no such setting: did you mean "linger.ms"?'),
        ("client", "linger.mss = 5", 'kafka.client."linger.mss" = 5: librdkafka\'s clients here take no such setting: did you mean "linger.ms"?'),
        ("client", '"xyz" = 5', "kafka.client.xyz = 5: librdkafka's clients here take no such setting: see its list of configuration"),
        ("client", "linger.ms = []", 'kafka.client."linger.ms" = []: it must be text, a number, true or false'),
        ("client", '"group.id" = "x"', 'kafka.client."group.id" = "x": it has a setting of its own: kafka.group'),
        ("client", "enable.idempotence = false", 'kafka.client."enable.idempotence" = false: the worker owns it, because exactly-once delivery rests on it: remove it'),
        ("client", '"sasl.password" = "hunter2"', 'kafka.client."sasl.password" = (not shown): it has a setting of its own: kafka.security.password'),
        ("client", '"ssl.cipher.suites" = "x"', 'kafka.client."ssl.cipher.suites" = "x": how to connect securely belongs into [kafka.security]: remove it'),
        ("client", "queue.buffering.max.kbytes = 1", 'kafka.client."queue.buffering.max.kbytes" = 1: it must be a number from 16,384 to 2,147,483,647, since a transaction has 15 s to go through'),
        ("client", "socket.timeout.ms = 60_000", 'kafka.client."socket.timeout.ms" = 60000: it must be a number from 2,000 to 15,000, since a transaction has 15 s to go through'),
        ("client", "linger.ms = nan", 'kafka.client."linger.ms" = NaN: it must be a number from 0 to 1,000, since a transaction has 15 s to go through'),
        ("client", '"metadata.max.age.ms" = "5m"', 'kafka.client."metadata.max.age.ms" = "5m": it must be a number from 1,000 to 900,000, since a topic that has changed must be noticed, and brokers not be asked without a pause'),
        ("client", "log_level = 8", 'kafka.client.log_level = 8: librdkafka refuses: Configuration property "log_level" value 8 is outside allowed range 0..7'),
        ("client", '"log_level" = "3x"', 'kafka.client.log_level = "3x": it must be a whole number in plain digits, without a unit'),
        ("client", '"compression.type" = "zip"', 'kafka.client."compression.type" = "zip": librdkafka refuses: Invalid value "zip" for configuration property "compression.codec"'),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_value_and_cure(
    refusal: Refusal, section: str, lines: str, sentence: str
) -> None:
    assert refusal(**{section: lines}) == sentence


@pytest.mark.parametrize(
    ("servers", "why"),
    [
        ('""', 'it names no broker: give host:port, such as "localhost:9092"'),
        ("[]", 'it names no broker: give host:port, such as "localhost:9092"'),
        ("5", 'it must be text such as "kafka-1:9092,kafka-2:9092", or a list of such text'),
        ("[1]", 'it must be text such as "kafka-1:9092,kafka-2:9092", or a list of such text'),
        ('"a"', '"a" has no port: write host:port, such as "localhost:9092"'),
        ('"[::1]"', '"[::1]" has no port: write host:port, such as "localhost:9092"'),
        ('"a:1,"', '"" has no port: write host:port, such as "localhost:9092"'),
        ('"::1:9"', '"::1:9" has more than one colon: put an IPv6 address in [ ]'),
        ('"a:0"', '"a:0" has a wrong port: it must be from 1 to 65535'),
        ('"a:65536"', '"a:65536" has a wrong port: it must be from 1 to 65535'),
        ('"a:x"', '"a:x" has a wrong port: it must be from 1 to 65535'),
        ('"a b:1"', '"a b:1" has no valid host: write host:port'),
        ('":1"', '":1" has no valid host: write host:port'),
        (
            '"kafka://a:1"',
            '"kafka://a:1" has a scheme: write "a:1"; see kafka.security.protocol',
        ),
    ],
)
def test_brokers_that_cannot_be_are_refused(tmp_path: Path, servers: str, why: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        f'[kafka]\nbootstrap_servers = {servers}\ngroup = "g"\n'
        '[topics]\nevents = "e"\nupdates = "u"\nrejected = "r"\n'
        f"[[monitor]]\n{monitor()}\n"
    )
    with pytest.raises(config.SettingsError) as caught:
        config.load(path, {})
    assert str(caught.value) == f"{path}: kafka.bootstrap_servers = {servers}: {why}"


@pytest.mark.parametrize("servers", ["[::1]:9092", "10.0.0.1:1", "a_b.c-d:65535", "a:1,b:2"])
def test_brokers_that_can_be_are_taken(load: Callable[..., config.Settings], servers: str) -> None:
    found = load({"ROCSTREAM__KAFKA__BOOTSTRAP_SERVERS": servers})
    assert found.kafka.bootstrap_servers == tuple(servers.split(","))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it must be a name in quotes"),
        ("a b", 'Kafka takes only letters, digits, ".", "_" and "-" in this name'),
        ("ä", 'Kafka takes only letters, digits, ".", "_" and "-" in this name'),
        ("..", 'Kafka does not take "." and ".." as names'),
        ("x" * 250, "it has 250 characters: at most 249 fit"),
    ],
)
def test_names_that_kafka_does_not_take_are_refused(refusal: Refusal, name: str, why: str) -> None:
    said = refusal({"ROCSTREAM__TOPICS__EVENTS": name})
    assert said.startswith("topics.events (from ROCSTREAM__TOPICS__EVENTS) = ")
    assert said.endswith(f": {why}")


def test_a_group_leaves_room_for_the_names_made_of_it(refusal: Refusal) -> None:
    said = refusal({"ROCSTREAM__KAFKA__GROUP": "x" * 201})
    assert said.endswith("...: it has 201 characters: at most 200 fit")


def test_topics_are_distinct_and_none_is_the_jobs_own(refusal: Refusal) -> None:
    assert refusal({"ROCSTREAM__TOPICS__UPDATES": "e"}) == (
        'topics.updates (from ROCSTREAM__TOPICS__UPDATES) = "e": '
        "topics.events has the same name: give it another"
    )
    assert refusal({"ROCSTREAM__TOPICS__REJECTED": "g-windows-changelog"}) == (
        "topics.rejected (from ROCSTREAM__TOPICS__REJECTED) = "
        '"g-windows-changelog": the job keeps its windows in the topic of this name: give another'
    )


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text('[kafka]\ngruop = "g"\n')
    with pytest.raises(config.SettingsError) as caught:
        config.load(path, {"ROCSTREAM__LOG__LEVL": "info"})
    first, *lines = str(caught.value).splitlines()
    assert first == f"{path}: 7 settings are wrong:"
    assert [line.strip() for line in lines] == [
        'the variable ROCSTREAM__LOG__LEVL = "info": there is no such setting: did you mean ROCSTREAM__LOG__LEVEL?',
        'kafka.bootstrap_servers is missing: give it, such as "localhost:9092", in the file or as ROCSTREAM__KAFKA__BOOTSTRAP_SERVERS',
        'kafka.gruop = "g": there is no such setting: did you mean kafka.group?',
        'topics.events is missing: give it, such as "scored-events", in the file or as ROCSTREAM__TOPICS__EVENTS',
        'topics.updates is missing: give it, such as "classifier-metrics", in the file or as ROCSTREAM__TOPICS__UPDATES',
        'topics.rejected is missing: give it, such as "rejected-events", in the file or as ROCSTREAM__TOPICS__REJECTED',
        "monitor is missing: add a [[monitor]] with name, window and metrics",
    ]


def test_a_setting_that_is_needed_and_misspelled_is_asked_for_once(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        '[kafak]\nbootstrap_servers = "b:9092"\n[topics]\nevents = "e"\nupdates = "u"\n'
        '[[monitors]]\nname = "m"\nwindow = { kind = "count", size = 1, slide = 2 }\n'
    )
    with pytest.raises(config.SettingsError) as caught:
        config.load(path, {"ROCSTREAM__KAFKA__GRUOP": "g", "ROCSTREAM__TOPICS__REJECTD": "r"})
    _, *lines = str(caught.value).splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == [
        "did you mean ROCSTREAM__KAFKA__GROUP?",
        "did you mean ROCSTREAM__TOPICS__REJECTED?",
        "did you mean kafka?",
        "did you mean monitor?",
        "slide by at most the size",  # what a misspelled table holds is looked at all the same
    ]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ROCSTREAM__KAFKA__GRUOP", "x", 'the variable ROCSTREAM__KAFKA__GRUOP = "x": there is no such setting: did you mean ROCSTREAM__KAFKA__GROUP?'),
        ("ROCSTREAM_KAFKA__GROUP", "x", 'the variable ROCSTREAM_KAFKA__GROUP = "x": there is no such setting: did you mean ROCSTREAM__KAFKA__GROUP?'),
        ("ROCSTREAM__kafka__group", "x", 'the variable ROCSTREAM__kafka__group = "x": there is no such setting: did you mean ROCSTREAM__KAFKA__GROUP?'),
        ("ROCSTREAM__QQQQQQQQQQQQQQQQQQQ", "x", 'the variable ROCSTREAM__QQQQQQQQQQQQQQQQQQQ = "x": there is no such setting: a name is ROCSTREAM__SECTION__NAME'),
        ("ROCSTREAM__WEB__PORT", "8", 'the variable ROCSTREAM__WEB__PORT = "8": there is no such setting: the sections are KAFKA, TOPICS, EVENT, LOG, MONITOR'),
        ("ROCSTREAM__MONITOR__0__NAME", "x", 'the variable ROCSTREAM__MONITOR__0__NAME = "x": there is no such setting: did you mean ROCSTREAM__MONITOR?'),
        ("ROCSTREAM__MONITOR", "x", 'monitor (from ROCSTREAM__MONITOR) = "x": monitors are tables of their own: write [[monitor]] above each'),
        ("ROCSTREAM__MONITOR", "[]", "monitor (from ROCSTREAM__MONITOR) = []: there is no monitor: add a [[monitor]]"),
        ("ROCSTREAM__MONITOR", "[3]", "monitor number 1 (from ROCSTREAM__MONITOR) = 3: it must be a table"),
        ("ROCSTREAM__MONITOR", "[{]", 'the variable ROCSTREAM__MONITOR = "[{]": it is not valid JSON (character 3): mend it'),
        ("ROCSTREAM__TOPICS__PARTITIONS", "many", 'topics.partitions (from ROCSTREAM__TOPICS__PARTITIONS) = "many": it must be a whole number from 1 to 100,000'),
        ("ROCSTREAM__EVENT__NUMBERS_AS_TEXT", "yes", 'event.numbers_as_text (from ROCSTREAM__EVENT__NUMBERS_AS_TEXT) = "yes": it must be true or false'),
        ("ROCSTREAM__KAFKA__CLIENT__LINGER_MSS", "1", 'kafka.client."linger.mss" (from ROCSTREAM__KAFKA__CLIENT__LINGER_MSS) = "1": librdkafka\'s clients here take no such setting: did you mean "linger.ms"?'),
        ("ROCSTREAM__LOG", "3", 'log (from ROCSTREAM__LOG) = "3": it must be a table'),
    ],
)  # fmt: skip
def test_a_variable_that_is_wrong_is_named(
    refusal: Refusal, name: str, value: str, sentence: str
) -> None:
    assert refusal({name: value}) == sentence


def test_a_sentence_is_one_line_and_short_whatever_the_value(refusal: Refusal) -> None:
    said = refusal({"ROCSTREAM__LOG__LEVEL": "a\nb" * 10_000})
    assert "\n" not in said
    assert len(said) < 300
    assert "\\udcff" in refusal({"ROCSTREAM__LOG__LEVEL": "\udcff"})


def test_no_sentence_shows_a_secret(refusal: Refusal) -> None:
    secret = "hunter2"  # noqa: S105 -- of the test
    quoted = f'"{secret}"'
    for said in (
        refusal(security=f"password = {quoted}"),
        refusal(security=f"pasword = {quoted}"),
        refusal(security=f"zzz = {quoted}"),
        refusal(security=f"password = [{quoted}]"),
        refusal(security=f"password_file = {{ x = {quoted} }}"),
        refusal(security=f'password = {quoted}\npassword_file = "x"'),
        refusal(kafka=f"passwd = {quoted}"),
        refusal(more=f"[securty]\npassword = {quoted}"),
        refusal(more=f"pasword = {quoted}"),
        refusal(client=f'"sasl.oauthbearer.client.secret" = {quoted}'),
        refusal(client=f'"ssl.key.pem" = {quoted}'),
        refusal({"ROCSTREAM__KAFKA__SECURITY": f'{{"password": {quoted}'}),
        refusal({"ROCSTREAM__KAFKA__SECURITY": f'[{{"password": {quoted}}}]'}),
        refusal({"ROCSTREAM__KAFKA": f'[{{"security": {{"password": {quoted}}}}}]'}),
        refusal({"ROCSTREAM__KAFKA__PASSWORD": secret}),
        refusal({"ROCSTREAM__KAFKA__SECURITY__PASWORD": secret}),
        refusal({"ROCSTREAM__KAFKA__BOOTSTRAP_SERVERS": f"kafka://me:{secret}@a:1"}),
    ):
        assert secret not in said
        assert re.search(r"kafka|securty|monitor|pasword", said, re.IGNORECASE)
