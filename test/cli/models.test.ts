import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../../src/cli/models.ts'
import { acme, folderOf, plainDialect } from '../manifest/files.ts'
import { ran } from './running.ts'

const tier = (threshold: number, price: string) =>
  `{ prompt_tokens_threshold: ${threshold}, input_price: ${price}, cached_price: null, output_price: 0.0000004 }`

function config(): string {
  const folder = folderOf({
    'config.yaml': '',
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': `${acme.replace('dialect: plain', 'dialect: openai-chat')}models:
  m: { api: chat, context_window: 1000, supports_vision: true, supports_tool_calling: true, pricing: [${tier(0, '0.00000015')}, ${tier(9, '1')}] }
`,
    'providers/beta.yaml': `${acme.replaceAll('acme', 'beta').replace('dialect: plain', 'dialect: openai-chat').replace('none', 'bearer, secret: "${NO_SUCH_KEY}"')}models: { n: { api: embedding }, o: { api: rerank } }\nendpoints: { rerank: false }\n`,
  })
  return join(folder, 'config.yaml')
}

test('each model that there is an endpoint for is listed with its prices per million tokens and its capabilities', async () => {
  const { code, stdout } = await ran(run, '--config', config())
  expect(code).toBe(0)
  expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
    'MODEL | API | CONTEXT | OUTPUT | IN $/M | CACHED $/M | OUT $/M | CAN | RETIRES | SET',
    'acme/m | chat | 1000 | 0.15+ | 0.4 | vision tools',
    'beta/n | embedding | NO_SUCH_KEY',
    '',
  ])
})

test('--json has the entries of the catalog', async () => {
  const { stdout } = await ran(run, '--config', config(), '--provider', 'acme', '--json')
  expect(JSON.parse(stdout)).toEqual([
    expect.objectContaining({
      id: 'acme/m',
      provider: 'acme',
      model: 'm',
      configured: true,
      context_window: 1000,
      pricing: [expect.objectContaining({ input_price: 0.00000015 }), expect.anything()],
    }),
  ])
})

test('prices are those of this moment, and the JSON lists the others by time', async () => {
  const day = 86_400_000
  const [yesterday, tomorrow] = [-day, day].map((away) => new Date(Date.now() + away).toISOString())
  const folder = folderOf({
    'config.yaml': '',
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': `${acme}models:
  m:
    api: chat
    pricing: [${tier(0, '0.000001')}]
    price_changes:
      - { from: ${yesterday}, pricing: [${tier(0, '0.000002')}] }
      - { from: ${tomorrow}, pricing: [${tier(0, '0.000003')}] }
`,
  })
  const path = join(folder, 'config.yaml')
  const { stdout } = await ran(run, '--config', path)
  expect(stdout.split('\n')[1]?.replace(/ {2,}/g, ' | ')).toBe('acme/m | chat | 2 | 0.4')
  const [model] = JSON.parse((await ran(run, '--config', path, '--json')).stdout)
  expect(model.pricing[0].input_price).toBe(2e-6)
  expect(model.price_changes.map(({ from }: { from: string }) => from)).toEqual([yesterday, tomorrow])
})

test('an unknown provider gives 1 and the known ones, wrong usage gives 2', async () => {
  expect(await ran(run, '--config', config(), '--provider', 'x')).toMatchObject({
    code: 1,
    stderr: "There is no provider 'x'. Known: acme, beta\n",
  })
  expect((await ran(run, '--provider')).code).toBe(2)
  expect(await ran(run, '--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('--provider SLUG') })
})
