"""The manifest of Kubernetes has its schemas, and agrees with the container, the settings and the files of `apply`."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sallyport import __version__
from sallyport.settings.settings import Settings, load, unknown_environment
from sallyport.settings.values import SECRET_PREFIX
from tests.deploy.test_container import ROOT, environment

FILE = ROOT / "src" / "sallyport" / "deploy" / "kubernetes" / "sallyport.yaml"
OBJECTS: dict[str, Any] = {each["kind"]: each for each in yaml.safe_load_all(FILE.read_text(encoding="utf-8"))}
POD: dict[str, Any] = OBJECTS["StatefulSet"]["spec"]["template"]["spec"]
(NODE,) = POD["containers"]
STRING = {"Secret": "stringData", "ConfigMap": "data"}


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_objects_have_their_schemas(kind: str) -> None:
    """Kubernetes would accept each object, in the oldest version that it supports and in the newest. No field is
    unknown.
    """
    for version in ("1.34", kubernetes_validate.latest_version()):
        kubernetes_validate.validate(OBJECTS[kind], version, strict=True)


def test_the_variables_are_settings(tmp_path: Path) -> None:
    """The service starts with the variables. Each file of a secret is mounted."""
    variables = {each["name"]: each.get("value", "node-0") for each in NODE["env"]}
    assert unknown_environment(variables) == []
    mounted = {item["path"] for volume in POD["volumes"] for item in volume.get("secret", {}).get("items", ())}
    folder = next(each["mountPath"] for each in NODE["volumeMounts"] if each["name"] == "secrets")
    assert {f"{folder}/{name}" for name in mounted} == {value for value in variables.values() if folder in value}
    (tmp_path / "database_url").write_text(OBJECTS["Secret"]["stringData"]["database_url"])
    given = {key: value.replace(folder, str(tmp_path)) for key, value in variables.items()}
    settings = load(Path("/dev/null"), {**environment(), **given})
    assert settings.database_url and settings.node == "node-0"
    assert str(settings.apply) == next(each["mountPath"] for each in NODE["volumeMounts"] if each["name"] == "policy")


def test_every_reference_has_its_value() -> None:
    """A secret that the ConfigMap names is a variable, and each variable is a key of the Secret."""
    variables = {each["name"]: each.get("valueFrom", {}).get("secretKeyRef") for each in NODE["env"]}
    named = {
        line.partition('"env:')[2].partition('"')[0]
        for text in OBJECTS["ConfigMap"]["data"].values()
        for line in text.splitlines()
        if '"env:' in line
    }
    assert named == {name for name, key in variables.items() if key is not None} != set()
    assert all(variables[name]["key"] in OBJECTS["Secret"]["stringData"] for name in named)
    assert all(name.startswith(SECRET_PREFIX) for name in named)


def test_the_node_is_the_container_of_the_project() -> None:
    """Image, user, data directory, ports and grace period are those of the container file and the settings."""
    assert NODE["image"] == f"sallyport-radius:{__version__}"
    assert POD["securityContext"]["runAsUser"] == 10001
    assert environment()["SALLYPORT_DATA_DIR"] in {each["mountPath"] for each in NODE["volumeMounts"]}
    settings = Settings()
    radius = {each.port for each in (*settings.radius_auth_bind, *settings.radius_acct_bind)}
    assert {each["containerPort"] for each in NODE["ports"] if each.get("protocol") == "UDP"} == radius
    assert POD["terminationGracePeriodSeconds"] >= settings.drain_s + 10
    assert POD["hostNetwork"] and POD["dnsPolicy"] == "ClusterFirstWithHostNet"
