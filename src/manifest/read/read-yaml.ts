import { createRequire } from 'node:module'

/** Length up to which `yaml` looks at a text that js-yaml refuses: it takes time that grows with the square of the length. Characters. */
export const maxDisputedLength = 65_536

/** The value of a text, or the error for one that no other parser should try. */
export type ParsedYaml = { value: unknown } | { message: string; place: { line: number; column: number } }

/**
 * Parses a YAML text with js-yaml, which is several times faster than `yaml`. Returns undefined where js-yaml refuses the
 * text or is known to disagree with `yaml`: then `yaml` has the last word, and knows the position of an error. On texts that are not YAML
 * it takes time that grows with the square of their length, so long ones are refused as js-yaml refuses them.
 */
export function parseYaml(text: string): ParsedYaml | undefined {
  const isLong = text.length > maxDisputedLength
  const isDisputed = disputed.some((pattern) => pattern.test(text))
  if (isDisputed && !isLong && !mayBeDeep(text)) return undefined
  try {
    const value = parse(text)
    // They also disagree about a few texts that consist of a single scalar.
    return !isDisputed && typeof value === 'object' && value !== null ? { value } : undefined
  } catch (error) {
    const { reason = '', mark } = error as { reason?: string; mark?: { line: number; column: number } }
    const place = { line: (mark?.line ?? 0) + 1, column: (mark?.column ?? 0) + 1 }
    if (reason.startsWith('nesting exceeded')) return { message: tooDeep, place }
    return isLong && reason !== '' ? { message: reason, place } : undefined
  }
}

/** Returns the value of a text, as `parseYaml` does; undefined where there is none. */
export function readYaml(text: string): { value: unknown } | undefined {
  const parsed = parseYaml(text)
  return parsed && 'value' in parsed ? parsed : undefined
}

/** Maximum depth of lists and objects in each other: steps that look at all of a value need stack for each level. js-yaml has the same. */
const maxDepth = 100
export const tooDeep = `lists and objects are nested more than ${maxDepth} levels deep`

/** Checks whether a value is nested deeper than any file needs. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth >= maxDepth || Object.values(value).some((member) => isTooDeep(member, depth + 1))
}

/** Checks whether a text has as many opening brackets as a value that is nested too deep. */
function mayBeDeep(text: string): boolean {
  let count = 0
  for (const _ of text.matchAll(/[[{]/g)) if (++count > maxDepth) return true
  return false
}

/** Syntax on which the two parsers disagree. A match inside a string does no harm: `yaml` then parses the file. */
const disputed = [
  // Tabs, carriage returns and byte order marks.
  /[\t\r\uFEFF]/,
  // Document markers and directives.
  /^ *(?:---|\.\.\.|%)/m,
  // Anchors, aliases and tags: js-yaml accepts `a: &anchor b: 1`.
  /(?:^|[:?-] |[[{,]) *(?:[&*][^ \n]|!)/m,
  // Lists that are not indented further than their key: js-yaml accepts `- "a" b: c` in them.
  /^( *)(?:-( +))?(?:[^ \n#].*)?: *(?: #.*)?\n(?: *(?:#.*)?\n)*\1(?: \2)?- /m,
  /^ *- +- /m,
  // Block scalars that keep their last line breaks or state their indentation.
  /(?:^|[:?-] ) *[|>]-?[+\d]/m,
  // Numbers that may exceed what a double can hold.
  /\d[eE]\+?\d{3}/,
]

/** A null key is an empty string to `yaml`, and `null` to js-yaml. */
function withoutNullKeys({ mapTag }: typeof import('js-yaml')) {
  const addPair = (map: Record<string, unknown>, key: unknown, value: unknown) =>
    key === null ? 'a key is null' : mapTag.addPair(map, key, value)
  return { ...mapTag, addPair }
}

let parser: ((text: string) => unknown) | undefined

/** Loads js-yaml with the first text that it parses: most starts know all files. */
function parse(text: string): unknown {
  parser ??= openParser(createRequire(import.meta.url)('js-yaml'))
  return parser(text)
}

function openParser(yaml: typeof import('js-yaml')): (text: string) => unknown {
  const schema = yaml.CORE_SCHEMA.withTags(withoutNullKeys(yaml))
  return (text) => yaml.load(text, { schema })
}
