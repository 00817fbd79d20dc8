"""Are the files in deploy/ true: do their commands, options, ports, paths and times hold together?"""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.cli.exits import Exit
from holdfast.cli.patience import Patience
from holdfast.config import load
from holdfast.servers.app import PUBLIC
from tests.cli.conftest import ROOT
from tests.cli.test_commands import commands
from tests.requirements import requirement

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
CONTAINER = (DEPLOY / "Containerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
CADDY = (DEPLOY / "Caddyfile").read_text()
GATEWAYS = {name: one for name, one in COMPOSE["services"].items() if one.get("image") == "holdfast"}


def lines_of(unit: Path) -> dict[str, str]:
    said = re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE)
    return dict(said)


SERVICE = lines_of(DEPLOY / "systemd" / "holdfast.service")


def served_by_container() -> list[str]:
    found = re.search(r"^CMD (\[.*\])$", CONTAINER, re.MULTILINE)
    assert found
    return [str(word) for word in yaml.safe_load(found[1])]


def lines() -> list[list[str]]:
    """Every command line of `holdfast` in these files, without the program."""
    units = [line for unit in UNITS for line in unit.read_text().splitlines() if line.startswith("Exec")]
    words = [shlex.split(line.replace("'", "").partition("/holdfast ")[2]) for line in units]
    return [*(found for found in words if found), served_by_container()]


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def patience(words: list[str]) -> Patience:
    return Patience(float(option(words, "--notice")), float(option(words, "--grace")))


@requirement("PPL-3")
@pytest.mark.parametrize("words", lines(), ids=" ".join)
def test_every_command_exists_with_every_option(words: list[str]) -> None:
    known: Any = commands()[words[0]]
    if below := getattr(known, "commands", None):
        known = below[words[1]]
    options = {name for parameter in known.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options


@requirement("PPL-3")
def test_whoever_stops_a_gateway_waits_until_it_is_drained() -> None:
    unit = shlex.split(SERVICE["ExecStart"])
    assert float(SERVICE["TimeoutStopSec"]) > patience(unit).whole_s
    for gateway in GATEWAYS.values():
        assert float(gateway["stop_grace_period"].removesuffix("s")) > patience(served_by_container()).whole_s


@requirement("PPL-3")
def test_a_stop_is_noticed_by_the_load_balancer_before_connections_are_refused() -> None:
    every_s = float(re.findall(r"health_interval (\d+)s", CADDY)[0])
    assert patience(served_by_container()).notice_s > 2 * every_s
    assert re.findall(r"health_uri (\S+)", CADDY) == ["/ready"]
    assert "/ready" in PUBLIC


@requirement("PPL-3")
def test_a_reload_replaces_the_workers_and_a_stop_is_for_the_parent_alone() -> None:
    assert SERVICE["ExecReload"].endswith("kill -HUP $MAINPID")
    assert (SERVICE["KillMode"], SERVICE["KillSignal"]) == ("mixed", "SIGTERM")
    assert int(SERVICE["RestartPreventExitStatus"]) == Exit.USAGE
    assert "--workers" in SERVICE["ExecStart"]


@requirement("PPL-3")
def test_everybody_means_the_same_port() -> None:
    port = option(served_by_container(), "--port")
    assert re.findall(r"^EXPOSE (\d+)$", CONTAINER, re.MULTILINE) == [port]
    assert re.findall(r"127\.0\.0\.1:(\d+)(/\w+)", CONTAINER) == [(port, "/ready")]
    upstreams = re.findall(r"(holdfast-\d+):(\d+)", CADDY)
    assert {name for name, _ in upstreams} == set(GATEWAYS)
    assert {at for _, at in upstreams} == {port}
    listens = re.findall(r"^:(\d+) ", CADDY, re.MULTILINE)
    assert COMPOSE["services"]["proxy"]["ports"] == [f"127.0.0.1:{one}:{one}" for one in listens]


@requirement("PPL-3")
def test_every_file_that_is_mounted_or_copied_is_there() -> None:
    for service in COMPOSE["services"].values():
        for mounted in service["volumes"]:
            source = mounted.split(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists()
    assert (DEPLOY / GATEWAYS["holdfast-1"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / GATEWAYS["holdfast-1"]["build"]["dockerfile"]).is_file()
    for copied in re.findall(r"^COPY (?!--)(.+) \S+$", CONTAINER, re.MULTILINE):
        assert all((ROOT / source).exists() for source in copied.split())


@requirement("PPL-3")
def test_images_are_plain_public_names_and_the_container_is_not_root() -> None:
    images = [one["image"] for one in COMPOSE["services"].values()]
    images += re.findall(r"^FROM (\S+)", CONTAINER, re.MULTILINE)
    assert all(re.fullmatch(r"[a-z]+(:[\w.-]+)?", image) for image in images)
    users = re.findall(r"^USER (\d+):(\d+)$", CONTAINER, re.MULTILINE)
    assert users
    assert ("0", "0") not in users


@requirement("PPL-3")
def test_the_container_installs_extras_that_exist() -> None:
    found = re.search(r"'\.\[(.+)\]'", CONTAINER)
    assert found
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(found[1].split(",")) <= set(project["optional-dependencies"])


@requirement("PPL-3")
def test_the_configuration_to_begin_with_can_be_used() -> None:
    config = load(DEPLOY / "config" / "holdfast.yaml", environ=_given())
    config.check_host(option(served_by_container(), "--host"))
    assert config.environment.value == "prod"


def _given() -> dict[str, str]:
    """Every variable that the compose file hands to a gateway, filled in."""
    values = {"HOLDFAST_KEY_ID": "abcd1234", "HOLDFAST_KEY_HASH": f"sha256:{'0' * 64}"}
    return {name: values.get(name, "secret") for name in GATEWAYS["holdfast-1"]["environment"]}


@requirement("PPL-3")
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_units(unit: Path, tmp_path: Path) -> None:
    for one in UNITS:  # a timer wants its service; the program is not installed where it says
        (tmp_path / one.name).write_text(
            one.read_text().replace("/opt/holdfast/bin/holdfast", sys.executable)
        )
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name)], capture_output=True, text=True
    )
    ours = [line for line in checked.stderr.splitlines() if "holdfast" in line]
    assert (checked.returncode, ours) == (0, [])
