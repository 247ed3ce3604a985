"""One process or many: who am I, where do I compute, what do the others say.

    torchrun's environment, train.device  ->  training.distributed  ->  training.loop, training.pretrain

A worker that torchrun restarts must not meet what its predecessors left in the store, so all keys carry the
number of the restart.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore
from torch.nn.parallel import DistributedDataParallel

from polyseme.errors import PolysemeError
from polyseme.training.devices import backend_for, choose_device

TIMEOUT = timedelta(minutes=10)
POLL = 0.5  # seconds between two looks at what the first process does
CPU = torch.device("cpu")
_joined = count()  # runs of this process: each has keys of its own


class FirstFailedError(PolysemeError):
    """The first process could not do what the others wait for."""


@dataclass(frozen=True)
class Ranks:
    """One process among `world` processes, which computes on `device`."""

    rank: int = 0
    world: int = 1
    device: torch.device = CPU
    store: Store | None = None  # what the processes share, where there are several

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks to the user."""
        return self.rank == 0

    def wrap(self, module: nn.Module) -> nn.Module:
        """`module`, with its gradients averaged over the processes where there are several."""
        return DistributedDataParallel(module) if self.world > 1 else module

    def apart(self, module: nn.Module) -> AbstractContextManager[None]:
        """Where gradients of a wrapped `module` stay with this process, to be averaged later."""
        return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()

    def run_first(self, name: str, do: Callable[[], None]) -> None:
        """`do` in the first process, while the others wait for it, however long it takes.

        They look at the store now and then: collective calls would give up after `TIMEOUT`. What fails in
        the first process fails in all.
        """
        if self.store is None:
            do()
        elif self.is_first:
            try:
                do()
            except BaseException:
                self.store.set(name, "failed")
                raise
            self.store.set(name, "done")
        elif not self._first_did(self.store, name):
            raise FirstFailedError("The first process has failed; it says why.")

    def _first_did(self, store: Store, name: str) -> bool:
        """Wait for the first process; False if it failed, or is gone, and the store with it."""
        try:
            while not store.check([name]):
                time.sleep(POLL)
            return bool(store.get(name) == b"done")
        except RuntimeError:
            return False

    def any(self, said: bool) -> bool:
        """Whether any process said so; all get the same answer at the same place."""
        if self.world == 1:
            return said
        flag = torch.tensor(int(said), device=self.device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def sum(self, value: float) -> float:
        """The sum over all processes."""
        if self.world == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return float(total.item())

    def gather(self, value: object) -> list[Any]:
        """What every process gave, in the order of the ranks, for the first one (others: an empty list)."""
        if self.world == 1:
            return [value]
        values: list[Any] | None = [None] * self.world if self.is_first else None
        dist.gather_object(value, values)
        return values or []

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.world > 1:
            dist.barrier()

    def close(self) -> None:
        """Leave the group."""
        if self.world > 1 and dist.is_initialized():
            dist.destroy_process_group()


def count_restarts() -> int:
    """How often torchrun has started the processes anew."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def join_ranks(device: str = "auto") -> Ranks:
    """Join the group that torchrun started; alone otherwise. `device`: as `train.device` says."""
    chosen = choose_device(device)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Ranks(device=chosen)
    rank = int(os.environ["RANK"])
    name = f"polyseme-{count_restarts()}-{next(_joined)}"
    if dist.is_initialized():  # by the program that calls us
        return Ranks(rank, world, chosen, PrefixStore(name, dist.distributed_c10d._get_default_store()))
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        world,
        is_master=rank == 0 and not agent,
        timeout=TIMEOUT,
    )
    own = PrefixStore(name, store)
    dist.init_process_group(backend_for(chosen), store=own, rank=rank, world_size=world, timeout=TIMEOUT)
    return Ranks(rank, world, chosen, own)
