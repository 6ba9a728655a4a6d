import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { run as compare } from '../../../src/cli/compare/compare.ts'
import { run } from '../../../src/cli/import/import.ts'
import type { Remark } from '../../../src/cli/import/plan.ts'
import { openStore } from '../../../src/store/open.ts'
import { ran } from '../../cli/running.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { folderOf } from '../../manifest/files.ts'
import { imported } from './imported.ts'
import { likeLitellm, type Spoil } from './like-litellm.ts'
import { litellmConfig, litellmDump, literalKey, masterKey, secrets, variables } from './litellm-files.ts'

let provider: LoopbackProvider
beforeAll(async () => {
  provider = await loopbackProvider(answer)
})
afterAll(() => provider.close())

/** Answers like the provider whose path was called. */
function answer({ path, body }: Received, response: ServerResponse): void {
  if (path.startsWith('/failing')) return void answerJson(response, { error: { message: 'no GPU is left' } }, 500)
  if (path.startsWith('/anthropic')) {
    const content = [{ type: 'text', text: `anthropic ${body.model}` }]
    const usage = { input_tokens: 9, output_tokens: 3 }
    const message = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: body.model,
      content,
      stop_reason: 'end_turn',
      usage,
    }
    return void answerJson(response, message)
  }
  if (path.endsWith('/embeddings')) {
    const data = [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }]
    return void answerJson(response, {
      object: 'list',
      model: body.model,
      data,
      usage: { prompt_tokens: 2, total_tokens: 2 },
    })
  }
  if (body.stream) return void streamChat(response, path, body)
  const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }
  if (body.tools) {
    const message = { role: 'assistant', content: null, tool_calls: [call] }
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }]
    const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }
    return void answerJson(response, {
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: body.model,
      choices,
      usage,
    })
  }
  answerJson(response, {
    ...{ id: 'c1', object: 'chat.completion', created: 1, model: body.model },
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: `${path.split('/')[1]} ${body.model}` },
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
  })
}

function streamChat(response: ServerResponse, path: string, body: { model: string; stream_options?: object }): void {
  beginStream(response)
  const chunk = (members: object) =>
    response.write(
      `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: body.model, ...members })}\n\n`,
    )
  for (const content of [`${path.split('/')[1]} `, body.model])
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] })
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  chunk({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } })
  response.end('data: [DONE]\n\n')
}

/** A folder with LiteLLM's files, and the environment that LiteLLM had. */
function litellmFolder() {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
  for (const name of ['OWN_KEY', 'LITELLM_AZURE_API_KEY']) vi.stubEnv(name, undefined)
  onTestFinished(() => {
    vi.unstubAllEnvs()
  })
  const folder = folderOf({ 'litellm.yaml': litellmConfig(provider.url), 'litellm.sql': litellmDump })
  const config = join(folder, 'router/config.yaml')
  const paths = [join(folder, 'litellm.yaml'), '--database', join(folder, 'litellm.sql'), '--config', config]
  const importAll = async (...args: string[]) => {
    const { code, stdout, stderr } = await ran(run, 'litellm', ...paths, ...args, '--json')
    expect([code, stderr]).toEqual([0, ''])
    return JSON.parse(stdout) as {
      files: string[]
      created: { [kind: string]: string[] }
      unchanged: number
      remarks: Remark[]
    }
  }
  return { folder, config, paths, importAll }
}

describe('an imported LiteLLM', () => {
  test('answers the same calls with the same keys', async () => {
    const { config, importAll } = litellmFolder()
    const { created } = await importAll()
    expect(created.groups).toEqual(['Search', 'Batch', 'Writers', 'user bob@example.com'])
    expect(created.keys).toEqual(['LiteLLM master key', 'search', 'nightly', 'writers', 'free', 'personal'])
    const { as, ask } = await imported(config, variables)
    const answers: { [name: string]: unknown } = {}
    for (const name of ['gpt-mini', 'claude', 'haiku', 'fast', 'large', 'local', 'broken'])
      answers[name] = await ask(secrets.free, name)
    expect(answers).toEqual({
      'gpt-mini': 'own gpt-mini',
      claude: 'anthropic claude-sonnet-5',
      haiku: 'anthropic claude-haiku-4-5',
      fast: 'groq openai/gpt-oss-120b',
      large: 'mistral mistral-large-2512',
      local: 'vllm qwen3-8b',
      // Its fallback.
      broken: 'anthropic claude-sonnet-5',
    })
    for (const name of ['gpt-prod', 'gpt-4'])
      expect(await ask(secrets.search, name === 'gpt-4' ? 'gpt-prod' : name)).toMatch(
        /^azure-(?:one prod-eu|two prod-us)$/,
      )
    expect(await ask(secrets.free, 'gpt-4')).toMatch(/^azure-(?:one prod-eu|two prod-us)$/)
    expect(await ask(secrets.writers, 'haiku')).toBe('anthropic claude-haiku-4-5')
    expect(await ask(secrets.nightly, 'team/special')).toMatch(/^(?:own gpt-mini|vllm qwen3-8b)$/)
    const { data } = await as(secrets.search).embeddings.create({
      model: 'vectors',
      input: 'a',
      encoding_format: 'float',
    })
    expect(data[0]?.embedding).toEqual([0.5, 0.25])
  })

  test('sends each provider the credential that LiteLLM had for it', async () => {
    const { config, importAll } = litellmFolder()
    await importAll()
    const { ask } = await imported(config, variables)
    provider.received.length = 0
    for (const name of ['claude', 'fast', 'gpt-mini', 'local']) await ask(secrets.free, name)
    for (let index = 0; index < 40; index++) await ask(secrets.free, 'gpt-prod')
    const sent = provider.received.map(({ path, headers }) => {
      const credential = headers['x-api-key'] ?? headers['api-key'] ?? headers.authorization
      return `${path.split('/')[1]} ${credential}`
    })
    expect([...new Set(sent)].toSorted()).toEqual([
      'anthropic anthropic-key',
      'azure-one azure-key-one',
      `azure-two ${literalKey}`,
      'groq Bearer groq-key',
      'own Bearer own-key-of-the-file',
      'vllm undefined',
    ])
  })

  test('lets no key call, spend or keep more than before', async () => {
    const { config, importAll } = litellmFolder()
    await importAll()
    const { ask, as } = await imported(config, variables)
    // Of its own models and those of its team, what both have.
    await expect(ask(secrets.writers, 'gpt-prod')).rejects.toMatchObject({ status: 403 })
    await expect(ask(secrets.search, 'local')).rejects.toMatchObject({ status: 403 })
    for (const secret of [secrets.expired, secrets.blocked, secrets.orphan, secrets.manager])
      await expect(ask(secret, 'local')).rejects.toMatchObject({ code: 'invalid_key' })
    await expect(as(secrets.free).get('/manage/apikey')).rejects.toMatchObject({ status: 403 })
    const { keys } = (await as(masterKey).get('/manage/apikey')) as { keys: { id: string; name: string }[] }
    const by = (name: string) => as(masterKey).get(`/manage/apikey/${keys.find((key) => key.name === name)?.id}`)
    expect(await by('search')).toMatchObject({
      models: ['gpt-prod', 'gpt-mini', 'vectors', 'claude', 'broken'],
      limits: { requests_per_minute: 600 },
      labels: { tags: 'web', tier: 'gold', user: 'ann' },
    })
    expect(await by('nightly')).toMatchObject({
      monthly_limit: 20,
      limits: { requests_per_minute: 30, concurrent_calls: 2 },
      models: null,
    })
    expect(await by('writers')).toMatchObject({ monthly_limit: 150, models: ['haiku'] })
    const { groups } = (await as(masterKey).get('/manage/group')) as { groups: { name: string }[] }
    expect(groups.toSorted((one, other) => (one.name < other.name ? -1 : 1))).toMatchObject([
      { name: 'Batch', monthly_limit: 30 },
      { name: 'Search', monthly_limit: 100 },
      { name: 'Writers', monthly_limit: 0 },
      { name: 'user bob@example.com', monthly_limit: 3 },
    ])
    expect(await by('personal')).toMatchObject({ models: ['haiku', 'claude'], group: expect.any(String) })
  })

  test('has its own weights, fallbacks after them, and rules', async () => {
    const { config, importAll } = litellmFolder()
    await importAll()
    const { as } = await imported(config, variables)
    const { policies } = (await as(masterKey).get('/manage/policy')) as { policies: { id: string }[] }
    expect(policies.find(({ id }) => id === 'gpt-prod')).toMatchObject({
      sort: 'weighted',
      targets: [
        { target: 'azure/prod-eu', weight: 3 },
        'azure-2/prod-us',
        { target: 'mistral/mistral-large-2512', weight: 0 },
      ],
    })
    expect(policies.find(({ id }) => id === 'haiku')).toMatchObject({ on_blocked: 'next' })
  })
})

describe('the import', () => {
  test('can be repeated: the second time nothing is created and no file is written', async () => {
    const { importAll } = litellmFolder()
    const first = await importAll()
    const again = await importAll()
    expect(Object.values(again.created).flat()).toEqual([])
    expect(again.files).toEqual([])
    expect(again.unchanged).toBe(Object.values(first.created).flat().length)
  })

  test('changes nothing in a dry run, and reports the same', async () => {
    const { folder, importAll } = litellmFolder()
    const dry = await importAll('--dry-run')
    expect(existsSync(join(folder, 'router'))).toBe(false)
    expect(await importAll()).toEqual(dry)
  })

  test('reports everything that has no equivalent by its path', async () => {
    const { importAll } = litellmFolder()
    const { remarks } = await importAll()
    const at = (effect: Remark['effect']) => remarks.filter((one) => one.effect === effect).map(({ path }) => path)
    expect(at('none').toSorted()).toEqual([
      'LiteLLM_VerificationToken.aliases',
      'environment_variables.OTEL_EXPORTER_OTLP_ENDPOINT',
      'general_settings.database_url',
      'litellm_settings.success_callback',
      'router_settings.redis_host',
    ])
    expect(at('manual')).toEqual(['LiteLLM_TeamTable.tpm_limit', 'LiteLLM_VerificationToken.models'])
    expect(remarks.map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        "'gone' was not imported: it cannot be called (writers)",
        '1 key left out: they have expired',
        '1 key left out: they are blocked',
        '1 key left out: their team is not in the export',
        '1 key left out: their allowed_routes have no equivalent (management_routes)',
        '$7 in 7d became $30 a calendar month, all of which can be spent at once (Batch)',
      ]),
    )
  })

  test('writes credentials to .env alone, for its owner alone, and prints none', async () => {
    const { config, paths } = litellmFolder()
    const printed = await ran(run, 'litellm', ...paths)
    const folder = join(config, '..')
    expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600)
    const files = ['config.yaml', 'providers/azure-2.yaml'].map((path) => readFileSync(join(folder, path), 'utf8'))
    const store = openStore(`sqlite:${join(folder, 'data/router.sqlite')}`)
    const audit = JSON.stringify(store.audit.page({ limit: 100 } as never))
    store.close()
    const all = [
      printed.stdout,
      printed.stderr,
      ...files,
      audit,
      readFileSync(join(folder, 'data/router.sqlite'), 'latin1'),
    ].join('\n')
    for (const secret of [literalKey, 'own-key-of-the-file', masterKey, ...Object.values(secrets)])
      expect(all).not.toContain(secret)
    expect(readFileSync(join(folder, '.env'), 'utf8')).toContain(literalKey)
    // A variable that the router reads for other reasons is not set by the file of another gateway.
    expect(readFileSync(join(folder, '.env'), 'utf8')).not.toContain('OTEL_')
  })

  test('leaves settings and files that exist as they are, and says so without their values', async () => {
    const { folder, config, importAll } = litellmFolder()
    const { files } = await importAll()
    const manifest = files.find((path) => path.endsWith('azure-2.yaml')) ?? ''
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('name: Azure', 'name: My Azure'))
    writeFileSync(config, readFileSync(config, 'utf8').replace('retries: 1', 'retries: 4 # mine'))
    writeFileSync(join(folder, 'router/.env'), 'OWN_KEY=another-value\n', { mode: 0o600 })
    const { remarks } = await importAll()
    expect(readFileSync(config, 'utf8')).toContain('retries: 4 # mine')
    expect(readFileSync(manifest, 'utf8')).toContain('name: My Azure')
    expect(readFileSync(join(folder, 'router/.env'), 'utf8')).toContain('OWN_KEY=another-value\n')
    const left = remarks.filter(({ message }) => message.includes('left as it is'))
    expect(left.map(({ path }) => path)).toEqual(['config.yaml routing.retries', manifest, '.env OWN_KEY'])
    expect(JSON.stringify(left)).not.toContain('another-value')
  })

  test('of the file that is the configuration itself is refused in one line', async () => {
    const folder = folderOf({ 'config.yaml': 'model_list: []\nfolders: {}\n' })
    const path = join(folder, 'config.yaml')
    const { code, stderr } = await ran(run, 'litellm', path, '--config', path)
    expect([code, stderr]).toEqual([
      1,
      `${path} is the file to import: name another one for this router, as --config router/config.yaml\n`,
    ])
  })
})

describe('compared with LiteLLM', () => {
  /** Fifty requests of six kinds. */
  const requests = Array.from({ length: 50 }, (_, index) => {
    const messages = [{ role: 'user', content: `Hello ${index}` }]
    const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }]
    const kinds = [
      { model: 'gpt-mini', messages },
      { model: 'gpt-mini', messages, tools },
      { model: 'gpt-mini', messages, stream: true, stream_options: { include_usage: true } },
      { model: 'local', messages, stream: true },
      { path: '/v1/embeddings', body: { model: 'vectors', input: `text ${index}`, encoding_format: 'float' } },
      {
        custom_id: `r${index}`,
        method: 'POST',
        url: '/v1/chat/completions',
        body: { model: 'gpt-mini', messages, seed: 3 },
      },
    ]
    return JSON.stringify(kinds[index % kinds.length])
  }).join('\n')

  async function compared(spoil?: Spoil, ...args: string[]) {
    const { folder, config, importAll } = litellmFolder()
    await importAll()
    const { router } = await imported(config, variables)
    const other = await likeLitellm((model) => (model === 'local' ? 'vllm qwen3-8b' : `own ${model}`), spoil)
    onTestFinished(() => other.close())
    vi.stubEnv('INFERENCE_ROUTER_KEY', secrets.free)
    const file = join(folder, 'requests.jsonl')
    writeFileSync(file, requests)
    const places = ['--url', router.url, '--against', other.url, '--requests', file, '--config', config]
    const result = await ran(compare, ...places, ...args)
    return { ...result, received: other.received, file }
  }

  test('fifty requests with the same key have no unexplained difference, not even in their texts and costs', async () => {
    const { code, stdout, stderr, received } = await compared(undefined, '--exact', '--json')
    expect(stderr).toBe('')
    const { results, ...sums } = JSON.parse(stdout)
    const open = results.flatMap(({ differences }: { differences: { explained?: string }[] }) =>
      differences.filter(({ explained }) => explained === undefined),
    )
    expect([code, open]).toEqual([0, []])
    expect(sums).toMatchObject({ requests: 50, unexplained: 0, skipped: [] })
    expect(sums.cost.compared).toBeGreaterThan(20)
    expect(sums.cost.here).toBeCloseTo(sums.cost.there, 9)
    expect(received.every(({ headers }) => headers.authorization === `Bearer ${secrets.free}`)).toBe(true)
    expect(stdout).not.toContain(secrets.free)
  })

  test.each<[what: string, spoil: Spoil, shown: string]>([
    [
      'another finish reason',
      ({ choices }) => Object.assign((choices as object[])[0] as object, { finish_reason: 'length' }),
      'choices[].finish_reason: "stop" here, "length" there',
    ],
    [
      'a member more',
      ({ choices }) => Object.assign((choices as object[])[0] as object, { annotations: [{ type: 'url' }] }),
      'choices[].annotations[].type: nothing here, "url" there',
    ],
    [
      'other counts of tokens',
      ({ usage }) => Object.assign(usage as object, { prompt_tokens: 90 }),
      'usage.prompt_tokens: 9 here, 90 there',
    ],
  ])('%s is shown, and the exit code is 1', async (_, spoil, shown) => {
    const { code, stdout, file } = await compared((answer, { body }) => {
      if (body.seed !== undefined) spoil(answer, undefined as never)
    })
    expect(code).toBe(1)
    expect(stdout).toContain(`${file}:6 /v1/chat/completions\n  ${shown}\n`)
    expect(stdout).toMatch(/\n50 requests, 8 with differences that are not explained\n/)
  })
})
