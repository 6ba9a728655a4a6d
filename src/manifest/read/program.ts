import { functionResults } from '../../mapping/function-results.ts'
import type { OwnFunctions } from '../../mapping/library.ts'
import { functionNames, type Mapping, MappingError, readMapping } from '../../mapping/mapping.ts'
import type { SharedBeginning } from '../../mapping/parse.ts'
import { didYouMean } from '../check/did-you-mean.ts'
import type { Problem } from '../check/problem.ts'
import type { Path } from './position.ts'
import type { Source } from './source.ts'

/** A text of a file that became part of a mapping: its place, and its offsets in the mapping's text. */
export type Piece = { source: Source; path: Path; from: number; to: number }

/** The texts of a file that each mapping was made of, for telling where something went wrong. */
export type Pieces = Map<Mapping, readonly Piece[]>

/** A mapping about to be composed: text of our own between texts of the file. */
export type Fragment = string | { source: Source; path: Path; text: string }

/** Joins fragments to one mapping. What is wrong with it is reported at the place of the text in its file. */
export function compose(
  fragments: readonly Fragment[],
  {
    pieces,
    problems,
    ...options
  }: {
    pieces: Pieces
    problems: Problem[]
    variables?: readonly string[]
    functions: OwnFunctions | undefined
    sound?: boolean
    url?: () => string
    beginning?: SharedBeginning | undefined
  },
): Mapping | undefined {
  const joined = join(fragments)
  try {
    const mapping = readMapping(joined.text, options)
    pieces.set(mapping, joined.pieces)
    if (options.sound) return mapping
    const found = [...unboundProblems(mapping, joined.pieces), ...functionProblems(mapping, joined.pieces)]
    problems.push(...found)
    return found.length > 0 ? undefined : mapping
  } catch (error) {
    if (!(error instanceof MappingError)) throw error
    problems.push(problemAt(joined.pieces, error.position, `not JSONata: ${error.message}`))
    return undefined
  }
}

/** Definitions as a fragment in front of an expression: they end with exactly one semicolon. */
export function definitions(fragment: Exclude<Fragment, string>): Fragment[] {
  return [fragment, withoutTrailingComments(fragment.text).endsWith(';') ? '\n' : '\n;']
}

/** Returns a problem of a mapping at the place in a file that its position refers to. JSONata names the end of what it stumbled over. */
export function problemAt(pieces: readonly Piece[], position: number | undefined, message: string): Problem {
  const { source, path, offset } = locate(pieces, Math.max(0, (position ?? 1) - 1))
  return { file: source.file, ...source.inText(path, offset), message, severity: 'error' }
}

/** Joins fragments to one text, and finds the places of those of files in it. */
export function join(fragments: readonly Fragment[]): { text: string; pieces: Piece[] } {
  const pieces: Piece[] = []
  let text = ''
  for (const fragment of fragments) {
    const from = text.length
    text += typeof fragment === 'string' ? fragment : fragment.text
    if (typeof fragment !== 'string') {
      pieces.push({ source: fragment.source, path: fragment.path, from, to: text.length })
    }
  }
  return { text, pieces }
}

/** The piece that an offset of the mapping's text lies in; between two pieces it is the end of the first. */
function locate(pieces: readonly Piece[], at: number): { source: Source; path: Path; offset: number } {
  const piece = pieces.findLast(({ from }) => from <= at) ?? pieces[0]
  if (!piece) throw new Error('a mapping without a piece of a file')
  return {
    source: piece.source,
    path: piece.path,
    offset: Math.min(Math.max(0, at - piece.from), piece.to - piece.from),
  }
}

function unboundProblems({ unbound, functions }: Mapping, pieces: readonly Piece[]): Problem[] {
  return unbound.map(({ name, position }) => {
    const hint = didYouMean(name, [...functionNames, ...(functions?.names ?? [])]).replace('`', '`$')
    return problemAt(pieces, position + 1, `there is no variable or function \`$${name}\`${hint}`)
  })
}

function functionProblems({ tree, functions }: Mapping, pieces: readonly Piece[]): Problem[] {
  const known = new Set([...functionNames, ...(functions?.names ?? [])])
  return functionResults(tree, known).map(({ type, value, position }) => {
    const name = type === 'variable' ? `\`$${value}\`` : 'this'
    const message = `${name} is a function, which cannot be part of a result: call it with its arguments, or leave it out`
    return problemAt(pieces, position as number, message)
  })
}

function withoutTrailingComments(text: string): string {
  let left = text.trimEnd()
  while (left.endsWith('*/')) left = left.slice(0, left.lastIndexOf('/*')).trimEnd()
  return left
}
