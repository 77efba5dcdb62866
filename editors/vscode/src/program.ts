// Finds the program to start. Nothing here needs VS Code.
import { realpathSync, statSync } from "node:fs";
import * as nodePath from "node:path";

export const ARGUMENTS = ["server"];

export interface Where {
  /** The setting `torchmigrate.path`. */
  path: string;
  /** The setting `torchmigrate.interpreter`. */
  interpreter: string;
  /** The interpreter that the Python extension has selected. */
  selected: string | undefined;
  /** The folders of the workspace, the first one for relative paths. */
  folders: string[];
  /** Whether the user trusts the workspace: its programs may run. */
  trusted: boolean;
  home: string;
  environment: Record<string, string | undefined>;
  platform: NodeJS.Platform;
  /** Whether there is a file. */
  isFile: (path: string) => boolean;
}

export type Source = "path" | "interpreter" | "selected" | "PATH";

/** A program, or the reason why there is none. */
export type Found =
  | { kind: "found"; program: string; source: Source }
  | { kind: "missing"; source: Source; place: string; interpreter: string | undefined }
  | { kind: "untrusted"; program: string };

/** Find the program: the settings first, then the Python environment, then the PATH. */
export function findProgram(where: Where): Found {
  const found = find(where);
  // Also a setting of the user may lead into the workspace: by a variable, or by a link.
  if (found.kind === "found" && !where.trusted && isInside(found.program, where)) {
    return { kind: "untrusted", program: found.program };
  }
  return found;
}

function find(where: Where): Found {
  if (where.path) {
    const path = expand(where.path, where);
    const program = hasDirectory(path, where)
      ? [absolute(path, where)].find(where.isFile)
      : onPath(withEnding(path, where), where);
    return program === undefined
      ? { kind: "missing", source: "path", place: path, interpreter: undefined }
      : { kind: "found", program, source: "path" };
  }
  if (where.interpreter) {
    const interpreter = absolute(expand(where.interpreter, where), where);
    const program = besideInterpreter(interpreter, where);
    return program === undefined
      ? { kind: "missing", source: "interpreter", place: interpreter, interpreter }
      : { kind: "found", program, source: "interpreter" };
  }
  const selected = where.trusted ? where.selected : undefined;
  if (selected !== undefined) {
    const program = besideInterpreter(selected, where);
    if (program !== undefined) {
      return { kind: "found", program, source: "selected" };
    }
  }
  const program = onPath(withEnding("torchmigrate", where), where);
  return program === undefined
    ? { kind: "missing", source: "PATH", place: "PATH", interpreter: selected }
    : { kind: "found", program, source: "PATH" };
}

/** Replace `~` and variables as VS Code writes them. What is not known is kept, and so not found. */
export function expand(text: string, where: Where): string {
  const replaced = text.replace(/\$\{(?:env:)?([^}]+)\}/g, (whole, name: string) => {
    if (whole.startsWith("${env:")) {
      return where.environment[name] ?? whole;
    }
    if (name === "userHome") {
      return where.home;
    }
    return name === "workspaceFolder" ? (where.folders[0] ?? whole) : whole;
  });
  return replaced.replace(/^~(?=$|[\\/])/, () => where.home);
}

/** The program that pip installs for an interpreter. A link to an interpreter is not followed, since that of a
 * virtual environment leads out of it. */
function besideInterpreter(interpreter: string, where: Where): string | undefined {
  const { dirname, join } = paths(where);
  const directory = dirname(interpreter);
  const name = withEnding("torchmigrate", where);
  const candidates = [join(directory, name)];
  if (where.platform === "win32") {
    candidates.push(join(directory, "Scripts", name)); // of conda, and of a Python that is no environment
  }
  return candidates.find(where.isFile);
}

/** A program on the PATH. Relative directories are left out: they would be those of the workspace. */
function onPath(name: string, where: Where): string | undefined {
  const { delimiter, isAbsolute, join } = paths(where);
  const key = where.platform === "win32" ? /^path$/i : /^PATH$/;
  const variable = Object.keys(where.environment).find((each) => key.test(each));
  const directories = (variable && where.environment[variable]?.split(delimiter)) || [];
  return directories
    .filter((directory) => isAbsolute(directory))
    .map((directory) => join(directory, name))
    .filter((program) => where.trusted || !isInside(program, where))
    .find(where.isFile);
}

/** The interpreter of the environment that a program is installed in, if there is one next to it. */
export function interpreterOf(program: string, where: Where): string | undefined {
  const { dirname, join } = paths(where);
  const directory = dirname(real(program)); // pipx and uv link to the program
  return [join(directory, where.platform === "win32" ? "python.exe" : "python")].find(where.isFile);
}

function withEnding(name: string, where: Where): string {
  return where.platform === "win32" && !/\.exe$/i.test(name) ? `${name}.exe` : name;
}

function hasDirectory(path: string, where: Where): boolean {
  return path.includes("/") || (where.platform === "win32" && path.includes("\\"));
}

function absolute(path: string, where: Where): string {
  const { isAbsolute, join } = paths(where);
  return isAbsolute(path) ? path : join(where.folders[0] ?? where.home, path);
}

function isInside(path: string, where: Where): boolean {
  const { isAbsolute, relative } = paths(where);
  return [path, real(path)].some((file) =>
    where.folders.some((folder) =>
      [folder, real(folder)].some((top) => {
        const rest = relative(top, file);
        return !/^\.\.($|[\\/])/.test(rest) && !isAbsolute(rest);
      }),
    ),
  );
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function paths(where: Where): nodePath.PlatformPath {
  return where.platform === "win32" ? nodePath.win32 : nodePath.posix;
}
