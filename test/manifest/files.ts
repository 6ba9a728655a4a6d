import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Problem } from '../../src/manifest/check/problem.ts'
import { type Dialect, loadDialect } from '../../src/manifest/read/dialect.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'

/** A temporary folder with these files, removed after the test. */
export function folderOf(files: { [path: string]: string }): string {
  const folder = mkdtempSync(join(tmpdir(), 'router-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(files)) writeIn(folder, path, text)
  return folder
}

/**
 * Writes one file below a folder, with the folders it needs. A configuration that names no folders gets those beside it, without the
 * shipped files.
 */
export function writeIn(folder: string, path: string, text: string): void {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, path === 'config.yaml' && !/\bfolders\b/.test(text) ? withOwnFolders(text) : text)
}

function withOwnFolders(text: string): string {
  if (text.startsWith('{'))
    return text.replace(/^\{(?=\s*(\}?))/, (_, end) => (end ? '{"folders":{}' : '{"folders":{},'))
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}folders: {}\n`
}

/** `line:column message` of each problem. */
export function formatted(problems: readonly Problem[]): string[] {
  return problems.map(({ line, column, message }) => `${line}:${column} ${message}`)
}

/** The endpoint of a small invented format, indented as in a file. */
export const plainEndpoint = `endpoints:
  chat:
    path: /generate
    stream: { event_field: kind, done: END }
    request:
      body: '{ "model": model, "limit": max_output_tokens }'
      lines: '[system.text, messages.parts[type = "text"].text]'
    reply: |
      error ? { "error": { "message": error } }
      : {
        "id": id,
        "parts": { "type": "text", "text": said },
        "finish": "stop",
        "usage": { "input": in, "output": out }
      }
    events:
      piece: '{ "text": said }'
      end: '[{ "finish": "stop" }, { "usage": { "output": out } }]'
      ping: ''
`

/** A whole dialect file of the invented format. */
export const plainDialect = `dialect: plain\n${plainEndpoint}`

/** The invented format as a loaded dialect. Throws when it has problems. */
export function loadedDialect(text = plainDialect): Dialect {
  const { dialect, problems } = loadDialect(readSource('providers/dialects/plain.yaml', text))
  if (!dialect) throw new Error(formatted(problems).join('\n'))
  return dialect
}

/** The result of loading a manifest `acme.yaml` on the invented dialect. */
export function loadAcme(text: string, env: { [name: string]: string } = {}) {
  const dialects = new Map([['plain', loadedDialect()]])
  return loadManifest(readSource('providers/acme.yaml', text), { dialects, env })
}

/** The shortest manifest. */
export const acme = `slug: acme
name: Acme
base_url: http://127.0.0.1:9/v1
auth: { scheme: none }
dialect: plain
`
