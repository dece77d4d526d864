#!/usr/bin/env node
import { existsSync } from 'node:fs';
// Runs on any Node.js, so that one that is too old is told so in one line instead of a syntax error.
const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  console.error(
    `webdfs needs Node.js 24 or newer, this is ${process.versions.node}: install it from https://nodejs.org, or run it with npm in a checkout (npm start), which brings its own.`,
  );
  process.exit(78);
}
const program = new URL('../dist/main.js', import.meta.url);
if (!existsSync(program)) {
  console.error(
    'webdfs is not built here: in a checkout use "npm run -s webdfs -- COMMAND …", or build it with "npm run build".',
  );
  process.exit(1);
}
await import(program);
