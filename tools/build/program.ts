import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { importingJavaScript, javascriptOf } from './javascript.ts'

/** The folder of the project. */
export const project = join(import.meta.dirname, '../..')

/** Folders and files whose TypeScript becomes JavaScript. Of the tools, those that are commands of the program. */
const code = ['src', 'plugins', 'tools/bills', 'tools/catalog', 'tools/discover', 'tools/providers-page.ts']

/** Files and folders that are taken as they are. The console's types are removed when a browser asks for its files. */
const shipped = ['providers', 'catalog', 'schemas', 'console', 'config.yaml', 'CHANGELOG.md', 'LICENSE']

/** Folders in which people put files of their own while they run a checkout. */
const shared = ['providers', 'catalog', 'plugins']

/** Members of the program's package.json; the rest is about its development. */
const members = ['name', 'version', 'description', 'license', 'type', 'engines', 'dependencies', 'optionalDependencies']

/** Members of the project's package.json that builds need. */
export type Manifest = { name: string; version: string; license: string } & Record<string, unknown>

/** Reads the project's package.json. */
export function projectManifest(): Manifest {
  return JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
}

/** Writes the program into an empty folder: JavaScript, the shipped files and a package.json, without packages. */
export function writeProgram(to: string, own = ownFiles()): void {
  rmSync(to, { recursive: true, force: true })
  if (own.size > 0) console.error(`Left out, because they are not in git: ${[...own].join(', ')}`)
  for (const folder of code) {
    const paths = folder.endsWith('.ts') ? [''] : filesBelow(join(project, folder))
    for (const path of paths) {
      if (!own.has(`${folder}/${path}`)) writeCode(join(project, folder, path), join(to, folder, path))
    }
  }
  for (const name of shipped) cpSync(join(project, name), join(to, name), { recursive: true, filter: isShipped })
  for (const path of own) rmSync(join(to, path), { force: true })
  writeDeclarations(join(to, 'src'))
  const build = digestOf(to)
  writeFileSync(join(to, 'package.json'), `${JSON.stringify({ ...manifestOfProgram(), build }, null, 2)}\n`)
}

/** Returns a digest of a folder, by which the program's caches tell builds apart. */
function digestOf(folder: string): string {
  const all = createHash('sha256').update(JSON.stringify(manifestOfProgram()))
  for (const path of filesBelow(folder)) {
    const bytes = readFileSync(join(folder, path))
    all.update(`${path} ${bytes.length} `).update(bytes)
  }
  return all.digest('hex').slice(0, 16)
}

/** Returns the files of the shared folders that are not in git: somebody's own, which are nobody else's business. */
export function ownFiles(folder = project): Set<string> {
  const git = (...args: string[]) => run('git', args, { cwd: folder })
  try {
    if (realpathSync(git('rev-parse', '--show-toplevel').trim()) !== realpathSync(folder)) return new Set()
    return new Set(
      git('ls-files', '--others', '-z', '--', ...shared)
        .split('\0')
        .filter(Boolean),
    )
  } catch {
    return new Set()
  }
}

function isShipped(path: string): boolean {
  return !/\.test\.ts$|tsconfig\.json$|\.d\.ts$/.test(path)
}

function writeCode(from: string, to: string): void {
  if (!isShipped(from)) return
  const text = readFileSync(from, 'utf8')
  mkdirSync(dirname(to), { recursive: true })
  if (from.endsWith('.ts')) writeFileSync(to.replace(/\.ts$/, '.js'), javascriptOf(text))
  else if (from.endsWith('.js')) writeFileSync(to, importingJavaScript(text))
  else writeFileSync(to, text)
}

function manifestOfProgram(): Manifest {
  const own = projectManifest()
  const exported = (file: string) => ({ types: `./src/plugin/${file}.d.ts`, default: `./src/plugin/${file}.js` })
  return {
    ...(Object.fromEntries(members.map((name) => [name, own[name]])) as Manifest),
    bin: { 'inference-router': 'src/start.js' },
    exports: {
      './plugin': exported('contract'),
      './plugin/test': exported('test-kit'),
      './package.json': './package.json',
    },
  }
}

/** Writes the types that plugins import, with those that they are made of. */
function writeDeclarations(to: string): void {
  const at = mkdtempSync(join(tmpdir(), 'inference-router-types-'))
  try {
    const compilerOptions = {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      removeComments: false,
      rootDir: join(project, 'src'),
      outDir: at,
      typeRoots: [join(project, 'node_modules/@types')],
    }
    const files = ['contract.ts', 'test-kit.ts'].map((file) => join(project, 'src/plugin', file))
    const settings = { extends: join(project, 'tsconfig.json'), compilerOptions, files, include: [] }
    writeFileSync(join(at, 'tsconfig.json'), JSON.stringify(settings))
    run(process.execPath, [join(project, 'node_modules/typescript/bin/tsc'), '-p', at])
    for (const path of filesBelow(at).filter((one) => one.endsWith('.d.ts'))) {
      mkdirSync(dirname(join(to, path)), { recursive: true })
      writeFileSync(join(to, path), importingJavaScript(readFileSync(join(at, path), 'utf8')))
    }
  } finally {
    rmSync(at, { recursive: true, force: true })
  }
}

/** Gives files their usual permissions, whatever the umask and the checkout were: builds are equal, and everybody can run them. */
export function readableByAll(folder: string): void {
  for (const path of filesBelow(folder)) {
    const file = join(folder, path)
    chmodSync(file, (statSync(file).mode & 0o100) === 0 ? 0o644 : 0o755)
  }
}

/** Lists the files below a folder by their paths in it, with forward slashes, in the order of these. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) =>
      join(parentPath, name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    )
    .sort()
}

/** Runs another program to its end. Throws with what it printed if it fails. */
export function run(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    ...options,
    shell: process.platform === 'win32' && command === 'npm',
  })
  if (status === 0) return stdout
  throw new Error(`${command} ${args.join(' ')} failed: ${error?.message ?? `${stdout}${stderr}`.trim()}`)
}
