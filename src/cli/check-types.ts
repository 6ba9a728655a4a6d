import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Problem } from '../manifest/check/problem.ts'

/** Result of a check of types: the errors, and the reason why nothing was checked, if so. */
export type CheckedTypes = { problems: Problem[]; unchecked?: string }

const router = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the compiler options by which `inference-router/plugin` is found from any folder. */
export function pluginCompilerOptions() {
  // Builds have declarations beside their JavaScript.
  const path = (file: string) => fileURLToPath(new URL(file, import.meta.url)).replace(/\.js$/, '.d.ts')
  return {
    // The router runs every file of a plugin as a module, whatever package it is in.
    module: 'esnext',
    moduleResolution: 'bundler',
    moduleDetection: 'force',
    verbatimModuleSyntax: true,
    target: 'esnext',
    strict: true,
    noEmit: true,
    erasableSyntaxOnly: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    paths: {
      'inference-router/plugin': [path('../plugin/contract.ts')],
      'inference-router/plugin/test': [path('../plugin/test-kit.ts')],
    },
  }
}

/**
 * Checks the types of plugins with the TypeScript compiler that is installed in their folder or above, or with the router. The router itself
 * needs none, so there may be none.
 */
export async function checkTypes(
  files: readonly string[],
  folder: string,
  places: readonly string[] = [folder, router],
): Promise<CheckedTypes> {
  if (files.length === 0) return { problems: [] }
  const compiler = installed('typescript/package.json', places)
  const nodeTypes = installed('@types/node/package.json', places)
  if (!compiler || !nodeTypes) {
    const missing = [...(compiler ? [] : ['typescript']), ...(nodeTypes ? [] : ['@types/node'])].join(' ')
    return {
      problems: [],
      unchecked: `install ${missing}, for instance with npm install --save-dev ${missing} in ${folder}`,
    }
  }
  const at = await mkdtemp(join(tmpdir(), 'inference-router-types-'))
  try {
    const typeRoots = [dirname(dirname(nodeTypes))]
    const compilerOptions = { ...pluginCompilerOptions(), types: ['node'], typeRoots }
    await writeFile(
      join(at, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: files.map((file) => resolve(file)) }),
    )
    const output = await outputOf(join(dirname(compiler), 'bin/tsc'), at)
    return readOutput(output, { at, folder })
  } finally {
    await rm(at, { recursive: true, force: true })
  }
}

/** Finds a file of a package from one of these folders. */
function installed(file: string, places: readonly string[]): string | undefined {
  for (const from of places) {
    try {
      return createRequire(join(from, 'index.js')).resolve(file)
    } catch {
      // It may be in the next one.
    }
  }
  return undefined
}

type Output = { text: string; code: number | null }

function outputOf(tsc: string, cwd: string): Promise<Output> {
  const child = spawn(process.execPath, [tsc, '-p', '.', '--pretty', 'false'], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (piece) => (text += piece))
  return new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve({ text, code })))
}

/** Reads the lines `file(line,column): error TS1234: message`; those of the router's own files are not about the plugin. */
function readOutput({ text, code }: Output, { at, folder }: { at: string; folder: string }): CheckedTypes {
  const problems: Problem[] = []
  let hasErrors = false
  for (const [, path = '', line, column, message = ''] of text.matchAll(/^(.+)\((\d+),(\d+)\): error TS\d+: (.*)$/gm)) {
    hasErrors = true
    const file = resolve(at, path)
    const isOwn = file.startsWith(resolve(folder) + sep) && !file.includes(`${sep}node_modules${sep}`)
    if (isOwn) problems.push({ file, line: Number(line), column: Number(column), message, severity: 'error' })
  }
  if (code === 0 || hasErrors) return { problems }
  return { problems, unchecked: `the compiler failed: ${text.trim().split('\n', 1)[0] ?? ''}` }
}
