"""Texts of users in a real server: sent, trained, indexed, paused, killed and refused."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from waiting import until
from workspaces import LONG, NOVEL, QUICK, WorkspaceClient, count_trained_tokens

jsonschema = pytest.importorskip("jsonschema")
ACTIONS = ("start", "pause", "resume", "cancel", "delete")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace") / "texts"


@pytest.fixture(scope="module")
def client(start_server, folder: Path) -> Iterator[WorkspaceClient]:
    limits = ("--workspace-bytes", "200000", "--workspace-corpora", "6", "--body-bytes", "100000")
    server = start_server("zh-classic", "--workspace", folder, *limits).wait()
    with WorkspaceClient(server.address) as http_client:
        yield http_client
    assert server.stop()[0] == 0


@pytest.fixture
def draft(client: WorkspaceClient) -> Iterator[str]:
    """An empty corpus, which is deleted after the test."""
    name = client.create("Draft")
    yield name
    client.act(name, "delete")


def find_job(corpus: Path) -> int:
    """The id of the process that works for a corpus."""
    return int((corpus / ".job.lock").read_text())


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] == "Z"
    except FileNotFoundError:
        return True


def test_a_text_in_gbk_is_trained_indexed_and_explored(client: WorkspaceClient, folder: Path):
    data = NOVEL.encode("gbk")
    name = client.create("三国 演义")
    assert name == "三国-演义"
    half = len(data) // 2 + 1  # within a character
    first = client.upload(name, "sanguo.txt", data[:half], size=len(data)).json()
    assert first == {"name": "sanguo.txt", "received": half, "complete": False}
    assert client.status(name)["files"] == []
    assert client.upload(name, "sanguo.txt", data[half:], size=len(data), offset=half).json()["complete"]
    assert client.status(name)["files"] == [{"name": "sanguo.txt", "bytes": len(data), "encoding": "GB18030"}]
    assert client.act(name, "start", QUICK).status_code == 200
    status = client.wait(name, "ready")
    assert status["perplexity"] > 1
    assert status["validations"]
    assert (folder / name / "text" / "sanguo.txt").read_bytes() == data
    words = client.post(f"/corpora/{name}/nearest", json={"word": "曹操", "k": 3})
    assert len(words.json()["words"]) == 3, words.text
    info = client.get(f"/corpora/{name}/info").json()
    assert (info["model"]["name"], info["model"]["size"]) == (name, 32)
    assert "第1回 玄德出兵" in info["indexes"][0]["documents"]
    assert client.get("/info").json()["model"]["name"] == "zh-classic"  # the other model is still there
    assert (
        client.post(f"/corpora/{name}/v1/embeddings", json={"model": "no", "input": "曹操"}).status_code
        == 404
    )


def test_two_corpora_are_side_by_side_and_one_uses_a_bundled_model(client: WorkspaceClient):
    name = client.begin("Other", {"train": False, "base": "zh-classic"}, NOVEL.replace("曹操", "宝玉"))
    client.wait(name, "ready")
    assert client.get(f"/corpora/{name}/info").json()["model"]["size"] == 256
    assert client.post(f"/corpora/{name}/nearest", json={"word": "宝玉"}).status_code == 200
    missing = client.post(f"/corpora/{name}/nearest", json={"word": "曹操"})
    assert (missing.status_code, missing.json()["code"]) == (404, "word_missing")
    assert client.act(name, "delete").json() == {"deleted": name}
    assert client.get(f"/corpora/{name}/info").json()["code"] == "corpus_missing"


def test_a_job_is_paused_resumed_and_cancelled(client: WorkspaceClient, folder: Path):
    name = client.begin("Long", LONG)
    client.wait_for_steps(name, 5000)  # some lines of metrics.jsonl
    waiting = client.begin("Second", QUICK)
    assert client.status(waiting)["state"] == "waiting"  # one job at a time
    assert client.act(waiting, "pause").json()["state"] == "paused"
    client.act(name, "pause")
    paused = client.wait(name, "paused")
    before = count_trained_tokens(folder / name)
    assert before >= paused["done"] > 0  # everything that was seen is saved
    assert client.act(name, "resume").json()["state"] == "waiting"
    assert client.wait_for_steps(name, before + 1)["losses"][0]["tokens"] < before
    assert client.act(name, "cancel").json()["state"] == "draft"
    assert not (folder / name / "model").exists()
    assert [file["name"] for file in client.status(name)["files"]] == ["novel.txt"]
    for corpus in (name, waiting):
        assert client.act(corpus, "delete").status_code == 200
        assert not (folder / corpus).exists()


def test_a_server_killed_while_it_trains_loses_nothing(start, tmp_path: Path):
    folder = tmp_path / "texts"
    server = start("zh-classic", "--workspace", folder).wait()
    with WorkspaceClient(server.address) as client:
        name = client.begin("Killed", LONG)
        seen = client.wait_for_steps(name)["done"]
        job = find_job(folder / name)
        server.stop(signal.SIGKILL)
    until(lambda: has_ended(job), 60)  # the job ends by itself, after it has saved
    saved = count_trained_tokens(folder / name)
    assert saved >= seen
    assert json.loads((folder / name / "corpus.json").read_text())["state"] == "waiting"
    server = start("zh-classic", "--workspace", folder).wait()
    with WorkspaceClient(server.address) as client:
        client.wait_for_steps(name, saved + 1)  # it goes on by itself
        job = find_job(folder / name)
        os.kill(job, signal.SIGKILL)
        failed = until_failed(client, name)
        assert "memory" in failed["error"]
        assert failed["error_code"] == "job_killed"
        assert client.act(name, "resume").status_code == 200
        client.wait_for_steps(name, saved + 1)
        metrics = folder / name / "model" / "metrics.jsonl"
        until(metrics.exists, 60)
        assert server.stop()[0] == 0  # which saves, too
    until(lambda: has_no_job(folder / name), 60)
    assert json.loads((folder / name / "corpus.json").read_text())["state"] == "waiting"
    steps = [json.loads(line)["step"] for line in metrics.read_text().splitlines()]
    assert steps == sorted(steps)


def until_failed(client: WorkspaceClient, name: str) -> dict:
    until(lambda: client.status(name)["state"] == "failed", 60)
    return client.status(name)


def has_no_job(corpus: Path) -> bool:
    """Whether no process works for a corpus; a killed one may leave its lock file, but nobody locks it."""
    try:
        with (corpus / ".job.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def test_an_error_of_the_library_is_one_line_and_the_text_can_be_mended(client: WorkspaceClient):
    name = client.begin("Short", QUICK, "太短。")
    failed = until_failed(client, name)
    assert failed["error_code"] == "too_little_text"
    error = failed["error"]
    assert "\n" not in error
    assert str(Path.home()) not in error
    assert "/texts/" not in error
    assert client.act(name, "cancel").json()["state"] == "draft"
    assert client.upload(name, "more.md", NOVEL.encode("utf-16")).status_code == 200
    assert client.act(name, "start", QUICK).status_code == 200
    client.wait(name, "ready")
    client.act(name, "delete")


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "evil.example:8000", "Origin": "http://evil.example:8000"},  # DNS rebinding
    {"Host": ""},
    {"Host": "["},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_pages_of_other_sites_are_refused(client: WorkspaceClient, headers: dict[str, str]):
    for method, path in (("POST", "/workspace"), ("GET", "/workspace"), ("GET", "/corpora/x/info")):
        response = client.request(method, path, json={"title": "x"}, headers=headers)
        assert (response.status_code, response.json()["error_type"]) == (403, "forbidden")
    assert client.get("/workspace").json()["corpora"] == client.get("/workspace").json()["corpora"]


def test_the_page_itself_is_not_refused(client: WorkspaceClient):
    address = str(client.base_url).rstrip("/")
    for headers in (
        {"Origin": address, "Sec-Fetch-Site": "same-origin"},
        {"Host": "localhost:8000", "Origin": "http://localhost:8000"},
        {"Host": "[::1]:8000"},
    ):
        assert client.get("/workspace", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["%2e%2e", "..%2f..%2fetc", "%2fetc%2fpasswd", ".workspace.lock", "a%00b"])
def test_no_name_of_a_corpus_leaves_the_folder(client: WorkspaceClient, path: str):
    for method, route in (("GET", ""), ("POST", "/delete"), ("POST", "/pause")):
        response = client.request(method, f"/workspace/{path}{route}")
        assert response.status_code in (404, 405), response.text
    assert client.get(f"/corpora/{path}/info").status_code == 404


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../novel.txt", "file_name"),
        ("/etc/novel.txt", "file_name"),
        ("..\\novel.txt", "file_name"),
        ("C:novel.txt", "file_name"),
        (".novel.txt", "file_name"),
        ("no\x00vel.txt", "file_name"),
        ("no\nvel.txt", "file_name"),
        ("nul.txt", "file_name"),
        ("novel\u202etxt.md", "file_name"),
        ("x" * 300 + ".txt", "file_name_long"),
        ("novel.docx", "file_kind"),
        ("novel.txt.gz", "file_kind"),
        ("novel", "file_kind"),
        ("", "file_kind"),
    ],
)
def test_no_name_of_a_file_leaves_the_corpus(client: WorkspaceClient, draft: str, name: str, code: str):
    response = client.upload(draft, name, b"text")
    assert (response.status_code, response.json()["code"]) == (422, code)
    assert client.status(draft)["files"] == []


def test_what_is_too_large_or_no_text_is_refused(client: WorkspaceClient, draft: str, folder: Path):
    def code(response: httpx.Response) -> tuple[int, str]:
        return response.status_code, response.json()["code"]

    assert code(client.upload(draft, "a.txt", b"x" * 100_001)) == (413, "body_too_large")
    assert code(client.upload(draft, "a.txt", b"x", size=200_001)) == (413, "corpus_too_large")
    assert client.upload(draft, "a.txt", b"x" * 100_000).status_code == 200
    assert code(client.upload(draft, "b.txt", b"x", size=100_001)) == (413, "corpus_too_large")
    assert client.upload(draft, "a.txt", b"y").status_code == 200  # replaces the file of that name
    assert code(client.upload(draft, "b.txt", b"xy", size=1)) == (422, "file_size")
    gap = client.upload(draft, "b.txt", b"x", size=10, offset=5)
    assert code(gap) == (409, "file_offset")
    assert gap.json()["values"] == {"received": 0}
    assert client.upload(draft, "half.txt", b"x" * 90_000, size=100_000).status_code == 200
    assert code(client.upload(draft, "b.txt", b"x", size=150_000)) == (413, "corpus_too_large")
    assert client.upload(draft, "half.txt", b"x").status_code == 200
    for data, kind in (
        (b"\x1f\x8b\x08\x00", "file_packed"),
        (b"PK\x03\x04\x14\x00", "file_packed"),
        (b"%PDF-1.7", "file_packed"),
        (bytes(range(256)) * 40, "file_binary"),
    ):
        assert code(client.upload(draft, "b.txt", data)) == (422, kind)
    assert sorted(path.name for path in (folder / draft / "text").iterdir()) == ["a.txt", "half.txt"]


def test_the_number_of_corpora_is_limited(client: WorkspaceClient):
    names = []
    while (response := client.post("/workspace", json={"title": "CON"})).status_code == 200:
        names.append(response.json()["name"])
    assert (response.status_code, response.json()["code"]) == (413, "too_many_corpora")
    assert names[:2] == ["corpus", "corpus-2"]  # no device of Windows
    for name in names:
        assert client.act(name, "delete").status_code == 200


def test_settings_and_states_that_do_not_fit_are_refused(client: WorkspaceClient, draft: str):
    def refuse(action: str, body: dict | None = None) -> tuple[int, str]:
        response = client.act(draft, action, body)
        return response.status_code, response.json().get("code") or response.json()["error"]

    assert refuse("start", QUICK) == (422, "no_text")
    assert client.upload(draft, "a.txt", NOVEL.encode()).status_code == 200
    assert refuse("start", QUICK | {"base": "/etc"}) == (422, "base_missing")
    assert refuse("start", {"train": False})[1] == "body: without train, base must name a model"
    assert refuse("start", {"epoch": 3})[1] == "body: unknown field; did you mean epochs?"
    assert refuse("start", {"epochs": 1e9})[0] == 422
    assert "is not an encoding" in refuse("start", QUICK | {"encoding": "utf-9"})[1]
    assert refuse("start", {"config": "../x.toml"})[0] == 422
    assert refuse("pause") == (409, "not_running")
    assert refuse("resume") == (409, "not_paused")
    missing = client.post(f"/workspace/{draft}/text", params={"name": "a.txt", "offset": "x", "size": 1})
    assert missing.status_code == 422
    assert "offset" in missing.json()["error"]
    assert client.post("/workspace", json={"title": "\n"}).status_code == 422
    assert client.post("/workspace", content=b"title=x").status_code == 415  # what a form of any site sends
    assert client.get(f"/corpora/{draft}/info").json()["code"] == "corpus_not_ready"


def test_every_response_of_a_workspace_matches_its_schema(client: WorkspaceClient, draft: str):
    schema = client.get("/openapi.json").json()
    seen = set()

    def check(response: httpx.Response, path: str, method: str = "post") -> None:
        documented = schema["paths"][path][method]["responses"][str(response.status_code)]
        expected = documented["content"]["application/json"]["schema"]
        validator = jsonschema.Draft202012Validator({**expected, "components": schema["components"]})
        validator.validate(response.json())
        seen.add((method, path))

    check(client.upload(draft, "a.txt", NOVEL.encode()), "/workspace/{corpus}/text")
    check(client.post("/workspace", json={"title": ""}), "/workspace")
    check(client.get("/workspace"), "/workspace", "get")
    check(client.get(f"/workspace/{draft}"), "/workspace/{corpus}", "get")
    check(client.get("/workspace", headers={"Origin": "http://x"}), "/workspace", "get")
    check(client.get("/info"), "/info", "get")
    check(client.act(draft, "start", LONG), "/workspace/{corpus}/start")
    client.wait(draft, "running")
    for action in ("pause", "pause", "resume", "cancel", "delete"):
        check(client.act(draft, action), f"/workspace/{{corpus}}/{action}")
        if action == "pause":
            client.wait(draft, "paused")
    routes = {
        (method, path)
        for path, methods in schema["paths"].items()
        if path.startswith("/workspace")
        for method in methods
    }
    assert routes <= seen
    assert "offset" in client.get("/docs").text


def test_a_workspace_is_off_by_default(server):
    with WorkspaceClient(server.address) as client:
        assert client.get("/info").json()["workspace"] is False
        assert client.get("/workspace").status_code == 404
        assert client.get("/corpora/x/info").status_code == 404
        assert "/workspace" not in client.get("/openapi.json").json()["paths"]


def test_a_workspace_needs_a_key_or_a_local_address(tmp_path: Path):
    from polyseme import serve
    from polyseme.errors import UsageError

    folder = tmp_path / "texts"
    with pytest.raises(UsageError, match="other machines could write"):
        serve("zh-classic", host="0.0.0.0", port=0, workspace=folder)
    with pytest.raises(UsageError, match="one process"):
        serve("zh-classic", port=0, workers=2, workspace=folder)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(UsageError, match="cannot be used as"):
        serve("zh-classic", port=0, workspace=file)
    with pytest.raises(UsageError, match="no model to serve"):
        serve()
    assert not folder.exists()


def test_with_a_key_any_host_is_served_and_a_second_server_is_refused(start, tmp_path: Path):
    from polyseme.errors import UsageError
    from polyseme.server.http.limits import Limits
    from polyseme.server.workspace.supervisor import Workspace

    (tmp_path / "key").write_text("s3cret")
    (tmp_path / "texts" / "Broken").mkdir(parents=True)
    (tmp_path / "texts" / "Broken" / "corpus.json").write_text("{")
    (tmp_path / "texts" / "Outside").symlink_to(tmp_path)
    server = start("zh-classic", "--workspace", tmp_path / "texts", "--api-key-file", tmp_path / "key").wait()
    with WorkspaceClient(server.address, headers={"Host": "models.example"}) as client:
        assert client.get("/workspace").status_code == 401
        key = {"Authorization": "Bearer s3cret"}
        assert client.get("/workspace", headers=key).status_code == 200
        own = key | {"Origin": "https://models.example"}  # behind a proxy with TLS
        assert client.get("/workspace", headers=own).status_code == 200
        foreign = client.get("/workspace", headers=key | {"Origin": "https://evil.example"})
        assert foreign.json()["code"] == "foreign_origin"
        (broken,) = client.get("/workspace", headers=key).json()["corpora"]
        assert (broken["state"], "cannot be read" in broken["error"]) == ("failed", True)
        assert broken["error_code"] == "corpus_unreadable"
        assert client.post("/workspace/Broken/delete", headers=key).status_code == 200
        assert not (tmp_path / "texts" / "Broken").exists()
    with pytest.raises(UsageError, match="is writing it"):
        Workspace(tmp_path / "texts", Limits(), {})


def test_a_full_disk_is_one_line(start, tmp_path: Path):
    full_disk = (
        "import errno, os\nfrom polyseme.server.workspace.corpus_folder import CorpusFolder\n"
        "def add_text(*_): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))\n"
        "CorpusFolder.add_text = add_text"
    )
    server = start("zh-classic", "--workspace", tmp_path / "texts", setup_code=full_disk).wait()
    with WorkspaceClient(server.address) as client:
        response = client.upload(client.create("x"), "a.txt", b"text")
        assert (response.status_code, response.json()["code"]) == (507, "disk_full")


def test_a_corpus_whose_files_are_damaged_is_refused_and_made_again(client: WorkspaceClient, folder: Path):
    name = client.begin("Damaged", QUICK)
    client.wait(name, "ready")
    shutil.rmtree(folder / name / "model")
    response = client.get(f"/corpora/{name}/info")
    assert (response.status_code, response.json()["code"]) == (409, "corpus_damaged")
    assert client.act(name, "cancel").json()["state"] == "draft"
    assert client.act(name, "delete").status_code == 200
