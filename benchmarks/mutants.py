"""Do the tests notice a wrong sign? Small faults put into the source one at a time, and the tests run on each.

    python benchmarks/mutants.py                       150 mutants, about half an hour on one core
    python benchmarks/mutants.py --n 20 --minutes 3    fewer, and no longer than that
    python benchmarks/mutants.py --workers 2           in two processes

A mutant is one operator or constant of lattice/, heads/, inference/ or estimators/answers.py changed for another, in a
copy of the tree. It is killed if a test of its module fails, or takes too long by processor time. What is said to a
person (docstrings, __repr__, error sentences), type hints, decorators and the `strict` of a zip are left as they are,
and so are constants of a module and default values: how many nodes a quadrature has is a choice, which no test can call
wrong. A survivor that answers every question as the source does is named in EQUIVALENT, with the reason; the share is
given with and without those. Kept in results/mutants.json; --only takes mutants up again, as `file:line`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "mutants.json"
SOURCE = "src/anygiven"
PLACES = ("lattice/*.py", "heads/*.py", "inference/*.py", "estimators/answers.py")
HEAVY = ("torch", "numpy", "scipy.stats", "pandas", "polars", "sklearn.base", "pyarrow", "msgspec", "narwhals",
         "safetensors.torch", "hypothesis", "pytest")  # fmt: skip
TESTS = {  # of each folder, the quick and telling ones first
    "lattice": ["truth/test_lattice_laws.py", "truth/test_workload_laws.py", "contracts/test_lattice.py",
                "truth/test_masking_modes.py", "truth/test_mask_laws.py", "test_workload.py"],
    "heads": ["contracts/test_heads.py", "truth/test_laws_of_answers.py"],
    "inference": ["truth/test_inference_laws.py", "truth/test_laws_of_answers.py", "test_answers.py",
                  "truth/test_orders.py"],
    "estimators": ["truth/test_answer_laws.py", "test_answers.py", "truth/test_laws_of_answers.py"],
}  # fmt: skip
MORE = {  # of some files, before the others
    "refining": ["truth/test_refining.py"], "energy": ["truth/test_energy.py"], "reweighted": ["truth/test_energy.py"],
}  # fmt: skip
LAST = {  # of some files, after the others
    "levels": ["test_images.py"], "shared": ["test_images.py", "test_text.py"], "masking_modes": ["test_images.py"],
    "table": ["test_tabular_density.py"], "mixtures": ["test_answers.py", "test_tabular_density.py"],
    "atoms": ["test_answers.py"], "likelihood": ["test_text.py"], "drawing": ["test_text.py", "test_images.py"],
    "objectives": ["test_text.py"], "summaries": ["test_tabular_density.py"], "orders": ["test_images.py"],
}  # fmt: skip
SLOW = "not energy and not ace and not spline"  # the battery over slow heads, for files that are not theirs
OF_SLOW = ("energy", "reweighted", "spline", "smooth", "table")
PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Add, ast.Sub), (ast.Mult, ast.Div),
         (ast.And, ast.Or))  # fmt: skip
SWAPS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
AT_A_TIME = ("ENTRIES", "AT_A_TIME", "CHUNK", "MAX_ROWS", "n_parts")  # say how much is done at a time, not what
FATES = ("killed", "too long", "survived", "equivalent")
EQUIVALENT = (  # file, what stands in the line, what is changed (its beginning), why the answers are the same
    ("inference/distributions.py", "0 < len(self.domain.edges)", "0", "a grid has no edges, or at least two"),
    ("inference/distributions.py", "self.domain.step or 0.0", "0.0", "what has cells has a step"),
    ("inference/likelihood.py", "n_orders - N_SCANS, seed + 13", "13", "another seed of random orders"),
    ("inference/drawing.py", "n_asked = max(1, int", "1", "where nothing is asked nothing is divided by it"),
    ("heads/mixtures.py", "a + NARROW / 2", "2", "only where the narrow branch is taken; keeps gradients finite"),
    ("heads/smooth.py", "eps ** 0.7 * (1 + z.abs())).all()", "(after - z)", "a tolerance met exactly"),
    ("heads/smooth.py", "torch.where((newton >= low)", "newton >= low", "an end met exactly"),
    ("lattice/protocols.py", "[::-1], 2) for i in range", "2", "digits 0 and 1 have the same order to any base"),
    ("heads/mixtures.py", "self.quantile(1e-4), self.quantile(1 - 1e-4)", "1 - 1e-4", "a grid that reaches farther"),
    (
        "inference/distributions.py",
        "np.minimum(found, p.shape[1] - 1)",
        "1",
        "only rounding comes beyond the last",
    ),
    ("lattice/masking_modes.py", "self.lines() * self.shape[0] + row", "0", "a line has fewer rows than either side"),
    ("heads/reweighted.py", "torch.where(width > SAME", "width > SAME", "a tolerance met exactly"),
    ("heads/energy.py", "self.score = nn.Linear(3, width", "False", "start() has a bias already: the same functions"),
    ("heads/energy.py", "nodes = (base.loc.unsqueeze(-1) +", "base.loc", "nodes lie alike on both sides"),
    ("heads/levels.py", "KERNEL.inverse_cdf(shares)", "loc + self.scale", "points lie alike on both sides"),
    ("estimators/answers.py", "ends = np.round(", "12", "digits that a level does not have"),
)
SPOKEN = ("__repr__", "_repr_html_", "title", "shown", "plot", "_plot_numbers", "_axis", "_width", "_png")


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    before: str
    after: str
    start: int  # places in the file's bytes
    end: int
    is_bare: bool = False  # the name of a keyword: it cannot stand in brackets

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def applied(self, source: bytes) -> bytes:
        after = self.after if self.is_bare else f"({self.after})"
        return source[: self.start] + after.encode() + source[self.end :]


def counted(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below this one that do something."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults") or is_setting(node, name):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_spoken = isinstance(child, ast.FunctionDef) and child.name in SPOKEN
            is_guard = isinstance(child, ast.keyword) and child.arg == "strict"
            if (
                isinstance(child, ast.AST)
                and not is_spoken
                and not is_guard
                and not isinstance(child, ast.Raise | ast.JoinedStr)
            ):
                yield child
                yield from counted(child)


def is_setting(node: ast.AST, name: str) -> bool:
    """Whether this is the value of a constant or of a field's default: SIZE = 3, n: int = 3."""
    if isinstance(node, ast.AnnAssign):
        return name == "value" and isinstance(node.value, ast.Constant)
    targets = getattr(node, "targets", []) if isinstance(node, ast.Assign) else []
    names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    return name == "value" and bool(names) and all(one.isupper() for one in names)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one fault in it, in each way."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield _with(node, ops=[SWAPS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        yield _with(node, op=SWAPS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(1 - node.value if node.value in (0, 1) else node.value + 1)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield ast.Name(NAMES[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield _with(node, attr=NAMES[node.attr])
    elif isinstance(node, ast.keyword) and node.arg in NAMES:
        yield _with(node, arg=NAMES[node.arg])


def _with(node, **fields):
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a file that can be compiled."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in counted(ast.parse(source)):
        for changed in changes(node):
            start, end = (starts[row - 1] + column for row, column in
                          ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)))  # fmt: skip
            before, after = source[start:end].decode(), ast.unparse(changed)
            mutant = Mutant(
                str(path.relative_to(ROOT)), node.lineno, before, after, start, end, isinstance(node, ast.keyword)
            )
            found += [mutant] if _compiles(mutant, source) else []
    return found


def _compiles(mutant: Mutant, source: bytes) -> bool:
    try:
        compile(mutant.applied(source), mutant.file, "exec")
    except SyntaxError:
        return False
    return True


def chosen(n: int, seed: int) -> list[Mutant]:
    """Spread over the files, most from the long ones: in each file's share no mutant is likelier than another."""
    rng, every = random.Random(seed), []
    for place in PLACES:
        for path in sorted((ROOT / SOURCE).glob(place)):
            mine = mutants_of(path)
            rng.shuffle(mine)
            every += [((k + rng.random()) / len(mine), mutant) for k, mutant in enumerate(mine)]
    return [mutant for _, mutant in sorted(every, key=lambda pair: pair[0])[:n]]


def folder_of(file: str) -> str:
    return file.removeprefix(f"{SOURCE}/").split("/")[0]


def fate_of(mutant: Mutant, tree: Path, seconds: float) -> str:
    """Whether the tests fail on it; a mutant that never ends is killed too."""
    target = tree / mutant.file
    whole = target.read_bytes()
    target.write_bytes(mutant.applied(whole))
    try:
        process = multiprocessing.get_context("fork").Process(target=run_tests, args=(mutant.file, tree, seconds))
        process.start()
        process.join(20 * seconds)  # waiting, not working, is no excuse either
        if process.is_alive():
            process.kill()
            process.join()
        out_of_time = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        return "survived" if process.exitcode == 0 else "too long" if out_of_time else "killed"
    finally:
        target.write_bytes(whole)


def unchanged(folder: str) -> Mutant:
    """No fault at all, in a file of this folder."""
    path = next(path for place in PLACES for path in (ROOT / SOURCE).glob(place) if path.parent.name == folder)
    return Mutant(str(path.relative_to(ROOT)), 0, "", "", 0, 0, is_bare=True)


def run_tests(file: str, tree: Path, seconds: float) -> None:
    """In a process of its own, which has the libraries but not yet anygiven, and so many seconds of a processor."""
    import hypothesis
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))

    hypothesis.settings.register_profile("first", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
    hypothesis.settings.load_profile("first")  # the first failure is enough; none is made smaller
    os.chdir(tree)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(tree / "src"))
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    stem = Path(file).stem
    tests = [tree / "tests" / test for test in (*MORE.get(stem, []), *TESTS[folder_of(file)], *LAST.get(stem, []))]
    quick = [] if stem in OF_SLOW else ["-k", SLOW]
    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *quick, *(str(test) for test in tests if test.exists())])
    assert sys.modules["anygiven"].__file__ == str(tree / SOURCE / "__init__.py")
    os._exit(int(code))


def run(mutants: list[Mutant], minutes: float, seconds: float) -> dict[str, list[Mutant]]:
    """What became of each: fate → mutants."""
    deadline = time.monotonic() + 60 * minutes
    found: dict[str, list[Mutant]] = {fate: [] for fate in FATES}
    for name in HEAVY:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "results", "__pycache__", "experiments"))
        for folder in sorted({folder_of(mutant.file) for mutant in mutants}):
            if fate_of(unchanged(folder), tree, seconds) != "survived":
                raise SystemExit(f"The tests of {folder} fail on the source as it is; no mutant can be judged.")
        for k, mutant in enumerate(mutants, 1):
            started = time.monotonic()
            fate = fate_of(mutant, tree, seconds)
            fate = "equivalent" if fate == "survived" and is_equivalent(mutant) else fate
            found[fate].append(mutant)
            said = f"{fate:10} {time.monotonic() - started:5.1f} s"
            print(f"{k:4d} {said}  {mutant.place}: {mutant.before} → {mutant.after}", file=sys.stderr, flush=True)
            if time.monotonic() > deadline:
                break
    return found


def is_equivalent(mutant: Mutant) -> bool:
    line = (ROOT / mutant.file).read_text().splitlines()[mutant.line - 1]
    named = (
        mutant.file == f"{SOURCE}/{file}" and part in line and mutant.before.startswith(before)
        for file, part, before, _ in EQUIVALENT
    )
    return any(name in line for name in AT_A_TIME) or any(named)


def in_processes(n: int) -> list[dict]:
    """What each of n workers has found."""
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:], "--part", str(k + 1), "--json"], stdout=subprocess.PIPE
        )
        for k in range(n)
    ]
    return [json.loads(worker.communicate()[0]) for worker in workers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no mutant after that")
    parser.add_argument("--seconds", type=float, default=90.0, help="of a processor, for one mutant's tests")
    parser.add_argument("--workers", type=int, default=1, help="processes; they share the mutants")
    parser.add_argument("--part", type=int, default=0, help="which of the workers this is; not kept")
    parser.add_argument("--only", nargs="*", default=[], metavar="FILE:LINE", help="of these mutants only; not kept")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    started = time.perf_counter()
    if arguments.workers > 1 and not arguments.part:
        parts = in_processes(arguments.workers)
        found = {fate: [mutant for part in parts for mutant in part["mutants"][fate]] for fate in FATES}
    else:
        mutants = chosen(arguments.n, arguments.seed)
        mutants = mutants[arguments.part - 1 :: arguments.workers] if arguments.part else mutants
        mutants = [mutant for mutant in mutants if mutant.place in arguments.only or not arguments.only]
        fates = run(mutants, arguments.minutes, arguments.seconds)
        found = {fate: [[m.file, m.line, m.before, m.after] for m in some] for fate, some in fates.items()}
    counts = {fate: len(some) for fate, some in found.items()}
    killed, n = counts["killed"] + counts["too long"], sum(counts.values())
    result = {
        "counts": counts, "share_killed": round(killed / max(n, 1), 4),
        "share_killed_of_those_that_matter": round(killed / max(n - counts["equivalent"], 1), 4),
        "mutants": found, "command": " ".join(["python benchmarks/mutants.py", *sys.argv[1:]]),
        "seed": arguments.seed, "seconds": round(time.perf_counter() - started, 1), "version": version("anygiven"),
    }  # fmt: skip
    if not arguments.only and not arguments.part:
        RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    matter = f"{result['share_killed_of_those_that_matter']:.1%} of those that are not equivalent"
    print(json.dumps(result) if arguments.json else f"{killed} of {n} mutants killed: {killed / n:.1%}, {matter}")


if __name__ == "__main__":
    main()
