import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { API, type Diagnostic } from 'typescript/unstable/sync'
import { type Mutation, mutationsOf } from './mutations.ts'

/** One changed place of a file that compiles; `before` and `after` are the lines of the change, on one line each. */
export type Mutant = Pick<Mutation, 'start' | 'isInFunction'> & {
  file: string
  line: number
  before: string
  after: string
  /** The text of the file with the change. */
  text: string
}

/** Unused names are no mistakes of a mutant. */
const unused = new Set([6133, 6192, 6196, 6198])

/** Yields the mutants of a folder of src/ in a random order that the seed decides. Only those that compile are yielded. */
export function* mutantsOf(root: string, folder: string, seed: number): Generator<Mutant> {
  const changed = new Map<string, string>()
  const readFile = (path: string) => changed.get(path)
  const api = new API({ cwd: root, fs: { readFile } })
  try {
    const config = join(root, 'tsconfig.json')
    let snapshot = api.updateSnapshot({ openProjects: [config] })
    const project = () => {
      const found = snapshot.getProject(config)
      if (!found) throw new Error(`${config} is no project`)
      return found
    }
    const places = filesOf(root, folder).flatMap((file) => {
      const source = project().program.getSourceFile(join(root, file))
      return source ? mutationsOf(source).map((mutation) => ({ file, mutation })) : []
    })
    for (const { file, mutation } of shuffled(places, seed)) {
      const path = join(root, file)
      const original = readFileSync(path, 'utf8')
      const mutant = mutantOf(file, original, mutation)
      changed.set(path, mutant.text)
      snapshot = api.updateSnapshot({ fileChanges: { changed: [path] } })
      const errors = problemsIn(project().program.getSemanticDiagnostics(path))
      const broken = errors + project().program.getSyntacticDiagnostics(path).length
      changed.delete(path)
      snapshot = api.updateSnapshot({ fileChanges: { changed: [path] } })
      if (broken === 0) yield mutant
    }
  } finally {
    api.close()
  }
}

/** Paths of the files of a folder of src/, from the root of the project. */
export function filesOf(root: string, folder: string): string[] {
  const names = readdirSync(join(root, 'src', folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.ts')).map((name) => `src/${folder}/${name.replaceAll('\\', '/')}`)
}

function problemsIn(diagnostics: readonly Diagnostic[]): number {
  return diagnostics.filter(({ code }) => !unused.has(code)).length
}

function mutantOf(file: string, original: string, { start, end, text, isInFunction }: Mutation): Mutant {
  const from = original.lastIndexOf('\n', start - 1) + 1
  const next = original.indexOf('\n', end)
  const to = next < 0 ? original.length : next
  return {
    file,
    line: original.slice(0, start).split('\n').length,
    start,
    isInFunction,
    before: onOneLine(original.slice(from, to)),
    after: onOneLine(original.slice(from, start) + text + original.slice(end, to)),
    text: original.slice(0, start) + text + original.slice(end),
  }
}

function onOneLine(text: string): string {
  return text.trim().replace(/\s+/g, ' ')
}

/** Shuffles by Fisher and Yates. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = randomNumbers(seed)
  const order = [...items]
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const moved = order[last] as T
    order[last] = order[other] as T
    order[other] = moved
  }
  return order
}

/** Returns a generator of numbers from 0 to 1 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
