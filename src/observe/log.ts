import { type DestinationStream, type Logger, type LoggerOptions, pino, symbols } from 'pino'
import { withoutSecrets } from '../core/secrets.ts'

/** The log of the process: JSON lines, one per call and one per change of state. */
export type Log = Logger

/**
 * Opens the log, which writes no secrets of clients, at the level that LOG_LEVEL names (default: info): to standard error, or
 * to another file by its descriptor or path. What is logged must not be modified afterwards.
 */
export function openLog(level = process.env.LOG_LEVEL ?? 'info', file: number | string = 2): Log {
  const lines = new HeldLines(pino.destination({ dest: file, sync: true }))
  process.on('exit', () => lines.flush())
  return openLogOn(lines, {
    level,
    now: () => lines.at,
    logMethod(args, method, of) {
      lines.add(of, () => method.apply(this, args))
    },
  })
}

/** Writes one line of a log, whose level decides how soon it is on disk. */
export type WriteLine = (line: string, level: number) => void

/** The log of another thread, whose lines this process's log writes. */
export function openFarLog(level: string, write: WriteLine): Log {
  const destination = {
    [symbols.needsMetadataGsym]: true as const,
    lastLevel: 0,
    write(line: string) {
      write(line, this.lastLevel)
    },
  }
  return openLogOn(destination, { level, now: Date.now })
}

/** Writes the lines of other threads where a log writes its own. */
export function lineWriter(log: Log): WriteLine {
  const lines = (log as unknown as { [symbols.streamSym]: DestinationStream })[symbols.streamSym]
  return (line, level) => {
    if (lines instanceof HeldLines) lines.add(level, () => lines.write(line))
    else lines.write(line)
  }
}

type LogOptions = { level: string; now(): number; logMethod?: NonNullable<LoggerOptions['hooks']>['logMethod'] }

function openLogOn(lines: DestinationStream, { level, now, logMethod }: LogOptions): Log {
  const hooks = { streamWrite: withoutSecrets, ...(logMethod && { logMethod }) }
  return pino({ level, base: null, timestamp: openClock(now), hooks }, lines)
}

/** The member `time` of a line, in ISO 8601; a second is written once for all its lines. */
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
 * Lines that tell of nothing wrong are held back for a moment, then made and written together: each at the end of its call would take
 * several times as long.
 */
class HeldLines implements DestinationStream {
  /** Unix milliseconds of the line that is being made. */
  at = 0
  readonly #destination: DestinationStream
  #held: { at: number; make: () => void }[] = []
  #made = ''
  #timer: NodeJS.Timeout | undefined

  constructor(destination: DestinationStream) {
    this.#destination = destination
  }

  /** Holds a line, which `make` writes. */
  add(level: number, make: () => void): void {
    this.#held.push({ at: Date.now(), make })
    if (level > info || this.#held.length === mostHeld) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), heldMs).unref()
  }

  write(line: string): void {
    this.#made += line
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
    if (made !== '') this.#destination.write(made)
  }
}

const info = pino.levels.values.info ?? 0
/** As many as take about half a millisecond. */
const mostHeld = 200
const heldMs = 100
