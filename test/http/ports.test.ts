import { once } from 'node:events'
import { type ListenOptions, Server } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { requireFreePort, reservePort } from '../../src/http/listeners.ts'

const host = '127.0.0.1'

async function listening(options: ListenOptions): Promise<Server> {
  const server = new Server()
  onTestFinished(() => void server.close())
  await once(server.listen({ host, ...options }), 'listening')
  return server
}

test('a reserved port is for servers that share it, and for anybody when it is released', async () => {
  const { port, release } = await reservePort(host)
  await expect(listening({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  const shared = await listening({ port, reusePort: true })
  release()
  release()
  shared.close()
  await once(shared, 'close')
  await expect.poll(() => listening({ port }).then(() => 'listens', String)).toBe('listens')
})

test('a port where somebody listens is not free, unless it may be shared with them', async () => {
  const server = await listening({ port: 0, reusePort: true })
  const { port } = server.address() as { port: number }
  await expect(requireFreePort(host, port)).rejects.toMatchObject({ code: 'EADDRINUSE', port })
  await requireFreePort(host, port, port)
  await requireFreePort(host, 0)
})
