import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { serverFlags } from '../../src/runtime/restart.ts'
import { within } from '../helpers/provider.ts'
import { slow } from '../helpers/slow.ts'

const MiB = 1024 * 1024
const piece = Buffer.alloc(MiB, 'sound ')

/** A provider that reads slowly and answers with the hash of what came. */
async function slowProvider() {
  const server = createServer(async (incoming, response) => {
    const hash = createHash('md5')
    for await (const chunk of incoming) {
      hash.update(chunk)
      await pause(1)
    }
    response.end(hash.digest('hex'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** Uploads a file of so many mebibytes; resolves to what the server answers. */
async function upload(port: number, size: number): Promise<string> {
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n'
  const end = '\r\n--b--\r\n'
  const headers = {
    'content-type': 'multipart/form-data; boundary=b',
    'content-length': head.length + size * MiB + end.length,
  }
  const outgoing = request({ port, host: '127.0.0.1', method: 'POST', headers })
  const [[response]] = await Promise.all([
    once(outgoing, 'response'),
    pipeline(Readable.from([head, ...Array.from({ length: size }, () => piece), end]), outgoing),
  ])
  let text = ''
  for await (const chunk of response) text += chunk
  return text
}

test('many large uploads at once stay out of memory, in and out', slow, async () => {
  const child = fork(join(import.meta.dirname, 'uploads-child.ts'), [await slowProvider()], {
    execArgv: [...serverFlags],
  })
  onTestFinished(() => void child.kill())
  const [port] = await within(20_000, 'the start', once(child, 'message'))
  const grown = async () => {
    child.send('measure')
    return (await once(child, 'message'))[0].grown
  }
  await upload(port, 1)
  await grown()
  const [count, size] = [50, 8]
  const answers = await Promise.all(Array.from({ length: count }, () => upload(port, size)))
  const hash = createHash('md5')
  for (let at = 0; at < size; at++) hash.update(piece)
  expect(new Set(answers)).toEqual(new Set([hash.digest('hex')]))
  // Of 400 MiB; what is not collected yet is most of it.
  expect(await grown()).toBeLessThan(150 * MiB)
})
