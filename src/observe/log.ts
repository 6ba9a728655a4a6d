import { type Logger, pino } from 'pino'
import { withoutSecrets } from '../core/secrets.ts'

/** The log of the process: JSON lines on standard error, one per call and one per change of state. */
export type Log = Logger

/** Opens the log, which writes no secrets of clients, at the level that LOG_LEVEL names (default: info). */
export function openLog(level = process.env.LOG_LEVEL ?? 'info'): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, hooks: { streamWrite: withoutSecrets } },
    pino.destination({ dest: 2, sync: true }),
  )
}
