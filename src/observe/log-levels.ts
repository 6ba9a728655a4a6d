/** The parts of the log that may have levels of their own. */
export const rooms = ['call', 'files', 'books', 'routing', 'threads', 'plugin'] as const
export type Room = (typeof rooms)[number]

/** From which level on lines are written: of all parts of the log, and of single ones. */
export type LogLevels = { level: string; rooms: { readonly [room in Room]?: string } }

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** What LOG_LEVEL says: `info`, or `info,call=warn,plugin=debug`. Throws an error that names the variable and what may be written. */
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

/** The level of one part. */
export function levelOf({ level, rooms }: LogLevels, room: Room): string {
  return rooms[room] ?? level
}

function isRoom(name: string): name is Room {
  return (rooms as readonly string[]).includes(name)
}

function wrong(item: string, why: string): Error {
  return new Error(`LOG_LEVEL has '${item.slice(0, 50)}': ${why}, such as info,call=warn.`)
}
