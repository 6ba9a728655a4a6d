import { chmodSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { run } from '../../src/cli/doctor/doctor.ts'
import type { Finding } from '../../src/cli/doctor/finding.ts'
import { checkClock, checkDescriptors, checkNode } from '../../src/cli/doctor/machine.ts'
import { skewOf } from '../../src/cli/live/live-call.ts'
import { openStore } from '../../src/store/open.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { folderOf } from '../manifest/files.ts'
import { plainRecord } from '../store/plain-record.ts'
import { ran } from './running.ts'

let provider: LoopbackProvider
let clockOffsetMs = 0
const whole = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'OK' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 12, completion_tokens: 2 },
}
beforeAll(async () => {
  provider = await loopbackProvider(({ headers }, response) => {
    response.sendDate = false
    response.setHeader('date', new Date(Date.now() + clockOffsetMs).toUTCString())
    if (headers.authorization !== 'Bearer good-key-of-acme') {
      const error = { message: `Incorrect API key provided: ${headers.authorization}` }
      return answerJson(response, { error }, 401)
    }
    answerJson(response, whole)
  })
})
afterAll(() => provider.close())

beforeEach(() => {
  clockOffsetMs = 0
  provider.received.length = 0
  vi.stubEnv('ACME_KEY', 'good-key-of-acme')
  onTestFinished(() => void vi.unstubAllEnvs())
})

const price = '{ input: 1e-6, output: 2e-6 }'
const manifest = () => `slug: acme
name: Acme
base_url: ${provider.url}
auth: { scheme: bearer, secret: "\${ACME_KEY}" }
dialect: openai-chat
models:
  dear: { api: chat, pricing: { input: 1e-3, output: 1e-3 } }
  cheap: { api: chat, pricing: ${price} }
  gone: { api: chat, shutdown: 2020-01-01, pricing: { input: 0, output: 0 } }
  vectors: { api: embedding, pricing: { input: 0 } }
`

/** Runs the command in a folder with these settings. */
async function doctor(settings: object, ...args: string[]) {
  const folder = folderOf({
    'config.yaml': JSON.stringify({ server: { port: 0 }, store: { url: 'sqlite:router.sqlite' }, ...settings }),
    'providers/acme.yaml': manifest(),
  })
  const { code, stdout, stderr } = await ran(run, ...args, '--json', '--config', join(folder, 'config.yaml'))
  const { findings } = JSON.parse(stdout || '{"findings":[]}') as { findings: Finding[] }
  const of = (area: Finding['area']) => findings.filter((one) => one.area === area)
  const wrong = findings.filter(({ state }) => state === 'problem')
  return { folder, code, stdout, stderr, findings, of, wrong }
}

const named = { providers: { acme: {} } }

describe('doctor', () => {
  test('finds nothing wrong where nothing is, and sends nothing anywhere', async () => {
    const { code, wrong, of } = await doctor(named)
    expect([code, wrong, provider.received]).toEqual([0, [], []])
    expect(of('environment').at(-1)?.message).toBe('providers that can be called: acme')
  })

  test('reports mistakes in files, and exits with 1', async () => {
    const { code, wrong } = await doctor({ providers: { acne: {} } })
    expect(code).toBe(1)
    expect(wrong).toMatchObject([{ area: 'files', message: expect.stringContaining('there is no provider `acne`') }])
    expect(wrong[0]?.fix).toContain('inference-router check')
  })

  test('names the variable that a provider of the configuration, or of its policies, misses', async () => {
    vi.stubEnv('ACME_KEY', undefined)
    const [settings, policy] = [await doctor(named), await doctor({ policies: { best: { targets: ['acme/cheap'] } } })]
    expect(settings.wrong.map(({ message }) => message)).toEqual([
      'acme is named by providers.acme of the configuration, but ACME_KEY is not set',
    ])
    expect(policy.wrong.map(({ message }) => message)).toEqual([
      'acme is named by policies.best of the configuration, but ACME_KEY is not set',
    ])
    expect((await doctor({})).code).toBe(0)
  })

  test.each([
    ['ACME_KEY', 'good-key-of-acme\n', 'ACME_KEY has spaces or line breaks around its value'],
    ['ACME_KEY', '"good-key-of-acme"', 'ACME_KEY has quotes around its value'],
    ['INFERENCE_ROUTER_ADMIN_KEY', 'short', 'INFERENCE_ROUTER_ADMIN_KEY has 5 characters'],
    ['LOG_LEVEL', 'loud', "LOG_LEVEL has 'loud'"],
    ['LOG_FORMAT', 'xml', "LOG_FORMAT is 'xml'"],
    ['OTEL_TRACES_SAMPLER', 'dice', "OTEL_TRACES_SAMPLER is 'dice'"],
  ])('reports the variable %s with the value %j, without the value of a secret', async (name, value, message) => {
    vi.stubEnv(name, value)
    if (name.startsWith('OTEL')) vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:4318')
    const { code, wrong, stdout } = await doctor(named)
    expect([code, wrong.map((one) => one.message.startsWith(message))]).toEqual([1, [true]])
    expect(stdout).not.toContain('good-key-of-acme')
  })

  test('calls a provider only where that is asked for, with its cheapest model and few tokens', async () => {
    const { code, of } = await doctor({}, '--call', 'acme')
    expect(code).toBe(0)
    expect(of('providers')[0]?.message).toMatch(/^acme\/cheap answered in [\d.]+ s: finish reason stop$/)
    expect(of('providers').at(-1)?.message).toBe('1 calls cost $0.000016')
    expect(provider.received.map(({ body }) => body)).toMatchObject([{ model: 'cheap', max_tokens: 16 }])
    expect(of('clock')).toMatchObject([{ state: 'ok', message: 'it agrees with 1 provider' }])
  })

  test('reports a provider that fails with what to do, and without its secret', async () => {
    vi.stubEnv('ACME_KEY', 'bad-key-of-acme-0123456789')
    const { code, wrong, stdout } = await doctor(named, '--call')
    expect(code).toBe(1)
    expect(wrong).toMatchObject([{ area: 'providers', message: expect.stringContaining('provider_refused') }])
    expect(wrong[0]?.fix).toContain('check the secret of acme')
    expect(stdout).not.toContain('bad-key-of-acme')
  })

  test('reports a clock that differs from that of a provider by more than a minute', async () => {
    clockOffsetMs = -120_000
    const { wrong } = await doctor(named, '--call')
    expect(wrong).toMatchObject([{ area: 'clock', message: expect.stringMatching(/^it is 1(19|20) s ahead of/) }])
  })

  test('reports a port that another process has', async () => {
    const server = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    const { wrong } = await doctor({ server: { port } })
    expect(wrong).toMatchObject([{ area: 'ports', fix: expect.stringContaining('choose another server.port') }])
    expect((await doctor({ manage: { port } })).wrong[0]?.message).toContain('(manage.port) is in use')
  })

  test('reports a database that is none, and changes nothing of one that is', async () => {
    const folder = folderOf({ 'other.sqlite': 'this is a text, and has been one for a long time\n'.repeat(50) })
    const { wrong } = await doctor({ store: { url: `sqlite:${folder}/other.sqlite` } })
    expect(wrong).toMatchObject([{ area: 'database' }])
    const store = await openStore(`sqlite:${folder}/own.sqlite`)
    const writer = store.ledger.openWriter()
    await writer.write([plainRecord({ at: Date.now() + 3_600_000 })])
    await writer.close()
    await store.close()
    const own = await doctor({ store: { url: `sqlite:${folder}/own.sqlite` } })
    expect(own.of('database')).toMatchObject([
      { state: 'ok', message: expect.stringContaining('no router runs with it') },
    ])
    expect(own.wrong).toMatchObject([
      { area: 'clock', message: expect.stringContaining('earlier than the newest call') },
    ])
  })

  test('says that a router runs with the database', async () => {
    const folder = folderOf({})
    const store = await openStore(`sqlite:${folder}/own.sqlite`, { asRouter: true })
    onTestFinished(() => store.close())
    const { of } = await doctor({ store: { url: `sqlite:${folder}/own.sqlite` } })
    expect(of('database')[0]?.message).toContain('a router runs with it')
  })

  test.skipIf(process.getuid?.() === 0)('reports a folder that cannot be written', async () => {
    const folder = folderOf({})
    chmodSync(folder, 0o500)
    onTestFinished(() => chmodSync(folder, 0o700))
    const { wrong } = await doctor({ store: { url: `sqlite:${folder}/own.sqlite` } })
    expect(wrong).toMatchObject([{ area: 'database', message: expect.stringContaining('cannot be written') }])
  })

  test('creates no database', async () => {
    const { folder } = await doctor({})
    expect(statSync(join(folder, 'router.sqlite'), { throwIfNoEntry: false })).toBeUndefined()
  })

  test('prints what to fix below what is wrong', async () => {
    vi.stubEnv('ACME_KEY', undefined)
    const { folder } = await doctor(named)
    const { code, stdout } = await ran(run, '--config', join(folder, 'config.yaml'))
    expect(code).toBe(1)
    expect(stdout).toMatch(/^problem +environment +acme is named by .*\n +→ set ACME_KEY, or remove providers\.acme/m)
    expect(stdout).toMatch(/1 problem, \d warnings?\.\n$/)
  })

  test('calls the provider `demo`, whose simulator otherwise runs in the router', async () => {
    const settings = { providers: { demo: {} }, folders: { providers: ['./providers', 'shipped'], catalog: 'shipped' } }
    const { wrong, of } = await doctor(settings, '--call', 'demo')
    expect([wrong, of('providers').map(({ state, message }) => [state, message])]).toEqual([
      [],
      [
        ['ok', expect.stringMatching(/^demo.*/)],
        ['ok', expect.stringContaining('1 calls cost')],
      ],
    ])
  })

  test('takes the names of providers only with --call, and only known ones', async () => {
    expect((await doctor({}, 'acme')).code).toBe(2)
    expect(await doctor({}, '--call', 'acne')).toMatchObject({ code: 2, stderr: expect.stringContaining("'acne'") })
  })
})

describe('the machine', () => {
  test.each([
    ['24.11.0', 'ok'],
    ['24.12.1', 'ok'],
    ['25.0.0', 'ok'],
    ['24.10.9', 'problem'],
    ['22.20.0', 'problem'],
  ])('with Node %s is %s', (version, state) => {
    expect(checkNode('>=24.11', version)[0]?.state).toBe(state)
  })

  test.each([
    [20_000, 'ok'],
    [Infinity, 'ok'],
    [undefined, 'ok'],
    [4_096, 'warning'],
    [256, 'problem'],
  ])('that may open %s files at once is %s for 5,000 calls', (limit, state) => {
    const server = { limits: { concurrent: 5_000 } } as Parameters<typeof checkDescriptors>[0]['server']
    expect(checkDescriptors({ server }, limit)[0]?.state).toBe(state)
  })

  test.each([
    [[0, 200, -300_000], 'ok'],
    [[10_000, 10_000, 0], 'warning'],
    [[-90_000, -90_500, 0], 'problem'],
  ])('whose clock differs from those of providers by %j milliseconds is %s', (skews, state) => {
    expect(checkClock(skews, undefined)[0]?.state).toBe(state)
  })

  test('agrees with a Date header that can have been written between request and answer', () => {
    expect([skewOf(10_000, 9_000, 10_500), skewOf(10_000, 10_900, 10_950), skewOf(10_000, 11_500, 11_900)]).toEqual([
      0, 0, 500,
    ])
    expect(skewOf(10_000, 7_000, 8_000)).toBe(-2_000)
  })
})
