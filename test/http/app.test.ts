import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type App, appServer, type ErrorHandler, lastResort, newApp } from '../../src/http/app.ts'

async function serve(app: App): Promise<string> {
  const server = appServer((request, response) => void app.handle(request, response, lastResort(request, response)))
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a request has its path, the parameters of its route and its query', async () => {
  const app = newApp({ caseSensitive: true })
  app.get('/things/:id', ({ path, params, query }, response) => response.end(JSON.stringify({ path, params, query })))
  const url = await serve(app)
  expect(await (await fetch(`${url}/things/a%20b?x=1&x=2&y&__proto__=z`)).json()).toEqual({
    path: '/things/a%20b',
    params: { id: 'a b' },
    query: { x: ['1', '2'], y: '', ['__proto__']: 'z' },
  })
  expect(await (await fetch(`${url}/things/a`)).json()).toEqual({ path: '/things/a', params: { id: 'a' }, query: {} })
  expect((await fetch(`${url}/things/a`, { method: 'HEAD' })).status).toBe(200)
  expect((await fetch(`${url}/Things/a`)).status).toBe(404)
})

test('when the handler of errors fails, the client gets a 500 without its words', async () => {
  const told = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => told.mockRestore())
  const app = newApp({ caseSensitive: true })
  const broken = new Error('the words of the handler')
  app.use(() => {
    throw new Error('the first words')
  })
  const fail: ErrorHandler = (_thrown, _request, _response, _next) => {
    throw broken
  }
  app.use(fail)
  const response = await fetch(await serve(app))
  expect(response.status).toBe(500)
  expect(await response.text()).not.toContain('words')
  await expect.poll(() => told.mock.calls).toEqual([[broken]])
})
