import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { run } from '../../src/cli/check.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { folderOf } from '../manifest/files.ts'
import { ran } from './running.ts'

const usage = { prompt_tokens: 12, completion_tokens: 2, odd_units: 5 }
const head = { id: 'c', created: 1, model: 'cheap-2026' }
const event = (facts: object) => `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...facts })}\n\n`
const delta = (content: string, finish_reason: string | null = null) =>
  event({ choices: [{ index: 0, delta: { content }, finish_reason }] })

/** What the provider answers, by the model. */
let provider: LoopbackProvider
beforeAll(async () => {
  provider = await loopbackProvider(({ body, headers }, response) => {
    const { model, stream } = body
    if (model === 'refused') {
      const error = { message: `bad key ${headers.authorization}` }
      return answerJson(response, { error }, 401)
    }
    const counted = model === 'uncounted' ? {} : { usage }
    if (!stream) {
      const choices = [{ index: 0, message: { content: 'OK' }, finish_reason: 'stop' }]
      return answerJson(response, { ...head, choices, ...counted, timings: { queue: 1 } })
    }
    beginStream(response)
    response.write(delta('O') + delta('K'))
    if (model === 'cut') return void response.end()
    response.end(`${delta('', 'stop')}${event({ choices: [], ...counted, region: 'eu' })}data: [DONE]\n\n`)
  })
})
afterAll(() => provider.close())

beforeEach(() => {
  provider.received.length = 0
  vi.stubEnv('ACME_KEY', 'secret-of-acme-0123456789')
  onTestFinished(() => void vi.unstubAllEnvs())
})

const price = (usd: number) => `{ input: ${usd}, output: ${usd} }`
const manifest = () => `slug: acme
name: Acme
base_url: ${provider.url}
auth: { scheme: bearer, secret: "\${ACME_KEY}" }
dialect: openai-chat
models:
  costly: { api: chat, pricing: ${price(5e-5)} }
  cheap: { api: chat, pricing: ${price(1e-6)} }
  refused: { api: chat }
  uncounted: { api: chat }
  cut: { api: chat }
`

async function check(...args: string[]) {
  const folder = folderOf({ 'config.yaml': 'store: { url: "sqlite:x" }\n', 'providers/acme.yaml': manifest() })
  const [file, config] = [join(folder, 'providers/acme.yaml'), join(folder, 'config.yaml')]
  const result = await ran(run, file, ...args, '--config', config)
  return { ...result, file, config }
}

describe('check --call', () => {
  test('calls the cheapest model whole and streamed, with few tokens, and says what it saw', async () => {
    const { code, stdout } = await check('--call', '--json')
    expect([code, provider.received.map(({ body }) => body)]).toMatchObject([
      0,
      [
        { model: 'cheap', max_tokens: 16 },
        { model: 'cheap', max_tokens: 16, stream: true },
      ],
    ])
    const seen = { text: 'OK', finish: 'stop', served: 'cheap-2026', usage: { input: 12, output: 2 }, usd: 0.000014 }
    const fields = { 'usage.prompt_tokens': 12, 'usage.completion_tokens': 2, 'usage.odd_units': 5 }
    expect(JSON.parse(stdout).calls).toMatchObject([
      {
        model: 'acme/cheap',
        streamed: false,
        status: 200,
        reply: { ...seen, usage_fields: fields, unread: ['usage.odd_units', 'timings'] },
      },
      {
        model: 'acme/cheap',
        streamed: true,
        status: 200,
        reply: { ...seen, usage_fields: fields, unread: ['usage.odd_units', 'region'] },
      },
    ])
  })

  test('prints the same for people', async () => {
    const { stdout } = await check('--call')
    expect(stdout).toMatch(/^acme\/cheap, whole: 200 in [\d.]+ s: "OK"$/m)
    expect(stdout).toMatch(/^acme\/cheap, streamed: 200 in [\d.]+ s, 4 events: "OK"$/m)
    for (const line of [
      "  finish reason: stop (the provider's stop)",
      '  usage: input 12, output 2, $0.000014',
      '  read from: usage.prompt_tokens 12, usage.completion_tokens 2, usage.odd_units 5',
      '  not read: usage.odd_units, timings',
    ])
      expect(stdout.split('\n')).toContain(line)
  })

  test('that fails exits with 1, and shows no secret', async () => {
    const { code, stdout } = await check('--call', '--model', 'refused')
    expect(code).toBe(1)
    expect(stdout).toContain('acme/refused, whole: 401')
    expect(stdout).not.toContain('secret-of-acme')
    const cut = await check('--call', '--model', 'acme/cut', '--json')
    expect(JSON.parse(cut.stdout).calls).toMatchObject([
      { reply: {} },
      { error: { message: expect.stringContaining('without a finish reason') } },
    ])
    expect(cut.code).toBe(1)
  })

  test('warns where no usage is read', async () => {
    const { code, stdout } = await check('--call', '--model', 'uncounted')
    expect(code).toBe(0)
    expect(stdout).toContain('  warning: no tokens of the output are read from it: calls are charged by an estimate')
    expect(stdout).toContain('  read from: the answer has no usage')
  })

  test('sends nothing without --call, for a file with a mistake, or without its secret', async () => {
    expect((await check()).code).toBe(0)
    const wrong = folderOf({ 'config.yaml': '{}', 'providers/acme.yaml': manifest().replace('dialect', 'dialekt') })
    expect(
      (await ran(run, join(wrong, 'providers/acme.yaml'), '--call', '--config', join(wrong, 'config.yaml'))).code,
    ).toBe(1)
    vi.stubEnv('ACME_KEY', undefined)
    expect(await check('--call')).toMatchObject({ code: 1, stderr: 'To call acme, set ACME_KEY.\n' })
    expect(provider.received).toEqual([])
  })

  test('is for named manifests', async () => {
    const { config } = await check()
    expect(await ran(run, '--call', '--config', config)).toMatchObject({ code: 2 })
  })
})
