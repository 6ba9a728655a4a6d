import type { Span } from './spans.ts'

/** Keys by the prefixes of their issuers. */
const prefixed = new RegExp(
  `(?<![A-Za-z0-9_-])(?:${[
    'sk-[A-Za-z0-9_-]{20,250}',
    '(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,250}',
    '(?:AKIA|ASIA)[A-Z0-9]{16}',
    'gh[pousr]_[A-Za-z0-9]{36,250}',
    'github_pat_[A-Za-z0-9_]{22,250}',
    'glpat-[A-Za-z0-9_-]{20,60}',
    'xox[abeprs]-[A-Za-z0-9-]{10,250}',
    'AIza[A-Za-z0-9_-]{35}',
    String.raw`ya29\.[A-Za-z0-9_-]{20,400}`,
    '(?:hf|gsk|npm|xai|pplx|r8|lin|dckr|shpat|shpss|whsec|nvapi|tvly)[_-][A-Za-z0-9_-]{20,250}',
    String.raw`SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}`,
    'dop_v1_[a-f0-9]{64}',
    'pypi-[A-Za-z0-9_-]{32,250}',
    String.raw`eyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{10,1000}`,
  ].join('|')})(?![A-Za-z0-9_-])`,
  'g',
)
const pem = /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!-)){1,16000}-----END [A-Z ]{0,30}PRIVATE KEY-----/g
/** Values that are assigned to a name such as "key". */
const assigned =
  /(?<![A-Za-z0-9])(?:api[ _-]?key|secret(?:[ _-]?(?:access[ _-]?)?key)?|access[ _-]?(?:key|token)|auth[ _-]?token|token|bearer|password)["']?(?:\s{0,3}[:=]\s{0,3}|\s)["']?([A-Za-z0-9_/+=-]{20,250})(?![A-Za-z0-9_/+=-])/gi
/** Words that people use for a password, and the value that follows. */
const password =
  /(?<![\p{L}\p{N}])(?:password|passwort|passwd|mot de passe|contraseña)["']?\s{0,3}[:=]\s{0,3}["']?(?!(?:process|os|env|import|config)\.)([^\s"',;<>(){}|]{8,64})(?![^\s"',;.)}])/giu

/** Finds keys and tokens of machines. */
export function findKeys(text: string): Span[] {
  const found: Span[] = []
  for (const pattern of [prefixed, pem, assigned, password]) {
    for (const { index, 0: whole, 1: key = whole } of text.matchAll(pattern)) {
      const end = index + whole.length
      const isKnown = pattern === prefixed || pattern === pem
      const isKey = isKnown || (isMixed(key) && !(pattern === password && isPlace(key)))
      if (isKey) found.push({ kind: 'key', start: end - key.length, end })
    }
  }
  return found
}

/** Checks whether a key has both letters and digits: words have no digits, numbers no letters. */
function isMixed(key: string): boolean {
  return /\d/.test(key) && /[A-Za-z]/.test(key)
}

/** Checks whether it is a variable, an address or a path, where a value may be found: a text with a sign or mixed letters is a password. */
function isPlace(text: string): boolean {
  if (/^\$[A-Za-z_]\w*(?:$|[/.:[])|^(?:[.~]{0,2}\/|[A-Za-z]:[\\/])|:\/\//.test(text)) return true
  return text.includes('/') && text.split('/').every((step) => plainStep.test(step))
}

/** A name such as `data`, `db-2`, `My_File.txt` or `v1`. */
const plainStep = /^(?:[A-Z]?[a-z]*|[A-Z]{2,})\d*(?:[-_.](?:[A-Z]?[a-z]*|[A-Z]{2,})\d*)*$/
