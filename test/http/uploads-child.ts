import type { AddressInfo } from 'node:net'
import { appServer } from '../../src/http/app.ts'
import { readForm } from '../../src/http/bodies/form-body.ts'
import { RunningRequests } from '../../src/http/running-requests.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import { bytesBody } from '../../src/upstream/outgoing-body.ts'

/**
 * A server that sends the file of every form on
 * to the address that it is started with. It tells its parent where it
 * listens, and on each message how far its memory has grown since the last one, in bytes.
 */
const url = process.argv[2] ?? ''
const limits = { idleMs: 60_000, bytes: 2 ** 26, fileBytes: 2 ** 26, files: 1, fields: 1, fieldBytes: 100 }
const timeouts = { connectMs: 60_000, firstEventMs: 60_000, betweenEventsMs: 60_000, wholeMs: 60_000, totalMs: 60_000 }
const running = new RunningRequests()
const httpClient = openHttpClient()

const server = appServer(async (request, response) => {
  const own = running.begin(response)
  const form = await readForm(request, response, { ...limits, running: own })
  const file = form.files[0]
  if (!file) throw new Error('The form has no file.')
  const { bytes: body, length = 0 } = bytesBody(file)
  const sent = { url, headers: {}, body: body(), length, timeouts, signal: own.signal, provider: 'acme' }
  const answer = await httpClient.send(sent)
  for await (const chunk of answer.bytes) response.write(chunk)
  await form.dispose()
  running.end(own)
  response.end()
})

let [before, peak] = [0, 0]
setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss())
}, 10).unref()
process.on('message', () => {
  process.send?.({ grown: peak - before })
  before = process.memoryUsage.rss()
  peak = before
})

server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
