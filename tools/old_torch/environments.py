"""The old releases: which Python each needs, and what is installed beside it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

USUAL = ("pillow<9", "requests", "tqdm", "soundfile")


@dataclass(frozen=True)
class Environment:
    """One old release of torch, with the companion libraries of its time.

    python: the release of Python, of which an interpreter must be there (pyenv's, or on the PATH).
    companions: requirements that are installed without what they require.
    others: requirements of those, and of what torch only calls: sound files, onnx, tensorboard.
    apex: whether NVIDIA's apex is there, which was never on PyPI; without its compiled parts.
    """

    torch: str
    python: str
    companions: tuple[str, ...]
    others: tuple[str, ...] = USUAL
    apex: bool = False

    def interpreter(self, directory: Path) -> Path:
        """The Python of this environment below the directory of all."""
        return directory / f"torch-{self.torch}" / "bin" / "python"

    def sources(self, directory: Path) -> list[str]:
        """Where Python finds what is not installed."""
        return [str(directory / "apex")] if self.apex else []


OLD = ("pillow<7", "six", "requests", "tqdm")
NEWER = ("pillow", "requests", "tqdm", "soundfile", "onnx")
ENVIRONMENTS = (
    Environment("1.0.1", "3.7", ("torchvision==0.2.2",), OLD),
    Environment("1.1.0", "3.7", ("torchvision==0.3.0", "torchtext==0.3.1"), (*OLD, "tensorboard", "future")),
    Environment(
        "1.2.0",
        "3.7",
        ("torchvision==0.4.0", "torchaudio==0.3.0", "torchtext==0.4.0"),
        (*OLD, "tensorboard", "future"),
    ),
    Environment("1.4.0", "3.7", ("torchvision==0.5.0", "torchaudio==0.4.0", "torchtext==0.5.0"), OLD),
    Environment("1.7.1", "3.8", ("torchvision==0.8.2", "torchaudio==0.7.2", "torchtext==0.8.1"), apex=True),
    Environment("1.8.1", "3.8", ("torchvision==0.9.1", "torchaudio==0.8.1", "torchtext==0.9.1")),
    Environment("1.9.1", "3.8", ("torchvision==0.10.1", "torchaudio==0.9.1", "torchtext==0.10.1")),
    Environment("1.10.2", "3.9", ("torchvision==0.11.3", "torchaudio==0.10.2", "torchtext==0.11.2")),
    Environment(
        "1.11.0",
        "3.10",
        ("torchvision==0.12.0", "torchaudio==0.11.0", "torchtext==0.12.0", "torchdata==0.3.0"),
    ),
    Environment(
        "1.12.1",
        "3.10",
        ("torchvision==0.13.1", "torchaudio==0.12.1", "torchtext==0.13.1", "functorch==0.2.1"),
        (*USUAL, "six", "tensorboard"),
    ),
    Environment(
        "1.13.1",
        "3.10",
        (
            "torchvision==0.14.1",
            "torchaudio==0.13.1",
            "torchtext==0.14.1",
            "functorch==1.13.1",
            "torchdata==0.5.1",
        ),
        (*USUAL, "six", "tensorboard", "tensorboardX"),
    ),
    Environment(
        "2.0.1",
        "3.10",
        ("torchvision==0.15.2", "torchaudio==2.0.2", "torchtext==0.15.2", "torchdata==0.6.1"),
    ),
    Environment(
        "2.2.2",
        "3.10",
        ("torchvision==0.17.2", "torchaudio==2.2.2", "torchtext==0.17.2", "torchdata==0.7.1"),
    ),
    Environment(
        "2.4.1",
        "3.10",
        ("torchvision==0.19.1", "torchaudio==2.4.1", "torchtext==0.18.0", "torchdata==0.8.0"),
        NEWER,
    ),
    Environment(
        "2.7.1",
        "3.10",
        ("torchvision==0.22.1", "torchaudio==2.7.1", "torchdata==0.11.0"),
        (*NEWER, "onnxscript", "tensorboard", "tensorboardX"),
    ),
)


# The last commit of 2020, when 1.7.1 was the newest torch.
APEX = "https://github.com/NVIDIA/apex", "154c6336aa7aedd40d3b3583fb5e1328f9cdf387"


class NoPython(Exception):
    """An interpreter of the release that is needed is nowhere."""


def make(environment: Environment, directory: Path) -> None:
    """Create an environment below a directory, or complete it.

    Raises:
        NoPython: its Python is not there.
        subprocess.CalledProcessError: pip or git failed; it has said why.
    """
    interpreter = environment.interpreter(directory)
    if not interpreter.exists():
        subprocess.run([_find_python(environment.python), "-m", "venv", interpreter.parents[1]], check=True)
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"torch=={environment.torch}", "numpy<2", *environment.others], check=True)
    subprocess.run([*pip, "--no-deps", *environment.companions], check=True)
    checkout = directory / "apex"
    if environment.apex and not checkout.exists():
        address, commit = APEX
        subprocess.run(["git", "clone", "--quiet", address, checkout], check=True)
        subprocess.run(["git", "-C", checkout, "checkout", "--quiet", commit], check=True)


def _find_python(release: str) -> str:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (*sorted(map(str, pyenv.glob(f"{release}.*/bin/python"))), f"python{release}"):
        try:
            subprocess.run([candidate, "-c", "import venv"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    raise NoPython(f"Python {release} is neither among pyenv's ({pyenv}) nor on the PATH")
