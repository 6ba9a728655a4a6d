import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import type { Executed } from './record-coverage.ts'

/** A test file that passes without mutations: how long it takes, and the code it executes. */
export type TestFile = { path: string; ms: number; executed: Executed }

/** The place of a mutation. */
type Place = { file: string; start: number; isInFunction: boolean }

/**
 * Lists the test files that may notice a change at a place, the quickest and those of its own folder or name first, as far as the time
 * suffices. If no test executes the place in its own thread, those that import the file are asked, by their distance.
 */
export function testsFor(place: Place, tests: readonly TestFile[], imports: Imports, maxMs: number): string[] {
  const folder = place.file.split('/')[1] ?? ''
  const isOwn = ({ path }: TestFile) => path.split('/').includes(folder) || topic(path) === topic(place.file)
  const executing = tests.filter(({ executed }) => executes(executed[place.file] ?? [], place))
  // Files of the own folder know more about it: they may take longer than others.
  const weight = (test: TestFile) => (isOwn(test) ? test.ms / 10 : test.ms)
  const reaching = () => {
    const away = new Map(tests.map((test) => [test, imports.distance(test.path, place.file)]))
    const distance = (test: TestFile) => away.get(test) ?? Number.POSITIVE_INFINITY
    return tests
      .filter((test) => Number.isFinite(distance(test)))
      .sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)) || distance(a) - distance(b) || a.ms - b.ms)
  }
  const ordered = executing.length > 0 ? executing.sort((a, b) => weight(a) - weight(b)) : reaching()
  let left = maxMs
  const isInTime = ({ ms }: TestFile) => {
    const fits = ms <= left
    if (fits) left -= ms
    return fits
  }
  return ordered.filter((test, index) => isInTime(test) || index === 0).map(({ path }) => path)
}

/** Returns the first word of a file's name: `latency-query.ts` and `latency.test.ts` have one topic. */
function topic(path: string): string | undefined {
  return basename(path).split(/[-.]/)[0]
}

/** Finds out whether a place is executed: the innermost piece around it counts. What a file does when it is loaded may matter to all. */
function executes(pieces: Executed[string], { start: place, isInFunction }: Place): boolean {
  if (!isInFunction) return pieces.some(([, , count]) => count > 0)
  let innermost: Executed[string][number] | undefined
  for (const piece of pieces) {
    const [start, end] = piece
    const isAround = start <= place && place < end
    if (isAround && (!innermost || end - start <= innermost[1] - innermost[0])) innermost = piece
  }
  return innermost !== undefined && innermost[2] > 0
}

/** The test files below the folders, or the files, that are named. */
export function testFilesIn(root: string, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    if (name.endsWith('.ts')) return [name]
    const inside = readdirSync(join(root, name), { recursive: true, encoding: 'utf8' })
    return inside.filter((path) => path.endsWith('.test.ts')).map((path) => join(name, path))
  })
}

/** The graph of imports, from files of the project to files of the project. */
export class Imports {
  readonly #root: string
  readonly #imports = new Map<string, string[]>()
  readonly #distances = new Map<string, Map<string, number>>()

  constructor(root: string) {
    this.#root = root
  }

  /** The number of imports from one file to another; infinite if there is no way. */
  distance(from: string, to: string): number {
    let distances = this.#distances.get(from)
    if (!distances) {
      distances = new Map([[from, 0]])
      // The map grows while it is read: breadth first.
      for (const [file, distance] of distances)
        for (const next of this.#of(file)) if (!distances.has(next)) distances.set(next, distance + 1)
      this.#distances.set(from, distances)
    }
    return distances.get(to) ?? Number.POSITIVE_INFINITY
  }

  #of(file: string): string[] {
    const known = this.#imports.get(file)
    if (known) return known
    const text = readFileSync(join(this.#root, file), 'utf8')
    const names = [...text.matchAll(/(?:\bfrom |\bimport |\bimport\(|new URL\()'(\.[^']+\.[jt]s)'/g)].map(
      ([, name = '']) => name,
    )
    const paths = names.map((name) => normalize(join(dirname(file), name))).filter((path) => exists(this.#root, path))
    this.#imports.set(file, paths)
    return paths
  }
}

function exists(root: string, path: string): boolean {
  try {
    readFileSync(join(root, path))
    return true
  } catch {
    return false
  }
}
