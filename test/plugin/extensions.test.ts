import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run as runCheck } from '../../src/cli/check.ts'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import { openFileCache } from '../../src/manifest/read/file-cache.ts'
import { ownFunctions } from '../../src/mapping/library.ts'
import { readMapping } from '../../src/mapping/mapping.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { ran } from '../cli/running.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { slow } from '../helpers/slow.ts'
import { folderOf } from '../manifest/files.ts'

const plugin = `
import { createHmac } from 'node:crypto'
import { definePlugin } from 'inference-router/plugin'

export default definePlugin({
  setup: () => ({
    functions: {
      shout: (text) => \`\${text}!\`,
      later: async () => 1,
    },
    auth: {
      'acme-hmac': ({ method, body }, { key, user }) => {
        if (user === 'nobody') throw new Error('of ' + key)
        return { 'X-Acme': \`\${user} \${createHmac('sha256', key).update(method + body).digest('hex')}\` }
      },
    },
  }),
})
`
const manifest = (url: string, user = 'me', name = 'shout') => `slug: acme
name: Acme
base_url: ${url}
auth: { scheme: acme-hmac, key: "\${ACME_KEY}", user: ${user} }
unknown_models: pass
endpoints:
  chat:
    path: /chat
    request:
      body: '{"said": $${name}(messages[0].parts[0].text)}'
    events: { message: '{"text": word}' }
    reply: '{"parts": [{"type": "text", "text": $shout(answer)}], "finish": "stop", "usage": {"input": 1, "output": 1}}'
`

describe('a manifest', () => {
  let provider: LoopbackProvider
  let router: TestRouter
  beforeAll(async () => {
    provider = await loopbackProvider((_, response) => answerJson(response, { answer: 'Hello' }))
    router = await testRouter({
      files: {
        'plugins/acme.ts': plugin,
        'providers/acme.yaml': manifest(provider.url),
        'providers/other.yaml': manifest(provider.url, 'nobody').replaceAll('acme\n', 'other\n'),
      },
      settings: { plugins: [{ name: 'acme' }] },
      env: { ACME_KEY: 'a-secret-of-acme' },
    })
  })
  afterAll(async () => {
    await router.end()
    await provider.close()
  })
  const ask = (model: string) =>
    router.call('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }] })

  test('calls the functions of plugins, and authenticates by their schemes', async () => {
    const answer = await ask('acme/m')
    const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] }
    expect([answer.status, choices[0]?.message.content]).toEqual([200, 'Hello!'])
    const { createHmac } = await import('node:crypto')
    const signature = createHmac('sha256', 'a-secret-of-acme').update('POST{"said":"Hi!"}').digest('hex')
    expect(provider.received.at(-1)).toMatchObject({ body: { said: 'Hi!' }, headers: { 'x-acme': `me ${signature}` } })
  })

  test('whose scheme fails is refused, and no secret is told', async () => {
    const answer = await ask('other/m')
    const text = await answer.text()
    expect([answer.status, text]).toEqual([502, expect.stringContaining('the scheme acme-hmac failed')])
    expect(text).not.toContain('a-secret-of-acme')
  })
})

describe('what is not there is told with its place', () => {
  const world = (files: Record<string, string>, plugins = '[{ name: acme }]') => {
    const folder = folderOf({ 'config.yaml': `plugins: ${plugins}\n`, 'plugins/acme.ts': plugin, ...files })
    const env = { ACME_KEY: 'k' }
    const cache = openFileCache(`${folder}/cache`)
    const build = async () => {
      const { problems } = await buildSnapshot(`${folder}/config.yaml`, env, { cache })
      return problems.map(formatProblem).map((line) => line.replace(`${folder}/`, ''))
    }
    return { folder, build }
  }
  const files = { 'providers/acme.yaml': manifest('http://127.0.0.1:9') }

  test('a function', async () => {
    const { folder, build } = world({ 'providers/acme.yaml': manifest('http://127.0.0.1:9', 'me', 'shuot') })
    const problem = 'providers/acme.yaml:10:23: there is no variable or function `$shuot`; did you mean `$shout`?'
    expect(await build()).toEqual([problem])
    const { stdout } = await ran(runCheck, `${folder}/providers/acme.yaml`, '--config', `${folder}/config.yaml`)
    expect(stdout).toContain('did you mean `$shout`?')
  })

  test('a plugin that is gone, though its manifest was sound before', slow, async () => {
    const { folder, build } = world(files)
    expect(await build()).toEqual([])
    expect(await build()).toEqual([])
    const { stdout, code } = await ran(runCheck, `${folder}/providers/acme.yaml`, '--config', `${folder}/config.yaml`)
    expect([stdout, code]).toEqual([expect.stringContaining('no problems'), 0])
    const bare = world(files, '[]')
    expect(await bare.build()).toEqual([
      expect.stringMatching(/^providers\/acme\.yaml:10:\d+: there is no variable or function `\$shout`/),
      expect.stringMatching(/^providers\/acme\.yaml:12:\d+: there is no variable or function `\$shout`/),
      expect.stringMatching(/^providers\/acme\.yaml:4:17: there is no scheme `acme-hmac`: there are none, bearer, /),
    ])
  })

  test('two plugins with the same names', async () => {
    const { build } = world({ ...files, 'plugins/second.ts': plugin }, '[{ name: acme }, { name: second }]')
    expect(await build()).toEqual([
      'config.yaml:1:35: the function `shout` already belongs to acme',
      'config.yaml:1:35: the function `later` already belongs to acme',
      'config.yaml:1:35: the scheme `acme-hmac` already belongs to acme',
    ])
  })
})

test('functions get and return copies, compiled or interpreted, and answer at once', async () => {
  const seen: unknown[] = []
  const functions = ownFunctions({
    note: (...values) => {
      seen.push(structuredClone(values))
      for (const value of values) if (Array.isArray(value)) value.push('more')
      return values[0] as never
    },
    later: async () => 1,
    fails: () => {
      throw new Error('no luck')
    },
  })
  const input = { list: [1, { a: 2 }] }
  for (const text of ['$note(list, none)', '$eval("1") = 1 ? $note(list, none)']) {
    const mapping = readMapping(text, { functions })
    expect(mapping.unbound).toEqual([])
    expect(await mapping.run(input)).toEqual([1, { a: 2 }, 'more'])
  }
  expect(seen).toEqual([
    [[1, { a: 2 }], null],
    [[1, { a: 2 }], null],
  ])
  expect(input).toEqual({ list: [1, { a: 2 }] })
  expect(() => readMapping('$later()', { functions }).run({})).toThrow('$later returned a promise')
  expect(() => readMapping('$fails()', { functions }).run({})).toThrow('$fails: no luck')
  expect(readMapping('$note(1)', {}).unbound).toEqual([expect.objectContaining({ name: 'note' })])
})
