"""Run in one process or in several, started by torchrun.

    torchrun's environment, train.device  ->  training.distributed  ->  training.loop, training.pretrain

A worker that torchrun restarts must not see what earlier workers left in the store, so all keys contain the
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
from polyseme.training.devices import choose_backend, choose_device

TIMEOUT = timedelta(minutes=10)
POLL = 0.5  # seconds between two looks at the store
CPU = torch.device("cpu")
_joined = count()  # numbers the runs of this process, whose keys must differ


class FirstFailedError(PolysemeError):
    """The first process failed while the others waited for it."""


@dataclass(frozen=True)
class Ranks:
    """One process among all processes of a run.

    Attributes:
        rank: The number of this process, from 0.
        world: The number of processes.
        device: Where this process computes.
        store: The store that the processes share; None if there is only one process.

    """

    rank: int = 0
    world: int = 1
    device: torch.device = CPU
    store: Store | None = None

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def wrap(self, module: nn.Module) -> nn.Module:
        """Wrap a module so that gradients are averaged over all processes."""
        return DistributedDataParallel(module) if self.world > 1 else module

    def no_sync(self, module: nn.Module) -> AbstractContextManager[None]:
        """Keep the gradients of a wrapped module in this process, to be averaged later."""
        return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()

    def run_first(self, name: str, do: Callable[[], None]) -> None:
        """Call `do` in the first process, while the others wait, however long it takes.

        They poll the store, since collective calls would give up after `TIMEOUT`. An error in the first
        process ends all.

        Args:
            name: A key of the store, different for each call.
            do: What to call.

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
        elif not self._wait_for_first(self.store, name):
            raise FirstFailedError("The first process failed; see its error message.")

    def _wait_for_first(self, store: Store, name: str) -> bool:
        """Wait for the first process; False if it failed or ended."""
        try:
            while not store.check([name]):
                time.sleep(POLL)
            return bool(store.get(name) == b"done")
        except RuntimeError:
            return False

    def any(self, condition: bool) -> bool:
        """Whether the condition holds in any process."""
        if self.world == 1:
            return condition
        flag = torch.tensor(int(condition), device=self.device)
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
        """Collect the values of all processes by rank, in the first process; others get an empty list."""
        if self.world == 1:
            return [value]
        values: list[Any] | None = [None] * self.world if self.is_first else None
        dist.gather_object(value, values)
        return values or []

    def wait(self) -> None:
        """Wait until all processes have called this."""
        if self.world > 1:
            dist.barrier()

    def close(self) -> None:
        """Leave the process group."""
        if self.world > 1 and dist.is_initialized():
            dist.destroy_process_group()


def count_restarts() -> int:
    """Count how often torchrun has restarted the processes."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def join_ranks(device: str = "auto") -> Ranks:
    """Join the process group of torchrun, if it started this process.

    Args:
        device: The value of `train.device`.

    """
    chosen = choose_device(device)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Ranks(device=chosen)
    rank = int(os.environ["RANK"])
    name = f"polyseme-{count_restarts()}-{next(_joined)}"
    if dist.is_initialized():  # by the calling program
        return Ranks(rank, world, chosen, PrefixStore(name, dist.distributed_c10d._get_default_store()))
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        world,
        is_master=rank == 0 and not agent,
        timeout=TIMEOUT,
    )
    prefixed = PrefixStore(name, store)
    dist.init_process_group(
        choose_backend(chosen), store=prefixed, rank=rank, world_size=world, timeout=TIMEOUT
    )
    return Ranks(rank, world, chosen, prefixed)
