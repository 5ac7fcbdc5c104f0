"""Checks of the files in deploy/ that do not require a container engine.

The files, services and settings in them exist, programs accept the given options, images are
pinned, no user is root, and Dagster accepts its configuration.
"""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import dagster as dg
import pytest
import yaml
from click.testing import CliRunner
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.workspace.load import location_origins_from_yaml_paths
from dagster_postgres.run_storage import PostgresRunStorage
from sqlalchemy import make_url
from typer.main import get_command

from fairlead.sandbox.jars import KAFKA_VERSION
from fairlead.settings import load_settings
from fairlead.surfaces.cli import app as fairlead
from fairlead.surfaces.links import LOCATION
from orchestration.proxy import ProxyRunCoordinator
from tests.deploy.containers import interpolated
from tests.programs import ended

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
#: Keys that compose.yaml may have at its top level, and in a service.
TOP_LEVEL = {"name", "services", "volumes"}
KEYS = {
    *("build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image"),
    *("mem_limit", "ports", "read_only", "restart", "security_opt", "tmpfs", "user", "volumes"),
}
#: Entry points of Dagster's programs. Tests import only those they need: an import takes a second.
DAGSTERS = {
    "dagster": "dagster._cli:cli",
    "dagster-daemon": "dagster._daemon.cli:cli",
    "dagster-webserver": "dagster_webserver.cli:cli",
}
#: Lines of the Dockerfile in order, without comments: (instruction, arguments).
INSTRUCTIONS = re.findall(
    r"^([A-Z]+) +(.+)$",
    re.sub(r"\\\n *", "", re.sub("(?m)^#.*\n", "", (DEPLOY / "Dockerfile").read_text())),
    re.MULTILINE,
)
PINNED = re.compile(r"[a-z0-9./-]+:v?[0-9]+\.[0-9]+[a-z0-9.-]*")


def test_compose_uses_existing_keys_volumes_and_files() -> None:
    """In compose.yaml, all keys are known, volumes are declared, and mounted files exist."""
    assert {key for key in COMPOSE if not key.startswith("x-")} == TOP_LEVEL
    used = set()
    for service in SERVICES.values():
        assert set(service) <= KEYS
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).is_file(), source
                assert mount.endswith(":ro")
            else:
                used.add(source)
    assert used == set(COMPOSE["volumes"])
    for service in OURS.values():
        context = (DEPLOY / service["build"]["context"]).resolve()
        assert (context / service["build"]["dockerfile"]).is_file()


def test_images_are_pinned_and_no_user_is_root() -> None:
    """Each service has a pinned image, a user other than root, a memory limit, and local ports.

    Kafka's version is that of the tests.
    """
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"
    for service in SERVICES.values():
        assert re.fullmatch(r"[0-9]+[mg]", service["mem_limit"])
        assert PINNED.fullmatch(service["image"])
        assert service["user"] not in {"root", "0"}
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    for service in OURS.values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", OURS)
def test_variables_are_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our services' variables are valid settings; their hosts are services of compose.yaml."""
    environment = OURS[name]["environment"]
    variables = {name: interpolated(value) for name, value in environment.items()}
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(DEPLOY / "fairlead.toml"))
    settings = load_settings()
    if "DAGSTER_POSTGRES_URL" in variables:
        assert make_url(variables["DAGSTER_POSTGRES_URL"]).host in SERVICES
    if "FAIRLEAD_POSTGRES__URL" in variables:
        assert make_url(settings.postgres.url.get_secret_value()).host in SERVICES
        assert settings.kafka.bootstrap_servers.split(":")[0] in SERVICES
        assert settings.web.url


@pytest.mark.parametrize("name", OURS)
def test_programs_accept_their_options(name: str) -> None:
    """Commands and health checks of our services have only options that the programs accept."""
    accepts(OURS[name]["command"])
    check = OURS[name]["healthcheck"]
    if "test" in check:
        assert check["test"][0] == "CMD"
        accepts(check["test"][1:])


def test_workspace_has_the_address_of_the_code_server() -> None:
    """workspace.yaml has the host, port and location name of compose.yaml's service `code`."""
    (location,) = location_origins_from_yaml_paths([str(DEPLOY / "workspace.yaml")])
    assert isinstance(location, GrpcServerCodeLocationOrigin)
    command = SERVICES["code"]["command"]
    assert location.host == "code"
    assert str(location.port) == command[command.index("--port") + 1]
    assert location.location_name == command[command.index("--location-name") + 1] == LOCATION


def test_container_ends_with_its_code_server() -> None:
    """The container's main process is the code server; if it dies, the container is restarted."""
    service = SERVICES["code"]
    last = service["command"][service["command"].index("--") + 1 :]
    assert last[:3] == ["dagster", "api", "grpc"]
    assert service["restart"] == "unless-stopped"
    values = yaml.safe_load((DEPLOY / "kubernetes/dagster-values.yaml").read_text())
    (location,) = values["dagster-user-deployments"]["deployments"]
    assert location["dagsterApiGrpcArgs"] == last[last.index("--module-name") :]
    assert "codeServerArgs" not in location
    accepts(location["livenessProbe"]["exec"]["command"])
    assert str(location["port"]) in location["livenessProbe"]["exec"]["command"]


@pytest.mark.postgres
def test_dagster_accepts_its_configuration(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster accepts deploy/dagster.yaml, with the Postgres driver that compose.yaml names."""
    shared = "/var/lib/dagster"
    assert f"dagster:{shared}" in SERVICES["code"]["volumes"]
    text = (DEPLOY / "dagster.yaml").read_text()
    text = text.replace("fairlead_planner.orchestration", "orchestration")  # the name in tests
    (tmp_path / "dagster.yaml").write_text(text.replace(shared, str(tmp_path)))
    driver = make_url(SERVICES["webserver"]["environment"]["DAGSTER_POSTGRES_URL"]).drivername
    url = make_url(database).set(drivername=driver).render_as_string(hide_password=False)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        instance.optimize_for_webserver(15_000, 3_600, 20)  # Dagster's default values
        assert instance.get_runs_count() == 0
        assert isinstance(instance.run_storage, PostgresRunStorage)
        assert isinstance(instance.run_coordinator, ProxyRunCoordinator)
        assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] == 300
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled


def test_dockerfile_copies_existing_files() -> None:
    """The Dockerfile copies existing files that .dockerignore admits; the base image is pinned."""
    (context,) = {service["build"]["context"] for service in OURS.values()}
    assert (DEPLOY / context).resolve() == ROOT
    sent = re.findall("^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    base = re.search(r"^ARG BASE=(\S+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert base is not None
    assert PINNED.fullmatch(base[1])
    stages = []
    for instruction, arguments in INSTRUCTIONS:
        words = shlex.split(arguments)
        if instruction == "FROM":
            assert words[0] == "${BASE}"
            stages.append(words[-1])
        if instruction == "COPY" and not words[0].startswith("--"):
            for source in words[:-1]:
                assert source in sent
                assert (ROOT / source).exists()
        if instruction == "COPY" and words[0].startswith("--from="):
            assert words[0].removeprefix("--from=") in stages
    assert {instruction for instruction, _ in INSTRUCTIONS} <= {
        *("ARG", "FROM", "RUN", "WORKDIR", "ENV", "COPY", "USER", "EXPOSE"),
        *("HEALTHCHECK", "ENTRYPOINT", "CMD"),
    }
    by_hash = "--require-hashes --requirement requirements-uv.lock"
    assert all(by_hash in path.read_text() for path in (ROOT / "Makefile", DEPLOY / "Dockerfile"))


@pytest.mark.long
def test_wheel_needs_only_the_files_of_the_first_stage(tmp_path: Path) -> None:
    """The wheel can be built from only those files that the Dockerfile's first stage copies."""
    for instruction, arguments in INSTRUCTIONS:
        *sources, target = shlex.split(arguments)
        if instruction == "COPY" and not arguments.startswith(("--", "deploy/")):
            for source in sources:
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, tmp_path / (target if target != "./" else source))
    ended(sys.executable, "-m", "hatchling", "build", "--target", "wheel", cwd=tmp_path)
    assert list(tmp_path.glob("dist/*.whl"))


def test_image_serves_as_an_unprivileged_user() -> None:
    last = dict(INSTRUCTIONS)
    assert last["USER"] == SERVICES["serve"]["user"]
    accepts(json.loads(last["CMD"]))
    accepts(json.loads(last["HEALTHCHECK"].partition("CMD ")[2]))


def accepts(words: list[str]) -> None:
    """Check that a program accepts its arguments, by running it with `--help` appended."""
    if "--" in words:  # after `--` follows another command, which the program runs
        then = words.index("--")
        accepts(words[then + 1 :])
        words = words[:then]
    program, *arguments = words
    if program == "python":
        option, code = arguments
        assert option == "-c"
        compile(code, "<health check>", "exec")
        return
    command: Any = (
        get_command(fairlead) if program == "fairlead" else resolve_name(DAGSTERS[program])
    )
    result = CliRunner().invoke(command, [*arguments, "--help"])
    assert result.exit_code == 0, result.output
