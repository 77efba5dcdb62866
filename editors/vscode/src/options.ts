// Settings of VS Code to options of the server. Nothing here needs VS Code.

/** The options that the server takes, which are settings of the same names. */
export const SERVER_OPTIONS = [
  "target",
  "minimum",
  "select",
  "extendSelect",
  "ignore",
  "exclude",
  "extendExclude",
  "unsafeFixes",
  "configuration",
  "embedded",
  "evidence",
  "showSyntaxErrors",
] as const;

export type OptionName = (typeof SERVER_OPTIONS)[number];
export type ServerOptions = Partial<Record<OptionName, unknown>>;

/** The values of one setting, as `WorkspaceConfiguration.inspect` gives them. */
export interface Inspected {
  globalValue?: unknown;
  workspaceValue?: unknown;
  workspaceFolderValue?: unknown;
}

/** The value that the user has set, or undefined: a default would override the project's configuration. */
export function explicit(inspected: Inspected | undefined): unknown {
  return inspected?.workspaceFolderValue ?? inspected?.workspaceValue ?? inspected?.globalValue;
}

/** The `initializationOptions` for the server. `value` gives what the user has set. */
export function serverOptions(value: (name: OptionName) => unknown): ServerOptions {
  const options: ServerOptions = {};
  for (const name of SERVER_OPTIONS) {
    const given = value(name);
    const isEmpty = given === undefined || given === null || given === "" || isEmptyList(given);
    if (!isEmpty) {
      options[name] = given;
    }
  }
  return options;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

const LANGUAGES = [
  "python",
  "shellscript",
  "makefile",
  "yaml",
  "dockerfile",
  "pip-requirements",
  "c",
  "cpp",
  "cuda-cpp",
];
const SCHEMES = ["file", "untitled"];

/** The documents that the server checks: files, unsaved texts, and the cells of notebooks. */
export function documentSelector(options: ServerOptions): { scheme: string; language: string }[] {
  const languages = options.embedded === true ? [...LANGUAGES, "markdown"] : LANGUAGES;
  return [
    ...SCHEMES.flatMap((scheme) => languages.map((language) => ({ scheme, language }))),
    { scheme: "vscode-notebook-cell", language: "python" },
  ];
}
