"""Draws made better by a second route: p(query | evidence) is in proportion to the joint p(query, evidence).

A model answers p(query | evidence) directly, and through its joint, and the joint along the canonical order is often
the better one. Metropolis–Hastings takes draws of the first to the second: a run of asked variables is drawn again
given all others, and kept with the probability that makes the joint's conditional the law of the draws in the end.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anygiven.inference.drawing import MAX_ROWS, MAX_VARIABLES, draw
from anygiven.lattice import Canonical, Path, Question
from anygiven.lattice.question import random_integers
from anygiven.model import AnyOrderModel

RUN = 4  # variables that are drawn again together


@torch.no_grad()
def refine(
    model: AnyOrderModel,
    x: Tensor,
    question: Question,
    rounds: int,
    generator: torch.Generator,
    temperature: float = 1.0,
    report: Callable[[float], None] | None = None,
) -> Tensor:
    """(B, N, 4) x, whose query is drawn already, after so many rounds; in a round each variable is drawn again once, on
    average. The law tends to p(query, evidence)^(1/temperature)."""
    if rounds == 0 or not bool(question.is_query.any()):
        return x
    out, chunks = x.clone(), torch.arange(len(x)).split(max(1, min(MAX_ROWS, MAX_VARIABLES // x.shape[1])))
    for k, rows in enumerate(chunks):
        part = Question(question.is_query[rows], question.is_evidence[rows])
        so_far = None if report is None else lambda share, k=k, r=report: r((k + share) / len(chunks))
        out[rows] = _refine(model, x[rows], part, rounds, generator, temperature, so_far)
    return out


def _refine(model, x: Tensor, question: Question, rounds: int, generator, temperature: float, report) -> Tensor:
    everything = question.is_query | question.is_evidence
    joint = Canonical().path(Question(everything, torch.zeros_like(everything)))
    log_p = _log_q(model, x, joint)
    n_proposals = rounds * -(-int(question.is_query.sum(1).max()) // RUN)
    for k in range(n_proposals):
        path = Canonical().path(_run_given_all_else(question, generator))
        proposed = draw(model, x, path, generator)
        proposed_log_p = _log_q(model, proposed, joint)
        there, back = _log_q(model, proposed, path), _log_q(model, x, path)
        log_ratio = (proposed_log_p - log_p) / temperature + back - there
        is_taken = torch.rand(len(x), generator=generator).log() < log_ratio
        x = torch.where(is_taken[:, None, None], proposed, x)
        log_p = torch.where(is_taken, proposed_log_p, log_p)
        if report:
            report((k + 1) / n_proposals)
    return x


def _run_given_all_else(question: Question, generator: torch.Generator) -> Question:
    """At most RUN asked variables that follow each other among the asked ones, given all other variables."""
    n = question.is_query.sum(1)
    start = random_integers(torch.zeros_like(n), (n - RUN).clamp(min=0), generator).unsqueeze(1)
    place = question.is_query.cumsum(1) - 1  # among the asked ones
    run = question.is_query & (place >= start) & (place < start + RUN)
    return Question(run, (question.is_query | question.is_evidence) & ~run)


def _log_q(model: AnyOrderModel, x: Tensor, path: Path) -> Tensor:
    return model.log_prob(x.to(model.device), path).sum(1).cpu()
