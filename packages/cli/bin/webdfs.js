#!/usr/bin/env node
// Runs on any Node.js, so that one that is too old is told so in one line instead of a syntax error.
const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  console.error(
    `webdfs needs Node.js 24 or newer, this is ${process.versions.node}: install it from https://nodejs.org, or run it with npm in a checkout (npm start), which brings its own.`,
  );
  process.exit(78);
}
await import(new URL('../dist/main.js', import.meta.url));
