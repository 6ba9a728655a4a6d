import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startRouter } from '../../src/app/router.ts'
import { cache, testKey } from '../helpers/router.ts'
import { slow } from '../helpers/slow.ts'
import { limit } from '../helpers/time.ts'
import { against } from './against.ts'
import { cellsOf } from './cells.ts'
import { classic, others, type Scenario } from './scenarios.ts'
import { serve } from './serve.ts'
import { faults } from './simulator/faults.ts'

test(
  'a router is configured for the simulator, the wall is run against it, and each scenario is told',
  slow,
  async ({ onTestFinished }) => {
    const folder = mkdtempSync(join(tmpdir(), 'wall-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    // One that no gateway passes: an answer where there is none.
    const impossible: Scenario = {
      name: 'impossible',
      about: 'an answer of a provider that has none',
      first: '503-always',
      two: { answer: ['complete'], first: [1, 9] },
      one: { answer: ['complete'], first: [1, 9] },
    }
    const known = [...classic, ...others].filter(({ name }) => ['503-always', 'no-done'].includes(name))
    const cells = cellsOf([...known, impossible])
    const said: string[] = []
    const simulator = await serve({ cells, port: 0, host: '127.0.0.1', time: 0.05, write: folder }, (line) =>
      said.push(line),
    )
    onTestFinished(() => simulator.close())
    expect(said.join('\n')).toContain(`${simulator.url}/v1/chat/completions`)
    expect(said.join('\n')).toMatch(/^ +503-always +503-always, then ok$/m)

    const configPath = join(folder, 'config.yaml')
    const written = JSON.parse(readFileSync(configPath, 'utf8'))
    writeFileSync(configPath, JSON.stringify({ ...written, server: { port: 0 } }))
    const router = await startRouter({
      configPath,
      env: { INFERENCE_ROUTER_ADMIN_KEY: testKey },
      log: pino({ level: 'silent' }),
      earlier: { cache },
    })
    onTestFinished(() => router.stop(1_000))
    const printed: string[] = []
    const options = {
      cells,
      gateway: `${router.url}/v1`,
      key: testKey,
      models: '{scenario}-{targets}-{mode}-{api}',
      healthy: '{scenario}-{targets}-{mode}-{api}/ok',
      simulator: simulator.url,
      atOnce: 4,
      slackMs: limit(20_000),
    }
    expect(await against(options, (line) => printed.push(line))).toBe(false)
    expect(printed).toContain('passed  503-always: 503 for ever')
    expect(printed).toContain('passed  no-done: no terminator')
    expect(printed).toContain('failed  impossible: an answer of a provider that has none (6 of 12 cells)')
    expect(printed.join('\n')).toMatch(/ one streamed chat.*: error, not complete: status 50\d, no text, error \(/)
    expect(printed.at(-1)).toBe('2 of 3 scenarios, 30 of 36 cells passed')

    const print = () => {}
    await expect(against({ ...options, simulator: 'http://127.0.0.1:1' }, print)).rejects.toThrow(
      /npm run wall -- --serve/,
    )
    await expect(against({ ...options, gateway: 'http://127.0.0.1:1' }, print)).rejects.toThrow(/Nothing answers/)
  },
)

test('the page names every scenario with its models, and all that the simulator does', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/wall.md'), 'utf8')
  const models = ({ first, second }: Scenario) => `\`${first}\`${second === undefined ? '' : `, then \`${second}\``}`
  const rows = [...classic, ...others].map((one) => `| \`${one.name}\`: ${one.about} | ${models(one)} |`)
  const names = faults.map(({ name, about }) => `| \`${name}\` | ${about} |`)
  expect([...rows, ...names].filter((row) => !page.includes(row))).toEqual([])
})
