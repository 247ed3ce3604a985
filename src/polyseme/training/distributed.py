"""One process or many: who am I, what do the others say.

    torchrun's environment  ->  training.distributed  ->  training.loop, training.pretrain

A worker that torchrun restarts must not meet what its predecessors left in the store, so all keys carry the
number of the restart.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import PrefixStore, TCPStore
from torch.nn.parallel import DistributedDataParallel

TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True)
class Ranks:
    """One process among `world` processes."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks to the user."""
        return self.rank == 0

    def wrap(self, module: nn.Module) -> nn.Module:
        """`module`, with its gradients averaged over the processes where there are several."""
        return DistributedDataParallel(module) if self.world > 1 else module

    def any(self, said: bool) -> bool:
        """Whether any process said so; all get the same answer at the same place."""
        if self.world == 1:
            return said
        flag = torch.tensor(int(said))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def sum(self, value: float) -> float:
        """The sum over all processes."""
        if self.world == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total)
        return float(total.item())

    def gather(self, value: object) -> list[Any]:
        """What every process gave, in the order of the ranks, for the first one (others: an empty list)."""
        if self.world == 1:
            return [value]
        values: list[Any] | None = [None] * self.world if self.first else None
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


def restarts() -> int:
    """How often torchrun has started the processes anew."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def join_ranks() -> Ranks:
    """Join the group that torchrun started; alone otherwise."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Ranks()
    rank = int(os.environ["RANK"])
    if not dist.is_initialized():
        agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        store = TCPStore(
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
            world,
            is_master=rank == 0 and not agent,
            timeout=TIMEOUT,
        )
        own = PrefixStore(f"polyseme-{restarts()}", store)
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, store=own, rank=rank, world_size=world, timeout=TIMEOUT)
    return Ranks(rank, world)
