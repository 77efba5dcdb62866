// What the user reads when the server cannot run. Nothing here needs VS Code.
import type { Probed } from "./process";
import type { Found } from "./program";

export interface Message {
  text: string;
  /** A command for a terminal that mends it. */
  command?: string;
}

/** The message for a program that was not found, or that may not run. */
export function notFound(found: Exclude<Found, { kind: "found" }>, platform: NodeJS.Platform): Message {
  if (found.kind === "untrusted") {
    return {
      text: `torchmigrate: ${found.program} is part of this workspace. It starts after you trust the workspace.`,
    };
  }
  if (found.source === "path") {
    return {
      text: `torchmigrate: the setting "torchmigrate.path" names ${found.place}, which does not exist.`,
    };
  }
  const command = installCommand(found.interpreter, platform);
  if (found.source === "interpreter") {
    return {
      text: `torchmigrate is not installed for ${found.place} (setting "torchmigrate.interpreter"). Install it: ${command}`,
      command,
    };
  }
  const environment =
    found.interpreter === undefined ? "" : ` in the environment of ${found.interpreter}, nor`;
  return { text: `torchmigrate was not found${environment} on the PATH. Install it: ${command}`, command };
}

/** The message for a program that was found and does not start. */
export function notStarted(
  program: string,
  interpreter: string | undefined,
  probed: Extract<Probed, { kind: "broken" }>,
  platform: NodeJS.Platform,
): Message {
  if (/needs pygls/.test(probed.reason)) {
    const command = installCommand(interpreter, platform);
    return {
      text: `${program} lacks what the language server needs, the extra "lsp". Install it: ${command}`,
      command,
    };
  }
  const reason = probed.reason.replace(/^error: /, "") || "it gave no reason";
  return { text: `${program} server does not start: ${reason}` };
}

/** The command that installs the program and its extra, for the terminal of VS Code. */
export function installCommand(interpreter: string | undefined, platform: NodeJS.Platform): string {
  const packages = `"torchmigrate[lsp]"`;
  return interpreter === undefined
    ? `pip install ${packages}`
    : `${quoted(interpreter, platform)} -m pip install ${packages}`;
}

function quoted(path: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+=:,./\\-]+$/.test(path) && !(platform !== "win32" && path.includes("\\"))) {
    return path;
  }
  // In PowerShell, the default terminal on Windows, `&` calls a quoted program.
  return platform === "win32" ? `& "${path}"` : `'${path.replaceAll("'", `'\\''`)}'`;
}
