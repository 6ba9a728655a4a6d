#!/usr/bin/env node
// JavaScript, as what it imports first: Node finds kept code of TypeScript without its compiler, which takes 50 ms to load.
// Nothing is imported statically: an older Node would complain about names that it lacks before this file could say why.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 11)) {
  console.error(`inference-router needs Node 24.11 or later: ${process.execPath} is ${process.versions.node}.`)
  process.exit(1)
}

const { keepCode } = await import('./runtime/cache-folder.js')
keepCode()
await import('./main.ts')
