#!/usr/bin/env node
// Starts the program of the package for this platform, with the arguments, streams and exit status of this process.
"use strict";
const { spawnSync } = require("node:child_process");

const name = `podgraft-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "podgraft.exe" : "podgraft";
let program;
try {
  program = require.resolve(`${name}/${file}`);
} catch {
  console.error(
    `podgraft: the package ${name} is not installed. Either there is none for this platform, ` +
      "or optional dependencies were left out: npm install --include=optional podgraft",
  );
  process.exit(2);
}
const result = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (result.error) {
  console.error(`podgraft: ${program} cannot be started: ${result.error.message}`);
  process.exit(2);
}
if (result.signal) process.kill(process.pid, result.signal);
process.exit(result.status);
