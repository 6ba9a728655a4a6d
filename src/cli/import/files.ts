import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Document, isMap, parseDocument } from 'yaml'
import type { Environment } from '../../manifest/read/environment.ts'
import { type FoldersFile, foldersOf, ownFolder } from '../../snapshot/folders.ts'
import { CommandError } from '../command.ts'
import { assignment, configText, secretMode, variablesIn } from '../init/new-files.ts'
import type { ImportPlan, Remark } from './plan.ts'

/** A file that an import writes: its whole text, and whether it has secrets. */
export type PlannedFile = { path: string; text: string; isSecret?: boolean }

/** The files of an import, and remarks about what is there already and was left as it is. */
export type PlannedFiles = { files: PlannedFile[]; remarks: Remark[] }

/** Plans the files of an import: settings that are missing are added, and nothing that exists is changed. */
export function planFiles(plan: ImportPlan, configPath: string, env: Environment): PlannedFiles {
  const config = mergedConfig(plan, configPath)
  const manifests = Object.entries(plan.manifests).map(([slug, text]) => manifestFile(slug, text, config.providers))
  const dotEnv = mergedVariables(plan, join(dirname(configPath), '.env'), env)
  const parts = [config, ...manifests, dotEnv]
  return { files: parts.flatMap(({ files }) => files), remarks: parts.flatMap(({ remarks }) => remarks) }
}

/** Writes files. */
export function writeFiles(files: readonly PlannedFile[]): void {
  for (const { path, text, isSecret } of files) {
    try {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text, { mode: isSecret ? secretMode : 0o644 })
      if (isSecret) chmodSync(path, secretMode)
    } catch (thrown) {
      throw new CommandError((thrown as Error).message)
    }
  }
}

function mergedConfig(plan: ImportPlan, path: string): PlannedFiles & { providers: string } {
  const before = existsSync(path) ? readFileSync(path, 'utf8') : undefined
  const document = parseDocument(before ?? configText([]))
  if (document.errors.length > 0) throw new CommandError(`${path} cannot be read: \`inference-router check\` says why.`)
  const remarks: Remark[] = []
  const add = (steps: readonly string[], value: unknown) => {
    const known = jsonAt(document, steps)
    if (known === undefined) setIn(document, steps, value)
    else if (!isDeepStrictEqual(known, value))
      remarks.push({
        effect: 'manual',
        path: `config.yaml ${steps.join('.')}`,
        message: `has another value and was left as it is; the import has ${JSON.stringify(value)}`,
      })
  }
  for (const [section, members] of Object.entries(plan.settings))
    for (const [member, value] of Object.entries(members)) add([section, member], value)
  for (const [slug, { models = {}, ...settings }] of Object.entries(plan.providers)) {
    if (jsonAt(document, ['providers', slug]) === undefined) setIn(document, ['providers', slug], {})
    for (const [member, value] of Object.entries(settings)) add(['providers', slug, member], value)
    for (const [model, entry] of Object.entries(models)) add(['providers', slug, 'models', model], entry)
  }
  const folders = foldersOf(jsonAt(document, ['folders']) as FoldersFile | undefined, dirname(path))
  const text = String(document)
  const providers = ownFolder(folders.providers) ?? join(dirname(path), 'providers')
  return { files: text === before ? [] : [{ path, text }], remarks, providers }
}

function jsonAt(document: Document, steps: readonly string[]): unknown {
  const value = document.toJS() as unknown
  return steps.reduce<unknown>(
    (at, step) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, step)
        ? (at as { [name: string]: unknown })[step]
        : undefined,
    value,
  )
}

/** Sets a member, in blocks: `providers: {}` of a new file becomes a list of lines. */
function setIn(document: Document, steps: readonly string[], value: unknown): void {
  if (!isMap(document.contents)) document.contents = document.createNode({}) as typeof document.contents
  for (let length = 1; length < steps.length; length++) {
    const parent = steps.slice(0, length)
    const node = document.getIn(parent)
    if (!isMap(node)) document.setIn(parent, document.createNode({}))
    else if (node.items.length === 0) node.flow = false
  }
  document.setIn(steps, document.createNode(value))
}

function manifestFile(slug: string, text: string, folder: string): PlannedFiles {
  const path = join(folder, `${slug}.yaml`)
  if (!existsSync(path)) return { files: [{ path, text }], remarks: [] }
  if (readFileSync(path, 'utf8') === text) return { files: [], remarks: [] }
  const message = 'exists with other contents and was left as it is'
  return { files: [], remarks: [{ effect: 'manual', path, message }] }
}

/** Adds variables to `.env`. One that is set to something else is left as it is, and never shown. */
function mergedVariables({ variables, from }: ImportPlan, path: string, env: Environment): PlannedFiles {
  const known = variablesIn(path)
  const remarks: Remark[] = []
  const differs = (name: string, message: string) =>
    void remarks.push({ effect: 'manual', path: `.env ${name}`, message })
  const lines = Object.entries(variables).flatMap(([name, value]) => {
    const [written, set] = [known[name], env[name]]
    if (written !== undefined && written !== '') {
      if (written !== value) differs(name, 'has another value and was left as it is')
      return []
    }
    if (set !== undefined && set !== value)
      differs(name, 'the environment has another value, which goes before this file')
    return assignment(name, value)
  })
  if (lines.length === 0) return { files: [], remarks }
  const before = existsSync(path) ? readFileSync(path, 'utf8').replace(/(?<!\n)$/, '\n') : ''
  const text = `${before}# Imported from ${from}\n${lines.join('')}`
  return { files: [{ path, text, isSecret: true }], remarks }
}
