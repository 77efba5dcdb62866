"""Option parsers of scripts that `torch.distributed.launch` starts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from harness.program import FIX, only, run
from harness.project import Project

NAME = Path("example.py")
CODES = frozenset(["TM573", "TM574"])


def check(text: str) -> tuple[list[str], str]:
    """The codes of the findings, and the fixed text."""
    text = f"import torch\n{text}\n"
    found = run(text, *only(CODES))
    fixed = run(text, *only(CODES), *FIX)
    return [finding.code for finding in found.findings], (fixed.new_text or text).partition("\n")[2]


@pytest.mark.parametrize("given", ["--local_rank=3", "--local-rank=3"])
def test_the_new_parser_takes_both(given: str) -> None:
    codes, after = check("parser.add_argument('--local_rank', type=int, default=0)")
    assert codes == ["TM573"]
    parser = argparse.ArgumentParser()
    exec(after, {"parser": parser})
    assert parser.parse_args([given]).local_rank == 3
    assert parser.parse_args([]).local_rank == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('p.add_argument("--local_rank")', 'p.add_argument("--local_rank", "--local-rank")\n'),
        (
            "p.add_argument('-r', '--local_rank', dest='rank')",
            "p.add_argument('-r', '--local_rank', '--local-rank', dest='rank')\n",
        ),
        (
            "p.add_argument(\"--local_rank\", help='of the launcher')",
            'p.add_argument("--local_rank", "--local-rank", help=\'of the launcher\')\n',
        ),
        (
            "p.add_argument(\n    '--local_rank',  # of the launcher\n    type=int)",
            "p.add_argument(\n    '--local_rank', '--local-rank',  # of the launcher\n    type=int)\n",
        ),
    ],
)
def test_the_spelling_is_added(text: str, expected: str) -> None:
    assert check(text)[1] == expected
    assert check(expected.rstrip("\n"))[0] == []


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("p.add_argument('--local-rank', '--local_rank')", []),
        ("p.add_argument('--local_ranks')", []),
        ("p.add_argument(name)", []),
        ("run('python -m torch.distributed.launch x.py')", ["TM574"]),
        ("run(f'{python} -m torch.distributed.launch x.py')", ["TM574"]),
        ("run([python, '-m', 'torch.distributed.launch', 'x.py'])", ["TM574"]),
        ("run([python, 'torch.distributed.launch'])", []),
        ("run('python -m torch.distributed.launcher x.py')", []),
        ("'''python -m torch.distributed.launch x.py'''", []),
        ("os.system('cd x && OMP_NUM_THREADS=1 python3 -m torch.distributed.launch x.py')", ["TM574"]),
        ("command = sys.executable + ' -u -m torch.distributed.launch x.py'", ["TM574"]),
        ("f.write('#!/bin/sh\\nnohup $PYTHON -m torch.distributed.launch x.py\\n')", ["TM574"]),
        ("run('env A=1 /usr/bin/python -m torch.distributed.launch x.py'.split())", ["TM574"]),
        ("said += '. Did you launch with `python -m torch.distributed.launch`?'", []),
        ("said = 'Start it with python -m torch.distributed.launch x.py.'", []),
        ("raise ValueError('python -m torch.distributed.launch x.py'.upper())", []),
        ("print(f'{python} -m torch.distributed.launch x.py')", []),
        ("logger.info('$ python -m torch.distributed.launch %s', x)", []),
        ("p.add_argument('x', help='python -m torch.distributed.launch')", []),
        ("assert x, 'python -m torch.distributed.launch x.py'", []),
    ],
)
def test_what_is_found(text: str, codes: list[str]) -> None:
    assert check(text)[0] == codes


def test_a_command_whose_script_reads_the_rank_in_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path, monkeypatch)
    project.write("train.py", "from tools import workers\n\nworkers.start()\n")
    project.write("tools/__init__.py", "")
    project.write("tools/workers.py", "from .ranks import local_rank\n")
    project.write("tools/ranks.py", "import os\n\nlocal_rank = int(os.environ['LOCAL_RANK'])\n")
    script = project.write("run.sh", "python -m torch.distributed.launch --nproc_per_node=2 train.py\n")
    project.run("check", "--fix", "run.sh", code=0)
    assert script.read_text(encoding="utf-8") == "torchrun --nproc_per_node=2 train.py\n"
