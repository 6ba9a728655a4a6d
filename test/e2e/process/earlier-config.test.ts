import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startRouter } from '../../../src/app/router.ts'
import { loopbackProvider } from '../../helpers/provider.ts'
import { testKey } from '../../helpers/router.ts'
import { answerAsProvider, answersOf } from './earlier-answers.ts'

const earlier = join(import.meta.dirname, 'earlier')
/** What the version answered for which these files were written. */
const { answers, requests } = JSON.parse(readFileSync(join(earlier, 'answers.json'), 'utf8'))

test('an earlier configuration with providers of its own: the same models, answers and requests, and no new warning but those about renamed keys', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'earlier-'))
  cpSync(earlier, folder, { recursive: true })
  const provider = await loopbackProvider(answerAsProvider)
  const lines: { level: number; problem?: string }[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const urls = { ACME_URL: `${provider.url}/v1`, BETA_URL: provider.url, GAMMA_URL: provider.url }
  const env = { ...urls, ACME_API_KEY: 'a', BETA_API_KEY: 'b', INFERENCE_ROUTER_ADMIN_KEY: testKey }
  const router = await startRouter({ configPath: join(folder, 'config.yaml'), env, log })
  try {
    const now = await answersOf(router.url, testKey)
    // Errors have gained the address of their explanation.
    const known = now.map((one) => ({ ...one, text: one.text.replace(/,"doc_url":"[^"]*"/, '') }))
    expect(known).toEqual(answers)
    expect(provider.received.map(({ path, body }) => ({ path, body }))).toEqual(requests)
    const warnings = lines.map(
      ({ problem = '' }) => / warning: `(.*)` has been renamed to /.exec(problem)?.[1] ?? problem,
    )
    expect(warnings).toEqual(['in_a_row', 'of', 'open', 'open_most', 'ramp', 'losses', 'governed', 'maker'])
    const ready = await fetch(`${router.url}/ready`, { headers: { authorization: `Bearer ${testKey}` } })
    expect(await ready.json()).toMatchObject({ status: 'ready', problems: [] })
  } finally {
    await router.stop(1_000)
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
