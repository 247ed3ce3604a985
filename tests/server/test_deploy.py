"""Deployment files, checked by linters: no container engine is needed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubeflow_trainer_api.models.trainer_v1alpha1_train_job import TrainerV1alpha1TrainJob
from typer.main import get_command

from polyseme.cli import make_app

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent


def run(tool: str, *arguments: str | Path) -> None:
    """Run a linter; the test fails with its output."""
    result = subprocess.run([TOOLS / tool, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_dockerfile_is_valid():
    run("hadolint", ROOT / "Dockerfile")


def test_the_compose_file_is_valid():
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", ROOT / "compose.yaml")


@pytest.mark.parametrize("page", ["deploy.md", "deploy.zh-CN.md"])
def test_the_kubernetes_example_is_valid(page: str, tmp_path: Path):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "polyseme.yaml").write_text(example)
    run("kubernetes-validate", "--strict", tmp_path / "polyseme.yaml")


def read_manifest(name: str) -> dict[str, Any]:
    values = yaml.safe_load((ROOT / "deploy" / name).read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    return values


def test_the_job_that_embeds_is_valid():
    run("kubernetes-validate", "--strict", ROOT / "deploy" / "embed-job.yaml")
    job = read_manifest("embed-job.yaml")["spec"]
    assert f"/{job['completions']}" in job["template"]["spec"]["containers"][0]["args"][0]


def test_the_training_job_is_valid_for_kubeflow():
    values = read_manifest("pretrain-trainjob.yaml")
    job = TrainerV1alpha1TrainJob.from_dict(values)
    assert job is not None
    written = job.to_dict()
    assert without_created(written) == values  # no field is unknown, and so dropped


def without_created(values: Any) -> Any:
    """Without the creation time, which the library adds to every template."""
    if isinstance(values, dict):
        return {name: without_created(value) for name, value in values.items() if name != "creationTimestamp"}
    return [without_created(value) for value in values] if isinstance(values, list) else values


def test_the_ray_job_has_valid_pods_and_nothing_else_than_its_specification_knows(tmp_path: Path):
    spec = read_manifest("embed-rayjob.yaml")["spec"]
    assert set(spec) == {
        "entrypoint",
        "shutdownAfterJobFinishes",
        "ttlSecondsAfterFinished",
        "backoffLimit",
        "rayClusterSpec",
    }
    cluster = spec["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for number, group in enumerate(groups):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, **group["template"]}
        path = tmp_path / f"pod{number}.yaml"
        path.write_text(yaml.safe_dump(pod), encoding="utf-8")
        run("kubernetes-validate", "--strict", path)


def test_commands_of_the_manifests_are_understood():
    job = read_manifest("embed-job.yaml")["spec"]["template"]["spec"]["containers"][0]["args"][0]
    trainer = read_manifest("pretrain-trainjob.yaml")["spec"]["trainer"]["args"]
    entrypoint = read_manifest("embed-rayjob.yaml")["spec"]["entrypoint"]
    commands = [
        shlex.split(job.replace("$((JOB_COMPLETION_INDEX + 1))", "1"))[1:],
        trainer[trainer.index("polyseme") :],
        shlex.split(entrypoint),
    ]
    for program, verb, *arguments in commands:
        assert program == "polyseme"
        command = get_command(make_app()).commands[verb]  # type: ignore[attr-defined]
        assert command.make_context(verb, arguments).params["out"]


def test_the_linter_finds_mistakes(tmp_path: Path):
    (tmp_path / "Dockerfile").write_text("FROM python\nCMD polyseme\n")
    with pytest.raises(AssertionError, match="DL"):
        run("hadolint", tmp_path / "Dockerfile")
