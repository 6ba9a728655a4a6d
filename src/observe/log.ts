import { type DestinationStream, type Logger, pino, symbols } from 'pino'
import { withoutSecrets } from '../core/secrets.ts'
import { textWriter } from './text-lines.ts'

/** The log of the process: one line for each call and for each change of state. */
export type Log = Logger

/** Options of a log: its lowest levels, its format, and its destination: a descriptor or a path, standard error by default. */
export type LogOptions = { levels?: LogLevels; format?: LogFormat; file?: number | string }

/** Format of a log: JSON lines, or human-readable lines, in colour where the terminal supports it. */
export type LogFormat = 'json' | 'pretty'

/** Opens the log, which writes no secrets of clients. Logged objects must not be modified afterwards. */
export function openLog({ levels = logLevels(''), format = 'json', file = 2 }: LogOptions = {}): Log {
  const destination = pino.destination({ dest: file, sync: true })
  const formatted = format === 'pretty' ? textWriter(file === 2 && process.stderr.hasColors?.() === true) : undefined
  const lines = new BufferedLines((text) => void destination.write(text), formatted)
  process.on('exit', () => lines.flush())
  return openLogOn(lines, levels)
}

/** Reads LOG_FORMAT; `auto` is JSON unless standard error is a terminal. Throws an error that names the variable. */
export function logFormat(text: string | undefined, isTerminal = process.stderr.isTTY === true): LogFormat {
  if (text === undefined || text === '') return 'pretty'
  if (text === 'auto') return isTerminal ? 'pretty' : 'json'
  if (text === 'json' || text === 'pretty') return text
  throw new Error(`LOG_FORMAT is '${text.slice(0, 50)}': write json, pretty or auto.`)
}

/** Returns the log of a component, with the component's level. Its lines name it in `component`, and for one release in `room`. */
export function logOf(log: Log, component: Component): Log {
  const known = log as Log & { [knownLevels]?: LogLevels }
  const level = known[knownLevels] ? { level: levelOf(known[knownLevels], component) } : {}
  return log.child({ component, room: formerNameOf(component) }, level)
}

const knownLevels = Symbol('levels of the log')

/** Writes lines of a log, each with its line break. */
export type WriteLines = (lines: string) => void

/** Opens the log of another thread, whose lines this process's log writes. `flush` passes on those that are held back. */
export function openRemoteLog(levels: LogLevels, write: WriteLines): { log: Log; flush(): void } {
  const lines = new BufferedLines(write)
  return { log: openLogOn(lines, levels), flush: () => lines.flush() }
}

/** Writes lines that other threads have held back where a log writes its own, at once. */
export function linesWriter(log: Log): WriteLines {
  const destination = (log as unknown as { [symbols.streamSym]: DestinationStream })[symbols.streamSym]
  return (lines) => {
    destination.write(lines)
    if (destination instanceof BufferedLines) destination.flush()
  }
}

function openLogOn(lines: BufferedLines, levels: LogLevels): Log {
  const log = pino(
    {
      level: levels.level,
      base: null,
      timestamp: openClock(() => lines.at),
      hooks: {
        streamWrite: withoutSecrets,
        logMethod(args, method, level) {
          lines.add(level, () => method.apply(this, args))
        },
      },
    },
    lines,
  )
  return Object.assign(log, { [knownLevels]: levels })
}

/** Returns the levels that a log was opened with, for the logs of other threads. */
export function levelsOf(log: Log): LogLevels {
  return (log as Log & { [knownLevels]?: LogLevels })[knownLevels] ?? { level: log.level, components: {} }
}

/** Returns a function that writes the member `time` of a line, in ISO 8601; a second is written once for all its lines. */
function openClock(now: () => number): () => string {
  let second = Number.NaN
  let written = ''
  return () => {
    const at = now()
    const ms = at % 1_000
    if (at - ms !== second) {
      second = at - ms
      written = new Date(second).toISOString().slice(0, -'000Z'.length)
    }
    return `,"time":"${written}${String(ms).padStart(3, '0')}Z"`
  }
}

/**
 * Holder of lines that report nothing wrong: they are held back for a moment, then made and written together, as writing each at the end of
 * its call would take several times as long.
 */
class BufferedLines implements DestinationStream {
  /** Unix milliseconds of the line that is being made. */
  at = 0
  readonly #writeOut: WriteLines
  readonly #formatted: ((line: string) => string) | undefined
  #held: { at: number; make: () => void }[] = []
  #made = ''
  #timer: NodeJS.Timeout | undefined

  constructor(writeOut: WriteLines, formatted?: (line: string) => string) {
    this.#writeOut = writeOut
    this.#formatted = formatted
  }

  /** Holds what `make` writes, unless it reports something wrong. */
  add(level: number, make: () => void): void {
    this.#held.push({ at: Date.now(), make })
    if (level > info || this.#held.length === maxBuffered) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), heldMs).unref()
  }

  /** Takes one line or several. */
  write(lines: string): void {
    this.#made += this.#formatted ? lines.trimEnd().split('\n').map(this.#formatted).join('') : lines
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const held = this.#held
    this.#held = []
    for (const { at, make } of held) {
      this.at = at
      make()
    }
    const made = this.#made
    this.#made = ''
    if (made !== '') this.#writeOut(made)
  }
}

const info = pino.levels.values.info ?? 0
/** Maximum number of held lines: as many as take about half a millisecond. */
const maxBuffered = 200
const heldMs = 100

/** The components of the log that may have levels of their own. */
export const components = ['call', 'files', 'ledger', 'routing', 'worker', 'plugin'] as const

export type Component = (typeof components)[number]

/** Levels from which on lines are written: of the whole log, and of single components. */
export type LogLevels = { level: string; components: { readonly [component in Component]?: string } }

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** Former names of components: LOG_LEVEL may still use them, and lines still have them in the field `room`. */
const formerNames: { readonly [component in Component]?: string } = { ledger: 'books', worker: 'threads' }

/** Reads LOG_LEVEL: `info`, or `info,call=warn,plugin=debug`. Throws an error that names the variable and what may be written. */
export function logLevels(text: string | undefined): LogLevels {
  const found: { level: string; components: { [component in Component]?: string } } = { level: 'info', components: {} }
  for (const { item, name, level } of itemsOf(text)) {
    if (!levels.includes(level ?? name)) throw wrong(item, `a level is one of ${levels.join(', ')}`)
    const component = componentNamed(name)
    if (level === undefined) found.level = name
    else if (component) found.components[component] = level
    else throw wrong(item, `the components are ${components.join(', ')}`)
  }
  return found
}

/** Returns a message for each former name of a component in LOG_LEVEL. */
export function formerNamesIn(text: string | undefined): string[] {
  return itemsOf(text).flatMap(({ name, level }) => {
    const component = level === undefined ? undefined : componentNamed(name)
    if (component === undefined || component === name) return []
    return [`LOG_LEVEL names \`${name}\`, which has been renamed to \`${component}\``]
  })
}

/** Returns the level of a component. */
export function levelOf({ level, components }: LogLevels, component: Component): string {
  return components[component] ?? level
}

/** Returns the name that a component has in the field `room`. */
export function formerNameOf(component: Component): string {
  return formerNames[component] ?? component
}

type Item = { item: string; name: string; level: string | undefined }

function itemsOf(text: string | undefined): Item[] {
  return (text ?? '').split(',').flatMap((item) => {
    const [name = '', level] = item.split('=').map((part) => part.trim())
    return level === undefined && name === '' ? [] : [{ item, name, level }]
  })
}

function componentNamed(name: string): Component | undefined {
  return components.find((component) => component === name || formerNames[component] === name)
}

function wrong(item: string, why: string): Error {
  return new Error(`LOG_LEVEL has '${item.slice(0, 50)}': ${why}, such as info,call=warn.`)
}
