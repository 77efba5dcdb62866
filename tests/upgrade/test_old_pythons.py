"""What runs in the environments of projects, with every Python from 3.6 on that is found here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from torchmigrate.evidence.recording import INJECTED
from torchmigrate.upgrade import environment, smoke

OBSERVING = Path(smoke.__file__).with_name("observing")
FILES = sorted([*INJECTED.glob("*.py"), *OBSERVING.glob("*.py")])
# Sources that the Python of an environment gets with `-c`.
PASSED_ON = [
    text
    for name, text in vars(environment).items()
    if isinstance(text, str) and not name.startswith("__") and "import " in text
]
COMPILE = "import json, sys\nfor name, text in json.load(sys.stdin): compile(text, name, 'exec')\n"


def python_of(minor: int) -> str:
    """A Python 3.`minor`; the test is skipped where there is none."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [shutil.which(f"python3.{minor}"), *map(str, sorted(root.glob(f"3.{minor}.*/bin/python")))]
    for path in filter(None, found):
        if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    pytest.skip(f"there is no Python 3.{minor} on PATH or in {root}")


@pytest.mark.parametrize("minor", range(6, 15))
def test_every_python_compiles_and_runs_what_is_injected(tmp_path: Path, minor: int) -> None:
    python = python_of(minor)
    texts = [(path.name, path.read_text("utf-8")) for path in FILES] + [("-c", text) for text in PASSED_ON]
    assert len(FILES) >= 7 and len(PASSED_ON) >= 4
    done = subprocess.run([python, "-c", COMPILE], input=json.dumps(texts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    (tmp_path / "torch.py").write_text("__version__ = '1.0.0'\n")
    (tmp_path / "some.py").write_text(
        "import torch\n\n\ndef f(x):\n    return x.symeig()\n\n\nf(type('X', (), {'symeig': lambda self: 1})())\n"
    )
    (tmp_path / "list.json").write_text(
        json.dumps([["import", "some", "some.py"], ["import", "other", "other.py"]])
    )
    (tmp_path / ".torchmigrate" / "record").mkdir(parents=True)
    settings = tmp_path / ".torchmigrate" / "record" / "settings.json"
    settings.write_text(json.dumps({"root": str(tmp_path), "names": ["symeig"]}))
    variables = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        "PYTHONPATH": os.pathsep.join(map(str, (INJECTED, OBSERVING, tmp_path))),
        "TORCHMIGRATE_OUTCOMES": str(tmp_path / "outcomes.jsonl"),
        "TORCHMIGRATE_RECORD": str(settings),
    }
    command = [python, str(OBSERVING / "torchmigrate_smoke.py"), str(tmp_path / "list.json")]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, ""), done.stderr
    lines = [json.loads(line) for line in (tmp_path / "outcomes.jsonl").read_text().splitlines()]
    outcomes = {line["id"]: line["outcome"] for line in lines if line["kind"] == "outcome"}
    assert outcomes == {"import some": "passed", "import other": "failed"}
    [told] = [line for line in lines if line["kind"] == "python"]
    assert told["torch"] == "1.0.0" and not told["pytest"]

    done = subprocess.run([python, str(INJECTED / "run_script.py"), "some.py"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    parts = [json.loads(path.read_text()) for path in settings.parent.glob("*-*.json")]
    places = [place for part in parts for place in part["files"]["some.py"]["places"].values()]
    assert any("receiver" in place for place in places)
