import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Response } from '../../src/http/app.ts'
import { readJson } from '../../src/http/bodies/request-body.ts'
import { type RunningRequest, RunningRequests } from '../../src/http/running-requests.ts'
import { eventually } from '../helpers/time.ts'

/** A server that reads the JSON body of each request and answers when `finish` is called. */
async function serving() {
  const running = new RunningRequests()
  const begun: RunningRequest[] = []
  const waiting: (() => void)[] = []
  const server = createServer(async (request, response) => {
    const own = running.begin(response)
    begun.push(own)
    const size = { bytes: 1_000_000, values: 1_000 }
    await readJson(request, response as unknown as Response, { running: own, size, idleMs: 60_000 }).catch(() => {})
    await new Promise<void>((resolve) => waiting.push(resolve))
    running.end(own)
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const send = (body: string) => fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  /** Resolves when the bodies of so many requests have been read. */
  const read = (count: number) => eventually(() => expect(waiting).toHaveLength(count))
  return { running, begun, send, read, finish: () => waiting.shift()?.() }
}

test('the bodies of running requests are counted by their bytes, and those of ended ones are not', async () => {
  const { running, send, read, finish } = await serving()
  expect(running.bodyBytes).toBe(0)
  const [small, large] = [JSON.stringify('é'), JSON.stringify('x'.repeat(70_000))]
  const first = send(small)
  await read(1)
  expect(running.bodyBytes).toBe(4)
  const second = send(large)
  await read(2)
  expect(running.bodyBytes).toBe(70_006)
  finish()
  await first
  expect(running.bodyBytes).toBe(70_002)
  finish()
  await second
  expect(running.bodyBytes).toBe(0)
})

test('a request that begins after all had to end is ended as well', async () => {
  const { running, begun, send, read, finish } = await serving()
  const first = send('1')
  await read(1)
  expect(begun[0]?.signal.aborted).toBe(false)
  running.abortAll()
  const later = send('2')
  await read(2)
  for (const { signal } of begun) expect(signal.reason).toMatchObject({ code: 'stopping' })
  expect(begun).toHaveLength(2)
  finish()
  finish()
  await Promise.all([first, later])
})

test('a request whose work outlives its response runs until all of that is done', async () => {
  const { running, begun, send, read, finish } = await serving()
  const sent = send('{}')
  await read(1)
  const works = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  for (const { promise } of works) begun[0]?.outlive(promise)
  let leftPlaces = 0
  begun[0]?.atEnd(() => {
    leftPlaces++
  })
  finish()
  expect((await sent).status).toBe(200)
  const ended = running.allEnded()
  works[0].resolve()
  await new Promise(setImmediate)
  expect([running.size, leftPlaces]).toEqual([1, 0])
  works[1].resolve()
  await ended
  expect([running.size, leftPlaces]).toEqual([0, 1])
})

test('when everything must end, work that outlives its response is told to', async () => {
  const { running, begun, send, read, finish } = await serving()
  const sent = send('{}')
  await read(1)
  begun[0]?.outlive(new Promise((resolve) => running.stop.addEventListener('abort', () => resolve())))
  finish()
  await (await sent).text()
  expect(running.size).toBe(1)
  await running.endWithin(50)
  expect(running.size).toBe(0)
})
