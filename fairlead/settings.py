"""Settings: `FAIRLEAD_*` variables override `fairlead.toml`; both override the defaults.

Belongs here: how to reach Kafka, Postgres, Spark and the pages, and where state is kept. Belongs
elsewhere: what to plan for which group (`policy`). In variables, two underscores separate the
section from the key: `FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS`.
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

from fairlead.common.nearest import WrongAt, nearest
from fairlead.common.wrong_values import what_is_wrong
from fairlead.domain.identity import HeaderSettings, TokenSettings
from fairlead.domain.policy import Discovery, Policy
from fairlead.errors import ConfigurationError
from fairlead.wire.signing import Signer

_log = logging.getLogger(__name__)

CONFIG_VARIABLE: Final = "FAIRLEAD_CONFIG"
#: Default of `spark.master`.
ANYWHERE: Final = "auto"
#: Variables that start with FAIRLEAD_ but are not settings: the paths of the settings file and of
#: downloads.
OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, "FAIRLEAD_CACHE_DIR"})


def _librdkafka_text(value: Any) -> Any:
    """Return a TOML number or boolean as text, since librdkafka expects text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _able_to_sign(key: SecretStr) -> SecretStr:
    """Refuse a private key that cannot sign, or is empty: "" must not mean "do not sign"."""
    try:
        Signer.from_text(key.get_secret_value())
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return key


LibrdkafkaValue = Annotated[SecretStr, BeforeValidator(_librdkafka_text)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSettings(_Section):
    """The Kafka cluster, and Fairlead's topics in it."""

    bootstrap_servers: str = Field(
        default="localhost:9092", description="Addresses of brokers, separated by commas."
    )
    properties: dict[str, LibrdkafkaValue] = Field(
        default_factory=dict,
        description="Client settings of librdkafka, such as security.protocol. Values are never "
        "logged.",
    )
    plan_topic: str = Field(default="fairlead.plans", description="Topic of published plans.")
    plan_topic_replication_factor: int = Field(
        default=-1,
        description="Replication factor of a new plan topic. -1 means three, or the number of "
        "brokers if that is less.",
    )
    plan_topic_partitions: int = Field(
        default=16,
        ge=1,
        description="Number of partitions of a new plan topic. A consumer reads one of them.",
    )
    coordination_topic: str = Field(
        default="fairlead.coordination",
        description="Topic in which confluent-kafka members agree on assignments.",
    )
    members_topic: str = Field(
        default="fairlead.members",
        description="Topic with the names of members, for brokers that assign (KIP-848).",
    )
    private_key: Annotated[SecretStr, AfterValidator(_able_to_sign)] | None = Field(
        default=None,
        description="Ed25519 key that signs plans, as `fairlead signing-key` prints it. Only the "
        "planner has this secret; consumers have the public key.",
    )
    lease: timedelta = Field(
        default=timedelta(hours=6),
        ge=timedelta(minutes=3),
        description="Time for which consumers follow a plan without a lease renewal.",
    )
    request_timeout_s: float = Field(
        default=30.0, gt=0, description="Time-out of a request to Kafka, in seconds."
    )

    @property
    def signer(self) -> Signer | None:
        """The signer of plans; None: plans are not signed."""
        key = self.private_key
        return None if key is None else Signer.from_text(key.get_secret_value())

    def librdkafka(self, **overrides: Any) -> dict[str, Any]:
        """Return a librdkafka configuration. Never log it: it contains secrets in plain text."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "log_level": "2",  # higher levels log a lost broker 20 times a second
            # Otherwise a metadata request may create a missing topic. The plan topic would get
            # settings that lose plans, and a topic that was just deleted would return.
            "allow.auto.create.topics": False,
            **{name: value.get_secret_value() for name, value in self.properties.items()},
            **overrides,
        }


class PostgresSettings(_Section):
    """The database with plans and history, in the schema `fairlead`."""

    url: SecretStr = Field(
        default=SecretStr("postgresql://localhost/fairlead"),
        description="URL of the database, with user and password. It is never logged.",
    )


class SamplingSettings(_Section):
    """How often the planned groups are sampled, and how long samples are kept."""

    every: timedelta = Field(
        default=timedelta(seconds=60), gt=timedelta(0), description="Time between offset samples."
    )
    share: float = Field(
        default=0.15,
        gt=0,
        le=1,
        description="Maximum share of time spent on sampling. Above it, samples are taken less "
        "often.",
    )
    retention: timedelta = Field(
        default=timedelta(days=2),
        ge=timedelta(hours=2),
        description="Age from which samples are removed. Of samples older than an hour, one per 15 "
        "minutes is kept.",
    )


class PlanningSettings(_Section):
    """When groups are planned."""

    schedule: str = Field(
        default="*/15 * * * *",
        pattern=r"^[\d*,/-]+( [\d*,/A-Za-z-]+){4}$",
        description="Cron expression of planning_schedule, read when the code location loads.",
    )
    again: timedelta = Field(
        default=timedelta(minutes=10),
        gt=timedelta(0),
        description="Pause before a group that still needs a plan is planned again.",
    )


class SparkSettings(_Section):
    """Spark, which computes lag and candidate plans."""

    master: str = Field(
        default=ANYWHERE,
        description="Master URL of Spark. `auto` uses the Spark that `fairlead spark up` keeps "
        "running on this machine or, if there is none, local[*].",
    )
    properties: dict[str, str] = Field(
        default_factory=dict,
        repr=False,  # properties may contain keys of an object store
        description="Spark properties (spark.*).",
    )


def _without_slash(url: str) -> str:
    return url.rstrip("/")


#: A base URL for browsers. The address of a page consists of the base URL and the page's path.
WebAddress = Annotated[str, Field(pattern="^https?://[^/]"), AfterValidator(_without_slash)]


class WebSettings(_Section):
    """Addresses of the pages for browsers, and who may take actions on them."""

    url: WebAddress | None = Field(default=None, description="Address of `fairlead serve`.")
    dagster_url: WebAddress | None = Field(default=None, description="Address of the Dagster UI.")
    docs_url: WebAddress | None = Field(
        default=None, description="Address of this documentation; alerts link to its runbook."
    )
    token: TokenSettings | None = Field(
        default=None, description="Identify people by a signed token."
    )
    header: HeaderSettings | None = Field(
        default=None, description="Identify people by two headers: name and secret."
    )
    approvers: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=("*",),
        description="Names of people who may take actions on web pages; * and ? are wildcards.",
    )

    @model_validator(mode="after")
    def _one_proof(self) -> Self:
        """Refuse `token` together with `header`: people could act with the less secure of the two.

        Also refuse `token` or `header` without `url`: forms are accepted only from pages at `url`.
        """
        if self.token is not None and self.header is not None:
            raise WrongAt("set either web.token or web.header, not both", "header")
        if (self.token or self.header) is not None and self.url is None:
            raise WrongAt("set it: forms are accepted only from pages at this address", "url")
        return self


def _config_path() -> Path:
    return Path(os.environ.get(CONFIG_VARIABLE, "fairlead.toml"))


def present_source() -> str:
    """Return the path of the settings file and the start of its SHA-256, as text."""
    path = _config_path()
    if not path.is_file():
        return "environment variables and defaults"
    return f"{path}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="FAIRLEAD_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
    )

    state_dir: Path = Field(
        default=Path(".fairlead"),
        description="Directory of embedded services, the demo and samples.",
    )
    warehouse: str | None = Field(
        default=None, description="Path of the Parquet files; by default STATE_DIR/warehouse."
    )
    warehouse_retention: timedelta = Field(
        default=timedelta(days=2),
        gt=timedelta(hours=1),
        description="Snapshots older than this are removed; their lag stays in Postgres.",
    )
    history_retention: timedelta = Field(
        default=timedelta(days=30),
        gt=timedelta(days=1),
        description="Age from which `fairlead db prune` removes history in Postgres: samples, lag, "
        "decisions, candidates, balances, adoption, earlier diagnoses, plans that were "
        "not followed.",
    )
    summary_retention: timedelta = Field(
        default=timedelta(days=400),
        gt=timedelta(days=1),
        description="Age from which daily summaries are removed; at least history_retention.",
    )
    kafka: KafkaSettings = KafkaSettings()
    postgres: PostgresSettings = PostgresSettings()
    spark: SparkSettings = SparkSettings()
    sampling: SamplingSettings = SamplingSettings()
    planning: PlanningSettings = PlanningSettings()
    web: WebSettings = WebSettings()
    discovery: Discovery = Discovery()
    policies: tuple[Policy, ...] = ()
    _source: str = PrivateAttr(default_factory=present_source)

    @property
    def source(self) -> str:
        """The file that these settings were read from, and the start of its SHA-256."""
        return self._source

    @property
    def warehouse_path(self) -> str:
        """Path of the Parquet files; every Spark executor must reach it."""
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
        """Let environment variables override the file that `FAIRLEAD_CONFIG` names."""
        toml_settings = TomlConfigSettingsSource(settings_cls, toml_file=_config_path())
        return init_settings, env_settings, toml_settings


def load_settings() -> Settings:
    """Read the settings.

    Raises
    ------
    ConfigurationError
        A setting is unknown, or its value is not valid. The message names the setting and the file
        or variable that sets it, never its value.
    """
    path = _config_path()
    if CONFIG_VARIABLE in os.environ and not path.exists():
        raise ConfigurationError(f"{CONFIG_VARIABLE} names {path}, which does not exist")
    if unknown := _unknown_variables():
        raise ConfigurationError(
            f"{'; '.join(map(_no_such_variable, unknown))} Separate nested names by two "
            "underscores: FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS"
        )
    source = present_source()  # before reading the file, so that `reloaded` notices later changes
    try:
        settings = Settings()
    # `from None`: pydantic's own messages show the values, secrets among them.
    except ValidationError as error:
        problems = "; ".join(_problem(path, problem) for problem in error.errors())
        raise ConfigurationError(problems) from None
    except SettingsError as error:  # invalid JSON in a variable
        raise ConfigurationError(_not_json(str(error))) from None
    except (OSError, ValueError) as error:  # the file is unreadable or not TOML
        raise ConfigurationError(f"{path}: {error}") from None
    settings._source = source  # noqa: SLF001 - of this module
    return settings


def reloaded(before: Settings) -> Settings:
    """Read the settings again; if that fails, return `before`.

    Services call this function, because their settings file can change while they run.
    """
    if present_source() == before.source:
        return before
    try:
        return load_settings()
    except ConfigurationError as error:
        _log.error("%s; the earlier settings stay in force", error)
        return before


def _problem(path: Path, problem: ErrorDetails) -> str:
    """Return text with the file or variable of an invalid setting, its key, and the error."""
    keys = [*problem["loc"]]
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, WrongAt):
        keys += cause.keys
    what = what_is_wrong(problem, Settings)
    if keys[-1] == "schedule":
        what = 'not a cron expression of five fields, such as "*/15 * * * *"'
    return f"{_where(path, keys)}: {_spelt(keys)}: {what}"


def _spelt(keys: Sequence[str | int]) -> str:
    """Return a setting's key as text; policies are numbered, as in `fairlead policy explain`.

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
    """Return an error message that names the variables whose JSON pydantic cannot parse."""
    field = re.search(r'field "(\w+)"', message)
    where = _where("FAIRLEAD_*", [field[1]]) if field else "FAIRLEAD_*"
    return f"{where}: not valid JSON for this setting"


def _where(otherwise: str | Path, keys: Sequence[str | int]) -> str:
    """Return the environment variables that may have set a key; `otherwise` if there are none.

    A variable can set the key itself, a part of the key's value, or the section with the key.
    """
    key = f"FAIRLEAD_{'__'.join(map(str, keys))}__".upper()
    ends = {variable: f"{variable.upper()}__" for variable in sorted(os.environ)}
    variables = [
        variable
        for variable, end in ends.items()
        if end.startswith(key) or (end.startswith("FAIRLEAD_") and key.startswith(end))
    ]
    return ", ".join(variables) or str(otherwise)


def origin() -> str:
    """Return the path of the settings file, or a note that there is no such file."""
    path = _config_path()
    if path.exists():
        return str(path)
    return f"there is no {path} in {Path.cwd()}: using environment variables and defaults"


def set_by(key: str, variable: str) -> str:
    """Return text that names a setting, and the file and the variable that can set it."""
    path = _config_path()
    source = path if path.exists() else f"there is no {path} in {Path.cwd()}"
    return f"{key} ({source}; {variable})"


def _unknown_variables() -> list[str]:
    """Return the names of variables with the prefix FAIRLEAD_ that belong to no setting."""
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
