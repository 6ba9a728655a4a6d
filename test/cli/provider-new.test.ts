import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadOne, readInput } from '../../src/cli/load-one.ts'
import { manifestText } from '../../src/cli/manifest-text.ts'
import { type Ask, run } from '../../src/cli/provider.ts'
import { loadConfig } from '../../src/snapshot/config.ts'
import { folderOf } from '../manifest/files.ts'
import { ran } from './running.ts'

const facts = [
  '--url',
  'https://api.acme.example/v1/',
  '--model',
  'acme-1',
  '--input-price',
  '0.25',
  '--output-price',
  '1',
]

/** Runs `provider new` in a folder of its own, with a terminal where there are answers. */
async function create(args: string[], answers?: string[]) {
  const folder = folderOf({ 'config.yaml': 'store: { url: "sqlite:x" }\n' })
  const asked: string[] = []
  const ask: Ask | undefined =
    answers &&
    (async (question) => {
      asked.push(question)
      return answers.shift() ?? ''
    })
  const config = join(folder, 'config.yaml')
  const withAsk = (given: string[], out: Parameters<typeof run>[1]) => run(given, out, ask)
  const result = await ran(withAsk, 'new', ...args, '--config', config)
  const file = join(folder, 'providers/acme.yaml')
  return { ...result, asked, file, config, text: existsSync(file) ? readFileSync(file, 'utf8') : undefined }
}

async function loaded(file: string, path: string, env = {}) {
  const { config } = await loadConfig(path, env)
  if (!config) throw new Error('no configuration')
  const { loaded, problems } = await loadOne(await readInput(file), config, env)
  expect(problems).toEqual([])
  return loaded?.provider
}

describe('provider new', () => {
  test('writes a manifest that passes its check, from options alone', async () => {
    const { code, stdout, file, config } = await create([
      'acme',
      ...facts,
      '--context-window',
      '32000',
      '--name',
      'Acme: "AI"',
    ])
    expect([code, stdout.includes('no problems'), stdout.includes('Set ACME_API_KEY. Try it:')]).toEqual([
      0,
      true,
      true,
    ])
    expect(await loaded(file, config, { ACME_API_KEY: 'k' })).toMatchObject({
      slug: 'acme',
      name: 'Acme: "AI"',
      baseUrl: 'https://api.acme.example/v1',
      auth: { scheme: 'bearer', secret: 'k' },
      dialect: 'openai-chat',
      models: {
        'acme-1': { api: 'chat', context_window: 32_000, pricing: [{ input_price: 2.5e-7, output_price: 1e-6 }] },
      },
    })
  })

  test.each([
    ['none', { scheme: 'none' }],
    ['header:x-api-key', { scheme: 'header', header: 'x-api-key', secret: 'k' }],
    ['query:key', { scheme: 'query', parameter: 'key', secret: 'k' }],
  ])('knows the authentication %s', async (form, auth) => {
    const { file, config } = await create(['acme', ...facts, '--auth', form, '--secret-from', 'MY_KEY'])
    expect(await loaded(file, config, { MY_KEY: 'k' })).toMatchObject({ auth })
  })

  test('asks for what is not given, and again for what cannot be', async () => {
    const answers = ['ftp://x', 'https://api.acme.example', '', 'basic', '', '', 'acme-1', 'free', '0', '0', '', '']
    const { code, asked, text } = await create(['acme'], answers)
    expect(code).toBe(0)
    expect(asked.slice(0, 3)).toEqual([
      'Address (base URL)',
      'write an address such as https://api.example.com/v1\nAddress (base URL)',
      'Wire format',
    ])
    expect(text).toContain('base_url: https://api.acme.example\nauth: { scheme: bearer, secret: "${ACME_API_KEY}" }')
    expect(text).toContain('pricing: { input: 0, output: 0 }')
  })

  test.each([
    [['acme'], '--url is missing'],
    [['Acme', ...facts], "'Acme' cannot be a slug"],
    [['../acme', ...facts], 'cannot be a slug'],
    [['acme', ...facts, '--url', 'https://me:pw@x.example'], '--url: write the address without a password'],
    [['acme', ...facts, '--url', 'https://x.example/v1/chat/completions'], '--url: leave out /chat/completions'],
    [['acme', ...facts, '--secret-from', 'sk-1234'], 'not the key itself'],
    [['acme', ...facts, '--auth', 'basic'], '--auth: write bearer'],
    [['acme', ...facts, '--input-price', '1e3'], '--input-price: write USD'],
    [['acme', ...facts, '--model', 'a\nb'], "--model: write the provider's own name"],
  ])('refuses %j, and writes nothing: exit code 2', async (args, message) => {
    const { code, stderr, text } = await create(args)
    expect([code, stderr.includes(message), text]).toEqual([2, true, undefined])
    expect(stderr).not.toContain('sk-1234')
  })

  test('writes nothing where the manifest would have a mistake', async () => {
    const { code, stderr, text } = await create(['acme', ...facts, '--dialect', 'klingon'])
    expect([code, stderr.includes('klingon'), text]).toEqual([1, true, undefined])
  })

  test('never replaces a file', async () => {
    const { config, file } = await create(['acme', ...facts])
    writeFileSync(file, 'mine')
    const again = await ran((given, out) => run(given, out, undefined), 'new', 'acme', ...facts, '--config', config)
    expect([again.code, again.stderr.includes('already exists'), readFileSync(file, 'utf8')]).toEqual([1, true, 'mine'])
  })
})

test('prices of a token are written exactly', () => {
  const text = (input: number, output: number) =>
    manifestText(
      {
        ...{
          slug: 'a',
          name: 'a',
          url: 'https://a',
          dialect: 'openai-chat',
          auth: { scheme: 'none', name: '' },
          variable: '',
        },
        ...{ model: 'm', input, output, contextWindow: undefined, maxOutput: undefined },
      },
      undefined,
    )
  expect(text(0.1, 12.345)).toContain('pricing: { input: 1e-7, output: 1.2345e-5 }')
  expect(text(1_000_000, 0)).toContain('pricing: { input: 1e0, output: 0 }')
})
