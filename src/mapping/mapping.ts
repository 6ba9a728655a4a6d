import jsonata from 'jsonata'
import { functions } from './functions.ts'

/** A JSONata text made ready to run. */
export type Mapping = {
  readonly text: string
  /** Names of the input's own members that the text reads from the top level: what it can possibly take over. */
  readonly reads: ReadonlySet<string>
  /** Plain JSON in, plain JSON out (undefined when nothing matched). Throws MappingError. */
  run(input: unknown): unknown | Promise<unknown>
}

/** A mapping that cannot be read, or that failed on an input. `position` counts characters of the text from 0. */
export class MappingError extends Error {
  readonly code: string
  readonly position: number | undefined

  constructor(message: string, code: string, position?: number) {
    super(message)
    this.name = 'MappingError'
    this.code = code
    this.position = position
  }
}

/** Bounds of one run: far above what a mapping needs, low enough that a hostile one cannot hold the process. */
const guards = { timeout: 1_000, stack: 500, sequence: 100_000 }

/** Reads a JSONata text. Throws MappingError with a position when it is not JSONata. */
export function readMapping(text: string): Mapping {
  const expression = parse(text)
  for (const [name, { run, signature }] of Object.entries(functions)) {
    expression.registerFunction(name, run as (...args: unknown[]) => unknown, signature)
  }
  return {
    text,
    reads: topLevelNames(expression.ast()),
    // A bindings object gives every run an environment of its own.
    run: (input) => expression.evaluate(input, {}).then(plain, fail),
  }
}

function parse(text: string): jsonata.Expression {
  try {
    return jsonata(text, guards as jsonata.JsonataOptions)
  } catch (error) {
    return fail(error)
  }
}

/** Results of the library carry null prototypes and enumerable bookkeeping on arrays: JSON text drops both. */
function plain(result: unknown): unknown {
  return result === undefined ? undefined : JSON.parse(JSON.stringify(result))
}

function fail(error: unknown): never {
  const { message, code, position } = error as { message?: string; code?: string; position?: number }
  throw new MappingError(message ?? String(error), code ?? 'mapping', position)
}

/** Every name that occurs in the syntax tree: a superset of what the text reads at the top level. */
function topLevelNames(tree: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(tree)) for (const item of tree) topLevelNames(item, found)
  else if (tree !== null && typeof tree === 'object') {
    const node = tree as Record<string, unknown>
    if (node.type === 'name' && typeof node.value === 'string') found.add(node.value)
    for (const member of Object.values(node)) topLevelNames(member, found)
  }
  return found
}
