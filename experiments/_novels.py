"""What the experiments on novels share: the data, a fit of one method, bits per character with standard errors."""

from __future__ import annotations

import json
import math
import zlib
from functools import lru_cache

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from _runs import Curve, threads
from anygiven.cli.reproduce import write_json
from anygiven.datasets.novels import novels
from anygiven.estimators.defaults import Architecture
from anygiven.estimators.fitting import build_model
from anygiven.estimators.text import Chunks
from anygiven.estimators.workload import text_objective
from anygiven.lattice import (
    Blend,
    Budget,
    Canonical,
    CardMask,
    Joint,
    Objective,
    Question,
    RandomBudget,
    RandomOrder,
    UniformEvidence,
    WholePath,
    Workload,
)
from anygiven.model import AnyOrderModel
from anygiven.training import Outcome, Settings, train
from anygiven.training.checkpoint import remove_checkpoint
from anygiven.variables.domains import SharedDomain
from anygiven.variables.rows import Data
from anygiven.variables.text import Corpus, read_corpus

# MAC's appendix D and its code; "plain" is a masked Transformer without our n-gram look-ups and squared ReLU.
PAPER = {"width": 768, "depth": 12, "heads": 12, "batch_size": 512, "learning_rate": 5e-4, "weight_decay": 1e-3,
         "clip": 0.25, "muon": False, "minutes": 60 * 24 * 14, "batch_sizes": {"64": 512, "250": 512}, "plain": True,
         "schedule": {"warmup_steps": 5000, "schedule": "constant", "betas": (0.9, 0.99), "ema": 0.999}}  # fmt: skip
LAPTOP = {"width": 128, "depth": 4, "heads": 4, "batch_size": 64, "learning_rate": 6e-3, "weight_decay": 0.02,
          "clip": 1.0, "muon": True}  # fmt: skip
HOUR = {**LAPTOP, "width": 160, "heads": 5, "batch_sizes": {"64": 64, "250": 24}, "evaluations": 12,
        "minutes": {"64": 30.0, "250": 58.0}}  # fmt: skip
CHUNK = 50  # texts scored at a time
ALL_KINDS = Blend(  # whole paths of all kinds of questions, one path a row
    (WholePath(Joint()), WholePath(CardMask()), WholePath(UniformEvidence()),
     WholePath(UniformEvidence(), RandomBudget(RandomOrder()))), (0.5, 0.1, 0.3, 0.1),
)  # fmt: skip


@lru_cache(maxsize=3)
def corpus(part: str) -> Corpus:
    return read_corpus(novels(part), "text8")


def held_chunks(length: int, n: int, part: str = "test") -> Data:
    """n chunks of the test books, evenly spread, none overlapping another."""
    chunks = Chunks(corpus(part), length)
    places = torch.linspace(0, len(chunks) - 1, min(n, len(chunks))).long()
    return chunks.rows(places)


def fit(
    run, network: str, objective: Objective, length: int, watch=None, part: str = "train", adjust=None, **more
) -> tuple[AnyOrderModel, Outcome]:
    """Train one method for the time that the run allows; a smoke run takes tiny batches.

    The time is that of one core's work, so that all methods have the same whatever else the machine does.
    `adjust(model)` may take parts out of a fresh model; `more` overrides settings.
    """
    s = run.settings
    smoke = run.max_steps is not None
    minutes = s["minutes"][str(length)] if isinstance(s["minutes"], dict) else s["minutes"]
    chosen = {
        "max_steps": run.max_steps or 10_000_000, "max_minutes": run.minutes or minutes, "processor_time": True,
        "clip": s["clip"], "batch_size": 2 if smoke else s["batch_size"], "learning_rate": s["learning_rate"],
        "weight_decay": s["weight_decay"], "muon": s["muon"], "ema": 0.998, "validation_rows": 0, "patience": 1000,
        "evaluations": s.get("evaluations", 10), "seed": run.seed, **s.get("schedule", {}), **more,
    }  # fmt: skip
    architecture = Architecture(network, s["width"], s["depth"], 0.0, 0, s["heads"])
    domains = SharedDomain(corpus("train").alphabet.domain, (length,))
    learn, held = Chunks(corpus(part), length), held_chunks(length, 2 if smoke else 100, "valid")
    model = build_model(domains, architecture, run.seed)
    if s.get("plain") and network == "transformer":
        without_our_parts(model)
    if adjust:
        adjust(model)
    with threads(1):
        outcome = train(
            model, learn, held, objective, Settings(**chosen), None, None if smoke else run.folder / "training",
            f"{network} {objective} {length} {part} {more} {getattr(adjust, '__name__', '')}", watch,
        )  # fmt: skip
    remove_checkpoint([run.folder / "training"])
    return model.eval(), outcome


def without_neighbours(model) -> None:
    """Take the n-gram look-ups out of a fresh model."""
    model.network.neighbours = None


def with_gelu(model) -> None:
    for block in model.network.blocks:
        block.feed[1] = nn.GELU(approximate="tanh")


def without_our_parts(model) -> None:
    without_neighbours(model)
    with_gelu(model)


def hour_model(run, length: int) -> tuple[AnyOrderModel, dict]:
    """The model of at most an hour, for scoring and filling alike; trained once, then kept beside the results."""
    s = run.settings
    facts = (
        f"{s['width']} {s['depth']} {s['heads']} {s['learning_rate']} {s['batch_sizes']} {s['minutes']} {run.minutes}"
    )
    place = run.folder.parent / f".novels-{length}-{zlib.crc32(f'{facts} {run.seed}'.encode()):08x}"
    smoke = run.max_steps is not None
    if (place / "facts.json").exists():
        architecture = Architecture("path", s["width"], s["depth"], 0.0, 0, s["heads"])
        model = build_model(SharedDomain(corpus("train").alphabet.domain, (length,)), architecture, run.seed)
        model.load_state_dict(load_file(place / "model.safetensors"))
        return model.eval(), json.loads((place / "facts.json").read_text())
    watch = text_curve(run, held_chunks(length, 2 if smoke else 200, "valid"))
    model, outcome = fit(run, "path", text_objective("any"), length, watch, **batch_of(run, length))
    facts = {"parameters": model.n_parameters, "steps": outcome.steps, "train_seconds": outcome.seconds,
             "curve": watch.points}  # fmt: skip
    if not smoke:
        place.mkdir(parents=True, exist_ok=True)
        save_file({name: p.contiguous() for name, p in model.state_dict().items()}, place / "model.safetensors")
        write_json(place / "facts.json", facts)
    return model, facts


def batch_of(run, length: int) -> dict:
    """Longer chunks in smaller batches, so that a step has about as many characters."""
    return {} if run.max_steps is not None else {"batch_size": run.settings["batch_sizes"][str(length)]}


def bits(model: AnyOrderModel, data: Data, workload: Workload, smoke: bool = False, per_query: bool = False) -> dict:
    """Mean and standard error over the chunks."""
    return mean_of(chunk_bits(model, data, workload, smoke, per_query))


@torch.no_grad()
def chunk_bits(
    model: AnyOrderModel, data: Data, workload: Workload, smoke: bool = False, per_query: bool = False
) -> torch.Tensor:
    """−log₂ p(query | evidence) of each chunk, along the whole canonical path, the same questions at every call.

    Divided by the chunk's length as MAC does, or by the number of characters asked.
    """
    protocol = Budget(Canonical(), 2) if smoke else Canonical()
    question = workload.draw(data.is_present, torch.Generator().manual_seed(17))
    totals = []
    for rows in torch.arange(len(data)).split(CHUNK):
        path = protocol.path(Question(question.is_query[rows], question.is_evidence[rows]))
        nats = -model.log_prob(data.x[rows], path).sum(1).double()
        totals.append(nats / (path.is_query.sum(1).clamp(min=1) if per_query else data.x.shape[1]))
    return torch.cat(totals) / math.log(2)


def mean_of(per_chunk: torch.Tensor) -> dict:
    spread = float(per_chunk.std(unbiased=False))
    return {"bits": float(per_chunk.mean()), "standard_error": spread / len(per_chunk) ** 0.5}


def joint_and_marginal(model: AnyOrderModel, data: Data, smoke: bool) -> dict:
    return {"joint": bits(model, data, Joint(), smoke), "marginal": bits(model, data, CardMask(), smoke)}


def text_curve(run, data: Data) -> Curve:
    """Joint and marginal bits as training goes on."""

    def measure(model: AnyOrderModel) -> list[float]:
        return [found["bits"] for found in joint_and_marginal(model, data, run.max_steps is not None).values()]

    return Curve(run, measure)
