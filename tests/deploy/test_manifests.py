"""Compose files and Kubernetes manifests: their form, and that they agree with the program and with each other."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import tomllib
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from adapters.checks.probe import Question
from adapters.http.entrance import is_among
from gateway.config.keys import OTHER_VARIABLES, describe
from gateway.config.reading import load
from tests.deploy.schemas import COMPOSE, KUBERNETES

DEPLOY = Path(__file__).parents[2] / "deploy"


ONE, SEVERAL = "kubernetes", "kubernetes-several"
COMPOSE_FILES = ("compose.yaml", "compose-postgres.yaml", "compose-several.yaml")
BOTH = pytest.mark.parametrize("folder", [ONE, SEVERAL])


def kubernetes(folder: str = ONE) -> list[dict[str, Any]]:
    """Every document of every manifest of one gateway, or of several."""
    files = sorted((DEPLOY / folder).glob("*.yaml"))
    return [document for file in files for document in yaml.safe_load_all(file.read_text("utf-8"))]


def of_kind(kind: str, folder: str = ONE) -> dict[str, Any]:
    return next(document for document in kubernetes(folder) if document["kind"] == kind)


def compose(name: str) -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / name).read_text("utf-8"))


def pod(folder: str = ONE) -> dict[str, Any]:
    return of_kind("Deployment", folder)["spec"]["template"]["spec"]


def variables() -> set[str]:
    """Every variable that the program knows."""
    return {name for doc in describe() for name in doc.env} | set(OTHER_VARIABLES)


def served() -> set[str]:
    """The paths at which the gateway says how it is."""
    return {question.path for question in Question}


def test_every_document_has_the_form_of_its_kind():
    for document in (*kubernetes(), *kubernetes(SEVERAL)):
        jsonschema.validate(document, KUBERNETES[document["kind"]])
    for name in COMPOSE_FILES:
        jsonschema.validate(compose(name), COMPOSE)


@pytest.mark.parametrize("where", ["strategy", "replicas", "selector"])
def test_a_missing_or_misspelt_key_is_found(where: str):
    deployment = copy.deepcopy(of_kind("Deployment"))
    deployment["spec"][where + "s"] = deployment["spec"].pop(where)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(deployment, KUBERNETES["Deployment"])


@BOTH
def test_selectors_find_the_pod_and_names_what_they_name(folder: str):
    deployment = of_kind("Deployment", folder)["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
    assert of_kind("Service", folder)["spec"]["selector"] == labels
    assert of_kind("PodDisruptionBudget", folder)["spec"]["selector"]["matchLabels"] == labels
    assert of_kind("NetworkPolicy", folder)["spec"]["podSelector"]["matchLabels"] == labels
    found = pod(folder)
    [container] = found["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in found["volumes"]}
    volumes = {volume["name"]: volume for volume in found["volumes"]}
    claim = of_kind("PersistentVolumeClaim", folder)["metadata"]["name"]
    claimed = [one for one in found["volumes"] if "persistentVolumeClaim" in one]
    assert [one["persistentVolumeClaim"]["claimName"] for one in claimed] == [claim]
    assert volumes["configuration"]["configMap"]["name"] == of_kind("ConfigMap", folder)["metadata"]["name"]
    assert container["envFrom"][0]["secretRef"]["name"] == of_kind("Secret")["metadata"]["name"]
    assert found["serviceAccountName"] == of_kind("ServiceAccount", folder)["metadata"]["name"]


@BOTH
def test_probes_ask_what_the_program_serves_and_a_hanging_loop_is_what_restarts_it(folder: str):
    [container] = pod(folder)["containers"]
    names = {port["name"] for port in container["ports"]}
    paths = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert set(paths.values()) <= served()
    restarts = {paths["livenessProbe"], paths["startupProbe"]}
    assert restarts == {Question.ALIVE.path}, (
        "neither a platform nor a database that is away is a reason to kill the gateway"
    )
    assert paths["readinessProbe"] == Question.READY.path
    assert {container[name]["httpGet"]["port"] for name in paths} <= names
    assert of_kind("Service", folder)["spec"]["ports"][0]["targetPort"] in names


@BOTH
def test_the_configuration_that_is_shipped_is_valid(tmp_path: Path, folder: str):
    file = tmp_path / "outspoken.toml"
    file.write_text(of_kind("ConfigMap", folder)["data"]["outspoken.toml"], "utf-8")
    database = {"OUTSPOKEN_STORAGE__URL": "postgresql://outspoken@database/outspoken"} if folder == SEVERAL else {}
    assert load(file, database, required=True).config.storage.several is (folder == SEVERAL)


def test_every_variable_is_one_that_the_program_knows():
    secret = (DEPLOY / "kubernetes" / "secret.example.yaml").read_text("utf-8")
    offered = set(re.findall(r"^  (?:# )?([A-Z][A-Z_]+):", secret, re.MULTILINE))
    assert len(offered) > 5
    named = {
        name
        for file, service in (
            ("compose.yaml", "gateway"),
            ("compose-postgres.yaml", "gateway"),
            (COMPOSE_FILES[2], "first"),
        )
        for name in compose(file)["services"][service]["environment"]
    }
    assert (offered | named) <= variables()


def test_each_way_to_deploy_it_has_a_key_for_operators() -> None:
    name = "OUTSPOKEN_SERVER__OPERATOR_KEY"
    assert name in of_kind("Secret")["stringData"]
    assert name in compose("compose.yaml")["services"]["gateway"]["environment"]
    [endpoint] = of_kind("ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": of_kind("Secret")["metadata"]["name"], "key": name}
    assert endpoint["port"] == of_kind("Service")["spec"]["ports"][0]["name"]
    assert of_kind("ServiceMonitor")["spec"]["selector"]["matchLabels"] == of_kind("Service")["metadata"]["labels"]
    assert name in (DEPLOY / "systemd" / "outspoken.service").read_text("utf-8")
    assert name in (DEPLOY.parent / "docs" / "operating.md").read_text("utf-8")


def test_a_container_is_asked_whether_it_is_alive_wherever_it_is_described() -> None:
    asked = ["outspoken", "health", Question.ALIVE.value]
    assert f"CMD {json.dumps(asked)}" in (DEPLOY / "Containerfile").read_text("utf-8")
    assert compose("compose.yaml")["services"]["gateway"]["healthcheck"]["test"] == ["CMD", *asked]


def test_git_and_the_image_leave_alone_what_the_documentation_has_people_put_keys_into() -> None:
    root = DEPLOY.parent
    for name in ("deploy/.env", ".env", "deploy/kubernetes/secret.yaml", "secret.yaml", "operator.key"):
        found = subprocess.run(["git", "check-ignore", "--quiet", "--no-index", name], cwd=root, check=False)
        if found.returncode == 128:
            pytest.skip("this is no working tree of git")
        assert found.returncode == 0, name
    ignored = (root / ".dockerignore").read_text("utf-8").split()
    assert ignored.index("*") < ignored.index("!gateway") < ignored.index("**/.env")


def test_the_image_has_every_extra_that_the_configuration_accepts() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))["project"]
    locked = set(re.findall(r"^([a-z0-9-]+)==", (DEPLOY.parent / "requirements.lock").read_text("utf-8"), re.MULTILINE))
    wanted = {re.split(r"[\[>=<]", one)[0] for extra in project["optional-dependencies"].values() for one in extra}
    assert len(wanted) > 2
    assert wanted <= locked


def given(*services: tuple[str, str]) -> dict[str, str]:
    """The variables of a service of a file, one file over the other, filled in as compose does, and what is optional left empty."""
    known = {
        "OUTSPOKEN_SERVER__API_KEY": "k" * 20,
        "OUTSPOKEN_SERVER__OPERATOR_KEY": "o" * 20,
        "POSTGRES_PASSWORD": "p4ssword",
    }
    env: dict[str, str] = {}
    for file, service in services:
        for name, value in compose(file)["services"][service]["environment"].items():
            env[name] = re.sub(r"\$\{([A-Z_]+):[-?][^}]*\}", lambda found: known.get(found[1], ""), value)
    return env


@pytest.mark.parametrize("service", ["first", "second"])
def test_each_of_several_is_given_the_same_valid_configuration(service: str):
    env = given((COMPOSE_FILES[2], service))
    assert env == given((COMPOSE_FILES[2], "first"))
    config = load(None, {**env, "OUTSPOKEN_SERVER__HOST": "0.0.0.0"}).config
    assert config.storage.several
    mounts = dict(one.split(":", 1) for one in compose(COMPOSE_FILES[2])["services"][service]["volumes"])
    assert mounts == {service: "/var/lib/outspoken", "workspaces": str(config.tools.workspace)}


def test_a_balancer_that_compose_starts_is_known_for_one_by_gateways_that_nobody_else_reaches() -> None:
    """From an address that is none of a proxy's, so many connections are taken and no more: with the balancer's, all of them would be refused."""
    services = compose("compose-several.yaml")["services"]
    for service in ("first", "second"):
        assert "ports" not in services[service]
        networks = services[service]["environment"]["OUTSPOKEN_SERVER__TRUSTED_PROXIES"].split(",")
        assert all(any(is_among(one, (ip_network(each),)) for each in networks) for one in ("172.18.0.3", "10.89.0.4"))


def test_what_compose_gives_the_gateway_is_a_valid_configuration():
    env = given(("compose.yaml", "gateway"), ("compose-postgres.yaml", "gateway"))
    config = load(None, {**env, "OUTSPOKEN_SERVER__HOST": "0.0.0.0"}).config
    assert config.storage.url == "postgresql+asyncpg://outspoken:p4ssword@database/outspoken"
    assert config.model.rehearsal, "an empty key is none"


def test_nothing_is_reachable_from_other_machines_that_was_not_meant_to_be():
    for files in (COMPOSE_FILES[:2], COMPOSE_FILES[2:]):
        services = [service for file in files for service in compose(file)["services"].values()]
        assert [port for service in services for port in service.get("ports", [])] == ["127.0.0.1:8787:8787"]
