import { createRequire } from 'node:module'

/**
 * Parses a YAML text with js-yaml, which is several times faster than `yaml`. Returns undefined where js-yaml refuses the
 * text or is known to disagree with `yaml`: then `yaml` has the last word, and knows the position of an error.
 */
export function readYaml(text: string): { value: unknown } | undefined {
  if (disputed.some((pattern) => pattern.test(text))) return undefined
  try {
    const value = parse(text)
    // They also disagree about a few texts that consist of a single scalar.
    return typeof value === 'object' && value !== null ? { value } : undefined
  } catch {
    return undefined
  }
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
