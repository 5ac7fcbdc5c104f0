"""Run the services of deploy/compose.yaml in containers, with buildah, podman and runc.

No image is downloaded: every image is based on a Debian that debootstrap installs, and Postgres and
Prometheus are Debian's packages.

Belongs here: building images and running services. Belongs elsewhere: checks (`test_image`).
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from fairlead.sandbox.jars import kafka_classpath
from tests.programs import ended
from tests.waiting import PATIENCE_S, eventually

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
VARIABLE: Final = re.compile(r"\$\{([A-Z_]+)(?::-([^}]*)|:\?[^}]*)?\}")
#: Debian packages that are needed to build and run images.
PACKAGES: Final = ("buildah", "crun", "debootstrap", "podman", "runc")
BASE: Final = "localhost/fairlead-test/debian"
IMAGE: Final = "localhost/fairlead-test/fairlead"
BESIDE: Final = "localhost/fairlead-test/beside"
_CERTIFICATES: Final = "/etc/ssl/certs/ca-certificates.crt"
_PODMAN: Final = ("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs")
#: Image and command for each service whose own image would have to be downloaded.
_STAND_INS: Final[dict[str, tuple[str, list[str]]]] = {
    "postgres": (BESIDE, ["sh", "/tests/postgres.sh"]),
    "kafka": (IMAGE, ["sh", "/tests/kafka.sh"]),
    "prometheus": (
        BESIDE,
        [
            *("prometheus", "--config.file=/etc/prometheus/prometheus.yml"),
            "--storage.tsdb.path=/prometheus",
        ],
    ),
}


def interpolated(value: str) -> str:
    """Replace each variable in a value of compose.yaml by its default, or by `secret`."""
    return VARIABLE.sub(lambda found: found[2] or "secret", value)


def run(*words: str | Path, timeout_s: float = 900) -> str:
    """Run a command and return its output; raise AssertionError with the output if it fails."""
    configuration = Path(__file__).with_name("containers.conf")
    surroundings = {**os.environ, "CONTAINERS_CONF": str(configuration)}
    return ended(*words, env=surroundings, timeout=timeout_s).stdout


def build(scratch: Path) -> None:
    """Build three images: the base, deploy/Dockerfile, and one with Postgres and Prometheus."""
    missing = [name for name in PACKAGES if shutil.which(name) is None]
    assert not missing, f"apt-get install {' '.join(missing)}: images are built and run by them"
    root = scratch / "debian"
    wanted = "python3,python3-venv,ca-certificates"
    run("debootstrap", "--variant=minbase", f"--include={wanted}", "bookworm", root)
    shutil.copy(_CERTIFICATES, root / _CERTIFICATES[1:])  # the CAs of this machine
    container = run("buildah", "from", "scratch").strip()
    run("buildah", "add", "--quiet", container, root, "/")
    for name in ("SSL_CERT_FILE", "PIP_CERT"):
        run("buildah", "config", "--env", f"{name}={_CERTIFICATES}", container)
    run("buildah", "commit", "--quiet", container, BASE)
    run("buildah", "rm", container)
    shutil.rmtree(root)
    built = ("buildah", "bud", "--isolation", "chroot", "--network", "host")
    run(*built, "--build-arg", f"BASE={BASE}", "-f", DEPLOY / "Dockerfile", "-t", IMAGE, ROOT)
    (scratch / "Dockerfile").write_text(
        f"FROM {BASE}\nRUN apt-get update && apt-get install --yes --no-install-recommends "
        "postgresql prometheus\n"
    )
    run(*built, "-f", scratch / "Dockerfile", "-t", BESIDE, scratch)


class Composed:
    """Containers of the services in compose.yaml. They share a network that is otherwise isolated.

    Parameters
    ----------
    scratch
        Folder for files that containers mount.
    name
        Prefix of the names of containers and volumes.
    mounts
        Path in a container -> file to mount there instead of the file in compose.yaml.
    """

    def __init__(self, scratch: Path, name: str, mounts: Mapping[str, Path]) -> None:
        self._name = name
        self._mounts = mounts
        self._hosts = scratch / "hosts"
        self._hosts.write_text(f"127.0.0.1 localhost {' '.join(COMPOSE['services'])}\n")
        jars = scratch / "kafka"
        jars.mkdir()
        for jar in kafka_classpath():
            shutil.copy(jar, jars)
        self._jars = jars
        self._started: list[str] = []
        self._run("network", IMAGE, ["sleep", "infinity"], ["--network", "none"])

    def start(self, service: str) -> None:
        """Start a service with the options in compose.yaml."""
        described = COMPOSE["services"][service]
        image, command = _STAND_INS.get(service, (IMAGE, described.get("command", [])))
        options = [
            *(f"--cap-drop={name}" for name in described.get("cap_drop", ())),
            *(f"--security-opt={name.split(':')[0]}" for name in described.get("security_opt", ())),
            *(f"--tmpfs={path}" for path in described.get("tmpfs", ())),
            f"--memory={described['mem_limit']}",
            *(["--read-only"] if described.get("read_only") else []),
        ]
        if service not in _STAND_INS:
            options.append(f"--user={described['user']}")
        for name, value in described.get("environment", {}).items():
            if value is not None:  # if None, Compose takes the value from its environment
                options.append(f"--env={name}={interpolated(str(value))}")
        for mount in described.get("volumes", ()):
            source, path, *_ = mount.split(":")
            if path in self._mounts:
                options.append(f"--volume={self._mounts[path]}:{path}:ro")
            elif source.startswith("."):
                options.append(f"--volume={(DEPLOY / source).resolve()}:{path}:ro")
            else:
                options.append(f"--volume={self._name}-{source}:{path}")
        self._run(service, image, list(command), [*options, *self._shared()])

    def start_beside(self, name: str, command: Sequence[str]) -> None:
        """Start a program in an additional container, without the services' settings."""
        self._run(name, IMAGE, list(command), [*self._shared(), "--tmpfs=/tmp"])

    def exec(self, service: str, *words: str) -> str:
        """Run a command in a service's container and return its output."""
        return run(*_PODMAN, "exec", self._of(service), *words)

    def begin(self, service: str, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command in a service's container and do not wait for its end."""
        quiet = subprocess.DEVNULL
        command = [*_PODMAN, "exec", self._of(service), *words]
        return subprocess.Popen(command, stdout=quiet, stderr=quiet)

    def answer(self, service: str, *words: str) -> str | None:
        """Return the output of a command in a service's container, or None if it failed."""
        done = ended(*_PODMAN, "exec", self._of(service), *words, status=None)
        return done.stdout.strip() if done.returncode == 0 else None

    def healthy(self, service: str) -> bool:
        """Return whether a service passes its health check from compose.yaml."""
        _, *words = COMPOSE["services"][service]["healthcheck"]["test"]
        return self.answer(service, *words) is not None

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; after a time-out, raise an error with the containers' logs."""

        def logs() -> str:
            logs = (f"== {name}\n{self.log(name)[-1500:]}" for name in self._started)
            return "\n".join([what, *logs])

        eventually(condition, logs)

    def ended_well(self, service: str) -> bool:
        """Wait until a service ends; return whether it succeeded."""
        return run(*_PODMAN, "wait", self._of(service)).strip() == "0"

    def log(self, service: str) -> str:
        """Return a container's output."""
        done = ended(*_PODMAN, "logs", self._of(service), status=None)
        return done.stdout + done.stderr

    def stop(self, service: str) -> None:
        """Send SIGTERM to a service; if it does not end in time, send SIGKILL."""
        run(*_PODMAN, "stop", "--time", str(int(PATIENCE_S)), self._of(service))

    def kill(self, service: str) -> None:
        """Kill a service's container, as in a crash, and start it again."""
        run(*_PODMAN, "kill", self._of(service))
        run(*_PODMAN, "wait", self._of(service))
        self.start_again(service)

    def start_again(self, service: str) -> None:
        """Start a service's container that has ended."""
        run(*_PODMAN, "start", self._of(service))

    def exit_code(self, service: str) -> int:
        """Return the exit code of a service's stopped container. After SIGKILL, it is 137."""
        form = "{{.State.ExitCode}}"
        return int(run(*_PODMAN, "inspect", "--format", form, self._of(service)))

    def remove(self) -> None:
        """Remove all containers and volumes."""
        for name in reversed(self._started):
            ended(*_PODMAN, "rm", "--force", self._of(name), status=None)
        for volume in COMPOSE["volumes"]:
            ended(*_PODMAN, "volume", "rm", "--force", f"{self._name}-{volume}", status=None)

    def _shared(self) -> list[str]:
        tests = Path(__file__).parent
        return [
            f"--network=container:{self._of('network')}",
            f"--volume={self._hosts}:/etc/hosts:ro",
            f"--volume={tests}:/tests:ro",
            f"--volume={self._jars}:/kafka:ro",
        ]

    def _run(self, name: str, image: str, command: list[str], options: list[str]) -> None:
        self._started.append(name)
        run(
            *_PODMAN,
            "run",
            "--detach",
            "--ulimit",
            "host",
            "--name",
            self._of(name),
            *options,
            image,
            *command,
        )

    def _of(self, service: str) -> str:
        return f"{self._name}-{service}"
