import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { comparing, withoutUnable } from '../../src/call/targets/unable-targets.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Api, NeutralRequest } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Target } from '../../src/manifest/target.ts'
import type { Targets } from '../../src/routing/names/resolve.ts'

type Format = { sameAs?: Api; parts?: string[]; fields?: string[]; losses?: string[] }

/** A target whose format takes these parts and fields, of a model with these facts. */
function target(slug: string, entry: Partial<ModelEntry> | undefined, format: Format = {}): Target {
  const { sameAs, parts = ['text', 'image'], fields = ['tools', 'web_search', 'response_format'], losses = [] } = format
  const support = {
    has: (field: string) => ['messages', ...fields].includes(field),
    members: () => new Map(),
    part: (type: string) => parts.includes(type),
    tool: ({ by }: { by?: Api }) => by === undefined,
    named: () => false,
  }
  const endpoint = { request: { support }, unsupported: losses.map((field) => ({ field })) }
  const provider = { slug, ...(sameAs && { sameAs }), chat: endpoint, traits: [] } as unknown as Provider
  return { provider, model: 'm', ...(entry && { entry: { api: 'chat', ...entry } }) }
}

const text = (words: string): NeutralRequest['messages'] => [{ role: 'user', parts: [{ type: 'text', text: words }] }]
const ask = (more: Partial<NeutralRequest> = {}, api: Api = 'chat'): NeutralRequest => ({
  model: 'name',
  messages: text('Hi'),
  origin: { api, body: {} },
  ...more,
})
const media = (
  type: 'image' | 'audio' | 'file' | 'video',
  more: object = { data: 'aaaa' },
): Partial<NeutralRequest> => ({
  messages: [{ role: 'user', parts: [{ type, ...more }] }],
})
const look = { kind: 'function' as const, name: 'look' }
const code = (by: Api) => ({ kind: 'code_interpreter', by, definition: { type: 'code_interpreter' } })

/** Those that are left, and why the others are not; or the refusal. */
function able(targets: Targets, request: NeutralRequest, strict = false): unknown {
  try {
    const left = withoutUnable(targets, { request, strict, clientApi: chat })
    return {
      targets: left.targets.map(({ provider }) => provider.slug).join(' '),
      skipped: left.skipped.map(({ target, reason }) => `${target.provider.slug} ${reason}`),
    }
  } catch (thrown) {
    if (!(thrown instanceof RouterError)) throw thrown
    return [thrown.status, thrown.message]
  }
}

const any = target('any', undefined, { sameAs: 'chat' })

describe('a target is skipped', () => {
  const cases: [reason: string, entry: Partial<ModelEntry>, request: NeutralRequest, format?: Format][] = [
    ['does not support images', { supports_vision: false }, ask(media('image'))],
    ['does not support images', {}, ask(media('image')), { parts: ['text'] }],
    ['does not support audio', {}, ask(media('audio'))],
    ['does not support files', {}, ask(media('file'))],
    ['does not support videos', {}, ask(media('video')), { sameAs: 'chat', losses: ['parts.video'] }],
    ['does not support files by id', {}, ask(media('image', { file_id: 'f' }))],
    ['does not support tools', { supports_tool_calling: false }, ask({ tools: [look] })],
    ['does not support tools', {}, ask({ tools: [look] }), { fields: [] }],
    ["does not support the tool 'code_interpreter'", {}, ask({ tools: [code('responses')] }, 'responses')],
    ['does not support web search', { supports_web_search: false }, ask({ web_search: {} })],
    [
      'is not known to support JSON schemas',
      { supports_output_json_schema: false },
      ask({ response_format: { type: 'json_schema', name: 'n' } }),
    ],
    [
      'is not known to support JSON output',
      { supports_output_json_object: false },
      ask({ response_format: { type: 'json' } }),
    ],
    [
      'has too small a context window for about 5004 tokens',
      { context_window: 4_000 },
      ask({ messages: text('word'.repeat(5_000)) }),
    ],
  ]
  test.each(cases)('that %s, by %j', (reason, entry, request, format) => {
    const other = target('other', undefined, { sameAs: request.origin.api })
    const unable = target('unable', entry, format)
    expect(able([unable, other], request)).toEqual({ targets: 'other', skipped: [`unable ${reason}`] })
    expect(able([unable], request)).toEqual({ targets: 'unable', skipped: [] })
  })

  test('in strict mode, when it would lose anything', () => {
    const narrow = target('narrow', {}, { fields: [] })
    const seeded = ask({ seed: 1 })
    expect(able([narrow, any], seeded)).toMatchObject({ targets: 'narrow any' })
    expect(able([narrow, any], seeded, true)).toMatchObject({ targets: 'any' })
    expect(able([narrow, narrow], seeded, true)).toMatchObject({ targets: 'narrow narrow' })
    expect(able([narrow, any], ask(), true)).toMatchObject({ targets: 'narrow any' })
  })
})

describe('no target is skipped', () => {
  const open = target('open', {})
  test.each([
    ['for what is not known', ask({ tools: [look], web_search: {}, response_format: { type: 'json' } })],
    ['for a wish about reasoning', ask({ reasoning: { effort: 'high' } })],
    ['for a request that needs nothing', ask()],
  ])('%s', (_, request) => {
    const other = target('other', { supports_reasoning: false })
    expect(able([open, other], request)).toEqual({ targets: 'open other', skipped: [] })
  })

  test('when all lack the same that can be done without', () => {
    const blind = [
      target('one', { supports_web_search: false }),
      target('two', { supports_web_search: false }),
    ] as const
    expect(able(blind, ask({ web_search: {} }))).toEqual({ targets: 'one two', skipped: [] })
  })
})

test('a request that none can take is refused, with the reason of each', () => {
  const blind = target('blind', { supports_vision: false })
  const mute = target('mute', { supports_vision: false, supports_tool_calling: false })
  const request = ask({ ...media('image'), tools: [look] })
  expect(able([blind, mute], request)).toEqual([
    400,
    "No target of 'name' can take this request: blind/m does not support images; mute/m does not support images, does not support tools.",
  ])
})

describe('after a failure', () => {
  const sized = (window?: number) => target('sized', window === undefined ? {} : { context_window: window })
  test.each([
    [8_000, 4_000, true],
    [4_000, 4_000, false],
    [undefined, 4_000, false],
    [8_000, undefined, true],
    [1_000, undefined, false],
  ])('a window of %s is larger than one of %s: %s', (other, refused, is) => {
    const compare = comparing(ask({ max_output_tokens: 500 }), 1_000)
    expect(compare(sized(other), sized(refused), 'larger')).toBe(is)
  })

  test('the abler target declares all that is needed, where the other does not', () => {
    const compare = comparing(ask({ tools: [look] }), 10)
    const declares = target('declares', { supports_tool_calling: true })
    expect(compare(declares, target('silent', {}), 'abler')).toBe(true)
    expect(compare(target('silent', {}), target('silent', {}), 'abler')).toBe(false)
    expect(compare(declares, declares, 'abler')).toBe(false)
    expect(comparing(ask(), 10)(declares, target('silent', {}), 'abler')).toBe(false)
  })
})
