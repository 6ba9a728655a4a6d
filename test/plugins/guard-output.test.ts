import { openPlugin, type TestCall } from 'inference-router/plugin/test'
import { describe, expect, test } from 'vitest'
import guardOutput from '../../plugins/guard-output/index.ts'
import { Mask, maskChanges } from '../../plugins/guard-output/mask.ts'
import { rulesOf } from '../../plugins/guard-output/rules.ts'
import guardPrompt from '../../plugins/guard-prompt/index.ts'
import { ChangedStream } from '../../plugins/lib/changed-stream.ts'

type Setup = Parameters<typeof openPlugin>[1]
type Tested = Awaited<ReturnType<typeof openPlugin>>

async function answered(options: object, call: TestCall, setup: Setup = {}) {
  await using tested = await openPlugin(guardOutput, { ...setup, options })
  const result = await tested.call(call)
  return { ...result, logged: tested.logged }
}

const blocked = { status: 403, code: 'content_blocked' }
const secret = 'sk-abcdefghijklmnopqrstuv12345'

describe('rules that refuse', () => {
  test.each([
    ['a word', { words: ['blue heron'] }, 'The Blue Heron flies.'],
    ['a word in lookalike letters', { words: ['heron'] }, 'A h\u0435r\u043en.'],
    ['a word with accents and signs without width', { words: ['heron'] }, 'A he\u0301r\u200bon.'],
    ['a pattern', { pattern: String.raw`EMP-\d{4,6}` }, 'It is emp-12345.'],
  ])('find %s', async (_, rule, answer) => {
    const { refusal, logged } = await answered({ deny: [rule] }, { answer })
    expect(refusal).toMatchObject({ ...blocked, message: 'The answer was blocked (content_blocked).' })
    expect(logged).toMatchObject([{ level: 'warn', facts: { call: 'call-1', by: 'deny[0]' } }])
    expect(JSON.stringify(logged)).not.toContain(answer)
  })

  test.each([
    ['a part of another word', 'Herons fly.'],
    ['nothing', 'Hello.'],
  ])('let %s pass', async (_, answer) => {
    expect(await answered({ deny: [{ words: ['heron'] }] }, { answer })).toMatchObject({ text: answer })
  })

  test('find personal data and secrets, and what JSON escapes', async () => {
    expect((await answered({ pii: 'refuse' }, { answer: 'ann@example.com' })).refusal).toMatchObject(blocked)
    expect((await answered({ secrets: 'refuse' }, { answer: secret })).refusal).toMatchObject(blocked)
    const tool = { type: 'tool_call', id: 'c', name: 'n', arguments: String.raw`{"a":"\u0068eron"}` } as const
    const { refusal } = await answered({ deny: [{ words: ['heron'] }] }, { answer: { parts: [tool] } })
    expect(refusal).toMatchObject(blocked)
  })

  test('find a word that is divided among parts', async () => {
    const parts = [
      { type: 'text', text: 'A blue ' },
      { type: 'text', text: 'heron.' },
    ] as const
    const { refusal } = await answered({ deny: [{ words: ['blue heron'] }] }, { answer: { parts: [...parts] } })
    expect(refusal).toMatchObject(blocked)
  })

  test('have a status and messages of their own', async () => {
    const options = {
      status: 451,
      message: 'No.',
      deny: [{ words: ['heron'] }, { words: ['plum'], message: 'Not that.' }],
    }
    expect((await answered(options, { answer: 'heron' })).refusal).toMatchObject({ status: 451, message: 'No.' })
    expect((await answered(options, { answer: 'plum' })).refusal).toMatchObject({ status: 451, message: 'Not that.' })
  })

  test('refuse a stream, however it is cut, before any of the word is sent', async () => {
    for (const length of [1, 3, 8, 100]) {
      const answer = `${'Words before it. '.repeat(40)}The blue heron flies. ${'Words after it. '.repeat(40)}`
      const { refusal } = await answered({ deny: [{ words: ['blue heron'] }] }, { answer, stream: [length] })
      expect(refusal).toMatchObject(blocked)
    }
  })
})

describe('rules that mask', () => {
  const options = { pii: 'mask', deny: [{ words: ['blue heron'], action: 'mask' }] }
  const answer = `Write to ann@example.com about the Blue Heron with ${secret}.`
  const masked = 'Write to [email] about the [blocked] with [secret].'

  test('replace what they find, whole and streamed', async () => {
    expect(await answered(options, { answer })).toMatchObject({ text: masked })
    for (const length of [1, 4, 30]) {
      const { text, logged } = await answered(options, { answer, stream: [length] })
      expect(text).toBe(masked)
      expect(logged).toMatchObject([{ facts: { masked: { email: 1, blocked: 1, secret: 1 } } }])
    }
  })

  test('keep arguments of tools valid JSON', async () => {
    const given = JSON.stringify({ to: 'ann@example.com', list: [`a "${secret}"`] })
    const parts = [{ type: 'tool_call', id: 'c', name: 'n', arguments: given } as const]
    for (const stream of [false, true]) {
      const { reply } = await answered(options, { answer: { parts }, stream })
      const [part] = reply && 'chat' in reply ? reply.chat.parts : []
      expect(JSON.parse(part?.type === 'tool_call' ? part.arguments : '')).toEqual({
        to: '[email]',
        list: ['a "[secret]"'],
      })
    }
  })

  test('remove log probabilities, which repeat the text', async () => {
    const logprobs = [{ token: 'ann@example.com' }]
    const { reply } = await answered(options, { answer: { parts: [{ type: 'text', text: answer }], logprobs } })
    expect(JSON.stringify(reply)).not.toContain('ann@')
  })

  test('send a text once that its provider repeats whole, by whichever key', async () => {
    const whole = { type: 'text', text: answer } as const
    for (const repeated of [
      { at: 'a', whole },
      { at: 'b', also: 'a', whole },
    ]) {
      const { reply } = await answered(options, { events: [{ at: 'a', text: answer }, repeated, { finish: 'stop' }] })
      expect(reply).toMatchObject({ chat: { parts: [{ type: 'text', text: masked }] } })
      expect(reply && 'chat' in reply ? reply.chat.parts : []).toHaveLength(1)
    }
  })

  test('take events of providers that have members without a value', async () => {
    const last = { finish: 'stop', stop_sequence: null, logprobs: [{ token: 'a' }] } as never
    const { text } = await answered(options, { events: [{ text: answer }, last] })
    expect(text).toBe(masked)
  })

  test('nothing is masked in what has nothing', async () => {
    const { text, logged } = await answered(options, {
      answer: 'A task-force met at 10:30 on 2026-11-28.',
      stream: [2],
    })
    expect({ text, logged }).toEqual({ text: 'A task-force met at 10:30 on 2026-11-28.', logged: [] })
  })
})

test('a stream is masked like the whole text, wherever it is cut', () => {
  const { masked } = rulesOf({
    ...{ deny: [{ words: ['project plum'], action: 'mask' }], pii: 'mask', secrets: 'mask' },
    pii_kinds: ['email', 'phone', 'card', 'iban'],
  })
  const token = `eyJ${'a1'.repeat(400)}.${'b2'.repeat(600)}.${'c3'.repeat(30)}`
  const key = `-----BEGIN RSA PRIVATE KEY-----\n${'MIIEpAIBAAKCAQEA1234567890abcdefghijklmnopqrstuv\n'.repeat(30)}-----END RSA PRIVATE KEY-----`
  const text = `${'Hello there. '.repeat(50)}Call me: +49 30 1234567 or ann@example.com. ${'word '.repeat(150)}${token} and\n${key}\nend of project plum. ${`task-${'a'.repeat(32)} `.repeat(30)}`
  const mask = new Mask(masked ?? expect.fail('there are no rules'), 200, () => {})
  const whole = mask.change(text)
  expect(whole).not.toMatch(/eyJ|MIIE|1234567|ann@|plum/)
  expect(whole.match(/task-a+/g)).toHaveLength(30)
  for (const size of [1, 7, 50, 1_000]) {
    const stream = new ChangedStream(maskChanges(mask))
    let sent = ''
    for (let at = 0; at < text.length; at += size)
      for (const event of stream.take({ text: text.slice(at, at + size) })) sent += event.text ?? ''
    expect(whole.startsWith(sent)).toBe(true)
    for (const event of stream.take({ done: true })) sent += event.text ?? ''
    expect(sent).toBe(whole)
  }
})

describe('a moderation endpoint', () => {
  const options = (more: object = {}) => ({
    moderation: { url: 'https://m.example/v1/', model: 'm', key: '$K', ...more },
  })
  const setup = (answer: object, status = 200) => {
    const asked: { url: string; input: string[] }[] = []
    const fetch: NonNullable<Setup>['fetch'] = async (url, init) => {
      asked.push({ url: String(url), ...JSON.parse(String(init?.body)) })
      return Response.json(answer, { status })
    }
    return { asked, setup: { secrets: { K: 'key' }, fetch } }
  }
  const result = {
    flagged: true,
    categories: { violence: true, hate: false },
    category_scores: { violence: 0.8, hate: 0.4 },
  }

  test('refuses what it flags', async () => {
    const { asked, setup: own } = setup({ results: [result] })
    const { refusal, logged } = await answered(options(), { answer: 'Bad words.' }, own)
    expect(refusal).toMatchObject(blocked)
    expect(logged).toMatchObject([{ facts: { by: 'moderation: violence' } }])
    expect(asked).toMatchObject([{ url: 'https://m.example/v1/moderations', model: 'm', input: ['Bad words.'] }])
  })

  test.each([
    [{ categories: ['hate'] }, false],
    [{ categories: ['violence'] }, true],
    [{ threshold: 0.5 }, true],
    [{ threshold: 0.9 }, false],
    [{ threshold: 0.3, categories: ['hate'] }, true],
  ])('with %o refuses: %o', async (more, isRefused) => {
    const { refusal } = await answered(options(more), { answer: 'Bad words.' }, setup({ results: [result] }).setup)
    expect(refusal !== undefined).toBe(isRefused)
  })

  test.each([
    ['a status', {}, 500],
    ['no result', { results: [] }, 200],
    ['no verdict', { results: [{}] }, 200],
  ])('that answers with %s fails, which refuses the call', async (_, answer, status) => {
    await expect(answered(options(), { answer: 'Words.' }, setup(answer, status).setup)).rejects.toThrow('moderation')
    expect(guardOutput).toMatchObject({ onError: 'closed', guards: true })
  })

  test('is asked about each piece of a stream', async () => {
    const { asked, setup: own } = setup({ results: [{ flagged: false }] })
    await answered({ ...options(), hold: { characters: 100 } }, { answer: 'Words. '.repeat(100), stream: [10] }, own)
    expect(asked.length).toBeGreaterThan(3)
    expect(asked.length).toBeLessThan(12)
  })
})

test('a judge refuses, and its own calls are not judged', async () => {
  const asked: { headers: Record<string, string>; body: string }[] = []
  const fetch: NonNullable<Setup>['fetch'] = async (_, init) => {
    asked.push({ headers: init?.headers as Record<string, string>, body: String(init?.body) })
    return Response.json({ choices: [{ message: { content: 'BLOCK' } }] })
  }
  const options = { judge: { url: 'https://j.example/v1', model: 'm', key: '$K' } }
  const setup = { secrets: { K: 'key' }, fetch }
  expect((await answered(options, { answer: 'Words.' }, setup)).refusal).toMatchObject(blocked)
  const [{ headers, body } = expect.fail('it was not asked')] = asked
  const own = { headers, body: JSON.parse(body) }
  expect((await answered(options, { answer: 'BLOCK', facts: own }, setup)).text).toBe('BLOCK')
  expect(asked).toHaveLength(1)
})

test('judges of two guards with different keys do not ask each other without end', async () => {
  const options = { judge: { url: 'https://router.example/v1', model: 'm', key: '$K' } }
  let asked = 0
  const judge = (key: string, judged: (call: TestCall) => Promise<unknown>): Setup => ({
    options,
    secrets: { K: key },
    fetch: async (_, init) => {
      if (++asked > 20) throw new Error('without end')
      const body = JSON.parse(String(init?.body))
      const facts = { headers: init?.headers as Record<string, string>, body }
      const said = await judged({ text: body.messages[1].content, answer: 'PASS', facts }).then(
        () => 'PASS',
        () => 'neither',
      )
      return Response.json({ choices: [{ message: { content: said } }] })
    },
  })
  await using prompt: Tested = await openPlugin(
    guardPrompt,
    judge('one', (call) => output.call(call)),
  )
  await using output: Tested = await openPlugin(
    guardOutput,
    judge('two', (call) => prompt.call(call)),
  )
  await expect(prompt.call({ text: 'Hello' })).rejects.toThrow('answered neither BLOCK nor PASS')
  expect(asked).toBe(2)
})

test('images and sound are refused where the operator wants that', async () => {
  const parts = [{ type: 'image', data: 'UEk=', media_type: 'image/png' } as const]
  for (const stream of [false, true]) {
    expect((await answered({}, { answer: { parts }, stream })).refusal).toBeUndefined()
    expect((await answered({ unreadable: 'refuse' }, { answer: { parts }, stream })).refusal).toMatchObject(blocked)
  }
  const request = { operation: 'speech', model: 'a/b', fields: { input: 'Hello' } } as const
  expect((await answered({ unreadable: 'refuse' }, { request, answer: { json: {} } })).refusal).toMatchObject(blocked)
})
