import { describe, expect, onTestFinished, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { openConversations } from '../../src/call/open/conversations.ts'
import type { Json, JsonObject } from '../../src/core/json.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Target } from '../../src/manifest/target.ts'
import { openStore } from '../../src/store/open.ts'
import type { StoredResponse } from '../../src/store/responses.ts'

const here = { slug: 'here', sameAs: 'responses' } as Provider
const there = { slug: 'there', sameAs: 'responses' } as Provider
const foreign = { slug: 'foreign' } as Provider

async function opened() {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  const { id: organization } = await store.organizations.create('acme')
  const conversations = openConversations(store)
  const rulesOf = async (id: string) => ({ id, retention: await store.organizations.retention(id) })
  const ask = async (body: JsonObject) =>
    await conversations.open(responses, await rulesOf(organization), { model: 'm', ...body })
  /** Keeps a response, as after a call to a provider. */
  const made = async (
    id: string,
    { input = 'Hi', output = [], by = foreign, keptThere = false, ...body }: Made = {},
  ) => {
    const response = { id, object: 'response', status: 'completed', store: keptThere, output }
    const target = { provider: by, model: 'm' } as Target
    const sameFormat = by.sameAs === 'responses'
    const turn = await ask({ input, ...body })
    const storedResponse = turn.responseToStore(response, JSON.stringify(response), {
      target,
      sameFormat,
      storesItself: keptThere,
    })
    await store.responses.write(storedResponse as StoredResponse)
    return storedResponse as StoredResponse
  }
  return { store, organization, rulesOf, conversations, ask, made }
}

type Made = { input?: Json; output?: Json[]; by?: Provider; keptThere?: boolean; previous_response_id?: string }

const says = (text: string, id?: string): JsonObject => ({
  ...(id !== undefined && { id }),
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [] }],
})
const thinks = (id: string, encrypted_content?: string): JsonObject => ({
  id,
  type: 'reasoning',
  summary: [],
  ...(encrypted_content !== undefined && { encrypted_content }),
})

/** The texts of all messages, in order. */
function textsOf({ messages }: { messages: readonly { parts: readonly object[] }[] }): unknown[] {
  return messages.flatMap(({ parts }) => parts.flatMap((part) => ('text' in part ? part.text : [])))
}

async function failureOf(act: () => unknown): Promise<unknown> {
  try {
    await act()
  } catch (thrown) {
    return thrown
  }
  return undefined
}

describe('the request of a turn', () => {
  test('begins with all turns before it, and its origin is the client’s body', async () => {
    const { ask, made } = await opened()
    await made('resp_1', { input: 'One', output: [says('First')] })
    await made('resp_2', { input: 'Two', output: [says('Second')], previous_response_id: 'resp_1' })
    const body = { model: 'm', input: 'Three', previous_response_id: 'resp_2' }
    const { request } = await ask(body)
    expect(textsOf(request)).toEqual(['One', 'First', 'Two', 'Second', 'Three'])
    expect(request.origin).toEqual({ api: 'responses', body })
  })

  test('may have no input of its own', async () => {
    const { ask, made } = await opened()
    await made('resp_1', { input: 'One', output: [says('First')] })
    expect(textsOf((await ask({ previous_response_id: 'resp_1' })).request)).toEqual(['One', 'First'])
  })

  test('is refused when its input is none, or the earlier id no text', async () => {
    const { ask, made } = await opened()
    await made('resp_1')
    expect(await failureOf(() => ask({ input: 5, previous_response_id: 'resp_1' }))).toMatchObject({ param: 'input' })
    expect(await failureOf(() => ask({ input: 'x', previous_response_id: 7 }))).toMatchObject({
      param: 'previous_response_id',
    })
  })

  test('is rejected when a turn in the middle is missing: the history would be another one', async () => {
    const { ask, made, store, organization } = await opened()
    await made('resp_1')
    await made('resp_2', { previous_response_id: 'resp_1' })
    await store.responses.delete(organization, 'resp_1')
    expect(await failureOf(() => ask({ input: 'x', previous_response_id: 'resp_2' }))).toMatchObject({
      code: 'previous_response_not_found',
      message: expect.stringContaining("'resp_1'"),
    })
  })

  test('is refused when more came before it than any model takes', async () => {
    const { ask, made, store } = await opened()
    const first = await made('resp_0')
    for (let index = 1; index <= 1_000; index++)
      await store.responses.write({ ...first, id: `resp_${index}`, previous: `resp_${index - 1}` })
    const asking = (id: string) => () => ask({ input: 'x', previous_response_id: id })
    expect(await failureOf(asking('resp_999'))).toBeUndefined()
    expect(await failureOf(asking('resp_1000'))).toMatchObject({
      code: 'invalid_request',
      param: 'previous_response_id',
    })
    const large = JSON.stringify([says('x'.repeat(17 * 1024 * 1024))])
    await store.responses.write({ ...first, id: 'large_1', input: large })
    await store.responses.write({ ...first, id: 'large_2', input: large, previous: 'large_1' })
    expect(await failureOf(asking('large_1'))).toBeUndefined()
    expect(await failureOf(asking('large_2'))).toMatchObject({ code: 'invalid_request', param: 'previous_response_id' })
  })

  test('is refused when more values came before it than a request may have', async () => {
    const { ask, made, store } = await opened()
    const first = await made('resp_0')
    const many = JSON.stringify([{ ...says('x'), extra: Array.from({ length: 199_900 }, () => 1) }])
    for (const [id, previous] of [
      ['many_1', null],
      ['many_2', 'many_1'],
      ['many_3', 'many_2'],
    ] as const) {
      await store.responses.write({ ...first, id, previous, input: many })
    }
    const asking = (id: string) => () => ask({ input: 'x', previous_response_id: id })
    expect(await failureOf(asking('many_2'))).toBeUndefined()
    expect(await failureOf(asking('many_3'))).toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/values/),
    })
  })

  test('does not ask providers of other formats to store what is stored here, and passes on that nothing may be stored', async () => {
    const { ask } = await opened()
    expect((await ask({ input: 'x', store: true })).request.store).toBeUndefined()
    expect((await ask({ input: 'x', store: false })).request.store).toBe(false)
  })

  test('is nothing but itself in an API without ids of conversations', async () => {
    const { conversations, organization, rulesOf } = await opened()
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }], store: true }
    const turn = await conversations.open(chat, await rulesOf(organization), body)
    expect([turn.request.store, turn.stores, turn.bodyFor(here)]).toEqual([true, false, body])
  })
})

describe('the body for a provider of the same format', () => {
  test('is the one of the client where the provider stores the response', async () => {
    const { ask, made } = await opened()
    await made('resp_1', { by: here, keptThere: true })
    const body = { model: 'm', input: 'Two', previous_response_id: 'resp_1' }
    expect((await ask(body)).bodyFor(here)).toEqual(body)
  })

  test.each([
    ['another provider', there, true],
    ['the same one that did not keep it', here, false],
  ])('has the turns in it for %s', async (_, provider, keptThere) => {
    const { ask, made } = await opened()
    const output = [thinks('rs_1'), thinks('rs_2', 'sealed'), says('First')]
    await made('resp_1', { input: 'One', output, by: here, keptThere })
    const { input, previous_response_id } = (await ask({ input: 'Two', previous_response_id: 'resp_1' })).bodyFor(
      provider,
    )
    const signed = provider === here ? [thinks('rs_2', 'sealed')] : []
    const text = (content: string) => ({
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: content }],
    })
    expect(input).toEqual([text('One'), ...signed, says('First'), text('Two')])
    expect(previous_response_id).toBeUndefined()
  })

  test('forbids storing where the organization stores nothing', async () => {
    const { ask, store, organization } = await opened()
    await store.organizations.setRetention(organization, { stores: false })
    expect((await ask({ input: 'x', store: true })).bodyFor(here)).toEqual({ model: 'm', input: 'x', store: false })
  })
})

describe('an item that is only named', () => {
  const reference = (id: string) => ({ type: 'item_reference', id })

  test('is the item of the stored response', async () => {
    const { ask, made } = await opened()
    await made('resp_1', { output: [says('First', 'msg_1'), says('Second', 'msg_2')] })
    const input = [{ role: 'user', content: 'One' }, reference('msg_1'), { id: 'msg_2' }]
    const turn = await ask({ input })
    expect(textsOf(turn.request)).toEqual(['One', 'First', 'Second'])
    expect(turn.bodyFor(here).input).toEqual([input[0], says('First', 'msg_1'), says('Second', 'msg_2')])
  })

  test('stays a reference for the provider that stores it', async () => {
    const { ask, made } = await opened()
    await made('resp_1', { output: [thinks('rs_1'), says('First', 'msg_1')], by: here, keptThere: true })
    const body = { model: 'm', input: [reference('rs_1'), reference('msg_1'), { role: 'user', content: 'x' }] }
    expect((await ask(body)).bodyFor(here)).toEqual(body)
    expect((await ask(body)).bodyFor(there).input).toEqual([says('First', 'msg_1'), body.input[2]])
  })

  test('is stored as the item, so that the conversation outlives its response', async () => {
    const { ask, made, store, organization } = await opened()
    await made('resp_1', { output: [says('First', 'msg_1')] })
    await made('resp_2', { input: [reference('msg_1')], output: [says('Second')] })
    await store.responses.delete(organization, 'resp_1')
    expect(textsOf((await ask({ previous_response_id: 'resp_2' })).request)).toEqual(['First', 'Second'])
  })

  test('is rejected when it is missing, or of another organization', async () => {
    const { ask, made, store, rulesOf, organization, conversations } = await opened()
    await made('resp_1', { output: [says('First', 'msg_1')] })
    const input = [{ role: 'user', content: 'One' }, reference('msg_1')]
    const refused = { code: 'invalid_request', param: 'input[1].id', message: expect.stringContaining("'msg_1'") }
    const { id: other } = await store.organizations.create('other')
    const rules = await rulesOf(other)
    expect(await failureOf(() => conversations.open(responses, rules, { model: 'm', input }))).toMatchObject(refused)
    await store.responses.delete(organization, 'resp_1')
    expect(await failureOf(() => ask({ input }))).toMatchObject(refused)
  })

  test('is refused when the items are of more responses than a conversation has turns', async () => {
    const { ask, made, store } = await opened()
    const first = await made('resp_0', { output: [says('First', 'msg_0')] })
    for (let index = 1; index <= 1_000; index++) {
      const response = JSON.stringify({ id: `resp_${index}`, output: [says('x', `msg_${index}`)] })
      await store.responses.write({ ...first, id: `resp_${index}`, response })
    }
    const input = Array.from({ length: 1_001 }, (_, index) => reference(`msg_${index}`))
    expect(await failureOf(() => ask({ input: input.slice(1) }))).toBeUndefined()
    expect(await failureOf(() => ask({ input }))).toMatchObject({ code: 'invalid_request', param: 'input' })
  })

  test('lets other work run while thousands are looked up', async () => {
    const { ask, made, store } = await opened()
    const first = await made('resp_0', { output: [says('x'.repeat(20_000), 'msg_0')] })
    for (let index = 1; index < 900; index++) {
      const response = JSON.stringify({ id: `resp_${index}`, output: [says('x'.repeat(20_000), `msg_${index}`)] })
      await store.responses.write({ ...first, id: `resp_${index}`, response })
    }
    let turns = 0
    let isOver = false
    const next = () => {
      turns++
      if (!isOver) setImmediate(next)
    }
    next()
    await ask({ input: Array.from({ length: 900 }, (_, index) => reference(`msg_${index}`)) })
    isOver = true
    expect(turns).toBeGreaterThan(3)
  })
})

describe('the stored turn', () => {
  test('are the items that were new in the turn, and the response as it was answered', async () => {
    const { made } = await opened()
    await made('resp_1', { input: 'One' })
    const storedResponse = await made('resp_2', {
      input: [{ role: 'user', content: 'Two' }],
      previous_response_id: 'resp_1',
    })
    expect(storedResponse).toMatchObject({ previous: 'resp_1', model: 'foreign/m', provider: 'foreign', native: false })
    expect(JSON.parse(storedResponse.input)).toEqual([{ role: 'user', content: 'Two' }])
  })

  test.each([
    [{ status: 'failed', id: 'resp_1' }, {}],
    [{ status: 'in_progress', id: 'resp_1' }, {}],
    [{ status: 'completed' }, {}],
    [{ status: 'completed', id: 'resp_1' }, { store: false }],
  ])('is not %j of %j', async (response, body) => {
    const turn = await (await opened()).ask({ input: 'x', ...body })
    expect(
      turn.responseToStore(response, JSON.stringify(response), {
        target: { provider: here, model: 'm' },
        sameFormat: true,
        storesItself: true,
      }),
    ).toBeUndefined()
  })
})
