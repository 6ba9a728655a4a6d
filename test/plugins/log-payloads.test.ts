import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPlugin } from 'inference-router/plugin/test'
import { afterAll, expect, test } from 'vitest'
import logPayloads from '../../plugins/log-payloads/index.ts'
import { type PluginWorld, pluginWorld } from '../e2e/plugins/plugin-world.ts'
import { folderOf } from '../manifest/files.ts'

const newFolder = () => join(folderOf({}), 'payloads')
const namesIn = (folder: string) => readdirSync(folder).sort()
const textIn = (folder: string) =>
  namesIn(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')
const linesIn = (folder: string) =>
  textIn(folder)
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line))

/** What is written of calls that say these texts. */
async function logged(options: object, ...texts: string[]) {
  const folder = newFolder()
  const tested = await openPlugin(logPayloads, { options: { folder, ...options } })
  for (const text of texts) await tested.call({ text })
  await tested[Symbol.asyncDispose]()
  return { folder, lines: linesIn(folder), text: textIn(folder), tested }
}

test('requests, replies and ends are lines with the id of the call, in files of the owner alone', async () => {
  const { folder, lines } = await logged({}, 'Hello')
  const about = { id: 'call-1', organization: 'organization-1', key: 'key-1', requested: 'acme/model' }
  expect(lines).toMatchObject([
    { kind: 'request', ...about, request: { messages: [{ role: 'user', parts: [{ text: 'Hello' }] }] } },
    { kind: 'reply', ...about, reply: { parts: [{ text: 'Hello.' }], finish: 'stop' } },
    { kind: 'end', ...about, provider: 'acme', status: 200, outcome: 'complete', cost_usd: 0 },
  ])
  expect(statSync(join(folder, namesIn(folder)[0] ?? '')).mode & 0o777).toBe(0o600)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  const { lines: some } = await logged({ requests: false }, 'Hello')
  expect(some.map(({ kind }) => kind)).toEqual(['reply', 'end'])
})

test.each([
  'sk-proj-abcdefghijklmnop1234',
  'ghp_abcdefghijklmnopqrst',
  'AKIAABCDEFGHIJKLMNOP',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
])('no secret is written: %s', async (secret) => {
  const { text } = await logged({}, `Use ${secret}, please.`, `{"a":"${secret}"}`)
  expect(text).not.toContain(secret)
  expect(text).toContain('Use [secret], please.')
})

test.each([
  ['Authorization: Basic dXNlcjpwYXNzd29yZA==', 'dXNlcjpwYXNzd29yZA'],
  ['curl -H "authorization: basic dXNlcjpwYXNzd29yZA=="', 'dXNlcjpwYXNzd29yZA'],
  ['the header is Basic dXNlcjpwYXNzd29yZA==.', 'dXNlcjpwYXNzd29yZA'],
  ['DB_PASSWORD=hunter22', 'hunter22'],
  ['export PGPASSWORD="two words"', 'two words'],
  ['client_secret=abcDEF-123', 'abcDEF-123'],
  ['clientSecret: "abcDEF-123"', 'abcDEF-123'],
  ['aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz', 'K7MDENG'],
  ['os.environ["API_KEY"] = "abcd1234efgh"', 'abcd1234efgh'],
  ['{\\"refresh_token\\": \\"abcd1234efgh\\"}', 'abcd1234efgh'],
  ['AccountKey=abcdefg+/h1234567890==;EndpointSuffix=x', 'abcdefg+/h1234567890'],
  ['https://x.example/a.png?sp=r&sig=abcdefghijklmnopqrstuvwxyz%3D', 'abcdefghijklmnopqrstuvwxyz'],
  ['amqp://me:swordfish@host', 'swordfish'],
  ['//registry.npmjs.org/:_authToken=abcd-efgh-1234', 'abcd-efgh-1234'],
  ['glpat-abcdefghij1234567890', 'glpat-abcdefghij'],
  ['hvs.CAESIJabcdefghij1234567890', 'CAESIJabcdefghij'],
  ['dapi0123456789abcdef0123456789abcdef', 'dapi0123'],
  ['GOCSPX-abcdefghijklmnopqrstuvwxyz12', 'abcdefghijkl'],
  ['https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnop', 'abcdefghijklmnop'],
  ['123456789:AAabcdefghijklmnopqrstuvwxyz1234567', 'AAabcdefghij'],
  ['-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----', 'b3BlbnNzaC1rZXk'],
])('no secret is written of %j', async (text, secret) => {
  const { text: written } = await logged({}, `${text}`)
  expect(written).not.toContain(secret)
})

test.each([
  'a basic understanding of the tokens: 1000 of them',
  'max_tokens: 100000, secretary: Anna Miller',
  'DB_PASSWORD=${DB_PASSWORD} and password: <your password>',
  'https://user@host.example/path?signal=abcdefghijklmnopqrstuvwxyz',
])('a text without a secret is written as it is: %j', async (text) => {
  const { lines } = await logged({ replies: false }, text)
  expect(lines[0].request.messages[0].parts[0].text).toBe(text)
})

test('members are secrets by their names, and short files are files', async () => {
  const folder = newFolder()
  const tested = await openPlugin(logPayloads, { options: { folder } })
  const extensions = {
    dbPassword: 12345678,
    'x-api-key': 'k',
    authorization_token: 'short',
    max_tokens: 5,
    keys: ['a'],
  }
  const parts = [{ type: 'file' as const, media_type: 'text/plain', data: Buffer.from('pin 1234').toString('base64') }]
  const chat = { model: 'm', messages: [{ role: 'user' as const, parts }], extensions }
  await tested.call({ request: { operation: 'chat', chat } })
  await tested[Symbol.asyncDispose]()
  expect(linesIn(folder)[0]).toMatchObject({
    request: {
      messages: [{ parts: [{ data: '[12 characters of data]' }] }],
      extensions: {
        dbPassword: '[secret]',
        'x-api-key': '[secret]',
        authorization_token: '[secret]',
        max_tokens: 5,
        keys: ['a'],
      },
    },
  })
})

test('what is set as a secret is not written either, nor what own patterns find, nor media', async () => {
  const said =
    'password: hunter22hunter, Authorization: Bearer abc.def-ghi, postgres://me:swordfish1@db/x, EMP-1234 stays? no'
  const patterns = [{ name: 'STAFF', pattern: 'emp-\\d{4,8}', ignore_case: true }]
  const { text } = await logged({ patterns }, said)
  for (const hidden of ['hunter22', 'abc.def', 'swordfish1', 'EMP-1234']) expect(text).not.toContain(hidden)
  expect(text).toContain('[STAFF] stays? no')
  const folder = newFolder()
  const tested = await openPlugin(logPayloads, { options: { folder } })
  const parts = [{ type: 'image' as const, media_type: 'image/png', data: 'A'.repeat(5_000) }]
  const tool = { type: 'tool_call' as const, id: 'c', name: 'login', arguments: '{"password":"hunter22"}' }
  const messages = [{ role: 'user' as const, parts: [...parts, tool] }]
  await tested.call({
    request: { operation: 'chat', chat: { model: 'm', messages, extensions: { api_key: 'short' } } },
  })
  await tested[Symbol.asyncDispose]()
  expect(linesIn(folder)[0]).toMatchObject({
    request: {
      messages: [
        { parts: [{ data: '[5000 characters of data]' }, { arguments: expect.not.stringContaining('hunter22') }] },
      ],
      extensions: { api_key: '[secret]' },
    },
  })
})

test('long texts are told by their length', async () => {
  const { lines } = await logged({ max_entry_bytes: 2_000 }, 'x'.repeat(2_001))
  expect(lines[0]).toMatchObject({ request: { messages: [{ parts: [{ text: '[2001 characters]' }] }] } })
})

test.each([
  [
    'one after the other',
    async (call: (n: number) => Promise<unknown>) => {
      for (let n = 0; n < 60; n++) await call(n)
    },
  ],
  [
    'at once',
    async (call: (n: number) => Promise<unknown>) => {
      await Promise.all(Array.from({ length: 60 }, (_, n) => call(n)))
    },
  ],
])('full files are followed by others, and the oldest are deleted: calls %s', async (_, callAll) => {
  const folder = newFolder()
  const tested = await openPlugin(logPayloads, {
    options: { folder, max_file_bytes: 20_000, max_bytes: 50_000, requests: true, replies: false },
  })
  await callAll(async (n) => {
    await tested.call({ text: `call ${n} ${'x'.repeat(2_000)}` })
    await new Promise((resolve) => setTimeout(resolve, 2))
  })
  await tested[Symbol.asyncDispose]()
  const sizes = namesIn(folder).map((name) => statSync(join(folder, name)).size)
  expect(sizes.length).toBeGreaterThan(1)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(20_000)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(50_000)
  expect(textIn(folder)).toContain('call 59 ')
  expect(textIn(folder)).not.toContain('call 0 ')
})

test('old files are deleted, and no others', async () => {
  const folder = join(folderOf({ 'payloads/notes.txt': '' }), 'payloads')
  const old = join(folder, '2020-01-01T00-00-00.000Z-1-0-1.jsonl')
  for (const path of [old, join(folder, 'notes.txt')]) {
    writeFileSync(path, '')
    utimesSync(path, new Date(0), new Date(0))
  }
  const tested = await openPlugin(logPayloads, { options: { folder } })
  await tested[Symbol.asyncDispose]()
  expect(namesIn(folder)).toEqual(['notes.txt'])
})

test('of too many that wait some are left out, and the log says how many', async () => {
  const folder = newFolder()
  const tested = await openPlugin(logPayloads, { options: { folder, max_waiting: 5 } })
  await Promise.all(Array.from({ length: 20 }, () => tested.call()))
  await tested[Symbol.asyncDispose]()
  expect(linesIn(folder).length).toBeLessThan(60)
  const leftOut = tested.logged.reduce((sum, { facts }) => sum + Number(facts.left_out ?? 0), 0)
  expect(leftOut).toBe(60 - linesIn(folder).length)
})

test('the content of an end user is overwritten, while files are written to, and the age of the files stays', async () => {
  const folder = newFolder()
  const tested = await openPlugin(logPayloads, { options: { folder } })
  const said = (user: string, id: string, text: string) => tested.call({ text, facts: { user, id } })
  await said('ann', 'call-1', 'first of ann')
  await said('bob', 'call-2', 'ann is a name that Bob uses')
  await expect.poll(() => textIn(folder)).toContain('"id":"call-2","at"')
  await expect.poll(() => linesIn(folder).length).toBe(6)
  const path = join(folder, namesIn(folder)[0] ?? '')
  const written = new Date(Date.now() - 3_600_000)
  utimesSync(path, written, written)
  const { find, deleteOf } = tested.hooks.content ?? expect.fail('no content')
  const organization = 'organization-1'
  expect(await deleteOf({ organization: 'organization-2', user: 'ann' })).toBe(0)
  expect(await deleteOf({ organization, user: 'ann' })).toBe(1)
  expect(statSync(path).mtimeMs).toBe(written.getTime())
  await said('ann', 'call-3', 'again')
  await tested[Symbol.asyncDispose]()
  expect(textIn(folder)).not.toContain('first of ann')
  expect(linesIn(folder).map(({ id }) => id)).toEqual([...Array(3).fill('call-2'), ...Array(3).fill('call-3')])
  const when = { organization, at: Date.now() - 5_000, durationMs: 5_000 }
  expect(await find({ id: 'call-1', ...when })).toBeUndefined()
  expect(await find({ id: 'call-3', ...when })).toMatchObject({
    request: { messages: [{ parts: [{ text: 'again' }] }] },
  })
  expect(await find({ id: 'call-3', ...when, organization: 'organization-2' })).toBeUndefined()
  expect(await find({ id: 'call-3', organization, at: Date.now() - 90_000_000, durationMs: 5 })).toBeUndefined()
})

test('the size of a request that was too long is known', async () => {
  const folder = newFolder()
  const long = await openPlugin(logPayloads, { options: { folder, max_entry_bytes: 1_000 } })
  const chat = { model: 'm', messages: Array.from({ length: 60 }, () => ({ role: 'user' as const, parts: [] })) }
  await long.call({ request: { operation: 'chat', chat } })
  await long[Symbol.asyncDispose]()
  const found = await long.hooks.content?.find({
    id: 'call-1',
    organization: 'organization-1',
    at: Date.now() - 1_000,
    durationMs: 1_000,
  })
  expect(found).toMatchObject({ omittedBytes: expect.any(Number), reply: expect.anything() })
  expect(found).not.toHaveProperty('request')
})

test('wrong options are told', async () => {
  const problem = (options: object) => openPlugin(logPayloads, { options }).catch(String)
  expect(await problem({})).toContain('folder')
  expect(await problem({ folder: newFolder(), patterns: [{ name: 'A', pattern: 'x+' }] })).toContain(
    "the pattern 'A' repeats",
  )
  expect(await problem({ folder: '/dev/null/x' })).toContain('/dev/null/x')
})

const open: PluginWorld[] = []
afterAll(async () => {
  for (const world of open) await world.end()
})

test('through the router: whole, streamed, and failed calls', async () => {
  const folder = newFolder()
  const world = await pluginWorld({}, { settings: { plugins: [{ name: 'log-payloads', options: { folder } }] } })
  open.push(world)
  await world.ask()
  await world.ask({ stream: true })
  world.steps.one.push((response) => void response.writeHead(500).end('{}'))
  await world.ask()
  await expect.poll(() => linesIn(folder).length).toBe(8)
  const of = (kind: string) => linesIn(folder).filter((line) => line.kind === kind)
  expect(of('reply').map(({ reply }) => reply.parts[0].text)).toEqual(['Hi you.', 'Hi you.'])
  expect(of('end').map(({ status }) => status)).toEqual([200, 200, 502])
  expect(new Set(of('end').map(({ id }) => id))).toEqual(new Set((await world.rows()).map(({ id }) => id)))
})
