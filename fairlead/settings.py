"""Settings: `FAIRLEAD_*` environment variables over `fairlead.toml` over defaults.

Belongs here: how to reach Kafka, Postgres, Spark and the pages, and where state is kept. Does not:
what to plan for which group (`policy`). A nested name takes two underscores:
`FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS`.
"""

import hashlib
import logging
import os
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from fairlead.common.nearest import WrongAt, known_keys, nearest, no_such
from fairlead.common.wrong_values import what_is_wrong
from fairlead.domain.identity import HeaderSettings, TokenSettings
from fairlead.domain.policy import Discovery, Policy
from fairlead.errors import ConfigurationError
from fairlead.wire.signing import Signer

_log = logging.getLogger(__name__)

CONFIG_VARIABLE: Final = "FAIRLEAD_CONFIG"
#: Spark's master where nobody chose one.
ANYWHERE: Final = "auto"
#: Variables that are no settings: where settings and downloads are.
OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, "FAIRLEAD_CACHE_DIR"})


def _librdkafka_text(value: Any) -> Any:
    """Librdkafka takes every value as text; TOML may write numbers and booleans."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _able_to_sign(key: SecretStr) -> SecretStr:
    """Refuse a key that could not sign, and an empty one: it would switch signing off."""
    try:
        Signer.from_text(key.get_secret_value())
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return key


LibrdkafkaValue = Annotated[SecretStr, BeforeValidator(_librdkafka_text)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSettings(_Section):
    """The cluster that is planned for."""

    bootstrap_servers: str = Field(
        default="localhost:9092", description="Brokers to ask first, separated by commas."
    )
    properties: dict[str, LibrdkafkaValue] = Field(
        default_factory=dict,
        description="Settings of librdkafka, such as security.protocol. Values are never logged.",
    )
    plan_topic: str = Field(default="fairlead.plans", description="Where plans are published.")
    plan_topic_replication_factor: int = Field(
        default=-1,
        description="Copies of the plan topic when it is created; -1: three, or as many as there "
        "are brokers.",
    )
    plan_topic_partitions: int = Field(
        default=16,
        ge=1,
        description="Partitions of the plan topic when it is created. A follower reads one.",
    )
    pin_topic: str = Field(
        default="fairlead.pins", description="Where members of confluent-kafka groups agree."
    )
    members_topic: str = Field(
        default="fairlead.members",
        description="Tells brokers who the members of groups are that they assign (KIP-848).",
    )
    private_key: Annotated[SecretStr, AfterValidator(_able_to_sign)] | None = Field(
        default=None,
        description="Ed25519 key that plans are signed with, as `fairlead signing-key` prints it: "
        "a secret of the planner's, which no consumer has.",
    )
    lease: timedelta = Field(
        default=timedelta(hours=6),
        ge=timedelta(minutes=3),
        description="How long consumers follow a plan that they are not told of again.",
    )
    request_timeout_s: float = Field(
        default=30.0, gt=0, description="Seconds that a request to Kafka may take."
    )

    @property
    def signer(self) -> Signer | None:
        """What plans are signed with; None: they are not."""
        key = self.private_key
        return None if key is None else Signer.from_text(key.get_secret_value())

    def librdkafka(self, **overrides: Any) -> dict[str, Any]:
        """Return a librdkafka configuration, secrets revealed: never log it."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "log_level": "2",  # it logs a broker that is gone 20 times a second; errors are raised
            # Asking about a topic makes it otherwise, where brokers do so: the plan topic with
            # settings that lose plans, or a topic that somebody has just deleted.
            "allow.auto.create.topics": False,
            **{name: value.get_secret_value() for name, value in self.properties.items()},
            **overrides,
        }


class PostgresSettings(_Section):
    """Where plans and history are kept, in the schema `fairlead`."""

    url: SecretStr = Field(
        default=SecretStr("postgresql://localhost/fairlead"),
        description="The database, with its user and password. It is never logged.",
    )


class SamplingSettings(_Section):
    """How often the planned groups are looked at, and how long that is kept."""

    every: timedelta = Field(
        default=timedelta(seconds=60), gt=timedelta(0), description="From one look to the next."
    )
    share: float = Field(
        default=0.15,
        gt=0,
        le=1,
        description="Looks are taken less often where they would take more of the time than this.",
    )
    retention: timedelta = Field(
        default=timedelta(days=2),
        ge=timedelta(hours=2),
        description="Older looks are removed; of those older than an hour, one a quarter is kept.",
    )


class PlanningSettings(_Section):
    """When groups are planned."""

    schedule: str = Field(
        default="*/15 * * * *",
        pattern=r"^[\d*,/-]+( [\d*,/A-Za-z-]+){4}$",
        description="Of planning_schedule, as cron writes it; read when the code location loads.",
    )
    again: timedelta = Field(
        default=timedelta(minutes=10),
        gt=timedelta(0),
        description="A group that goes on needing a plan after a decision is planned again.",
    )


class SparkSettings(_Section):
    """The Spark session that computes lag and candidate plans."""

    master: str = Field(
        default=ANYWHERE,
        description="auto: the warm Spark of this machine (`fairlead spark up`) where there is "
        "one, else the process itself, local[*]; or any of Spark's own.",
    )
    properties: dict[str, str] = Field(
        default_factory=dict,
        repr=False,  # keys of an object store may be among them
        description="Any spark.* setting.",
    )


def _without_slash(url: str) -> str:
    return url.rstrip("/")


#: Where something is reached by a browser; paths are appended.
WebAddress = Annotated[str, Field(pattern="^https?://[^/]"), AfterValidator(_without_slash)]


class WebSettings(_Section):
    """Where people's browsers reach the pages, and who may act on them."""

    url: WebAddress | None = Field(default=None, description="Where `fairlead serve` is reached.")
    dagster_url: WebAddress | None = Field(
        default=None, description="Where the Dagster UI is reached."
    )
    docs_url: WebAddress | None = Field(
        default=None, description="Where these pages are reached: what alerts name as runbooks."
    )
    token: TokenSettings | None = Field(
        default=None, description="A signed token proves to the pages who asks."
    )
    header: HeaderSettings | None = Field(
        default=None, description="A header beside a shared secret proves to the pages who asks."
    )
    approvers: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=("*",),
        description="Who may act on pages, of those whom the proxy names: * and ? stand in.",
    )

    @model_validator(mode="after")
    def _one_proof(self) -> Self:
        """Refuse two proofs, of which the weaker would count, and one without an address."""
        if self.token is not None and self.header is not None:
            raise WrongAt("web.token proves who asks already: name one of the two", "header")
        if (self.token or self.header) is not None and self.url is None:
            raise WrongAt("acting on pages takes it: forms count that its pages have sent", "url")
        return self


class Settings(BaseSettings):
    """Everything Fairlead is told about its surroundings."""

    model_config = SettingsConfigDict(
        env_prefix="FAIRLEAD_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
    )

    state_dir: Path = Field(
        default=Path(".fairlead"), description="Embedded services, the demo and snapshots."
    )
    warehouse: str | None = Field(
        default=None, description="Path of the Parquet snapshots; default: STATE_DIR/warehouse."
    )
    warehouse_retention: timedelta = Field(
        default=timedelta(days=2),
        gt=timedelta(hours=1),
        description="Snapshots older than this are removed; their lag stays in Postgres.",
    )
    history_retention: timedelta = Field(
        default=timedelta(days=30),
        gt=timedelta(days=1),
        description="How long history in Postgres is kept by `fairlead db prune`: looks, lag, "
        "decisions, candidates, balances, adoption, diagnoses that hold no more, plans that nobody "
        "followed.",
    )
    summary_retention: timedelta = Field(
        default=timedelta(days=400),
        gt=timedelta(days=1),
        description="How long each group's days are kept in summary; history_retention at least.",
    )
    kafka: KafkaSettings = KafkaSettings()
    postgres: PostgresSettings = PostgresSettings()
    spark: SparkSettings = SparkSettings()
    sampling: SamplingSettings = SamplingSettings()
    planning: PlanningSettings = PlanningSettings()
    web: WebSettings = WebSettings()
    discovery: Discovery = Discovery()
    policies: tuple[Policy, ...] = ()
    _source: str = PrivateAttr(default="")

    def model_post_init(self, _: Any) -> None:
        """Note what these settings were read from."""
        self._source = _source()

    @property
    def source(self) -> str:
        """The file that these settings were read from, and the start of its SHA-256."""
        return self._source

    @property
    def warehouse_path(self) -> str:
        """Where Parquet snapshots are written; every Spark executor must reach it."""
        return self.warehouse or str((self.state_dir / "warehouse").absolute())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Put the environment over the file named by `FAIRLEAD_CONFIG`."""
        toml_settings = TomlConfigSettingsSource(settings_cls, toml_file=_config_path())
        return init_settings, env_settings, toml_settings


def load_settings() -> Settings:
    """Read the settings.

    Raises
    ------
    ConfigurationError
        A setting is unknown or has a value it cannot have. The message names each with the file or
        the variable where it is set, never its value.
    """
    path = _config_path()
    if CONFIG_VARIABLE in os.environ and not path.exists():
        raise ConfigurationError(f"{CONFIG_VARIABLE} names {path}, which does not exist")
    if unknown := _unknown_variables():
        raise ConfigurationError(
            f"{'; '.join(map(_no_such_variable, unknown))} A nested name takes two underscores: "
            "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS"
        )
    try:
        while True:  # a file that changes while it is read is read again
            began = _source()
            settings = Settings()
            if settings.source == began:
                return settings
    # `from None`: pydantic's own messages show the values, secrets among them.
    except ValidationError as error:
        problems = "; ".join(_problem(path, problem) for problem in error.errors())
        raise ConfigurationError(problems) from None
    except SettingsError as error:  # JSON in a variable that does not parse
        raise ConfigurationError(_not_json(str(error))) from None
    except (OSError, ValueError) as error:  # TOML that cannot be read or does not parse
        raise ConfigurationError(f"{path}: {error}") from None


def reloaded(before: Settings) -> Settings:
    """Return the settings as they are now; while they cannot be read, those of before.

    A mounted ConfigMap changes under a service that runs.
    """
    if _source() == before.source:
        return before
    try:
        return load_settings()
    except ConfigurationError as error:
        _log.error("%s; the settings of before hold on", error)
        return before


def _source() -> str:
    path = _config_path()
    if not path.is_file():
        return "variables and defaults"
    return f"{path}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def _problem(path: Path, problem: ErrorDetails) -> str:
    """Say where a setting that is wrong was set, its key, and what is wrong."""
    keys = [*problem["loc"]]
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, WrongAt):
        keys += cause.keys
    what = what_is_wrong(problem)
    if keys[-1] == "schedule":
        what = 'no schedule as cron writes it: five fields, "*/15 * * * *"'
    if problem["type"] == "extra_forbidden":
        what = no_such("key", str(keys[-1]), known_keys(Settings, keys[:-1]))
    return f"{_where(path, keys)}: {_spelt(keys)}: {what}"


def _spelt(keys: Sequence[str | int]) -> str:
    """Return a key as people know it: policies by their place, as `policy explain` has them.

    Examples
    --------
    >>> _spelt(["policies", 0, "cooldown"]), _spelt(["kafka", "lease"])
    ('[[policies]] 1: cooldown', 'kafka.lease')
    """
    match keys:
        case ["policies", int(place), *rest]:
            return ": ".join(filter(None, (f"[[policies]] {place + 1}", ".".join(map(str, rest)))))
    return ".".join(map(str, keys))


def _not_json(message: str) -> str:
    """Name the variables that set what pydantic says it cannot parse."""
    field = re.search(r'field "(\w+)"', message)
    names = _variables_below([field[1]]) if field else []
    return f"{', '.join(names) or 'FAIRLEAD_*'}: no JSON as this setting takes it"


def _where(path: Path, keys: Sequence[str | int]) -> str:
    """Return the variable or the file that sets a key."""
    return _variable(keys) or ", ".join(_variables_below(keys)) or str(path)


def _variable(keys: Sequence[str | int]) -> str | None:
    """Return the variable that sets a key, or something that it is part of."""
    names = [f"FAIRLEAD_{'__'.join(map(str, keys[:end]))}" for end in range(1, len(keys) + 1)]
    given = {name.upper(): name for name in os.environ}
    return next((given[name.upper()] for name in names if name.upper() in given), None)


def _variables_below(keys: Sequence[str | int]) -> list[str]:
    """Return the variables that set a key or something below it."""
    name = f"FAIRLEAD_{'__'.join(map(str, keys))}".upper()
    return sorted(given for given in os.environ if f"{given.upper()}__".startswith(f"{name}__"))


def origin() -> str:
    """Say where settings come from: the file, or that there is none."""
    path = _config_path()
    if path.exists():
        return str(path)
    return f"there is no {path} in {Path.cwd()}: variables and defaults count"


def set_by(key: str, variable: str) -> str:
    """Name a setting with the file and the variable that set it."""
    path = _config_path()
    there = path if path.exists() else f"there is no {path} in {Path.cwd()}"
    return f"{key} ({there}; {variable})"


def _config_path() -> Path:
    return Path(os.environ.get(CONFIG_VARIABLE, "fairlead.toml"))


def _unknown_variables() -> list[str]:
    """Return the names of variables that look like settings and are none."""
    return sorted(
        name
        for name in os.environ
        if name.upper().startswith("FAIRLEAD_")
        and name.upper().partition("__")[0] not in _known_variables()
    )


def _known_variables() -> frozenset[str]:
    return OTHER_VARIABLES | {f"FAIRLEAD_{name.upper()}" for name in Settings.model_fields}


def _no_such_variable(name: str) -> str:
    first, separator, rest = name.partition("__")
    close = nearest(first, _known_variables())
    return f"{name}: no such setting" + (
        f"; did you mean {close}{separator}{rest}?" if close else "."
    )
