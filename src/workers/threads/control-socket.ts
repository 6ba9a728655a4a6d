import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { ChannelToOld } from './adopted-lines.ts'
import { Channel } from './channel.ts'
import type { ChannelToNew } from './handed-books.ts'
import type { FromNew, FromOld } from './handover-messages.ts'

/**
 * A socket beside the database, through which another process of the same user asks for the books, or asks to be adopted by the one
 * that has them.
 */
export type ControlSocket = { close(): void }
/** A connection whose other end has not said which of the two it is. */
export type ChannelToAny = Channel<FromOld | FromNew, FromOld | FromNew>

/**
 * Listens for such a process. A file that is left of a process that was killed is replaced: only who has the books may call
 * this. Rejects with the system's error, for instance when the path is too long.
 */
export async function listenForSuccessor(
  path: string,
  onChannel: (channel: ChannelToAny) => void,
): Promise<ControlSocket> {
  rmSync(path, { force: true })
  const server = createServer((socket) => onChannel(new Channel(socket)))
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  const usual = process.umask(ownerOnlyMask)
  try {
    server.listen(path, resolve)
  } finally {
    process.umask(usual)
  }
  await promise
  // It must not keep alive what has ended.
  server.unref()
  return { close: () => void server.close() }
}

/** The connection to the router that has the books; undefined where none listens. */
export async function connectToPredecessor(path: string): Promise<ChannelToOld | undefined> {
  return await connectTo(path)
}

/** The same, for a process whose lines that one is to adopt. */
export async function connectToSuccessor(path: string): Promise<ChannelToNew | undefined> {
  return await connectTo(path)
}

async function connectTo<Out, In extends { kind: string }>(path: string): Promise<Channel<Out, In> | undefined> {
  const socket = connect(path)
  const { promise, resolve, reject } = Promise.withResolvers<Channel<Out, In> | undefined>()
  socket.once('connect', () => resolve(new Channel(socket)))
  socket.once('error', (thrown: NodeJS.ErrnoException) =>
    ['ENOENT', 'ECONNREFUSED'].includes(thrown.code ?? '') ? resolve(undefined) : reject(thrown),
  )
  return await promise
}

const ownerOnlyMask = 0o177
