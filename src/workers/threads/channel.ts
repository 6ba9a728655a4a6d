import type { Socket } from 'node:net'
import { deserialize, serialize } from 'node:v8'

/** A message is not longer: a row with its stored response fits. Bytes. */
const mostBytes = 256 * 1024 * 1024
const lengthBytes = 4

/** One end of the connection between two processes of one machine. All that is said arrives in order, or the connection ends. */
export class Channel<Out, In extends { kind: string }> {
  readonly #socket: Socket
  #onItem: ((item: In) => void) | undefined
  #chunks: Buffer[] = []
  #heard: In[] = []
  #waits = false
  #arrived = () => {}
  #isOver = false
  readonly #ended = Promise.withResolvers<void>()

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#isOver = true
      this.#hear()
    })
  }

  /** Hears everything in order, also what has arrived before. */
  listen(onItem: (item: In) => void): void {
    this.#onItem = onItem
    this.#hear()
  }

  /** The first item of these kinds, without those before it, which `listen` hears. Undefined when the connection ends. */
  async take<Kind extends In['kind']>(...kinds: Kind[]): Promise<Extract<In, { kind: Kind }> | undefined> {
    for (;;) {
      const index = this.#heard.findIndex(({ kind }) => kinds.includes(kind as Kind))
      if (index >= 0) return this.#heard.splice(index, 1)[0] as Extract<In, { kind: Kind }>
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

  /** Whether the connection has ended, although not everything that arrived may be heard. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Resolves when the connection has ended and everything that arrived is heard. */
  ended(): Promise<void> {
    return this.#ended.promise
  }

  close(): void {
    this.#socket.end()
    this.#socket.destroySoon()
  }

  #read(chunk: Buffer): void {
    this.#chunks.push(chunk)
    let bytes = Buffer.concat(this.#chunks)
    for (;;) {
      if (bytes.length < lengthBytes) break
      const end = lengthBytes + bytes.readUInt32BE()
      if (end > mostBytes) return void this.#socket.destroy()
      if (bytes.length < end) break
      this.#heard.push(deserialize(bytes.subarray(lengthBytes, end)))
      bytes = bytes.subarray(end)
    }
    this.#chunks = bytes.length > 0 ? [bytes] : []
    this.#hear()
  }

  #hear(): void {
    this.#arrived()
    while (this.#onItem && !this.#waits) {
      const item = this.#heard.shift()
      if (!item) break
      this.#onItem(item)
      if (item.kind === 'held') this.#waitATurn()
    }
    if (this.#isOver && this.#heard.length === 0) this.#ended.resolve()
  }

  /** Who waits for what a purse holds hears it before anything that was said later. */
  #waitATurn(): void {
    this.#waits = true
    setImmediate(() => {
      this.#waits = false
      this.#hear()
    })
  }
}
