import { rmSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { routerProcess } from '../../helpers/process.ts'
import { routerFolder, simulatorOnly } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'

// Threads hold lines of the log back as the process does: what ends them must not lose these.

const ending = `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({
  setup: (_, { log }) => ({
    request(asked) {
      if (!JSON.stringify(asked).includes('the last call')) return
      log.info({}, 'ends the thread')
      process.exit(0)
    },
  }),
})
`

async function twoThreads(plugins: object[]) {
  const { folder, configPath } = routerFolder({
    files: { ...simulatorOnly, 'plugins/ending.ts': ending },
    settings: { plugins },
    threads: 2,
  })
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const router = await routerProcess(configPath, { env: { LOG_LEVEL: 'info', LOG_FORMAT: 'json' } })
  const logged = () =>
    router
      .output()
      .split('\n')
      .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as { msg: string; id?: string }] : []))
  const ask = async (content: string) => {
    const messages = [{ role: 'user', content }]
    const headers = { connection: 'close' }
    const response = await router.call('/v1/chat/completions', { model: 'demo/echo', messages }, headers)
    await response.text()
    return response.headers.get('x-request-id')
  }
  return { router, logged, ask }
}

test('a server that stops has written a line of every call', slow, async () => {
  const { router, logged, ask } = await twoThreads([])
  const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(`call ${n}`)))
  expect(await router.end('SIGTERM')).toBe(0)
  const calls = logged().filter(({ msg }) => msg === 'call')
  expect(calls.map(({ id }) => id).sort()).toEqual(ids.toSorted())
})

test('a thread that a plugin ends has written its lines', slow, async () => {
  const { router, logged, ask } = await twoThreads([{ name: 'ending' }])
  expect(await ask('one').catch(() => undefined)).toBeDefined()
  expect(await ask('the last call').catch(() => undefined)).toBeUndefined()
  await expect.poll(() => logged().map(({ msg }) => msg)).toContain('ends the thread')
  expect(await router.end('SIGTERM')).toBe(0)
})
