import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterEach, expect, test } from 'vitest'
import { pause } from '../helpers/provider.ts'
import { describeEach } from '../helpers/slow.ts'
import { limit } from '../helpers/time.ts'
import { audioOf, byCharacter, type SpeechWorld, speechWorld, type Unanswered, until } from './speech-world.ts'

// A client that does not read slows the provider, and nothing of what it does not read is kept.

let world: SpeechWorld
afterEach(() => world.end())

const piece = audioOf(64 * 1_024)
const pieces = 800

/** A provider of 50 MB, which counts what it could send. */
function sending() {
  const sent = { pieces: 0 }
  const answer = async (_: unknown, response: Unanswered) => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' })
    const all = function* () {
      for (; sent.pieces < pieces; sent.pieces++) yield piece
    }
    await pipeline(Readable.from(all()), response).catch(() => {})
  }
  return { sent, answer }
}

/** A client that asks, and reads only while it is told to. */
function slowClient(fields: object) {
  const body = JSON.stringify({ model: 'openai/characters', input: 'Hello.', voice: 'alloy', ...fields })
  const { port } = new URL(world.router.url)
  const socket = connect({ port: Number(port), host: '127.0.0.1' }).on('error', () => {})
  const head = `POST /v1/audio/speech HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${world.secret}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`
  socket.write(head + body)
  return socket
}

/** How much a provider has sent when it has stopped to. */
async function stalled(sent: { pieces: number }): Promise<number> {
  await until(() => sent.pieces > 0)
  for (let before = -1; before !== sent.pieces; ) {
    before = sent.pieces
    // On a busy machine a pause may be a delay.
    await pause(limit(150))
  }
  return sent.pieces
}

describeEach(['audio', 'sse'], { slowIf: (format) => format === 'sse' })('%s', (stream_format) => {
  test('a client that does not read stops the provider', async () => {
    const { sent, answer } = sending()
    world = await speechWorld(answer, { models: { characters: { ...byCharacter, streams: false } } })
    const socket = slowClient({ stream_format })
    socket.pause()
    // The sockets of the system hold some of it, on both sides.
    expect(await stalled(sent)).toBeLessThan(pieces / 4)
    expect(await world.rows()).toEqual([])
    const hash = createHash('sha256')
    let length = 0
    socket.on('data', (data) => {
      hash.update(data)
      length += data.length
    })
    socket.resume()
    await once(socket, 'close')
    expect(sent.pieces).toBe(pieces)
    expect(length).toBeGreaterThan(pieces * piece.length)
    expect(await world.rows()).toMatchObject([{ outcome: 'complete', cost: { nanoUsd: 90_000 } }])
  })

  test('one that leaves without having read ends it', async () => {
    const { sent, answer } = sending()
    world = await speechWorld(answer, { models: { characters: { ...byCharacter, streams: false } } })
    const socket = slowClient({ stream_format })
    socket.pause()
    const before = await stalled(sent)
    socket.destroy()
    await until(async () => (await world.rows()).length === 1)
    await world.provider.received[0]?.left
    expect(sent.pieces).toBeLessThanOrEqual(before + 1)
    expect(await world.rows()).toMatchObject([{ outcome: 'partial', error: 'client_gone' }])
  })
})

test('the last byte leaves when the row is on disk, and each piece as it comes', async () => {
  const { promise: told, resolve: goOn } = Promise.withResolvers<void>()
  world = await speechWorld(async (_, response) => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' })
    response.write(audioOf(1_000))
    await told
    response.end(audioOf(1_000))
  })
  const reader = (await world.speak({})).body?.getReader()
  const first = await reader?.read()
  expect(first?.value?.length).toBe(999)
  goOn()
  let last = first?.value
  let length = 999
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
    last = next.value
    length += last.length
  }
  expect(length).toBe(2_000)
  expect(last?.at(-1)).toBe(audioOf(1_000).at(-1))
  expect(await world.rows()).toHaveLength(1)
})
