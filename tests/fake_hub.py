"""A Hugging Face Hub on this machine: the endpoints that huggingface_hub calls for models, over HTTP.

    huggingface_hub  ->  HTTP  ->  FakeHub: repositories of commits, of which each is files by name

A commit is immutable; branches name commits. Files that end in .safetensors are uploaded and served as large
files (git LFS). Writing needs the header of TOKEN, and so does reading a private repository. A request for
anything else is answered with 501 and listed in `unknown`, which a test checks at its end.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlparse

TOKEN = "hf_test"
Files = dict[str, bytes]


@dataclass
class HubRepository:
    """A repository: its commits, and the commit that each branch and tag names."""

    commits: dict[str, Files] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    private: bool = False
    gated: bool = False

    def commit(self, files: Files, branch: str = "main", message: str = "") -> str:
        """Add a commit with exactly these files."""
        state = json.dumps([[*self.commits], {name: _sha(data) for name, data in files.items()}, branch])
        commit = hashlib.sha1(state.encode()).hexdigest()
        self.commits[commit] = dict(files)
        self.branches[branch] = commit
        self.messages.append(message)
        return commit

    def resolve(self, revision: str) -> str | None:
        """The commit that a revision names."""
        return revision if revision in self.commits else self.branches.get(revision)

    @property
    def files(self) -> Files:
        """The files of the main branch."""
        return self.commits[self.branches["main"]]


class FakeHub(ThreadingHTTPServer):
    """The server; `repositories` is what it holds, `requests` what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, HubRepository] = {}
        self.large_files: dict[str, bytes] = {}  # by SHA-256
        self.requests: list[str] = []
        self.unknown: list[str] = []
        self.failing = False  # answer everything with an error of the server

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fetched(self) -> set[str]:
        """The names of files whose content was requested."""
        return {
            line.rpartition("/")[2]
            for line in self.requests
            if line.startswith("GET") and "/resolve/" in line
        }


@contextmanager
def run_hub() -> Iterator[FakeHub]:
    """Serve a Hub without repositories."""
    hub = FakeHub()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing: a test has no log."""

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

    def _answer(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlparse(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        if self.server.failing:
            return self._send(503, {"error": "down"})
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"] and len(parts) >= 4:
            return self._answer_api("/".join(parts[2:4]), parts[4:])
        if len(parts) > 3 and parts[2] == "resolve":
            return self._answer_file("/".join(parts[:2]), parts[3:])
        routes: dict[str, Callable[[], None]] = {
            "api/repos/create": self._create,
            "api/validate-yaml": lambda: self._send(200, {"errors": [], "warnings": []}),
            "api/agent-harnesses": lambda: self._send(200, {}),
            "api/whoami-v2": lambda: self._send(200, {"name": "user", "orgs": []}),
        }
        if "/".join(parts) in routes:
            return routes["/".join(parts)]()
        if path.endswith(".git/info/lfs/objects/batch"):
            return self._start_large_files()
        if parts[0] == "large" and self.command == "PUT":
            self.server.large_files[parts[1]] = self.body
            return self._send(200, {})
        return self._refuse_unknown()

    def _refuse_unknown(self) -> None:
        self.server.unknown.append(f"{self.command} {self.path}")
        self._send(501, {"error": "not part of this Hub"})

    def _is_authorised(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _open(self, name: str) -> HubRepository | None:
        """The repository; answers with an error if there is none that this client may read."""
        repository = self.server.repositories.get(name)
        if repository is None or (repository.private and not self._is_authorised()):
            self._send(404 if self._is_authorised() else 401, {}, **{"X-Error-Code": "RepoNotFound"})
            return None
        if repository.gated:
            self._send(403, {}, **{"X-Error-Code": "GatedRepo"})
            return None
        return repository

    def _answer_api(self, name: str, rest: list[str]) -> None:
        writes = self.command == "POST"
        if writes and not self._is_authorised():
            return self._send(401, {"error": "Invalid username or password."})
        repository = self._open(name)
        if repository is None:
            return None
        verb, revision = (rest or [""])[0], "/".join(rest[1:]) or "main"
        if verb == "branch" and writes:
            if revision in repository.branches:
                return self._send(409, {"error": "Reference already exists"})
            repository.branches[revision] = repository.branches["main"]
            return self._send(200, {})
        commit = repository.resolve(revision)
        if commit is None:
            return self._send(404, {}, **{"X-Error-Code": "RevisionNotFound"})
        files = repository.commits[commit]
        if verb in ("", "revision"):
            siblings = [{"rfilename": file} for file in files]
            return self._send(200, {"id": name, "modelId": name, "sha": commit, "siblings": siblings})
        if verb == "tree":
            return self._send(200, [_describe(file, data) for file, data in files.items()])
        if verb == "preupload" and writes:
            listed = [
                {"path": entry["path"], "uploadMode": _mode(entry["path"]), "shouldIgnore": False}
                for entry in json.loads(self.body)["files"]
            ]
            return self._send(200, {"files": listed})
        if verb == "commit" and writes:
            return self._commit(repository, name, revision, dict(files))
        return self._refuse_unknown()

    def _commit(self, repository: HubRepository, name: str, branch: str, files: Files) -> None:
        message = ""
        for line in self.body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                message = value["summary"]
            elif entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.server.large_files[value["oid"]]
            elif entry["key"] == "deletedFile":
                del files[value["path"]]
            else:
                return self._refuse_unknown()
        commit = repository.commit(files, branch, message)
        url = f"{self.server.address}/{name}/commit/{commit}"
        return self._send(200, {"success": True, "commitOid": commit, "commitUrl": url, "hookOutput": ""})

    def _create(self) -> None:
        if not self._is_authorised():
            return self._send(401, {"error": "Invalid username or password."})
        values = json.loads(self.body)
        name = f"{values.get('organization') or 'user'}/{values['name']}"
        url = f"{self.server.address}/{name}"
        if name in self.server.repositories:
            return self._send(409, {"error": "You already created this model repo", "url": url})
        repository = HubRepository(private=values.get("visibility") == "private")
        repository.commit({".gitattributes": b"*.safetensors filter=lfs\n"}, message="initial commit")
        self.server.repositories[name] = repository
        return self._send(200, {"url": url, "name": name, "id": name})

    def _start_large_files(self) -> None:
        objects = [
            {
                "oid": entry["oid"],
                "size": entry["size"],
                "actions": {"upload": {"href": f"{self.server.address}/large/{entry['oid']}"}},
            }
            for entry in json.loads(self.body)["objects"]
        ]
        self._send(200, {"transfer": "basic", "objects": objects})

    def _answer_file(self, name: str, rest: list[str]) -> None:
        repository = self._open(name)
        if repository is None:
            return None
        for split in range(1, len(rest)):  # a revision may contain slashes
            commit = repository.resolve("/".join(rest[:split]))
            if commit is not None:
                break
        else:
            return self._send(404, {}, **{"X-Error-Code": "RevisionNotFound"})
        data = repository.commits[commit].get("/".join(rest[split:]))
        if data is None:
            return self._send(404, {}, **{"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        return self._send(200, data, **{"ETag": f'"{_sha(data)}"', "X-Repo-Commit": commit})

    def _send(self, status: int, content: bytes | Any, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header(
            "Content-Type", "application/octet-stream" if data is content else "application/json"
        )
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _mode(path: str) -> str:
    return "lfs" if path.endswith(".safetensors") else "regular"


def _describe(path: str, data: bytes) -> dict[str, Any]:
    oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": oid}
    if _mode(path) == "lfs":
        entry["lfs"] = {"oid": _sha(data), "size": len(data), "pointerSize": 134}
    return entry
