// Runs a WASI module with a folder as its current one: node tests/wasi.mjs MODULE FOLDER ARGUMENT...
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [module, folder, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args, env: process.env, preopens: { "/": folder, ".": folder }, returnOnExit: true });
const compiled = await WebAssembly.compile(await readFile(module));
const instance = await WebAssembly.instantiate(compiled, wasi.getImportObject());
process.exitCode = wasi.start(instance);
