import { printableInLine } from '../core/printable.ts'

/** A line of the log as JSON has it. */
type Entry = { [name: string]: unknown }

/**
 * Returns a function that makes human-readable lines of JSON lines: one short line for each call, and a message with its facts for
 * everything else. The first line of a day is its date. Whatever comes from clients, files or providers stays within its line.
 */
export function textWriter(colors: boolean): (line: string) => string {
  let day = ''
  return (line) => {
    const entry = parsed(line)
    if (!entry) return `${printableInLine(line)}\n`
    const at = new Date(String(entry.time))
    const today = `--- ${dateOf(at)} ---\n`
    const date = today === day ? '' : today
    day = today
    const isCall = entry.component === 'call' && (entry.msg === 'call' || entry.msg === 'attempt')
    return `${date}${clockOf(at)} ${isCall ? callText(entry, colors) : eventText(entry, colors)}\n${framesOf(entry)}`
  }
}

/** Returns `200 openai/gpt-5 861+279 tokens $0.0067 0.30 s key web-production`; a failure has its code, and the id of its call. */
function callText(entry: Entry, colors: boolean): string {
  const { status, provider, model, outcome, msg, error, input_tokens: input, output_tokens: output, ms } = entry
  const isWhole = outcome === 'complete'
  const hasTokens = Number(input) > 0 || Number(output) > 0
  const words = [
    colored(String(status), isWhole ? 'green' : 'red', colors),
    wordOf(provider === '' ? model : `${provider}/${model}`),
    !isWhole && wordOf(error ?? outcome),
    msg === 'attempt' && '(attempt)',
    outcome === 'partial' && '(partial)',
    hasTokens && `${input}+${output} tokens`,
    entry.unpriced === true ? 'unpriced' : usdText(Number(entry.usd)),
    `${(Number(ms) / 1_000).toFixed(2)} s`,
    `key ${wordOf(entry.key_name ?? entry.key)}`,
    !isWhole && `call ${wordOf(entry.attempt_of ?? entry.id)}`,
  ]
  const reasons = [entry.provider_message, entry.detail].filter((text) => typeof text === 'string')
  const reason = reasons.length > 0 ? `: ${cutText(reasons.join('; '), maxReason)}` : ''
  return words.filter((word) => word !== false && word !== '').join(' ') + reason
}

/** Members that a human-readable line has elsewhere, or leaves out. */
const elsewhere = new Set(['time', 'level', 'component', 'room', 'msg'])

/** Returns the level, unless nothing is wrong, the message, and the facts as `name=value`. */
function eventText(entry: Entry, colors: boolean): string {
  const name = levelNames[Number(entry.level)] ?? ''
  const level =
    name === '' ? '' : `${colored(name, name === 'DEBUG' ? 'gray' : name === 'WARN' ? 'yellow' : 'red', colors)} `
  const facts = Object.entries(entry).filter(([name]) => !elsewhere.has(name))
  const text = facts.map(([name, value]) => ` ${printableInLine(name)}=${valueText(value)}`).join('')
  return `${level}${printableInLine(String(entry.msg ?? ''))}${text}`
}

/** The names of levels by pino's numbers; nothing for `info`. */
const levelNames: { readonly [level: number]: string } = {
  10: 'TRACE',
  20: 'DEBUG',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
}

/** Returns a fact as one word: as it is, or as JSON; of an error its type and message. */
function valueText(value: unknown): string {
  const { type, message, stack } = (value ?? {}) as Entry
  if (typeof stack === 'string') return printableInLine(JSON.stringify(`${type}: ${message}`))
  return typeof value === 'string' && isWord.test(value) ? value : printableInLine(JSON.stringify(value) ?? '')
}

/** Returns the frames of an error, each on an indented line of its own. */
function framesOf({ err }: Entry): string {
  const { stack } = (err ?? {}) as Entry
  if (typeof stack !== 'string') return ''
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  return frames.map((frame) => `    ${printableInLine(frame.trim())}\n`).join('')
}

/** Returns a name as one word: in quotes where it could be taken for several. */
function wordOf(name: unknown): string {
  const text = cutText(String(name), maxName)
  return isWord.test(text) ? text : `"${text.replaceAll('"', '\\"')}"`
}

const isWord = /^[\w.:/@+*~-]+$/
/** Characters. */
const maxName = 100
const maxReason = 500

function cutText(text: string, most: number): string {
  return printableInLine(text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`)
}

/** Returns a sum with two significant digits at least: `$0.0067`, `$12.50`. */
function usdText(usd: number): string {
  if (!(usd > 0)) return '$0'
  const digits = Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(usd))))
  return `$${usd.toFixed(digits)}`
}

function parsed(line: string): Entry | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function clockOf(at: Date): string {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
}

function dateOf(at: Date): string {
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, '0')).join('-')
}

const codes = { red: 31, green: 32, yellow: 33, gray: 90 }

function colored(text: string, color: keyof typeof codes, colors: boolean): string {
  return colors ? `\u001b[${codes[color]}m${text}\u001b[0m` : text
}
