import { createRequire } from 'node:module'
import { type DestinationStream, type Logger, pino, symbols } from 'pino'
import { withoutSecrets } from '../core/secrets.ts'

/** The log of the process: one line for each call and for each change of state. */
export type Log = Logger

/** Options of a log: its lowest levels, its format, and its destination: a descriptor or a path, standard error by default. */
export type LogOptions = { levels?: LogLevels; format?: LogFormat; file?: number | string }

/** Format of a log: JSON lines, or human-readable lines, in colour where the terminal supports it. */
export type LogFormat = 'json' | 'pretty'

/** Opens the log, which writes no secrets of clients. Logged objects must not be modified afterwards. */
export function openLog({ levels = logLevels(''), format = 'json', file = 2 }: LogOptions = {}): Log {
  const destination = pino.destination({ dest: file, sync: true })
  const formatted = format === 'pretty' ? prettyWriter(file) : undefined
  const lines = new HeldLines((text) => void destination.write(text), formatted)
  process.on('exit', () => lines.flush())
  return openLogOn(lines, levels)
}

/** Reads LOG_FORMAT; without it, lines are human-readable where standard error is a terminal. Throws an error that names the variable. */
export function logFormat(text: string | undefined, isTerminal = process.stderr.isTTY === true): LogFormat {
  if (text === undefined || text === '' || text === 'auto') return isTerminal ? 'pretty' : 'json'
  if (text === 'json' || text === 'pretty') return text
  throw new Error(`LOG_FORMAT is '${text.slice(0, 50)}': write json, pretty or auto.`)
}

/** Returns a part of the log with a level of its own; its lines have the name in `room`. */
export function logOf(log: Log, room: Room): Log {
  const known = log as Log & { [ofRoom]?: LogLevels }
  return log.child({ room }, known[ofRoom] ? { level: levelOf(known[ofRoom], room) } : {})
}

const ofRoom = Symbol('levels of rooms')

/** Writes lines of a log, each with its line break. */
export type WriteLines = (lines: string) => void

/** Opens the log of another thread, whose lines this process's log writes. `flush` passes on those that are held back. */
export function openFarLog(levels: LogLevels, write: WriteLines): { log: Log; flush(): void } {
  const lines = new HeldLines(write)
  return { log: openLogOn(lines, levels), flush: () => lines.flush() }
}

/** Writes lines that other threads have held back where a log writes its own, at once. */
export function linesWriter(log: Log): WriteLines {
  const destination = (log as unknown as { [symbols.streamSym]: DestinationStream })[symbols.streamSym]
  return (lines) => {
    destination.write(lines)
    if (destination instanceof HeldLines) destination.flush()
  }
}

function openLogOn(lines: HeldLines, levels: LogLevels): Log {
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
  return Object.assign(log, { [ofRoom]: levels })
}

/** Returns the levels that a log was opened with, for the logs of other threads. */
export function levelsOf(log: Log): LogLevels {
  return (log as Log & { [ofRoom]?: LogLevels })[ofRoom] ?? { level: log.level, rooms: {} }
}

/** Returns a function that makes human-readable lines of JSON lines. The library is loaded only where it is used. */
function prettyWriter(file: number | string): (line: string) => string {
  const { prettyFactory }: typeof import('pino-pretty') = createRequire(import.meta.url)('pino-pretty')
  const colorize = file === 2 && process.stderr.hasColors?.() === true
  return prettyFactory({
    colorize,
    singleLine: true,
    errorLikeObjectKeys: ['err'],
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'room',
  })
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
class HeldLines implements DestinationStream {
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
    if (level > info || this.#held.length === mostHeld) this.flush()
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
const mostHeld = 200
const heldMs = 100

/** The parts of the log that may have levels of their own. */
export const rooms = ['call', 'files', 'books', 'routing', 'threads', 'plugin'] as const

export type Room = (typeof rooms)[number]

/** Lowest levels of written lines: of all parts of the log, and of single ones. */
export type LogLevels = { level: string; rooms: { readonly [room in Room]?: string } }

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** Reads LOG_LEVEL: `info`, or `info,call=warn,plugin=debug`. Throws an error that names the variable and what may be written. */
export function logLevels(text: string | undefined): LogLevels {
  const found: { level: string; rooms: { [room in Room]?: string } } = { level: 'info', rooms: {} }
  for (const item of (text ?? '').split(',')) {
    const [name = '', level] = item.split('=').map((part) => part.trim())
    if (level === undefined && name === '') continue
    if (!levels.includes(level ?? name)) throw wrong(item, `a level is one of ${levels.join(', ')}`)
    if (level === undefined) found.level = name
    else if (isRoom(name)) found.rooms[name] = level
    else throw wrong(item, `the log has the parts ${rooms.join(', ')}`)
  }
  return found
}

/** Returns the level of one part. */
export function levelOf({ level, rooms }: LogLevels, room: Room): string {
  return rooms[room] ?? level
}

function isRoom(name: string): name is Room {
  return (rooms as readonly string[]).includes(name)
}

function wrong(item: string, why: string): Error {
  return new Error(`LOG_LEVEL has '${item.slice(0, 50)}': ${why}, such as info,call=warn.`)
}
