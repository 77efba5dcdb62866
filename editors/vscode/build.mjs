// Bundles the extension into dist/extension.js, with the licenses of what is bundled in dist/licenses.txt. With --tests
// it also bundles each test into dist/test/.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build, context } from "esbuild";

const given = new Set(process.argv.slice(2));
const shared = {
  bundle: true,
  platform: "node",
  target: "node20", // that of the oldest VS Code in package.json
  format: "cjs",
  logLevel: "warning",
};
const extension = {
  ...shared,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  external: ["vscode"],
  minify: given.has("--minify"),
  sourcemap: !given.has("--minify"),
  metafile: true,
};
const tests = {
  ...shared,
  entryPoints: readdirSync("test")
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name}`),
  outdir: "dist/test",
  outExtension: { ".js": ".cjs" },
  sourcemap: "inline",
};

/** The license of each package that has a file in a bundle. */
function licenses(files) {
  const packages = files.flatMap(
    (file) => file.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/)?.[0] ?? [],
  );
  return [...new Set(packages)].sort().map((directory) => {
    const { name, version, license } = JSON.parse(readFileSync(`${directory}/package.json`, "utf8"));
    const file = readdirSync(directory).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) {
      throw new Error(`${name} has no license`);
    }
    return `${name} ${version} (${license})\n\n${readFileSync(`${directory}/${file}`, "utf8").trim()}\n`;
  });
}

rmSync("dist", { recursive: true, force: true });
if (given.has("--watch")) {
  await (await context(extension)).watch();
} else {
  const { metafile } = await build(extension);
  writeFileSync("dist/licenses.txt", licenses(Object.keys(metafile.inputs)).join(`\n${"-".repeat(80)}\n\n`));
  if (given.has("--tests")) {
    await build(tests);
  }
}
