import { describe, expect, test } from 'vitest'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Api, NeutralRequest } from '../../src/core/request.ts'
import { defaultRouting } from '../../src/core/routing/rules.ts'
import { proveExamples } from '../../src/manifest/check/examples.ts'
import { readSchema } from '../../src/manifest/check/schema.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { countExamples, filesOf } from '../../src/manifest/read/layer.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { finishOf } from '../../src/manifest/run/read-reply.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { servedBy } from '../../src/manifest/target.ts'
import { variantNeeds } from '../../src/manifest/types.ts'
import { forChat, resolve } from '../../src/routing/names/resolve.ts'
import { acme, formatted, loadedDialect, plainDialect } from './files.ts'

const other = plainDialect
  .replace('dialect: plain', 'dialect: other\nsame_as: messages\nheaders: { x-format: other }')
  .replace('"model": model,', '"engine": model,')
const dialects = new Map([
  ['plain', loadedDialect()],
  ['other', loadedDialectNamed('other')],
])

function loadedDialectNamed(name: string) {
  return { ...loadedDialect(other.replace('dialect: other', 'dialect: plain')), name }
}

const variants = `headers: { x-all: "1" }
errors: { 418: rate_limited }
traits: [{ match: '', facts: { base: true } }]
endpoints: { chat: { patch: { request: '$merge([$, {"patched": true}])' } } }
variants:
  - match: ^claude-
    dialect: other
    signer: claudia
    base_url: http://127.0.0.1:8/other
    headers: { x-all: "2" }
    traits: [{ match: '', facts: { mine: true } }]
    endpoints: { chat: { path: /other } }
  - match: ^(claude|big)-
    endpoints: { chat: { path: /big } }
`

function load(text: string, env: { [name: string]: string } = {}, settings: object = {}) {
  const problemAt = () => ({ file: 'c', line: 1, column: 1, message: '', severity: 'error' as const })
  return loadManifest(readSource('providers/acme.yaml', text), {
    dialects,
    env,
    settings: { value: settings, problemAt },
  })
}

function loaded(text = acme + variants, settings: object = {}): Provider {
  const { loaded: found, problems } = load(text, {}, settings)
  expect(formatted(problems)).toEqual([])
  return found?.provider as Provider
}

const request = { model: 'm', messages: [], origin: { api: 'chat' as const, body: {} } }
const sent = async (provider: Provider) => (await writeRequest(provider, request, { model: 'm' })).body

describe('a variant', () => {
  test('with a dialect of its own takes over who and where the provider is, but not its endpoints and traits', async () => {
    const provider = loaded()
    const served = servedBy(provider, 'claude-1')
    expect(served).toMatchObject({
      slug: 'acme',
      signer: 'claudia',
      dialect: 'other',
      sameAs: 'messages',
      baseUrl: 'http://127.0.0.1:8/other',
      headers: { 'x-format': 'other', 'x-all': '2' },
      errors: { 418: 'rate_limited' },
      chat: { path: '/other' },
    })
    expect(served.traits.map(({ facts }) => facts)).toEqual([{ mine: true }])
    expect(served.auth).toBe(provider.auth)
    expect(await sent(served)).toEqual({ engine: 'm', lines: [] })
  })

  test('without one changes its own fields only', async () => {
    const provider = loaded()
    const served = servedBy(provider, 'big-1')
    const { chat, variants: _, ...others } = provider
    expect(served).toEqual({ ...others, chat: { ...chat, path: '/big', stream: { ...chat?.stream, path: '/big' } } })
    expect(await sent(served)).toEqual({ model: 'm', lines: [], patched: true })
  })

  test('is chosen by the first match; other models are the provider’s own', () => {
    const provider = loaded(`${acme}unknown_models: pass\n${variants}`)
    expect(servedBy(provider, 'claude-1').chat?.path).toBe('/other')
    expect(servedBy(provider, 'small')).toBe(provider)
    const directory = { providers: new Map([['acme', provider]]), managed: new Map(), routing: defaultRouting }
    const targetOf = (model: string) => resolve(model, { ...directory, identify: () => undefined }).targets[0]
    expect(targetOf('acme/big-1')).toMatchObject({ model: 'big-1', provider: { slug: 'acme', chat: { path: '/big' } } })
    expect(targetOf('acme/small')?.provider.chat?.path).toBe('/generate')
  })

  test('uses the address of the settings, like the provider itself', () => {
    const provider = loaded(acme + variants, { base_url: 'http://127.0.0.1:7' })
    expect(servedBy(provider, 'claude-1').baseUrl).toBe('http://127.0.0.1:7')
  })

  test('alone misses a variable that only it needs', () => {
    const provider = loaded(acme + variants.replace('127.0.0.1:8', '${CLAUDE_HOST}'))
    expect([provider.missing, servedBy(provider, 'claude-1').missing]).toEqual([[], ['CLAUDE_HOST']])
  })

  test('has its problems reported at their positions, once', () => {
    const problems = (text: string) => formatted(load(text).problems)
    const wrong = variants
      .replace('^claude-', '"("')
      .replace('dialect: other', 'dialect: othr')
      .replace('path: /big', 'unsupported: [sed], reply: "{ ("')
    expect(problems(acme + wrong)).toEqual([
      expect.stringMatching(/^11:12 not a regular expression: /),
      '12:14 there is no dialect `othr`; did you mean `other`?',
      expect.stringMatching(/^19:\d+ not JSONata: /),
      expect.stringMatching(
        /^19:40 `sed` is neither a field of the neutral request nor a group; did you mean `seed`\?/,
      ),
    ])
    expect(problems(`${acme}variants: [{ match: a, dialetc: b }]\n`)).toEqual([
      expect.stringContaining('unknown field `dialetc`; did you mean `dialect`?'),
    ])
    expect(problems(`${acme.replace('9/v1', '9/${1}')}variants: [{ match: a }]\n`)).toHaveLength(1)
  })

  test('sees the definitions of its manifest, and translates finish reasons with its tables', async () => {
    const text = `${acme}define: '$twice := function($x) { $x & $x };'
variants:
  - match: a
    define: '$thrice := function($x) { $twice($x) & $x };'
    endpoints: { chat: { request: { body: '{ "m": $thrice(model) }' } } }
    finish: { stop: length }
`
    const served = servedBy(loaded(text), 'a1')
    const request = { model: 'a1', messages: [], origin: { api: 'chat', body: {} } } as const
    expect((await writeRequest(served, { ...request, messages: [] }, { model: 'a1' })).body).toEqual({ m: 'a1a1a1' })
    expect(finishOf(served, 'stop')).toBe('length')
    expect(finishOf(loaded(text), 'stop')).toBe('stop')
  })
})

describe('a variant for requests', () => {
  const text = `${acme}unknown_models: pass
endpoints: { chat: { unsupported: [web_search] } }
variants:
  - match: ^old-
    when: parts.file
    endpoints: { chat: { path: /files, request: { files: 'messages.parts[type = "file"].data' } } }
  - when: [web_search, provider_tools]
    dialect: other
    endpoints: { chat: { path: /native } }
  - match: ^big-
    endpoints: { chat: { path: /big } }
`
  const pathOf = (model: string, asked: Partial<NeutralRequest>, entry?: ModelEntry, given = text) =>
    servedBy(loaded(given), model, { request: { ...request, ...asked }, entry }).chat?.path
  const runs = (by: Api) => ({ tools: [{ kind: 'bash', by, definition: { type: 'bash' } }] })
  const file = { messages: [{ role: 'user' as const, parts: [{ type: 'file' as const, data: 'aGk=' }] }] }

  test('serves those that need what it names, and no others', () => {
    expect(pathOf('m', {})).toBe('/generate')
    expect(pathOf('m', { tools: [{ kind: 'function', name: 'f' }] })).toBe('/generate')
    expect(pathOf('m', runs('messages'))).toBe('/native')
    expect(pathOf('m', runs('responses'))).toBe('/generate')
    expect(servedBy(loaded(text), 'm').chat?.path).toBe('/generate')
  })

  test('may be for some models alone, and is passed over like any other', () => {
    expect(pathOf('old-1', file)).toBe('/files')
    expect(pathOf('m', file)).toBe('/generate')
    expect(pathOf('big-1', {})).toBe('/big')
    expect(pathOf('big-1', runs('messages'))).toBe('/native')
  })

  test('is not asked for what it lacks itself, nor for what the model cannot do', () => {
    expect(pathOf('m', { web_search: {} })).toBe('/generate')
    const searches = text.replace('path: /native', `path: /native, request: { s: '{ "s": web_search }' }`)
    expect(pathOf('m', { web_search: {} }, undefined, searches)).toBe('/native')
    expect(pathOf('m', { web_search: {} }, { api: 'chat', supports_web_search: false }, searches)).toBe('/generate')
  })

  test('is chosen before the abilities of its provider are judged', () => {
    const directory = { providers: new Map([['acme', loaded(text)]]), managed: new Map(), routing: defaultRouting }
    const asked = { ...request, ...runs('messages') }
    const { targets } = resolve('acme/m', { ...directory, identify: () => undefined }, undefined, forChat(asked))
    expect(targets.map(({ provider, model }) => [provider.slug, model, provider.chat?.path])).toEqual([
      ['acme', 'm', '/native'],
    ])
  })

  test('names what there is, and a variant says whom it is for', () => {
    const problems = (given: string) => formatted(load(`${acme}variants: [${given}]\n`).problems)
    expect(problems('{ when: web_serch }')).toEqual([expect.stringContaining('did you mean `web_search`?')])
    expect(problems('{ when: [] }')).toEqual([expect.stringContaining('must not be empty')])
    expect(problems('{ signer: x }')).toEqual([expect.stringContaining('a variant needs `match` or `when`')])
    const { $defs } = readSchema('provider') as { $defs: { variantNeed: { enum: string[] } } }
    expect($defs.variantNeed.enum).toEqual(variantNeeds)
  })
})

describe('examples of a manifest with variants', () => {
  const prove = async (text: string) => {
    const { loaded: found, problems } = load(text)
    return found ? formatted(await proveExamples(found.provider, found.layers)) : formatted(problems)
  }
  const asks = (model: string, sends: string) =>
    `{ name: e, request: { model: ${model}, messages: [] }, sends: ${sends} }`

  test('are about the variant of their model', async () => {
    const text = `${acme}${variants}examples: [${asks('claude-1', '{ engine: claude-1, lines: [] }')}]\n`
    expect(await prove(text)).toEqual([])
    expect(await prove(text.replace('engine: claude', 'engine: laude'))).toEqual([
      expect.stringMatching(/^20:\d+ example 'e': sends differs at engine: expected "laude-1", got "claude-1"$/),
    ])
  })

  test('inside a variant are about it, whatever their model', async () => {
    const text = `${acme}${variants}    examples: [{ name: v, answers: { error: no }, means: { error: { message: no } } }]\n`
    expect(await prove(text)).toEqual([])
    expect(await prove(text.replace('message: no', 'message: yes'))).toEqual([
      expect.stringMatching(/^20:\d+ example 'v': means \(from answers\) differs at error\.message/),
    ])
    const [, layer] = load(text).loaded?.layers ?? []
    expect(layer && countExamples(layer)).toBe(1)
  })

  test('are run when the dialect of a variant has changed', () => {
    const { layers = [] } = load(acme + variants).loaded ?? {}
    expect(filesOf(layers).map(({ text }) => text)).toContain(dialects.get('other')?.layer.source.text)
  })
})
