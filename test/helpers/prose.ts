/**
 * Finds private words, stiff phrases and doc comments that begin wrongly. `node test/helpers/prose.ts [path…]` prints what it finds
 * below these paths, so that a folder can be mended on its own.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, sep } from 'node:path'

export type Rule = 'name' | 'comment start' | 'comment start, other' | 'phrase' | 'word in a page' | 'word in code'
export type Finding = { rule: Rule; path: string; line: number; found: string; say: string }
export type Source = { path: string; text: string }

/** Words that must not be part of an exported name or a file name, with what the field says. A part is `Books` in `FarBooks`. */
const nameParts: readonly (readonly [parts: string, say: string])[] = [
  ['books', 'accounting'],
  ['bank', 'quota allocator'],
  ['purse purses', 'local quota'],
  ['lend lends lending lent', 'allocate, allocated'],
  ['loan loans borrowing', 'quota, grant'],
  ['hear hears heard', 'a handler: on…, handle…'],
  ['tell tells told', 'send, notify, report; "provider\'s"'],
  ['say says said', 'a message by what it contains: WorkerMessage, MainMessage'],
  ['passage passages', 'AttemptHandle'],
  ['gate gates', 'concurrency limiter'],
  ['roster', 'UnorderedSet'],
  ['stray strays', 'uncaught plugin errors'],
  ['governed', 'restricted'],
  ['dear dearer dearest', 'expensive, most expensive'],
  ['loss losses', 'unsupported (manifest), dropped (request)'],
  ['europe', 'eu: isEuOnly'],
  ['maker makers', 'signer'],
  ['wish wishes wished', 'preferences'],
  ['unheeded', 'ignored preferences'],
  ['blame', 'fault attribution'],
  ['trouble troubled', 'outage, degraded'],
  ['payer payers', 'accounts'],
  ['room rooms', 'headroom'],
  ['shed', 'overload'],
  ['spool', 'temp files'],
  ['handed adopted', "handoff; predecessor's"],
]

/** Whole names that say nothing of what they contain. */
const wholeNames = [
  ['Asked', 'RequestedX: what is requested'],
  ['Answered', 'AnsweredX: what is answered'],
  ['Waiting', 'PendingX'],
  ['Rest', 'remaining'],
  ['Where', 'ListenAddress, Location'],
  ['Closing', 'circuit reason'],
  ['Standing', 'quota status'],
  ['Heard', 'the message by what it contains'],
  ['letIn', 'acquire'],
  ['readInTurn', 'readAfterAdmission'],
  ['nextTurn', 'yield to the event loop'],
  ['leftOf', 'remaining'],
] as const

/** First words of constants. */
const limitPrefix = /^(?:most|least|longest)[A-Z]/

/** Beginnings that the design counts: neither a verb nor a noun. */
const badStart = /^(?:What|Whether|Of|Those|Hears|Where|That|Which|Who|Whose|Why)\b/
/** Beginnings that are as wrong, of which there are more. */
const weakStart =
  /^(?:How|When|It|Its|They|Their|There|These|By|As|With|For|In|From|Something|Everything|Nothing|More|Not|Until|So|Too)\b/

/** Stiff phrases, anywhere. */
const phrases: readonly (readonly [pattern: RegExp, say: string])[] = [
  [/\bno conversations?\b/i, 'non-chat endpoints, non-chat calls'],
  [/\bmay more than\b/i, 'has more permissions than'],
  [/\bshould do otherwise\b/i, 'to change what the router itself does, write a plugin'],
  [/\bnot heeded\b|\bunheeded\b|\bheeded\b/i, 'preferences that were ignored; respected'],
  [/\bif all are lost\b/i, 'if you lose every key'],
  [/\bfor the sake of it\b/i, 'the router never sends probe traffic'],
  [/\b(?:(?:is|are) )?well again\b|\b(?:is|are) well\b(?! (?:known|below|above|under|within))/i, 'until it recovers'],
  [/\btaken? back\b/i, '"accounting is still held by the previous process; calls are queued"'],
  [/\bhears\b/i, 'called when …'],
  [/\bof its manifest and of\b/i, "read from the provider's manifest"],
  [/\bcounts to\b/i, 'attributes to'],
  [/\bof today\b/i, 'current'],
  [/\bwhat becomes of\b/i, 'what happens to'],
  [/\bunder way\b/i, 'in flight, running'],
  [/\ball the same\b/i, 'anyway, still'],
  [/\b(?:is|are) no (?:JSON|call|event|YAML)\b/i, 'is not JSON, is not a call'],
  [/\bhas its turn\b|\bhave their turn\b|\bgives? way\b/i, 'runs; yields to the event loop'],
  [/\bas usual\b/i, 'by default'],
  [/\bfor people\b/i, 'human-readable'],
  [/\b(?:says?|tells?|told|known) of\b/i, 'says about, reports, is known about'],
  [/\bhow they (?:fare|go)\b/i, 'their state'],
]

/** Private words in running text, outside of inline code. */
const words: readonly (readonly [pattern: RegExp, say: string])[] = [
  [/\bthe books\b|\bMoneyBooks\b/i, 'accounting'],
  [/\bpurses?\b/i, 'local quota'],
  [/\bthe bank\b/i, 'quota allocator'],
  [/\b(?:lends?|lent|lending|loans?)\b/i, 'allocate, allocated'],
  [/\bheard\b/i, 'received'],
  [/\b(?:tell|tells|told)\b(?!(?: \w+)? apart)/i, 'send, report, notify; sent, reported'],
  [/\bpassages?\b/i, 'attempt handle'],
  [/\broster\b/i, 'unordered set'],
  [/\bstrays?\b/i, 'uncaught plugin errors'],
  [/\bgoverned\b/i, 'restricted'],
  [/\bdear(?:er|est)?\b/i, 'expensive, most expensive'],
  [/\bmakers?\b/i, 'signer (of a signature), vendor (of a model)'],
  [/\bwish(?:es|ed)?\b/i, 'preferences'],
  [/\bpayers?\b/i, 'accounts'],
  [/\bspool\b/i, 'temporary files'],
  [/\bgates?\b/i, 'concurrency limiter'],
  [
    /\b(?:lines|a line) of (?:the )?(?:threads?|other processes)\b|\bthread of a line\b|\bline's event loop\b/i,
    'worker',
  ],
]

/** Code that is redesigned with accounts: its names and comments stay until then. */
const isExempt = (path: string) =>
  /^src\/(?:lending|threads|workers)\//.test(path) || /handover|adoption|adopted|handed/.test(basename(path))

/** Checks one file of any kind. */
export function proseOf({ path, text }: Source): Finding[] {
  if (path.endsWith('.md')) return inPage(path, text)
  if (isExempt(path)) return []
  return [...inNames(path, text), ...inComments(path, text), ...inProse(path, text)]
}

function inNames(path: string, text: string): Finding[] {
  const file = basename(path).replace(/\.\w+$/, '')
  const found = partOf(file.split('-'))
  const own: Finding[] = found ? [{ rule: 'name', path, line: 1, found: basename(path), say: found }] : []
  const names = [...text.matchAll(exported)].flatMap((match): Finding[] => {
    const [, kind = '', name = ''] = match
    const say = adviceFor(kind, name)
    return say ? [{ rule: 'name', path, line: lineOf(text, match.index), found: name, say }] : []
  })
  return [...own, ...names]
}

const exported =
  /^export (?:default )?(?:declare )?(?:abstract )?(?:async )?(function\*?|const|let|class|type|interface) ([A-Za-z_$][\w$]*)/gm

function adviceFor(kind: string, name: string): string | undefined {
  const whole = wholeNames.find(([known]) => known === name)?.[1]
  const isLimit = (kind === 'const' || kind === 'let') && limitPrefix.test(name)
  return whole ?? (isLimit ? 'max…, min…' : partOf(name.split(/(?=[A-Z])|_/)))
}

function partOf(parts: readonly string[]): string | undefined {
  const lower = parts.map((part) => part.toLowerCase())
  return nameParts.find(([known]) => known.split(' ').some((word) => lower.includes(word)))?.[1]
}

function inComments(path: string, text: string): Finding[] {
  return [...text.matchAll(/\/\*\*\s*(?:\*\s+)?([^\n]*)/g)].flatMap((match): Finding[] => {
    const [, start = ''] = match
    const at = { path, line: lineOf(text, match.index), found: start.replace(/\s*\*\/.*$/, '').slice(0, 80) }
    if (badStart.test(start)) return [{ rule: 'comment start', ...at, say: 'start with a verb or a noun' }]
    if (weakStart.test(start)) return [{ rule: 'comment start, other', ...at, say: 'start with a verb or a noun' }]
    return []
  })
}

/** Comments, and messages: texts on one line that contain a space. */
function inProse(path: string, text: string): Finding[] {
  const prose =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)* (?:[^'\\\n]|\\.)*'|`(?:[^`\\\n]|\\.)* (?:[^`\\\n]|\\.)*`/g
  return [...text.matchAll(prose)].flatMap(({ 0: piece, index }) => {
    const line = lineOf(text, index)
    const inside = piece.startsWith('`') ? piece.replace(/\$\{[^}]*\}/g, '') : withoutCode(piece)
    return matches(path, line, inside, 'word in code')
  })
}

function inPage(path: string, text: string): Finding[] {
  const running = text.replace(/^(```)[\s\S]*?^\1/gm, (block) => block.replace(/[^\n]/g, ''))
  return matches(path, 1, withoutCode(running), 'word in a page')
}

/** Text without inline code and link targets, which contain the names of things. */
function withoutCode(text: string): string {
  return text.replace(/`[^`\n]*`/g, '``').replace(/\]\([^)\n]*\)/g, ']')
}

function matches(path: string, first: number, text: string, rule: Rule): Finding[] {
  const search = (kind: Rule, [pattern, say]: readonly [RegExp, string]) =>
    [...text.matchAll(new RegExp(pattern, 'gi'))].map(
      ({ 0: found, index }): Finding => ({ rule: kind, path, line: first + lineOf(text, index) - 1, found, say }),
    )
  const found = [
    ...phrases.flatMap((entry) => search('phrase', entry)),
    ...words.flatMap((entry) => search(rule, entry)),
  ]
  return found.sort((one, other) => one.line - other.line)
}

function lineOf(text: string, index: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1)) line++
  return line
}

const root = join(import.meta.dirname, '../..')

/** Files whose prose is checked: code and pages, but no tests, whose names and comments speak of their cases. */
export function proseFiles(): Source[] {
  const code = ['src', 'console', 'plugins', 'examples', 'tools'].flatMap((folder) =>
    filesBelow(folder, /(?<!\.test)\.(?:ts|js)$/),
  )
  const pages = ['docs', 'examples'].flatMap((folder) => filesBelow(folder, /\.md$/))
  const loose = filesBelow('.', /^[A-Z]+\.md$/, false)
  return [...code, ...pages, ...loose].map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
}

function filesBelow(folder: string, pattern: RegExp, recursive = true): string[] {
  let names: string[] = []
  try {
    names = readdirSync(join(root, folder), { recursive, encoding: 'utf8' })
  } catch {
    return []
  }
  return names
    .map((name) => name.replaceAll(sep, '/'))
    .filter((name) => pattern.test(name) && !name.includes('node_modules/'))
    .map((name) => (folder === '.' ? name : `${folder}/${name}`))
    .sort()
}

/** One finding as a line that an editor can follow. */
export function describeFinding({ path, line, rule, found, say }: Finding): string {
  return `${path}:${line}: ${rule}: "${found.trim()}" → ${say}`
}

if (process.argv[1] === import.meta.filename) {
  const below = process.argv.slice(2)
  const wanted = ({ path }: Source) => below.length === 0 || below.some((start) => path.startsWith(start))
  const findings = proseFiles().filter(wanted).flatMap(proseOf)
  for (const finding of findings) console.log(describeFinding(finding))
  const rules = Map.groupBy(findings, ({ rule }) => rule)
  for (const [rule, found] of rules) console.log(`${found.length}\t${rule}`)
}
