"""Settings: precedence of file and variables, invalid values, and secrets in messages."""

import hashlib
import traceback
from pathlib import Path

import pytest

from fairlead.errors import ConfigurationError
from fairlead.settings import Settings, load_settings, reloaded
from tests.records import SIGNER

KEY = SIGNER.private_text()
SECRET = "hunter2"  # noqa: S105 - not a real one


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an empty file that `load_settings` reads; return its path."""
    path = tmp_path / "fairlead.toml"
    path.touch()
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(path))
    return path


def test_variable_overrides_one_setting_of_the_file(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable replaces one setting; the file's other settings in the section still apply."""
    config.write_text('[kafka]\nbootstrap_servers = "file:1"\nplan_topic = "plans"\n')
    monkeypatch.setenv("FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS", "variable:1")
    settings = load_settings()
    assert settings.kafka.bootstrap_servers == "variable:1"
    assert settings.kafka.plan_topic == "plans"


def test_changed_file_is_read_again(config: Path) -> None:
    """If the file has changed, it is read again; settings contain the file's path and hash.

    If the new content is invalid, the old settings remain.
    """
    first = load_settings()
    assert reloaded(first) is first
    text = '[[policies]]\ngroups = "orders"\n'
    config.write_text(text)
    second = reloaded(first)
    assert [policy.groups for policy in second.policies] == ["orders"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert second.source == f"{config}, SHA-256 {digest[:12]}"
    config.write_text("[[polices]]")
    assert reloaded(second) is second


ISSUER = 'jwks_url = "{}"\nissuer = "i"\naudience = "a"\n'


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('header.secret = "short"', r"web\.header\.secret: must have at least 32"),
        ('header.secret = "{S}é"', r"web\.header\.secret: .*openssl rand"),
        ('header = {secret = "{S}", name = "X_User"}', r"web\.header\.name: "),
        ('header = {secret = "{S}", name = "x-fairlead-secret"}', r"secret_name: the name and"),
        (
            'header.secret = "{S}"\n[web.token]\n{T}',
            r"web\.header: set either web\.token or web\.header",
        ),
        ('[web.token]\njwks_url = "https://x/k"', r"web\.token\.issuer: .*web\.token\.audience"),
        ('[web.token]\njwks_url = "http://x/k"', r"web\.token\.jwks_url: must be https: "),
        ('[web.token]\n{T}algorithms = ["HS256"]', r"web\.token\.algorithms\.0: "),
        ('[web.token]\n{T}algorithms = ["none"]', r"web\.token\.algorithms\.0: "),
        ("[web.token]\n{T}algorithms = []", r"web\.token\.algorithms: "),
    ],
)
def test_weak_web_login_is_refused(config: Path, toml: str, message: str) -> None:
    """The error for an insecure key of `[web]` names the key, and does not show the secret."""
    secret = "s" * 40
    token = ISSUER.format("https://login.example/keys")
    text = toml.replace("{S}", secret).replace("{T}", token)
    config.write_text(f'[web]\nurl = "https://fairlead.example"\n{text}')
    with pytest.raises(ConfigurationError, match=message) as error:
        load_settings()
    assert secret not in str(error.value)


@pytest.mark.parametrize(
    ("toml", "name"),
    [
        ("colour = 1", "colour"),
        ("[kafka]\nbootstrap = 'k:1'", "kafka.bootstrap"),
        ("[kafka]\nrequest_timeout_s = 0", "kafka.request_timeout_s"),
        ("[[policies]]\nassignors = []", r"\[\[policies\]\] 1: assignors"),
        ("[[policies]]\nexpires_after = 0", r"\[\[policies\]\] 1: expires_after"),
        ("[[policies]]\napproval.forbidden_statuses = ['STOPP']", "forbidden_statuses"),
        ("[[policies]]\nchoose = 'lightest'", r"\[\[policies\]\] 1: choose"),
    ],
)
def test_invalid_settings_are_named(config: Path, toml: str, name: str) -> None:
    """The error for an unknown key or an invalid value has the key's full name and the file."""
    config.write_text(toml)
    with pytest.raises(ConfigurationError, match=name) as caught:
        load_settings()
    assert str(config) in str(caught.value)


@pytest.mark.parametrize(
    ("toml", "meant"),
    [
        ("[kafka]\nbootstrap_server = 'k:1'", "bootstrap_servers"),
        ("[[policies]]\nmax_move = 1", "max_moves"),
        ("[[policies]]\napproval.automatik = true", "automatic"),
        ("kafak.plan_topic = 'x'", "kafka"),
    ],
)
def test_error_of_a_mistyped_key_has_the_nearest_one(config: Path, toml: str, meant: str) -> None:
    """The error for a mistyped key suggests the nearest key, or lists all keys of the table."""
    config.write_text(toml)
    with pytest.raises(ConfigurationError, match=rf": no such key; did you mean {meant}\?$"):
        load_settings()
    config.write_text("[web]\ncolour = 1")
    with pytest.raises(
        ConfigurationError,
        match=r": no such key; known names: approvers, dagster_url, docs_url, header, token, url$",
    ):
        load_settings()


def test_errors_in_variables_name_the_variable(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a variable and the file set the same key, the error names the variable."""
    config.write_text("[kafka]\nrequest_timeout_s = 5\n")
    monkeypatch.setenv("FAIRLEAD_KAFKA__REQUEST_TIMEOUT_S", "0")
    with pytest.raises(ConfigurationError, match=r"^FAIRLEAD_KAFKA__REQUEST_TIMEOUT_S: kafka\."):
        load_settings()


def test_variable_for_a_part_of_a_list_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable can set part of a list, such as `max_moves` of the first policy."""
    monkeypatch.setenv("FAIRLEAD_POLICIES__0__MAX_MOVES", "1")
    with pytest.raises(ConfigurationError, match=r"^FAIRLEAD_POLICIES__0__MAX_MOVES: policies: "):
        load_settings()


@pytest.mark.parametrize(
    "name", ["FAIRLEAD_KAFKA_BOOTSTRAP_SERVERS", "FAIRLEAD_STATE", "fairlead_polices"]
)
def test_unknown_variables_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt FAIRLEAD_ variable, such as one with "_" instead of "__", is an error."""
    monkeypatch.setenv(name, "x")
    with pytest.raises(ConfigurationError, match=f"{name}: no such setting"):
        load_settings()


@pytest.mark.parametrize("text", ["[kafka", "kafka = {", "\x00"])
def test_file_that_is_not_toml_is_named(config: Path, text: str) -> None:
    """The error for a file that is not TOML has the file's path."""
    config.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"{config}: ")


def test_librdkafka_settings_pass_through(config: Path) -> None:
    """Clients get defaults, the keys of `[kafka.properties]` as text, and the given arguments."""
    config.write_text(
        '[kafka]\nbootstrap_servers = "k:1"\n[kafka.properties]\n'
        f'"sasl.password" = "{SECRET}"\n"socket.keepalive.enable" = true\n"retries" = 3\n'
    )
    assert load_settings().kafka.librdkafka(**{"client.id": "me"}) == {
        "bootstrap.servers": "k:1",
        "log_level": "2",
        "allow.auto.create.topics": False,
        "sasl.password": SECRET,
        "socket.keepalive.enable": "true",
        "retries": "3",
        "client.id": "me",
    }


def test_secrets_are_not_shown(config: Path) -> None:
    """`str` and `repr` of settings contain no passwords and no signing key."""
    config.write_text(
        f'[kafka]\nprivate_key = "{KEY}"\nproperties = {{"sasl.password" = "{SECRET}"}}\n'
        f'[postgres]\nurl = "postgresql://me:{SECRET}@db/fairlead"\n'
        f'[spark.properties]\n"spark.hadoop.fs.s3a.secret.key" = "{SECRET}"\n'
    )
    settings = load_settings()
    text = repr(settings) + str(settings)
    assert SECRET not in text
    assert KEY not in text
    assert settings.kafka.signer is not None


@pytest.mark.parametrize("key", ["", SECRET])
def test_empty_signing_key_is_refused(config: Path, key: str) -> None:
    """An empty key, for example from an unset variable, must not turn off signing."""
    config.write_text(f'[kafka]\nprivate_key = "{key}"\n')
    with pytest.raises(ConfigurationError, match=r"kafka\.private_key") as refused:
        load_settings()
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "toml",
    [
        f'[kafka]\nprivate_key = ["{SECRET}"]',
        f'[kafka.properties]\n"sasl.password" = ["{SECRET}"]',
        f'[postgres]\nurl = {{password = "{SECRET}"}}',
    ],
)
def test_errors_do_not_show_secrets(config: Path, toml: str) -> None:
    """Neither the message nor the traceback for an invalid setting shows its secret value."""
    config.write_text(toml)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_variable_that_is_not_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for a variable that is not JSON names the variable, but not its value."""
    monkeypatch.setenv("FAIRLEAD_KAFKA__PROPERTIES", f"{{{SECRET}")
    with pytest.raises(ConfigurationError, match=r"^FAIRLEAD_KAFKA__PROPERTIES: ") as caught:
        load_settings()
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_warehouse_is_by_default_under_the_state_directory(tmp_path: Path) -> None:
    """By default, `warehouse` is a folder in `state_dir`; a configured path is used as it is."""
    assert Settings(state_dir=tmp_path).warehouse_path == str(tmp_path / "warehouse")
    assert Settings(state_dir=Path("here")).warehouse_path == str(Path.cwd() / "here" / "warehouse")
    assert Settings(warehouse="s3a://bucket/lag").warehouse_path == "s3a://bucket/lag"
