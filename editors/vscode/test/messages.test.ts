import assert from "node:assert/strict";
import { test } from "node:test";
import { installCommand, notFound, notStarted } from "../src/messages";
import { findProgram } from "../src/program";
import { computer } from "./support";

function message(given: Parameters<typeof computer>[1]) {
  const found = findProgram(computer(["/project/.venv/bin/torchmigrate"], given));
  assert.ok(found.kind !== "found");
  return notFound(found, "linux");
}

test("nothing is installed", () => {
  assert.deepEqual(message({}), {
    text: 'torchmigrate was not found on the PATH. Install it: pip install "torchmigrate[lsp]"',
    command: 'pip install "torchmigrate[lsp]"',
  });
});

test("the selected environment does not have it", () => {
  assert.deepEqual(message({ selected: "/env/bin/python" }), {
    text:
      "torchmigrate was not found in the environment of /env/bin/python, nor on the PATH. " +
      'Install it: /env/bin/python -m pip install "torchmigrate[lsp]"',
    command: '/env/bin/python -m pip install "torchmigrate[lsp]"',
  });
});

test("the settings lead nowhere", () => {
  assert.deepEqual(message({ path: "/usr/bin/tm" }), {
    text: 'torchmigrate: the setting "torchmigrate.path" names /usr/bin/tm, which does not exist.',
  });
  assert.deepEqual(message({ interpreter: "~/env/bin/python" }), {
    text:
      'torchmigrate is not installed for /home/me/env/bin/python (setting "torchmigrate.interpreter"). ' +
      'Install it: /home/me/env/bin/python -m pip install "torchmigrate[lsp]"',
    command: '/home/me/env/bin/python -m pip install "torchmigrate[lsp]"',
  });
});

test("the program may not run", () => {
  const text = message({ trusted: false, folders: ["/project"], path: ".venv/bin/torchmigrate" }).text;
  assert.match(text, /\/project\/\.venv\/bin\/torchmigrate is part of this workspace.*trust the workspace/);
});

test("the program does not start", () => {
  const { text, command } = notStarted(
    "/usr/bin/tm",
    undefined,
    { kind: "broken", reason: "error: no" },
    "linux",
  );
  assert.equal(text, "/usr/bin/tm server does not start: no");
  assert.equal(command, undefined);
});

test("commands are for the terminal that VS Code opens", () => {
  const packages = '-m pip install "torchmigrate[lsp]"';
  assert.equal(installCommand("/my env/python", "linux"), `'/my env/python' ${packages}`);
  assert.equal(installCommand("/it's/python", "darwin"), `'/it'\\''s/python' ${packages}`);
  assert.equal(installCommand("C:\\env\\python.exe", "win32"), `C:\\env\\python.exe ${packages}`);
  assert.equal(installCommand("C:\\my env\\python.exe", "win32"), `& "C:\\my env\\python.exe" ${packages}`);
});
