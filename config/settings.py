"""All settings of a job, and their JSON Schema."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from config.connection import KafkaSettings
from config.event import EventSettings
from config.monitor import Monitor
from config.values import Section, TopicName, choice, refuse, whole


class TopicSettings(Section):
    """The topics of the job.

    Parameters
    ----------
    events, updates, rejected
        Names.
    partitions, replication
        Of topics that `rocstream topics create` makes; replication -1 is the broker's default.
    start
        Where to begin in the events topic when the job has no position yet.
    """

    events: TopicName = Field(examples=["scored-events"])
    updates: TopicName = Field(examples=["classifier-metrics"])
    rejected: TopicName = Field(examples=["rejected-events"])
    partitions: Annotated[int, whole(1, 100_000)] = 4
    replication: Annotated[int, whole(1, 100, also=-1)] = -1
    start: Annotated[Literal["earliest", "latest"], choice("earliest", "latest")] = "earliest"

    @model_validator(mode="after")
    def _differ(self) -> Self:
        seen: dict[str, str] = {}
        for name in ("events", "updates", "rejected"):
            topic = getattr(self, name)
            if topic in seen:
                raise refuse(f"topics.{seen[topic]} has the same name: give it another", name)
            seen[topic] = name
        return self


class LogSettings(Section):
    """What is logged and how; `auto` is text on a terminal and JSON elsewhere."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        choice("debug", "info", "warning", "error"),
    ] = "info"
    format: Annotated[Literal["auto", "text", "json"], choice("auto", "text", "json")] = "auto"


def _at_least_one(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise refuse("monitors are tables of their own: write [[monitor]] above each")
    if not value:
        raise refuse("there is no monitor: add a [[monitor]]")
    return value


class Settings(BaseSettings):
    """All settings of a job; made by `config.load`, frozen."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        case_sensitive=False,
        env_prefix="ROCSTREAM__",
        env_nested_delimiter="__",
    )

    kafka: KafkaSettings
    topics: TopicSettings
    event: EventSettings = EventSettings()
    log: LogSettings = LogSettings()
    monitor: Annotated[
        tuple[Monitor, ...],
        BeforeValidator(
            _at_least_one,
            json_schema_input_type=Annotated[list[Monitor], Field(min_length=1)],
        ),
    ]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 -- the signature is pydantic-settings'
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- the same
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- the same
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- the same
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what `config.load` found: the process's own environment is read nowhere else."""
        return (init_settings,)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        seen: set[str] = set()
        for position, monitor in enumerate(self.monitor):
            if monitor.name in seen:
                raise refuse(
                    "two monitors have this name: give each its own", "monitor", position, "name"
                )
            seen.add(monitor.name)
        for name in ("events", "updates", "rejected"):
            if getattr(self.topics, name) == self.changelog:
                raise refuse(
                    "the job keeps its windows in the topic of this name: give another",
                    "topics",
                    name,
                )
        return self

    @property
    def monitors(self) -> tuple[Monitor, ...]:
        """The `[[monitor]]` tables in their order."""
        return self.monitor

    @property
    def changelog(self) -> str:
        """The name of the topic that holds the job's state."""
        return f"{self.kafka.group}-windows-changelog"

    def event_fingerprint(self) -> str:
        """Return a text that differs when a record would be read differently."""
        return self.event.fingerprint()


def submodel(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """Return the model of the table, or of the tables in the list, that `name` holds."""
    annotation: Any = model.model_fields[name].annotation
    for candidate in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for name in model.model_fields:
        if (below := submodel(model, name)) is not None:
            yield below
            yield from _sections(below)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the settings file, as made from the model."""
    found = Settings.model_json_schema(mode="validation")
    for section in _sections(Settings):
        table = found["$defs"][section.__name__]
        # As a person would write them: pydantic gives the values that validation made of them.
        for name, default in section.model_construct().model_dump(mode="json").items():
            table["properties"][name]["default"] = default
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
