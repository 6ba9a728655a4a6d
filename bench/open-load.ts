/** Calls that are sent when they are due, whether or not earlier ones are answered, by a client that takes next to no CPU itself. */
import { connect, type Socket } from 'node:net'

/** What became of a call: its status and how long it took, in milliseconds. */
type Answered = (status: number, ms: number) => void

/** Connections to one server that are kept and used again: one call at a time on each. */
export class OpenLoad {
  readonly #url: URL
  readonly #idle: Connection[] = []
  #open = 0

  constructor(url: string) {
    this.#url = new URL(url)
  }

  /** How many calls are under way. */
  get open(): number {
    return this.#open
  }

  send(request: Buffer, answered: Answered): void {
    this.#open++
    const begun = performance.now()
    const connection = this.#kept() ?? new Connection(this.#url)
    connection.send(request, (status) => {
      this.#open--
      if (status > 0) this.#idle.push(connection)
      answered(status, performance.now() - begun)
    })
  }

  /** One that the server has not closed meanwhile. */
  #kept(): Connection | undefined {
    let kept = this.#idle.pop()
    while (kept?.isClosed) kept = this.#idle.pop()
    return kept
  }
}

/** The bytes of a call. */
export function callBytes(url: string, key: string, body: object): Buffer {
  const { host, pathname } = new URL(url)
  const text = JSON.stringify(body)
  const headers = [
    `POST ${pathname} HTTP/1.1`,
    `host: ${host}`,
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
  ]
  return Buffer.from(`${headers.join('\r\n')}\r\n\r\n${text}`)
}

/** A connection that understands whole replies with a length. A status of 0 says that it broke. */
class Connection {
  readonly #socket: Socket
  #text = ''
  #done: (status: number) => void = () => {}

  constructor({ hostname, port }: URL) {
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', (text: string) => this.#take(text))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => this.#end(0))
  }

  get isClosed(): boolean {
    return !this.#socket.writable
  }

  send(request: Buffer, done: (status: number) => void): void {
    this.#done = done
    this.#socket.write(request)
  }

  #take(text: string): void {
    this.#text += text
    const head = this.#text.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#text.slice(0, head))?.[1]
    if (this.#text.length < head + 4 + Number(length)) return
    const status = Number(this.#text.slice(9, 12))
    this.#text = ''
    this.#end(status)
  }

  #end(status: number): void {
    const done = this.#done
    this.#done = () => {}
    done(status)
  }
}
