import { apply, type Callable, native } from './callables.ts'
import { EvaluationError } from './evaluation-error.ts'
import { boundedText, spend } from './limits.ts'
import { string } from './operators.ts'
import { sequence } from './sequence.ts'

/** String functions. */
export const stringFunctions: Readonly<Record<string, Callable>> = {
  string: native((value: unknown, prettify?: boolean) => string(value, prettify), '<x-b?:s>'),
  substring: native(substring, '<s-nn?:s>'),
  substringBefore: native(substringBefore, '<s-s:s>'),
  substringAfter: native(substringAfter, '<s-s:s>'),
  lowercase: native((text?: string) => charged(text)?.toLowerCase(), '<s-:s>'),
  uppercase: native((text?: string) => charged(text)?.toUpperCase(), '<s-:s>'),
  length: native(length, '<s-:n>'),
  pad: native(pad, '<s-ns?:s>'),
  join: native(join, '<a<s>s?:s>'),
  contains: native(contains, '<s-(sf):b>'),
  match: native(match, '<s-f<s:o>n?:a<o>>'),
  replace: native(replace, '<s-(sf)(sf)n?:s>'),
  split: native(split, '<s-(sf)n?:a<s>>'),
}
// A parameter with a default value does not count in the library's arity.
Object.assign(stringFunctions.string as Callable, { arity: 1 })

/** The code points of a string; the string itself if it has no surrogates. */
function characters(text: string): string | string[] {
  spend(text.length >> 8)
  if (!/[\ud800-\udfff]/.test(text)) return text
  spend(text.length >> 4)
  return Array.from(text)
}

function charged(text: string | undefined): string | undefined {
  spend((text?.length ?? 0) >> 6)
  return text
}

function substring(text?: string, first?: number, count?: number): string | undefined {
  if (text === undefined) return undefined
  const start = first ?? 0
  const all = characters(text)
  const from = all.length + start < 0 ? 0 : start
  if (count === undefined) return joined(all.slice(from))
  if (count <= 0) return ''
  return joined(all.slice(from, from >= 0 ? from + count : all.length + from + count))
}

function joined(part: string | string[]): string {
  return typeof part === 'string' ? part : part.join('')
}

function substringBefore(text?: string, mark?: string): string | undefined {
  if (text === undefined) return undefined
  const position = text.indexOf(String(mark))
  return position === -1 ? text : text.slice(0, position)
}

function substringAfter(text?: string, mark?: string): string | undefined {
  if (text === undefined) return undefined
  const position = text.indexOf(String(mark))
  return position === -1 ? text : text.slice(position + String(mark).length)
}

function length(text?: string): number | undefined {
  return text === undefined ? undefined : characters(text).length
}

function pad(text?: string, width?: number, fill?: string): string | undefined {
  if (text === undefined || width === undefined) return text
  const missing = Math.abs(Math.trunc(width)) - characters(text).length
  if (!(missing > 0)) return text
  const pattern = fill || ' '
  boundedText(missing * pattern.length)
  const padding = substring(pattern.repeat(missing), 0, missing) ?? ''
  return width > 0 ? text + padding : padding + text
}

function join(texts?: string[], mark?: string): string | undefined {
  if (texts === undefined) return undefined
  const separator = mark ?? ''
  if (texts.length === 1 && typeof texts[0] === 'string') return texts[0]
  let size = 0
  for (const text of texts) size += (text?.length ?? 0) + separator.length
  spend(texts.length + (size >> 10))
  boundedText(size)
  return texts.join(separator)
}

type Match = { match: string; start: number; end: number; groups: string[]; next: Callable }

/** The next match of a regular expression, or of a function with the same protocol. Throws T1010. */
function matchOf(matcher: unknown, text?: string): Match | undefined {
  const found = apply(matcher, [text]) as Match | undefined
  const odd =
    found &&
    !(
      typeof found.start === 'number' ||
      (found.end as unknown) === 'number' ||
      Array.isArray(found.groups) ||
      typeof found.next === 'function'
    )
  if (odd) throw new EvaluationError('T1010')
  return found
}

function* matches(matcher: unknown, text: string, limit: number | undefined): Generator<Match> {
  let found = matchOf(matcher, text)
  for (let count = 0; found !== undefined && (limit === undefined || count < limit); count++) {
    yield found
    found = matchOf(found.next)
  }
}

function contains(text?: string, token?: string | Callable): boolean | undefined {
  if (text === undefined || token === undefined) return undefined
  return typeof token === 'string' ? text.includes(token) : matchOf(token, text) !== undefined
}

function match(text?: string, matcher?: Callable, limit?: number): unknown {
  if (text === undefined) return undefined
  refuseNegative(limit, 'D3040')
  const found = sequence()
  if (limit !== undefined && limit <= 0) return found
  for (const { match, start, groups } of matches(matcher, text, limit)) found.push({ match, index: start, groups })
  return found
}

function refuseNegative(limit: number | undefined, code: string): void {
  if (limit !== undefined && limit < 0) throw new EvaluationError(code, undefined, { value: limit })
}

function split(text?: string, separator?: string | Callable, limit?: number): string[] | undefined {
  if (text === undefined) return undefined
  refuseNegative(limit, 'D3020')
  if (limit !== undefined && limit <= 0) return []
  if (typeof separator === 'string' || separator === undefined) {
    spend(text.length >> 3)
    return text.split(separator as string, limit)
  }
  const parts: string[] = []
  let from = 0
  for (const { start, end } of matches(separator, text, limit)) {
    parts.push(text.substring(from, start))
    from = end
  }
  if (limit === undefined || parts.length < limit) parts.push(text.substring(from))
  return parts
}

function replace(text?: string, pattern?: string | Callable, by?: string | Callable, limit?: number): unknown {
  if (text === undefined) return undefined
  if (pattern === '') throw new EvaluationError('D3010', undefined, { value: pattern })
  refuseNegative(limit, 'D3011')
  if (limit !== undefined && limit <= 0) return text
  if (typeof pattern === 'string') return replaceText(text, pattern, by, limit)
  let result = ''
  let from = 0
  for (const found of matches(pattern, text, limit)) {
    const substitute = typeof by === 'string' ? expand(by, found) : apply(by, [found])
    if (typeof substitute !== 'string') throw new EvaluationError('D3012', undefined, { value: substitute })
    result += text.substring(from, found.start) + substitute
    boundedText(result.length)
    from = found.start + found.match.length
  }
  return result + text.substring(from)
}

function replaceText(text: string, pattern: string, by: unknown, limit = Number.POSITIVE_INFINITY): string {
  if (typeof by === 'function') throw new EvaluationError('D3012')
  let result = ''
  let from = 0
  for (let count = 0; count < limit; count++) {
    const found = text.indexOf(pattern, from)
    if (found === -1) break
    spend(1)
    result += text.substring(from, found) + by
    boundedText(result.length)
    from = found + pattern.length
  }
  return result + text.substring(from)
}

/** Expands `$0`, `$1` … and `$$` in a replacement; group numbers have at most as many digits as the group count. */
function expand(by: string, { match, groups }: Match): string {
  const digits = groups.length === 0 ? 1 : Math.floor(Math.log10(groups.length)) + 1
  let text = ''
  let from = 0
  for (let dollar = by.indexOf('$'); dollar !== -1 && from < by.length; dollar = by.indexOf('$', from)) {
    text += by.substring(from, dollar)
    from = dollar + 1
    const next = by.charAt(from)
    if (next === '$' || next === '0') {
      text += next === '$' ? '$' : match
      from++
      continue
    }
    let group = Number.parseInt(by.substring(from, from + digits), 10)
    if (digits > 1 && group > groups.length) group = Number.parseInt(by.substring(from, from + digits - 1), 10)
    if (Number.isNaN(group)) text += '$'
    else {
      text += groups[group - 1] ?? ''
      from += String(group).length
    }
  }
  return text + by.substring(from)
}
