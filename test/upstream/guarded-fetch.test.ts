import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GuardedFetch, openGuardedFetch } from '../../src/upstream/files/guarded-fetch.ts'

let server: Server
let other: Server
const open: GuardedFetch[] = []
const portOf = (one: Server) => (one.address() as AddressInfo).port

const listening = async (answer: Parameters<typeof createServer>[1]): Promise<Server> => {
  const made = createServer(answer)
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve))
  return made
}

beforeAll(async () => {
  other = await listening((_, response) => response.end('other'))
  server = await listening((request, response) => {
    if (request.url !== '/away') response.end(`${request.method} ${request.headers['x-a']}`)
    else response.writeHead(302, { location: `http://127.0.0.1:${portOf(other)}/` }).end()
  })
})
afterAll(async () => {
  for (const { close } of open) await close()
  for (const one of [server, other]) {
    one.closeAllConnections()
    one.close()
  }
})

function fetchTo(...hosts: string[]): GuardedFetch['fetch'] {
  const made = openGuardedFetch(hosts)
  open.push(made)
  return made.fetch
}

const reason = async (answer: Promise<Response>): Promise<string> => {
  const { cause } = await answer.then(
    () => ({ cause: new Error('it was answered') }),
    (error) => error as { cause: Error },
  )
  return cause.message
}

test('hosts that are allowed are reached whatever their address is, with the port alone or with any', async () => {
  const address = `http://127.0.0.1:${portOf(server)}`
  for (const host of ['127.0.0.1', `127.0.0.1:${portOf(server)}`]) {
    const answer = await fetchTo(host)(`${address}/`, { method: 'POST', headers: { 'x-a': 'b' }, body: 'c' })
    expect([answer.status, await answer.text()]).toEqual([200, 'POST b'])
  }
  const byName = await fetchTo('LOCALHOST')(`http://localhost:${portOf(server)}/`)
  expect(await byName.text()).toBe('GET undefined')
})

test('other addresses must be public: as numbers, by names, and where a redirect leads', async () => {
  const port = portOf(server)
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '169.254.169.254', '10.0.0.1', '[::ffff:7f00:1]']) {
    expect(await reason(fetchTo()(`http://${host}:${port}/`))).toMatch(/is not public, and config\.yaml does not allow/)
  }
  expect(await reason(fetchTo(`127.0.0.1:${port + 1}`)(`http://127.0.0.1:${port}/`))).toContain('is not public')
  expect(await reason(fetchTo(`127.0.0.1:${port}`)(`http://127.0.0.1:${port}/away`))).toContain('is not public')
  const both = fetchTo(`127.0.0.1:${port}`, `127.0.0.1:${portOf(other)}`)
  expect(await (await both(`http://127.0.0.1:${port}/away`)).text()).toBe('other')
})

test('what is asked after the end is not answered', async () => {
  const { fetch, close } = openGuardedFetch(['127.0.0.1'])
  await (await fetch(`http://127.0.0.1:${portOf(server)}/`)).text()
  await close()
  await expect(fetch(`http://127.0.0.1:${portOf(server)}/`)).rejects.toThrow()
})
