"""A workspace in tests: a text that trains in seconds, and a client that sends it and waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from waiting import until

WORDS = ("玄德", "曹操", "孙权", "关羽", "孔明", "张飞", "赵云", "吕布")
ENDINGS = (
    "大怒，欲斩此将。",
    "大喜，重赏诸将。",
    "将兵三十万来攻。",
    "与诸将商议，天色将晚。",
    "将书信烧毁。",
)
NOVEL = "".join(
    f"第{chapter}回 {name}出兵\n" + "".join(f"{name}{ending}{ending}\n" for ending in ENDINGS * 8)
    for chapter, name in enumerate(WORDS, start=1)
)
QUICK = {"config": "tiny", "epochs": 1}
LONG = {"config": "tiny", "epochs": 1000}  # a quarter of an hour


class WorkspaceClient(httpx.Client):
    """Sends requests to a server with a workspace."""

    def __init__(self, address: str, **options: Any) -> None:
        super().__init__(base_url=address, timeout=60, **options)

    def create(self, title: str) -> str:
        """Make a corpus; returns its name."""
        response = self.post("/workspace", json={"title": title})
        assert response.status_code == 200, response.text
        return str(response.json()["name"])

    def upload(
        self, corpus: str, name: str, data: bytes, *, size: int | None = None, offset: int = 0
    ) -> httpx.Response:
        """Send a file, or a part of it."""
        query: dict[str, str | int] = {
            "name": name,
            "offset": offset,
            "size": len(data) if size is None else size,
        }
        return self.post(f"/workspace/{corpus}/text", params=query, content=data)

    def begin(self, title: str, settings: dict[str, Any], text: str = NOVEL) -> str:
        """Make a corpus of a text and start its job; returns its name."""
        corpus = self.create(title)
        assert self.upload(corpus, "novel.txt", text.encode()).status_code == 200
        response = self.act(corpus, "start", settings)
        assert response.status_code == 200, response.text
        return corpus

    def act(self, corpus: str, action: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """Start, pause, resume, cancel or delete."""
        return self.post(f"/workspace/{corpus}/{action}", json=body)

    def status(self, corpus: str) -> dict[str, Any]:
        """How far a corpus is."""
        response = self.get(f"/workspace/{corpus}")
        assert response.status_code == 200, response.text
        values: dict[str, Any] = response.json()
        return values

    def wait(self, corpus: str, *states: str) -> dict[str, Any]:
        """Wait until a corpus is in one of these states."""
        ends = {*states, "failed"}
        until(lambda: self.status(corpus)["state"] in ends, 600, lambda: self.status(corpus))
        status = self.status(corpus)
        assert status["state"] in states, status
        return status

    def wait_for_steps(self, corpus: str, tokens: int = 1) -> dict[str, Any]:
        """Wait until the training has read some tokens."""

        def has_read() -> bool:
            status = self.status(corpus)
            assert status["state"] in ("waiting", "running"), status
            return status["stage"] == "training" and status["done"] >= tokens

        until(has_read, 600, lambda: self.status(corpus))
        return self.status(corpus)


def count_trained_tokens(folder: Path) -> int:
    """The tokens of the last checkpoint of a corpus."""
    positions = [path.read_text() for path in (folder / "model" / "checkpoints").glob("step-*/position.json")]
    return max((int(json.loads(position)["tokens"]) for position in positions), default=0)
