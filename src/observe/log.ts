import { type DestinationStream, type Logger, pino, symbols } from 'pino'
import { withoutSecrets } from '../core/secrets.ts'

/** The log of the process: JSON lines, one per call and one per change of state. */
export type Log = Logger

/**
 * Opens the log, which writes no secrets of clients, at the level that LOG_LEVEL names (default: info): to standard error, or
 * to another file by its descriptor or path.
 */
export function openLog(level = process.env.LOG_LEVEL ?? 'info', file: number | string = 2): Log {
  const lines = new HeldLines(pino.destination({ dest: file, sync: true }))
  process.on('exit', () => lines.flush())
  return openLogOn(lines, level)
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
  return openLogOn(destination, level)
}

/** Writes the lines of other threads where a log writes its own. */
export function lineWriter(log: Log): WriteLine {
  const lines = (log as unknown as { [symbols.streamSym]: DestinationStream & { lastLevel?: number } })[
    symbols.streamSym
  ]
  return (line, level) => {
    lines.lastLevel = level
    lines.write(line)
  }
}

function openLogOn(lines: DestinationStream, level: string): Log {
  return pino({ level, base: null, timestamp: openClock(), hooks: { streamWrite: withoutSecrets } }, lines)
}

/** The member `time` of a line, in ISO 8601; a second is written once for all its lines. */
function openClock(): () => string {
  let second = Number.NaN
  let written = ''
  return () => {
    const now = Date.now()
    const ms = now % 1_000
    if (now - ms !== second) {
      second = now - ms
      written = new Date(second).toISOString().slice(0, -'000Z'.length)
    }
    return `,"time":"${written}${String(ms).padStart(3, '0')}Z"`
  }
}

/** Lines that tell of nothing wrong are held back for a moment, so that one write takes those of many calls. */
class HeldLines implements DestinationStream {
  /** Pino then sets `lastLevel` before each write. */
  readonly [symbols.needsMetadataGsym] = true
  lastLevel = 0
  readonly #destination: DestinationStream
  #held = ''
  #timer: NodeJS.Timeout | undefined

  constructor(destination: DestinationStream) {
    this.#destination = destination
  }

  write(line: string): void {
    this.#held += line
    if (this.lastLevel > info || this.#held.length > mostHeld) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), heldMs).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const held = this.#held
    this.#held = ''
    if (held !== '') this.#destination.write(held)
  }
}

const info = pino.levels.values.info ?? 0
/** Characters. */
const mostHeld = 16_384
const heldMs = 100
