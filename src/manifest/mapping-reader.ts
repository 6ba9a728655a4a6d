import type { Mapping } from '../mapping/mapping.ts'
import type { OwnFunctions } from '../mapping/own-functions.ts'
import type { Path } from './position.ts'
import type { Problem } from './problem.ts'
import { compose, definitions, type Fragment, type Pieces } from './program.ts'
import type { Source } from './source.ts'

/** Reads the mappings of one file, each with the file's definitions in front of it, and collects what is wrong with them. */
export class MappingReader {
  readonly source: Source
  readonly problems: Problem[] = []
  /** The place of each mapping in the file. */
  readonly places = new Map<Mapping, Path>()
  readonly pieces: Pieces = new Map()
  private readonly definitions: readonly Fragment[]
  /** Whether the file's own definitions are wrong: its mappings would only repeat that. */
  private readonly isBroken: boolean
  private readonly functions: OwnFunctions | undefined

  /** A variant sees the definitions of the `outer` file that it stands in, and then its own. `functions` are those of plugins. */
  constructor(source: Source, { outer, functions }: { outer?: Source; functions?: OwnFunctions | undefined } = {}) {
    this.source = source
    this.functions = functions
    const given = outer ? define(outer, [], { problems: [], functions }) : []
    this.definitions = [...given, ...define(source, given, { problems: this.problems, functions })]
    this.isBroken = this.problems.length > 0
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
    const { pieces, problems, functions, source } = this
    const given = { functions, ...(variables && { variables }) }
    const mapping = compose(fragments, { pieces, problems, sound: source.sound, ...given })
    if (mapping) this.places.set(mapping, path)
    return mapping
  }
}

/** The definitions of a file; none, with a problem, when they are wrong. */
function define(
  source: Source,
  given: readonly Fragment[],
  { problems, functions }: Pick<MappingReader, 'problems'> & { functions: OwnFunctions | undefined },
): Fragment[] {
  const { define: text } = (source.value ?? {}) as { define?: string }
  if (text === undefined) return []
  const fragments = definitions({ source, path: ['define'], text })
  if (source.sound) return fragments
  const mapping = compose(['(', ...given, ...fragments, '0)'], { pieces: new Map(), problems, functions })
  return mapping ? fragments : []
}
