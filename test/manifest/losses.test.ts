import { expect, test } from 'vitest'
import type { NeutralRequest } from '../../src/core/request.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { acme, formatted, loadAcme } from './files.ts'

const request: NeutralRequest = {
  model: 'm',
  seed: 7,
  web_search: { max_uses: 3, context_size: 'low' },
  tools: [
    { kind: 'function', name: 'f' },
    { kind: 'custom', name: 'c' },
    { kind: 'mcp', by: 'responses', definition: { type: 'mcp', server_label: 's' } },
  ],
  messages: [
    {
      role: 'user',
      name: 'Ann',
      parts: [
        { type: 'text', text: 'hi', cache: {} },
        { type: 'video', url: 'u' },
      ],
    },
    { role: 'user', parts: [{ type: 'tool_result', id: 'a', parts: [{ type: 'video', url: 'u' }] }] },
  ],
  origin: { api: 'chat', body: {} },
}

/** The input of a mapping that takes all of these fields as they are, and the reported losses. */
async function written(requested: NeutralRequest, { takes, more = '' }: { takes: string; more?: string }) {
  const endpoint = `endpoints:\n  chat:\n    request: { body: '${takes}' }\n${more}`
  const { loaded, problems } = loadAcme(acme + endpoint)
  expect(formatted(problems)).toEqual([])
  if (!loaded) throw new Error('no provider')
  return await writeRequest(loaded.provider, requested, { model: 'm' })
}

const all =
  '{ "seed": seed, "search": web_search, "tools": [tools[kind != "*"]], "choice": tool_choice, "many": parallel_tool_calls, "messages": [messages[parts.type != "*"]], "cache": cache }'

test('a declared loss never reaches the mapping: fields, members, kinds of tools, types of parts', async () => {
  const left = async (...losses: string[]) => {
    const { body, dropped } = await written(request, { takes: all, more: `    unsupported: [${losses.join(', ')}]\n` })
    for (const loss of losses) expect(dropped).toContain(loss)
    return body as { [name: string]: unknown }
  }
  expect(await left('seed')).not.toHaveProperty('seed')
  expect((await left('web_search.max_uses')).search).toEqual({ context_size: 'low' })
  expect((await left('tools.function')).tools).toEqual([{ kind: 'custom', name: 'c' }])
  expect((await left('parts.video')).messages).toEqual([
    { role: 'user', name: 'Ann', parts: [{ type: 'text', text: 'hi', cache: {} }] },
    {
      role: 'user',
      parts: [{ type: 'tool_result', id: 'a', parts: [{ type: 'text', text: '(unsupported content omitted)' }] }],
    },
  ])
  const [first] = (await left('parts.cache', 'messages.name')).messages as NeutralRequest['messages']
  expect(first).toEqual({
    role: 'user',
    parts: [
      { type: 'text', text: 'hi' },
      { type: 'video', url: 'u' },
    ],
  })
})

test('a tool that only one client API defines is taken by name, or by a format of that API', async () => {
  expect((await written(request, { takes: all })).dropped).toEqual(['tools.mcp'])
  const named =
    '{ "tools": [tools[kind in ["function", "custom", "mcp"]]], "n": [seed, web_search, cache] , "m": messages[parts.type != "*"] }'
  const { body, dropped } = await written(request, { takes: named })
  expect(body.tools).toEqual(request.tools)
  expect(dropped).toEqual([])
})

test('a mapping that names no kind takes functions and text alone, and custom tools as functions', async () => {
  const { body, dropped } = await written(request, { takes: '{ "t": tools.name, "m": messages.parts.text }' })
  expect(body).toEqual({ t: ['f', 'c'], m: 'hi' })
  expect(dropped.toSorted()).toEqual(
    ['parts.cache', 'parts.tool_result', 'parts.video', 'seed', 'tools.mcp', 'web_search'].toSorted(),
  )
})

test('where there are no custom tools they are functions, and so are their calls', async () => {
  const requested: NeutralRequest = {
    model: 'm',
    tools: [{ kind: 'custom', name: 'c' }],
    tool_choice: { name: 'c' },
    parallel_tool_calls: true,
    messages: [
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', kind: 'custom', id: 'a', name: 'c', arguments: 'free "text"' }],
      },
    ],
    origin: { api: 'responses', body: {} },
  }
  const takes = '{ "m": messages.parts[type = "tool_call"], "t": tools, "c": tool_choice, "p": parallel_tool_calls }'
  const { body, dropped } = await written(requested, { takes })
  expect(body).toMatchObject({
    m: { type: 'tool_call', id: 'a', name: 'c', arguments: '{"input":"free \\"text\\""}' },
    t: [{ kind: 'function', name: 'c', parameters: { properties: { input: { type: 'string' } } } }],
    c: { name: 'c' },
    p: true,
  })
  expect(dropped).toEqual([])
})

test('members of an object are taken by their paths; asking whether the object is there takes none', async () => {
  const dropped = async (takes: string) =>
    (await written({ ...request, messages: [], tools: [] }, { takes: `{ "s": seed, "w": ${takes} }` })).dropped
  expect(await dropped('web_search.max_uses')).toEqual(['web_search.context_size'])
  expect(await dropped('$exists(web_search) and seed > 0')).toEqual(['web_search.max_uses', 'web_search.context_size'])
  expect(await dropped('web_search ? { "uses": web_search.max_uses }')).toEqual(['web_search.context_size'])
  expect(await dropped('web_search')).toEqual([])
  expect(await dropped('1')).toEqual(['web_search'])
})

test('members mentioned in a definition count where the definition is used', async () => {
  const using = async (body: string) => {
    const text = `${acme}define: '$s := function() { seed };'\nendpoints: { chat: { request: { body: '${body}' } } }\n`
    const { loaded, problems } = loadAcme(text)
    expect(formatted(problems)).toEqual([])
    const requested = { ...request, web_search: undefined, messages: [], tools: [] } as unknown as NeutralRequest
    return loaded && (await writeRequest(loaded.provider, requested, { model: 'm' }))
  }
  expect(await using('{ "a": $s() }')).toEqual({ body: { a: 7 }, dropped: [] })
  expect((await using('{ "a": 1 }'))?.dropped).toEqual(['seed'])
})

test('`dropped` names fields that are lost although a section reads them, if the request uses them', async () => {
  const text = `${acme}endpoints:
  chat:
    request:
      let: '$free := target.traits.free = true;'
      body: '{ "heat": $free ? temperature, "seed": seed }'
      dropped: '[$free ? [] : "temperature", "top_p"]'
traits: [{ match: free, facts: { free: true } }]
`
  const { loaded } = loadAcme(text)
  if (!loaded) throw new Error('no provider')
  const bare: NeutralRequest = { model: 'm', messages: [], temperature: 1, seed: 2, origin: { api: 'chat', body: {} } }
  const sent = (requested: NeutralRequest, model: string) => writeRequest(loaded.provider, requested, { model })
  expect(await sent(bare, 'm')).toEqual({ body: { seed: 2 }, dropped: ['temperature'] })
  expect(await sent(bare, 'free')).toEqual({ body: { heat: 1, seed: 2 }, dropped: [] })
  expect(await sent({ ...bare, temperature: undefined } as unknown as NeutralRequest, 'm')).toEqual({
    body: { seed: 2 },
    dropped: [],
  })
})

test.each([
  ['"custom" in tools.kind', true],
  ['tools.kind', true],
  ['[false, true]', true],
  ['[[false], [0, "x"]]', true],
  ['[false, false]', false],
  ['[]', false],
  ['tools[kind = "none"]', false],
  ['seed > 6', true],
  ['seed > 7', false],
])('a loss is met where its condition %s is true of one item', async (when, isMet) => {
  const more = `    unsupported: [{ field: seed, when: '${when}' }]\n`
  const { body, dropped } = await written(request, { takes: all, more })
  expect([dropped.includes('seed'), body.seed]).toEqual(isMet ? [true, undefined] : [false, 7])
})

test('groups name several losses at once', async () => {
  const text = `${acme}groups: { few: [seed, web_search] }\nendpoints: { chat: { request: { body: '${all}' }, unsupported: [few] } }\n`
  const { loaded, problems } = loadAcme(text)
  expect(formatted(problems)).toEqual([])
  const { body, dropped } = (loaded && (await writeRequest(loaded.provider, request, { model: 'm' }))) ?? {}
  expect(dropped).toEqual(expect.arrayContaining(['seed', 'web_search']))
  expect(body).not.toHaveProperty('seed')
  expect(formatted(loadAcme(text.replace('few: [seed', 'few: [sed')).problems)).toEqual([
    expect.stringContaining('`sed` is neither a field of the neutral request nor a group; did you mean `seed`?'),
  ])
})

test('a choice goes with the tools that it could choose', async () => {
  const takes = '{ "t": [tools[kind = "function"].name], "c": tool_choice, "m": messages.parts.text, "s": seed }'
  const base = { model: 'm', messages: [], seed: 1, origin: { api: 'chat', body: {} } } as const
  const tools: NeutralRequest['tools'] = [
    { kind: 'function', name: 'f' },
    { kind: 'mcp', by: 'responses', definition: { type: 'mcp' } },
  ]
  const choosing = (tool_choice: NeutralRequest['tool_choice'], more: Partial<NeutralRequest> = { tools }) =>
    written({ ...base, messages: [], ...more, ...(tool_choice && { tool_choice }) }, { takes })
  const choice = { kind: 'allowed_tools', by: 'responses', definition: {} } as const
  expect(await choosing({ ...choice, functions: { allowed: ['f'], mode: 'auto' } })).toEqual({
    body: { t: ['f'], c: { allowed: ['f'], mode: 'auto' }, s: 1 },
    dropped: ['tools.mcp'],
  })
  expect(await choosing({ ...choice, kind: 'mcp' })).toEqual({
    body: { t: ['f'], s: 1 },
    dropped: ['tools.mcp', 'tool_choice'],
  })
  expect(await choosing('required', { web_search: {} })).toMatchObject({ dropped: ['web_search', 'tool_choice'] })
  expect(await choosing('auto', { web_search: {} })).toMatchObject({ dropped: ['web_search'] })
})

test('lists in unknown fields are judged item by item', async () => {
  const asked = { ...request, messages: [], tools: [], extensions: { a: [{ b: 1, c: 2 }] } } as NeutralRequest
  const takes = '{ "s": seed, "w": web_search, "b": extensions.a.b }'
  expect((await written(asked, { takes })).dropped).toEqual(['extensions.a.c'])
})

test('who reads the text of parts takes texts, even if only other types are named', async () => {
  const takes =
    '{ "p": $join(messages.parts.text), "v": messages.parts[type = "video"].url, "s": seed, "w": web_search, "c": cache, "t": tools[kind = "*"] }'
  const { body, dropped } = await written({ ...request, tools: [] }, { takes })
  expect(body).toMatchObject({ p: expect.stringContaining('hi'), v: 'u' })
  expect(dropped).not.toContain('parts.text')
})

test('a user message of which nothing is left keeps its turn; a result goes with its call', async () => {
  const image = { type: 'image', url: 'u' } as const
  const asked: NeutralRequest = {
    ...request,
    tools: [],
    messages: [
      { role: 'user', parts: [image] },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'a', name: 'f', arguments: '{}' }] },
      { role: 'user', parts: [{ type: 'tool_result', id: 'a', parts: [image] }] },
    ],
  }
  const takes = '{ "m": [messages.parts.text], "s": seed, "w": web_search, "c": cache }'
  const { body, dropped } = await written(asked, { takes })
  expect(body.m).toEqual(['(unsupported content omitted)'])
  expect(dropped).toEqual(['parts.image', 'parts.tool_call', 'parts.tool_result'])
})

test('a cache hint of the instructions is lost like one of a message', async () => {
  const asked = {
    ...request,
    messages: [],
    tools: [],
    system: [{ type: 'text', text: 'S', cache: {} }],
  } as NeutralRequest
  const { dropped } = await written(asked, { takes: '{ "s": seed, "w": web_search, "i": system.text }' })
  expect(dropped).toEqual(['parts.cache'])
})

test('losses after which nothing sensible is left are refused when the file is loaded', () => {
  const said = (loss: string) => {
    const text = `${acme}endpoints: { chat: { request: { body: '${all}' }, unsupported: [${loss}] } }\n`
    return formatted(loadAcme(text).problems)
  }
  expect(said('parts.text')).toEqual([
    expect.stringContaining('`parts.text` cannot be listed as unsupported: nothing would be left of a message'),
  ])
  expect(said('stream')).toEqual([
    expect.stringContaining('`stream` cannot be listed as unsupported: whether a reply is streamed'),
  ])
  expect(said('parts.id')).toEqual([expect.stringContaining('name the type, as in `parts.audio.id`')])
  expect(said('parts.video.is_error')).toEqual([expect.stringContaining('parts of this type have no `is_error`')])
  expect(said('parts.audio.id, extensions, tools.whatever, parts.image.file_id')).toEqual([])
})
