"""What docs/editors.md shows is what the server takes, and what editors take that are installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.editor import Editor
from harness.project import environment
from harness.real_editors import EDITORS as REAL
from harness.real_editors import lacking
from harness.terminal import Terminal

from torchmigrate.files.formats import read_toml
from torchmigrate.server.options import are_ours, read_options

pytestmark = pytest.mark.one_python
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "editors.md").read_text("utf-8")
EXTENSION = ROOT / "editors" / "vscode"
EDITORS = ("VS Code", "Neovim", "Helix", "Zed", "Emacs", "PyCharm")
OLD = "import torch\nx = torch.ger(a, b)\n"


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def blocks(title: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", section(title), re.DOTALL | re.MULTILINE)


def test_every_editor_is_told_how_to_start_the_server() -> None:
    for editor in EDITORS:
        text = section(editor)
        assert "torchmigrate" in text and "server" in text
        assert "target" in text and "2.9" in text, "with an option"


def test_every_option_is_described() -> None:
    from torchmigrate.server import options

    rows = re.findall(r"^\| (`.*?) \|", section("Options"), re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert described == {*options._OF_CHECK, *options._OWN}


def test_what_is_shown_is_taken(tmp_path: Path) -> None:
    code, on_save = map(json.loads, blocks("VS Code", "json"))
    (helix,) = (read_toml(block.encode()) for block in blocks("Helix", "toml"))
    (zed,) = map(json.loads, blocks("Zed", "json"))
    (pycharm,) = map(json.loads, blocks("PyCharm", "json"))
    own: Any = helix["language-server"]["torchmigrate"]
    as_pylsp = zed["lsp"]["pylsp"]
    commands = [
        [own["command"], *own["args"]],
        [as_pylsp["binary"]["path"], *as_pylsp["binary"]["arguments"]],
        re.findall(r'"(\w+)"', re.findall(r"cmd = \{(.*?)\}", section("Neovim"))[0]),
        *(
            re.findall(r'"(\w+)"', found)
            for found in re.findall(r'\("torchmigrate" "server"', section("Emacs"))
        ),
        re.findall(r"\*Command\* \| `(.*?)`", section("PyCharm"))[0].split(),
    ]
    assert commands == [["torchmigrate", "server"]] * 6
    for given in (
        {key.removeprefix("torchmigrate."): value for key, value in code.items()},
        own["config"],
        as_pylsp["initialization_options"],
        pycharm,
    ):
        options, wrong = read_options(given)
        assert are_ours(given) and not wrong
        assert options.layer.target == "2.9"
    (kind,) = on_save["[python]"]["editor.codeActionsOnSave"]
    with Editor(tmp_path, options=pycharm) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        (action,) = editor.actions(name, only=[kind])
        assert action.kind == kind
        assert editor.server.execute_command_provider is not None
        for command in editor.server.execute_command_provider.commands:
            assert f"`{command}`" in PAGE


def test_the_extension_has_a_setting_for_each_option() -> None:
    """With the defaults of the page; what this extension does is tested in its directory."""
    from torchmigrate.server import options

    manifest = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    settings = manifest["contributes"]["configuration"]["properties"]
    own = set(re.findall(r"^\| `(torchmigrate\..+?)` \|", section("VS Code"), re.MULTILINE))
    assert own == {"torchmigrate.path", "torchmigrate.interpreter", "torchmigrate.trace.server"}
    assert settings.keys() == own | {f"torchmigrate.{name}" for name in (*options._OF_CHECK, *options._OWN)}
    defaults = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", section("Options"), re.MULTILINE))
    booleans = {name: each["default"] for name, each in settings.items() if each["type"] == "boolean"}
    assert {f"torchmigrate.{name}": value == "true" for name, value in defaults.items()} == booleans
    for command in manifest["contributes"]["commands"]:
        assert command["title"] in section("VS Code")


def test_brackets_are_balanced() -> None:
    """Of what no parser here reads."""
    found = [*blocks("Neovim", "lua"), *blocks("Emacs", "elisp")]
    assert len(found) == 4
    for block in found:
        plain = re.sub(r'"[^"\n]*"', "", block)
        for pair in ("()", "{}", "[]"):
            assert plain.count(pair[0]) == plain.count(pair[1])


# ---- in the editors themselves -------------------------------------------------------------------------------

TWO = "import torch\nx = torch.ger(a, b)\ny = torch.ger(c, d)\n"
ONE_FIXED = TWO.replace("ger(a", "outer(a")
ALL_FIXED = TWO.replace("ger", "outer")
TITLES = [
    "torchmigrate (TM110): Replace with `torch.outer`",
    "torchmigrate (TM110): Suppress on this line",
]
OTHER_FILES = {
    "run.sh": "python -m torch.distributed.launch a.py\n",
    "a.yaml": "run: python -m torch.distributed.launch a.py\n",
    "Dockerfile": "FROM scratch\nRUN python -m torch.distributed.launch a.py\n",
    "a.cpp": "#include <torch/extension.h>\nvoid f(at::Tensor x) { AT_CHECK(x.is_contiguous()); }\n",
}
NEOVIM = """\
local said = { diagnostics = {}, actions = {}, clients = {} }
local function until_found()
  return vim.wait(PATIENCE, function() return #vim.diagnostic.get(0) > 0 end)
end
until_found()
for _, each in ipairs(vim.diagnostic.get(0)) do
  table.insert(said.diagnostics, { each.lnum, each.col, each.code, each.source })
end
vim.api.nvim_win_set_cursor(0, { 2, 6 })
local here = vim.lsp.util.make_position_params(0, "utf-8")
for _, answer in pairs(vim.lsp.buf_request_sync(0, "textDocument/hover", here, PATIENCE)) do
  said.hover = answer.result.contents.value
end
local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n") .. "\\n" end
local function after(act)
  local before = text()
  act()
  vim.wait(PATIENCE, function() return text() ~= before end)
  return text()
end
local function preferred(action)
  table.insert(said.actions, action.title)
  return action.isPreferred
end
said.one = after(function()
  vim.lsp.buf.code_action({ apply = true, context = { only = { "quickfix" } }, filter = preferred })
end)
said.all = after(function() dofile(FIX_ALL) end)
for _, name in ipairs(vim.split(OTHERS, " ")) do
  vim.cmd("edit! " .. name)
  until_found()
  said.clients[name] = { vim.bo.filetype, vim.diagnostic.get(0)[1].code }
end
io.stdout:write(vim.json.encode(said))
vim.cmd("qall!")
"""
# What both clients of Emacs are asked: `said` gets what is printed.
EMACS = """\
(require 'json)
(defvar said nil)
(defun say (key value) (push (cons key value) said))
(defun wait (found)
  (let ((end (+ (float-time) PATIENCE)))
    (while (and (not (funcall found)) (< (float-time) end)) (accept-process-output nil 0.05))))
(defun tell () (princ (json-encode said)) (set-buffer-modified-p nil) (kill-emacs))
"""
EGLOT = """\
(require 'eglot)
(setq eglot-sync-connect t eglot-connect-timeout PATIENCE eglot-confirm-server-edits nil)
(find-file "a.py")
(call-interactively 'eglot)
(wait (lambda () (or (flymake-diagnostics) (ignore (flymake-start)))))
(say 'diagnostics (mapcar 'flymake-diagnostic-text (flymake-diagnostics)))
(goto-char (point-min))
(search-forward "torch.ger")
(eglot-hover-eldoc-function (lambda (text &rest _) (say 'hover (substring-no-properties text))))
(wait (lambda () (assq 'hover said)))
(let ((actions (eglot-code-actions (point) (point) "quickfix")))
  (say 'actions (mapcar (lambda (each) (plist-get each :title)) actions))
  (eglot-execute (eglot-current-server) (car actions)))
(say 'one (buffer-string))
(eglot-code-actions (point-min) (point-max) "source.fixAll.torchmigrate" t)
(say 'all (buffer-string))
(tell)
"""
LSP_MODE = """\
(setq lsp-auto-guess-root t lsp-enable-snippet nil lsp-enable-file-watchers nil
      lsp-diagnostics-provider :flymake lsp-session-file (expand-file-name "session"))
(find-file "a.py")
(lsp)
(wait (lambda () (> (hash-table-count (lsp-diagnostics t)) 0)))
(maphash (lambda (path found)
           (say 'diagnostics (mapcar (lambda (each) (gethash "message" each)) found)))
         (lsp-diagnostics t))
(goto-char (point-min))
(search-forward "torch.ger")
(let ((found (lsp-request "textDocument/hover" (lsp--text-document-position-params))))
  (say 'hover (format "%S" (gethash "contents" found))))
(let ((actions (lsp-code-actions-at-point)))
  (say 'actions (mapcar (lambda (each) (gethash "title" each)) (append actions nil)))
  (lsp-execute-code-action (elt actions 0)))
(say 'one (buffer-string))
(lsp-execute-code-action (seq-find (lambda (each) (equal (gethash "kind" each) "source.fixAll.torchmigrate"))
                                   (lsp-code-actions-at-point)))
(say 'all (buffer-string))
(tell)
"""


def real(name: str) -> pytest.MarkDecorator:
    why = lacking(name)
    return pytest.mark.skipif(why is not None, reason=why or "")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project, beside a directory with the command that editors start."""
    programs, made = tmp_path / "programs", tmp_path / "project"
    programs.mkdir()
    program = programs / "torchmigrate"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchmigrate "$@"\n')
    program.chmod(0o755)
    made.mkdir()
    (made / "pyproject.toml").write_text("")
    (made / "a.py").write_text(TWO)
    return made


def environ(project: Path) -> dict[str, str]:
    home = str(project.parent / "home")
    own = Path(sys.executable).parent  # ruff is there
    path = os.pathsep.join((str(project.parent / "programs"), str(own), os.environ["PATH"]))
    return environment(
        HOME=home, XDG_CONFIG_HOME=f"{home}/.config", XDG_STATE_HOME=f"{home}/state", PATH=path
    )


def ran(project: Path, *command: str) -> Any:
    """What an editor prints, as JSON."""
    done = subprocess.run(
        command, cwd=project, env=environ(project), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done
    return json.loads(done.stdout[done.stdout.index("{") :])


def script(path: Path, *parts: str) -> str:
    path.write_text("\n".join(parts).replace("PATIENCE", "120"))
    return str(path)


@real("Neovim")
def test_neovim(project: Path, tmp_path: Path) -> None:
    for name, text in OTHER_FILES.items():
        (project / name).write_text(text)
    configuration, fix_all = blocks("Neovim", "lua")
    start, every = script(tmp_path / "init.lua", configuration), script(tmp_path / "fix.lua", fix_all)
    given = f'local PATIENCE, OTHERS, FIX_ALL = 120000, "{" ".join(OTHER_FILES)}", "{every}"'
    steps = tmp_path / "steps.lua"
    steps.write_text(f"{given}\n{NEOVIM}")
    said = ran(project, "nvim", "--headless", "--clean", "-u", start, "a.py", "-c", f"luafile {steps}")
    assert said["diagnostics"] == [[row, 4, "TM110", "torchmigrate"] for row in (1, 2)]
    assert "On torch 2.9: info" in said["hover"]
    assert said["actions"] == TITLES
    assert (said["one"], said["all"]) == (ONE_FIXED, ALL_FIXED)
    assert said["clients"] == {
        "run.sh": ["sh", "TM970"],
        "a.yaml": ["yaml", "TM970"],
        "Dockerfile": ["dockerfile", "TM970"],
        "a.cpp": ["cpp", "TM975"],
    }


@real("Emacs")
def test_emacs_with_eglot(project: Path, tmp_path: Path) -> None:
    start = script(tmp_path / "init.el", EMACS, blocks("Emacs", "elisp")[0])
    said = ran(project, "emacs", "-Q", "--batch", "-l", start, "-l", script(tmp_path / "steps.el", EGLOT))
    assert len(said["diagnostics"]) == 2
    assert said["diagnostics"][0] == "torchmigrate [TM110]: `torch.ger` is deprecated; use `torch.outer`"
    assert "On torch 2.9: info" in said["hover"]
    assert said["actions"] == TITLES
    assert (said["one"], said["all"]) == (ONE_FIXED, ALL_FIXED)


def lsp_mode() -> list[str]:
    """The options with which Emacs finds lsp-mode; empty: it is not installed."""
    if lacking("Emacs") is not None:
        return []
    of_debian = """(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa-src")"""
    options = ["--eval", f"(progn (require 'package) {of_debian} (package-initialize))"]
    done = subprocess.run(
        ["emacs", "-Q", "--batch", *options, "--eval", "(require 'lsp-mode)"], capture_output=True
    )
    return [] if done.returncode else options


@real("Emacs")
def test_emacs_with_lsp_mode_beside_another_server(project: Path, tmp_path: Path) -> None:
    """ruff, which is part of what tests need: lsp-mode asks both servers about the actions of each."""
    options = lsp_mode()
    if not options:
        pytest.skip("lsp-mode is not installed")
    start = script(tmp_path / "init.el", EMACS, blocks("Emacs", "elisp")[1], "(require 'lsp-mode)")
    steps = script(tmp_path / "steps.el", LSP_MODE)
    said = ran(project, "emacs", "-Q", "--batch", *options, "-l", start, "-l", steps)
    assert said["diagnostics"] == ["`torch.ger` is deprecated; use `torch.outer`"] * 2
    assert "On torch 2.9: info" in said["hover"]
    assert said["actions"][:2] == TITLES and "Ruff: Organize imports" in said["actions"]
    assert (said["one"], said["all"]) == (ONE_FIXED, ALL_FIXED)


@real("Helix")
def test_helix(project: Path, tmp_path: Path) -> None:
    given = environ(project)
    languages = Path(given["XDG_CONFIG_HOME"], "helix", "languages.toml")
    languages.parent.mkdir(parents=True)
    languages.write_text(blocks("Helix", "toml")[0])
    helix = Terminal(("a.py:2:5",), project, columns=120, program=[REAL["Helix"].program], **given)
    helix.until("`torch.ger` is deprecated")  # beside the line of the cursor
    helix.type(" a")
    helix.until("Suppress on this line")
    helix.type("\r:write-quit\r")
    assert helix.end() == 0
    assert (project / "a.py").read_text() == ONE_FIXED
