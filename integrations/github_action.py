"""The steps of action.yml, which gives them its inputs as environment variables.

    python integrations/github_action.py install
    python integrations/github_action.py check

Both append to the files that GitHub names (`GITHUB_OUTPUT`, `GITHUB_STEP_SUMMARY`). This needs nothing but
Python's own library, and runs on Python 3.7, to say that torchmigrate does not.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 10)
# Without the current directory, from which `-m` would import what a pull request brings along.
MODULE = [sys.executable, "-I", "-m"]
CLEAN, FOUND, FAILED = 0, 1, 2
# What could not be checked is listed beside the findings, under these codes.
TROUBLES = ("invalid-syntax", "io-error", "not-done")


def error(message: str) -> int:
    """Show an error of the run."""
    print(f"::error title=torchmigrate::{message}")
    return FAILED


def output(name: str, value: str) -> None:
    """Set an output of the step."""
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"{name}={value}\n")


def given(name: str) -> str:
    """An input of the action; empty: it was not given."""
    return os.environ.get(f"INPUT_{name}", "").strip()


def switch(name: str, *others: str) -> str:
    """An input that is `true`, `false` or one of some others. Raises ValueError."""
    value = given(name).lower() or "false"
    if value not in ("true", "false", *others):
        shown = name.lower().replace("_", "-")
        allowed = ", ".join(f"`{each}`" for each in ("true", "false", *others))
        raise ValueError(f"`{shown}` must be one of {allowed}, and is `{value}`")
    return value


# ---- install --------------------------------------------------------------------------------------------


def install() -> int:
    """Install torchmigrate into an environment of its own. Its Python is the output."""
    if sys.version_info < OLDEST:
        return error(
            f"torchmigrate needs Python 3.10 or newer, and this is {sys.version.split()[0]}; run "
            "actions/setup-python before, or name another one with the input `python`"
        )
    version = given("VERSION")
    source = f"torchmigrate=={version.lstrip('v')}" if version else os.environ["ACTION_PATH"]
    directory = Path(os.environ["RUNNER_TEMP"]) / "torchmigrate"
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", source]
    for command in ([*MODULE, "venv", "--clear", directory], pip):
        if subprocess.run([str(part) for part in command]).returncode:
            return error(f"torchmigrate could not be installed from {source}")
    output("python", str(python))
    return CLEAN


# ---- check ----------------------------------------------------------------------------------------------


def check() -> int:
    """Check, after fixes if they are wanted. All outputs are about what is left."""
    try:
        options = _options()
        fix = switch("FIX", "unsafe")
        annotations = switch("ANNOTATIONS") == "true"
        failing = switch("FAIL_ON_FINDINGS") == "true"
        sarif = given("SARIF_FILE") or ("torchmigrate.sarif" if switch("UPLOAD_SARIF") == "true" else "")
    except ValueError as problem:
        return error(str(problem))
    if fix != "false":
        options = [*(["--unsafe-fixes"] if fix == "unsafe" else []), *options]
        diff = _again("--diff", *options)
        print("::group::Fixes by torchmigrate", flush=True)
        sys.stdout.buffer.write(diff)
        print("::endgroup::", flush=True)
        _again("--fix", *options)
    output("fixed", "true" if fix != "false" and diff else "false")
    # The cache makes each run but the first one quick.
    form = "github" if annotations else "full"
    # `fix = true` in a configuration is for the people who edit the files.
    options = ["--no-fix", *options]
    command = [*MODULE, "torchmigrate", "check", "--output-format", form, *options]
    code = subprocess.run(command).returncode
    try:
        listed = json.loads(_again("--output-format", "json", *options))
    except ValueError:  # it said why, a configuration that cannot be used, for example
        output("exit-code", str(FAILED))
        return error("torchmigrate could not run; see the log of this step")
    findings = sum(1 for each in listed if each["code"] not in TROUBLES)
    output("findings", str(findings))
    output("exit-code", str(code))
    if sarif:
        _again("--output-format", "sarif", "--output-file", sarif, *options)
        output("sarif-file", str(Path(sarif).absolute()))
    _summarize(findings, len(listed) - findings, options)
    return code if code != FOUND or failing else CLEAN


def _options() -> "list[str]":
    """The options and paths of every run. Raises ValueError for quotes that are not closed."""
    options = shlex.split(given("ARGS"))
    for name in ("target", "minimum"):
        value = given(name.upper())
        options += [f"--{name}={value}"] if value else []
    return [*options, "--", *(shlex.split(given("PATHS")) or ["."])]


def _again(*options: str) -> bytes:
    """What a run prints on stdout, where another one has said on stderr what there is to say."""
    command = [*MODULE, "torchmigrate", "check", "--quiet", *options]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def _summarize(findings: int, troubles: int, options: "list[str]") -> None:
    """Write how often each rule was found to the page of the run."""
    counts = _again("--statistics", *options).decode("utf-8")
    lines = ["### torchmigrate", "", f"{findings} finding{'' if findings == 1 else 's'}."]
    if troubles:
        lines.append(f"{troubles} file{'' if troubles == 1 else 's'} could not be checked.")
    if counts:
        lines += ["", "```text", counts.rstrip("\n"), "```"]
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    steps = {"install": install, "check": check}
    sys.exit(steps[sys.argv[1]]())
