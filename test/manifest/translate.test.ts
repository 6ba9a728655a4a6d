import { describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { readReply } from '../../src/manifest/run/read-reply.ts'
import {
  patchRequest,
  readEvent,
  readFrame,
  unsupportedInRequest,
  writeRequest,
} from '../../src/manifest/run/translate.ts'
import { targetFacts } from '../../src/manifest/target.ts'
import { acme, formatted, loadAcme } from './files.ts'

function provider(more = ''): Provider {
  const { loaded, problems } = loadAcme(acme + more)
  expect(formatted(problems)).toEqual([])
  return loaded?.provider as Provider
}

const chat = (more: string) => provider(`endpoints:\n  chat:\n${more}`)

const request = (more: Partial<NeutralRequest> = {}): NeutralRequest => ({
  model: 'acme/m1',
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
  ...more,
  origin: { api: 'chat', body: {} },
})

const facts = { signer: 'acme', newId: () => 'id', now: () => 1 }
const about = { signer: 'acme', traits: {} }
const target = { model: 'm1' }

describe('a request that is rebuilt', () => {
  test('is mapped with the model of the target', async () => {
    const { body, dropped } = await writeRequest(provider(), request({ max_output_tokens: 5 }), target)
    expect(body).toEqual({ model: 'm1', lines: ['hi'], limit: 5 })
    expect(dropped).toEqual([])
  })

  test('reports the fields that it loses, among those that it uses', async () => {
    const { dropped } = await writeRequest(provider(), request({ seed: 1, top_p: 0.5, stop: [] }), target)
    expect(dropped).toEqual(['seed', 'top_p'])
  })

  test('loses unknown fields by their full path, but for those that the mapping reads', async () => {
    const unknown = request({ extensions: { frob: { a: 1, b: { c: 2 } }, nicate: 2, seed: 3 } })
    const dropped = async (body: string) =>
      (await writeRequest(chat(`    request: { body: '${body}' }\n`), unknown, target)).dropped
    const text = '"all": messages.parts[type = "text"]'
    expect(await dropped(`{ ${text} }`)).toEqual(['extensions.frob', 'extensions.nicate', 'extensions.seed'])
    expect(await dropped(`{ ${text}, "f": extensions.frob.b }`)).toEqual([
      'extensions.frob.a',
      'extensions.nicate',
      'extensions.seed',
    ])
    expect(await dropped(`{ ${text}, "f": extensions.frob, "s": seed }`)).toEqual([
      'extensions.nicate',
      'extensions.seed',
    ])
    expect(await dropped(`$merge([{ ${text} }, extensions])`)).toEqual([])
  })

  test('loses parts, kinds and members at any depth', async () => {
    const made = chat('    unsupported: [tools.custom, messages.name, response_format.json]\n')
    const { dropped } = await writeRequest(
      made,
      request({
        messages: [
          {
            role: 'user',
            name: 'Ann',
            parts: [{ type: 'tool_result', id: 'a', parts: [{ type: 'image', url: 'u', cache: {} }] }],
          },
        ],
        tools: [{ kind: 'custom', name: 'x' }],
        response_format: { type: 'json' },
      }),
      target,
    )
    expect(dropped.sort()).toEqual(['messages.name', 'parts.tool_result', 'response_format', 'tools'].sort())
  })

  test('loses a field when its condition over request and target is true', async () => {
    const made = provider(`traits: [{ match: ^big, facts: { penalties: true } }]
endpoints:
  chat:
    unsupported: [{ field: max_output_tokens, when: '$not(target.traits.penalties = true) and max_output_tokens > 10' }]
`)
    const requested = request({ max_output_tokens: 20 })
    expect((await writeRequest(made, requested, { model: 'small' })).dropped).toEqual(['max_output_tokens'])
    expect((await writeRequest(made, requested, { model: 'big-1' })).dropped).toEqual([])
    expect(await unsupportedInRequest(made, requested, { model: 'small' })).toEqual(['max_output_tokens'])
  })

  test('loses parts that only another provider understands', async () => {
    const opaque = (by: string) =>
      request({ messages: [{ role: 'assistant', parts: [{ type: 'opaque', by, body: 1 }] }] })
    const made = provider(`signer: makers
endpoints: { chat: { request: { m: '[messages.parts[type = "opaque"].body]' } } }
`)
    expect((await writeRequest(made, opaque('other'), target)).dropped).toEqual(['parts.opaque'])
    expect((await writeRequest(made, opaque('makers'), target)).dropped).toEqual([])
  })

  test('has its history repaired first and its patch applied last', async () => {
    const made = chat(`    history: { alternate: true, no_empty_text: true }
    patch: { request: '$ ~> |$|{ "patched": $count(lines), "signer": $target.signer }|' }
`)
    const user = (text: string) => ({ role: 'user' as const, parts: [{ type: 'text' as const, text }] })
    const { body } = await writeRequest(made, request({ messages: [user('a'), user(''), user('b')] }), target)
    expect(body).toMatchObject({ lines: ['a', 'b'], patched: 2, signer: 'acme' })
    expect(await patchRequest(made, { lines: [1] }, about)).toEqual({ lines: [1], patched: 1, signer: 'acme' })
  })

  test('never sees the client\u2019s own JSON', async () => {
    const made = chat(
      '    request: { body: \'{ "m": messages, "s": system, "l": max_output_tokens, "o": origin }\' }\n',
    )
    expect((await writeRequest(made, request(), target)).body).not.toHaveProperty('o')
  })
})

test('the facts of a target are its limits and the traits of its name, later ones winning', () => {
  const made = provider(
    'traits:\n  - { match: ., facts: { a: 1, b: 1 } }\n  - { match: ^x, facts: { b: 2 } }\n  - { match: ^y, facts: { b: 3 } }\n',
  )
  const entry = { api: 'chat', context_window: 9, max_output_tokens: 5 }
  expect(targetFacts(made, { model: 'x1', entry })).toEqual({
    signer: 'acme',
    maker: 'acme',
    context_window: 9,
    max_output_tokens: 5,
    traits: { a: 1, b: 2 },
  })
  expect(targetFacts(made, { model: 'x1' }).traits).toBe(targetFacts(made, { model: 'x1' }).traits)
})

describe('a whole answer', () => {
  test('becomes a reply; a single part need not be a list', async () => {
    const { reply, error } = await readReply(provider(), { id: 'r', said: 'yes', in: 3, out: 1 }, facts, about)
    expect(reply).toMatchObject({
      id: 'r',
      parts: [{ type: 'text', text: 'yes' }],
      finish: 'stop',
      usage: { input: 3, output: 1 },
    })
    expect(error).toBeUndefined()
  })

  test('may report a failure', async () => {
    expect((await readReply(provider(), { error: 'busy' }, facts, about)).error).toEqual({ message: 'busy' })
  })

  test.each([
    ['a text', '"boom"', { message: 'boom' }],
    ['a number', '503', { code: '503', message: 'The provider reported an error.' }],
    ['nothing in it', '{}', { message: 'The provider reported an error.' }],
    ['a code alone', '{ "code": 7 }', { code: '7', message: 'The provider reported an error.' }],
    ['a list as its message', '{ "message": ["a", "b"] }', { message: '["a","b"]' }],
  ])('that reports %s is a failure with a message, whole and streamed', async (_, error, expected) => {
    const made = chat(`    reply: '{ "error": ${error} }'\n    events: { "*": '{ "error": ${error} }' }\n`)
    expect((await readReply(made, { said: 'x' }, facts, about)).error).toEqual(expected)
    expect(await readEvent(made, 'x', {}, about)).toEqual([{ error: expected }])
  })

  test('has no failure where `error` is null, and no parts that are none', async () => {
    const made = chat(
      `    reply: '{ "error": null, "parts": [null, { "type": "text", "text": "a" }], "finish": "stop" }'\n`,
    )
    const { reply, error } = await readReply(made, {}, facts, about)
    expect([error, reply.parts]).toEqual([undefined, [{ type: 'text', text: 'a' }]])
  })

  test('is patched first', async () => {
    const made = chat(`    patch: { reply: '{ "said": "patched " & said }' }\n`)
    const { body, reply } = await readReply(made, { said: 'yes' }, facts, about)
    expect(body).toEqual({ said: 'patched yes' })
    expect(reply.parts).toEqual([{ type: 'text', text: 'patched yes' }])
  })

  test.each([
    ['nothing', 'reply: nothing_here', 'returned nothing instead of an object'],
    ['a list', 'reply: "[1, 2]"', 'returned [1,2] instead of an object'],
    ['an error', 'reply: "$error(\'no\')"', 'failed: no'],
  ])('of which a mapping makes %s is unreadable; the error names provider and mapping', async (_, mapping, what) => {
    const failure = readReply(chat(`    ${mapping}\n`), { said: 'x' }, facts, about)
    await expect(failure).rejects.toBeInstanceOf(RouterError)
    await expect(failure).rejects.toMatchObject({
      code: 'provider_unreadable',
      provider: 'acme',
      message: `The response of acme could not be read: the mapping \`reply\` ${what}.`,
    })
  })
})

describe('an event of a stream', () => {
  test('is read by the mapping of its name, none, one or several', async () => {
    expect(await readEvent(provider(), 'piece', { said: 'a' }, about)).toEqual([{ text: 'a' }])
    expect(await readEvent(provider(), 'end', { out: 2 }, about)).toEqual([
      { finish: 'stop' },
      { usage: { output: 2 } },
    ])
    expect(await readEvent(provider(), 'ping', {}, about)).toEqual([])
    expect(await readEvent(provider(), 'unheard', {}, about)).toEqual([])
    expect(await readEvent(provider(), undefined, {}, about)).toEqual([])
  })

  test('without a mapping of its own is read by the star', async () => {
    const made = chat(`    events: { "*": '{ "text": "any" }' }\n`)
    expect(await readEvent(made, 'unheard', {}, about)).toEqual([{ text: 'any' }])
    expect(await readEvent(made, 'piece', { said: 'a' }, about)).toEqual([{ text: 'a' }])
    expect(await readEvent(made, 'ping', {}, about)).toEqual([])
  })

  test('is patched first, and given back as patched', async () => {
    const made = chat(`    patch: { event: '{ "said": "patched" }' }\n`)
    expect(await readFrame(made, 'piece', { said: 'a' }, about)).toEqual({
      payload: { said: 'patched' },
      events: [{ text: 'patched' }],
    })
  })

  test('is read at once, without a promise, by a compiled mapping', () => {
    expect(readEvent(provider(), 'piece', { said: 'a' }, about)).toEqual([{ text: 'a' }])
    expect(readEvent(provider(), 'ping', {}, about)).toEqual([])
  })

  test('of which a mapping makes junk is unreadable', async () => {
    const made = chat(`    events: { "*": '[1]' }\n`)
    await expect(Promise.resolve().then(() => readEvent(made, 'x', {}, about))).rejects.toMatchObject({
      message: 'The response of acme could not be read: the mapping `events.x` returned 1 instead of an object.',
    })
  })
})
