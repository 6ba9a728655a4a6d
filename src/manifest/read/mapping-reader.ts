import { relative } from 'node:path'
import type { OwnFunctions } from '../../mapping/library.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { type SharedBeginning, sharedBeginning } from '../../mapping/parse.ts'
import type { Problem } from '../check/problem.ts'
import type { Path } from './position.ts'
import { compose, definitions, type Fragment, join, type Pieces } from './program.ts'
import type { Source } from './source.ts'

/** Definitions of a file: under `define`, which its own mappings see, or `exports`, which those of others see too. */
export type GivenDefinitions = { source: Source; path: ['define'] | ['exports'] }

/** Definitions and functions that the mappings of a file see besides its own definitions. */
export type Around = { given?: readonly GivenDefinitions[]; functions?: OwnFunctions | undefined }

/** Reads the mappings of one file, each with the file's definitions in front of it, and collects what is wrong with them. */
export class MappingReader {
  readonly source: Source
  readonly problems: Problem[] = []
  /** The place of each mapping in the file. */
  readonly places = new Map<Mapping, Path>()
  readonly pieces: Pieces = new Map()
  private readonly definitions: readonly Fragment[]
  /** True if the file's own definitions are wrong: its mappings would only repeat that. */
  private readonly isBroken: boolean
  private readonly functions: OwnFunctions | undefined
  private readonly beginning: SharedBeginning | undefined

  /** The definitions of other files precede its own. `functions` are those of plugins. */
  constructor(source: Source, { given = [], functions }: Around = {}) {
    this.source = source
    this.functions = functions
    const others = given.flatMap((one) => (textAt(one) === '' ? [] : definitions({ ...one, text: textAt(one) })))
    const lent = define({ source, path: ['exports'] }, others, { problems: this.problems, functions })
    const before = [...others, ...lent]
    this.definitions = [
      ...before,
      ...define({ source, path: ['define'] }, before, { problems: this.problems, functions }),
    ]
    this.isBroken = this.problems.length > 0
    this.beginning = this.definitions.length === 0 ? undefined : sharedBeginning(join(['(', ...this.definitions]).text)
  }

  /** The mapping of one text; undefined when there is none, or when it has problems. */
  read(path: Path, text: string | undefined, variables?: readonly string[]): Mapping | undefined {
    if (text === undefined) return undefined
    const fragment = { source: this.source, path, text }
    if (this.definitions.length === 0) return this.compose(path, [fragment], variables)
    return this.compose(path, ['(', ...this.definitions, '(', fragment, '\n))'], variables)
  }

  /** A block of the file's definitions, those of the block itself, and an expression. */
  readBlock(path: Path, own: { path: Path; text: string } | undefined, result: readonly Fragment[]) {
    const let_ = own ? definitions({ source: this.source, ...own }) : []
    return this.compose(path, ['(', ...this.definitions, ...let_, ...result, '\n)'])
  }

  private compose(path: Path, fragments: readonly Fragment[], variables?: readonly string[]): Mapping | undefined {
    if (this.isBroken) return undefined
    const { pieces, problems, functions, source, beginning } = this
    const given = { functions, beginning, url: () => mappingUrl(source, path), ...(variables && { variables }) }
    const mapping = compose(fragments, { pieces, problems, sound: source.sound !== undefined, ...given })
    if (mapping) this.places.set(mapping, path)
    return mapping
  }
}

/**
 * Builds the URL of the code of a mapping: `mapping://providers/acme.yaml/endpoints.chat.request`. Files outside the working directory
 * appear with their absolute path.
 */
export function mappingUrl({ file, path: place }: Pick<Source, 'file' | 'path'>, path: Path): string {
  const inside = relative('', file)
  const steps = (inside.startsWith('..') ? file : inside).split(/[\\/]/)
  return `mapping://${[...steps, [...place, ...path].join('.')].map(encoded).join('/')}`
}

function encoded(step: string): string {
  return encodeURIComponent(step.toWellFormed())
}

/** The text of definitions; empty where there are none. */
export function textAt({ source, path: [name] }: GivenDefinitions): string {
  return ((source.value ?? {}) as { define?: string; exports?: string })[name] ?? ''
}

/** The definitions of a file; none, with a problem, when they are wrong. */
function define(
  own: GivenDefinitions,
  given: readonly Fragment[],
  { problems, functions }: Pick<MappingReader, 'problems'> & { functions: OwnFunctions | undefined },
): Fragment[] {
  const text = textAt(own)
  if (text === '') return []
  const fragments = definitions({ ...own, text })
  if (own.source.sound !== undefined) return fragments
  const mapping = compose(['(', ...given, ...fragments, '0)'], { pieces: new Map(), problems, functions })
  return mapping ? fragments : []
}
