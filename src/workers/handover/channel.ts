import { rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { deserialize, serialize } from 'node:v8'

/** Maximum length of a message: a row with its stored response fits. Bytes. */
const maxBytes = 256 * 1024 * 1024
const lengthBytes = 4

/** One end of the connection between two processes of one machine. Everything that is sent arrives in order, or the connection ends. */
export class Channel<Out, In extends { kind: string }> {
  readonly #socket: Socket
  #onItem: ((item: In) => void) | undefined
  #bytes: Buffer = Buffer.alloc(0)
  #received: In[] = []
  #arrived = () => {}
  #isOver = false
  readonly #ended = Promise.withResolvers<void>()

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#isOver = true
      this.#handle()
    })
  }

  /** Calls a function with every item in order, also with those that have arrived before. */
  listen(onItem: (item: In) => void): void {
    this.#onItem = onItem
    this.#handle()
  }

  /** Takes the first item of these kinds, without those before it, which `listen` gets. Undefined when the connection ends. */
  async take<Kind extends In['kind']>(...kinds: Kind[]): Promise<Extract<In, { kind: Kind }> | undefined> {
    for (;;) {
      const index = this.#received.findIndex(({ kind }) => kinds.includes(kind as Kind))
      if (index >= 0) return this.#received.splice(index, 1)[0] as Extract<In, { kind: Kind }>
      if (this.#isOver) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#arrived = resolve
      await promise
    }
  }

  send(item: Out): void {
    const body = serialize(item)
    const length = Buffer.alloc(lengthBytes)
    length.writeUInt32BE(body.length)
    this.#socket.cork()
    this.#socket.write(length)
    this.#socket.write(body)
    process.nextTick(() => this.#socket.uncork())
  }

  /** Resolves when the connection has ended and everything that arrived is handled. */
  ended(): Promise<void> {
    return this.#ended.promise
  }

  close(): void {
    this.#socket.end()
    this.#socket.destroySoon()
  }

  #read(chunk: Buffer): void {
    let bytes = this.#bytes.length > 0 ? Buffer.concat([this.#bytes, chunk]) : chunk
    for (;;) {
      if (bytes.length < lengthBytes) break
      const end = lengthBytes + bytes.readUInt32BE()
      if (end > maxBytes) return void this.#socket.destroy()
      if (bytes.length < end) break
      this.#received.push(deserialize(bytes.subarray(lengthBytes, end)))
      bytes = bytes.subarray(end)
    }
    this.#bytes = bytes
    this.#handle()
  }

  #handle(): void {
    this.#arrived()
    while (this.#onItem) {
      const item = this.#received.shift()
      if (!item) break
      this.#onItem(item)
    }
    if (this.#isOver && this.#received.length === 0) this.#ended.resolve()
  }
}

/** A socket beside the database, through which another process of the same user asks to take over. */
export type ControlSocket = { close(): void }

/**
 * Listens for such a process. The file of a process that was killed is replaced: only the process that has the database may call
 * this. Rejects with the system's error, for instance when the path is too long.
 */
export async function listenForSuccessor<Out, In extends { kind: string }>(
  path: string,
  onChannel: (channel: Channel<Out, In>) => void,
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

const ownerOnlyMask = 0o177

/** Returns the connection to the router that has the database; undefined where none listens. */
export async function connectToPredecessor<Out, In extends { kind: string }>(
  path: string,
): Promise<Channel<Out, In> | undefined> {
  const socket = connect(path)
  const { promise, resolve, reject } = Promise.withResolvers<Channel<Out, In> | undefined>()
  socket.once('connect', () => resolve(new Channel(socket)))
  socket.once('error', (thrown: NodeJS.ErrnoException) =>
    ['ENOENT', 'ECONNREFUSED'].includes(thrown.code ?? '') ? resolve(undefined) : reject(thrown),
  )
  return await promise
}
