import type { SecretRange, SecretScanner } from './secrets.ts'

/** A rule in the form of secretlint, whose handler is called with a text and reports ranges of it. */
export type SecretRule = {
  meta: { id: string }
  messages: unknown
  create(context: RuleContext, options: object): { file?(source: object): unknown }
}

type RuleContext = {
  createTranslator(messages: unknown): (key: string, data?: unknown) => object
  report(found: { range: readonly number[] }): void
  ignore(ignored: object): void
  sharedOptions: object
}

/** The package with the rules: MIT, without dependencies. */
const rulesPackage = '@secretlint/secretlint-rule-preset-recommend'

let loaded: Promise<SecretScanner | undefined> | undefined

/** Loads the scanner, once; undefined where the package is not installed. */
export function loadScanner(
  load: (name: string) => Promise<unknown> = (name) => import(name),
): Promise<SecretScanner | undefined> {
  loaded ??= load(rulesPackage).then(scannerIn, () => undefined)
  return loaded
}

/** Returns a scanner for the rules that a package exports; undefined where it exports none. */
export function scannerIn(exported: unknown): SecretScanner | undefined {
  const rules = typeof exported === 'object' && exported !== null && 'rules' in exported ? exported.rules : undefined
  return Array.isArray(rules) && rules.length > 0 ? scannerOf(rules.filter(isRule)) : undefined
}

function isRule(rule: unknown): rule is SecretRule {
  if (typeof rule !== 'object' || rule === null || !('create' in rule) || typeof rule.create !== 'function')
    return false
  const meta = 'meta' in rule ? rule.meta : undefined
  // It finds comments by which a file says that it has no secrets.
  return typeof meta === 'object' && meta !== null && 'id' in meta && !String(meta.id).endsWith('filter-comments')
}

/** Characters that the rules see at a time: their time may grow faster than their text. */
const windowLength = 16_384

/** Characters that two windows share, longer than secrets of one line. */
const overlap = 1_024

/** A text without any of these has no secret that the rules know. */
const candidate = /[A-Za-z0-9_+/=.-]{16}|:\/\/|PRIVATE KEY/

/** Returns a scanner that runs rules on parts of a text of bounded length. A rule that fails finds nothing. */
export function scannerOf(rules: readonly SecretRule[]): SecretScanner {
  let found: SecretRange[] = []
  let offset = 0
  const context: RuleContext = {
    createTranslator: () => (key) => ({ message: key, messageId: key }),
    report({ range: [start, end] }) {
      if (start !== undefined && end !== undefined && start < end)
        found.push({ start: offset + start, end: offset + end })
    },
    ignore() {},
    sharedOptions: {},
  }
  const handlers = rules.map((rule) => rule.create(context, {}))
  return (text) => {
    found = []
    for (offset = 0; offset === 0 || offset + overlap < text.length; offset += windowLength - overlap) {
      const content = text.slice(offset, offset + windowLength)
      if (!candidate.test(content)) continue
      const source = { content, filePath: 'text.txt', ext: '.txt', contentType: 'text' }
      for (const { file } of handlers) {
        try {
          file?.(source)
        } catch {
          // The other rules and patterns remain.
        }
      }
    }
    return found
  }
}
