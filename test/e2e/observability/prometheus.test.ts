import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { simulatorOnly, type TestRouter, testKey, testRouter } from '../../helpers/router.ts'

const docs = join(import.meta.dirname, '../../../docs')
const isHere = spawnSync('prometheus', ['--version']).error === undefined

/** Every query of the dashboard and of the page, as it is asked over a short time. */
function queries(): string[] {
  const dashboard = JSON.parse(readFileSync(join(docs, 'grafana-dashboard.json'), 'utf8'))
  const panels = dashboard.panels.flatMap((panel: { targets: { expr: string }[] }) => panel.targets)
  const page =
    readFileSync(join(docs, 'observability.md'), 'utf8')
      .split('\n## ')
      .find((part) => part.startsWith('Questions')) ?? ''
  const asked = [...page.matchAll(/\| `(.+)` \|$/gm)].map(([, query = '']) => query.replaceAll('\\|', '|'))
  const all = [...panels.map(({ expr }: { expr: string }) => expr), ...asked]
  return all.map((query) => query.replaceAll(/\$__rate_interval|\b(?:5m|1h)\b/g, '20s').replaceAll('$instance', '.*'))
}

test('there are queries to ask', () => {
  expect(queries().length).toBeGreaterThan(25)
})

describe.skipIf(!isHere)('a real Prometheus (skipped where it is not installed)', () => {
  let router: TestRouter
  let prometheus: ChildProcess | undefined
  let folder = ''
  let url = ''

  beforeAll(async () => {
    router = await testRouter({ files: simulatorOnly })
    folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const scrape = {
      job_name: 'inference-router',
      scrape_interval: '1s',
      authorization: { credentials: testKey },
      static_configs: [{ targets: [new URL(router.url).host] }],
    }
    const rules = [join(docs, 'prometheus-rules.yaml')]
    writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify({ rule_files: rules, scrape_configs: [scrape] }))
    const flags = [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]
    prometheus = spawn('prometheus', flags, { stdio: 'ignore' })
  })

  afterAll(async () => {
    if (prometheus?.kill('SIGKILL')) await once(prometheus, 'exit')
    rmSync(folder, { recursive: true, force: true })
    await router?.end()
  })

  const ask = async (query: string): Promise<unknown[]> => {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(query)}`)
    const { status, data, error } = (await answer.json()) as {
      status: string
      error?: string
      data: { result: unknown[] }
    }
    if (status !== 'success') throw new Error(`${query}: ${error}`)
    return data.result
  }

  test('answers every query of the dashboard and of the page, after a mixed load', { timeout: 40_000 }, async () => {
    const texts = ['Hello', 'fail 503', 'cut', 'Hello again']
    const load = async () => {
      for (const [index, content] of texts.entries()) {
        const body = {
          model: 'demo/trouble',
          stream: index % 2 === 0,
          max_tokens: 50,
          messages: [{ role: 'user', content }],
        }
        await (await router.call('/v1/chat/completions', body)).text()
      }
      await router.call('/v1/chat/completions', { model: 'demo/none', messages: [{ role: 'user', content: 'Hi' }] })
    }
    let left = queries()
    const until = Date.now() + 30_000
    while (left.length > 0 && Date.now() < until) {
      await load()
      await pause(500)
      const asked = await Promise.all(left.map((query) => ask(query).catch(() => [])))
      left = left.filter((_, index) => asked[index]?.length === 0)
    }
    expect(left).toEqual([])
    expect(await ask('up{job="inference-router"} == 1')).toHaveLength(1)
  })

  test('knows the alert rules', async () => {
    const checked = spawnSync('promtool', ['check', 'rules', join(docs, 'prometheus-rules.yaml')], { encoding: 'utf8' })
    expect([checked.status, checked.stderr]).toEqual([0, ''])
    const { data } = (await (await fetch(`${url}/api/v1/rules`)).json()) as {
      data: { groups: { rules: { health: string }[] }[] }
    }
    expect(data.groups.flatMap(({ rules }) => rules).length).toBeGreaterThan(7)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
