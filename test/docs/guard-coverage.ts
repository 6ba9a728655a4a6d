/**
 * Prints `docs/guard-coverage.md`: what the plugin guard-output covers, found by calling the router for every content, API and format of a
 * provider. `npm run docs:guards`.
 */
import { join } from 'node:path'
import { loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import {
  answer,
  contents,
  type Format,
  formats,
  marker,
  markerData,
  operations,
  sample,
} from './guard-coverage-answers.ts'

/** What became of the word: the client got it; it was masked, refused, or is not there; or the call failed in another way. */
export type Outcome = 'passed' | 'masked' | 'refused' | 'absent' | 'failed'

const actions = ['refuse', 'mask'] as const
type Action = (typeof actions)[number]

/** One cell of a table: what each action does. */
export type Cell = { [action in Action]: Outcome | undefined }

/** The rows of a table by their names, each with a cell for each column. */
export type Coverage = { [content: string]: { [column: string]: Cell } }

const paths: { readonly [format in Format]: string } = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
}
const titles: { readonly [format in Format]: string } = {
  chat: 'Chat Completions',
  responses: 'Responses',
  messages: 'Messages',
}
const forms = ['whole', 'stream'] as const

const price = '[{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000001 }]'
const dialects = { chat: 'openai-chat', responses: 'openai-responses', messages: 'anthropic-messages' } as const
export const manifest = (format: Format, url: string) => `slug: ${format}
name: ${format}
base_url: ${url}/${format}/v1
auth: { scheme: none }
dialect: ${dialects[format]}
${format === 'chat' ? 'endpoints: { complete: {}, transcribe: { stream: {} }, image: { stream: {} }, speech: {} }' : ''}
unknown_models: pass
models:
  m: { api: chat, context_window: 100000, max_output_tokens: 1000, pricing: ${price} }
  picture: { api: image, pricing: ${price} }
  voice: { api: speech, pricing: ${price} }
  ear: { api: transcription, pricing: ${price} }
`

/** Calls the routers with and without the guard for everything that the tables list. */
export async function findCoverage(): Promise<{ chats: Coverage; others: Coverage }> {
  const provider = await loopbackProvider(answer)
  const files = Object.fromEntries(
    formats.map((format) => [`providers/${format}.yaml`, manifest(format, provider.url)]),
  )
  const open = (guard: object[]) =>
    testRouter({
      threads: 1,
      files,
      settings: {
        folders: { plugins: join(import.meta.dirname, '../../plugins') },
        plugins: guard,
        unknown_models: 'pass',
      },
    })
  const guard = (action: Action) => [
    {
      name: 'guard-output',
      options: { deny: [{ words: [marker], action }], ...(action === 'refuse' && { unreadable: 'refuse' }) },
    },
  ]
  const routers = { none: await open([]), refuse: await open(guard('refuse')), mask: await open(guard('mask')) }
  try {
    return { chats: await chatCoverage(routers), others: await operationCoverage(routers) }
  } finally {
    for (const router of Object.values(routers)) await router.end()
    await provider.close()
  }
}

type Routers = { [guard in Action | 'none']: TestRouter }
type Ask = (router: TestRouter) => Promise<Response>

async function chatCoverage(routers: Routers): Promise<Coverage> {
  const coverage: Coverage = {}
  for (const name of Object.keys(contents)) {
    const row: Coverage[string] = {}
    for (const api of formats) {
      for (const form of forms) {
        const cells = formats.map((format) => {
          if (!contents[name]?.(format)) return nothing
          const body = { ...sample(api, name, { stream: form === 'stream' }), model: `${format}/m` }
          return cellOf(routers, (router) => router.call(paths[api], body))
        })
        row[`${titles[api]}, ${form}`] = together(await Promise.all(cells))
      }
    }
    coverage[name] = row
  }
  return coverage
}

async function operationCoverage(routers: Routers): Promise<Coverage> {
  const coverage: Coverage = {}
  for (const [name, { path, model, events }] of Object.entries(operations)) {
    const row: Coverage[string] = {}
    for (const form of forms) {
      const isStream = form === 'stream'
      row[form] =
        isStream && !events
          ? nothing
          : await cellOf(routers, (router) => askOperation(router, { name, path, model, isStream }))
    }
    coverage[name] = row
  }
  return coverage
}

export async function askOperation(
  router: TestRouter,
  { name, path, model, isStream }: { name: string; path: string; model: string; isStream: boolean },
) {
  const prompt = `content:${name}`
  if (path.endsWith('transcriptions')) {
    const form = new FormData()
    form.append('file', new Blob([silence()], { type: 'audio/wav' }), 'a.wav')
    for (const [field, value] of Object.entries({ model, prompt, ...(isStream && { stream: 'true' }) }))
      form.append(field, value)
    const headers = { authorization: 'Bearer ir-test-key-on-loopback' }
    return await fetch(router.url + path, { method: 'POST', headers, body: form })
  }
  const fields = path.endsWith('speech') ? { input: prompt, voice: 'alloy' } : { prompt }
  return await router.call(path, { model, ...fields, ...(isStream && { stream: true }) })
}

/** A tenth of a second of silence. */
function silence(): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.alloc(44 + 1_600)
  bytes.write('RIFF', 0)
  bytes.writeUInt32LE(36 + 1_600, 4)
  bytes.write('WAVEfmt ', 8)
  for (const [at, value, size] of [
    [16, 16, 4],
    [20, 1, 2],
    [22, 1, 2],
    [24, 8_000, 4],
    [28, 16_000, 4],
    [32, 2, 2],
    [34, 16, 2],
  ] as const) {
    if (size === 4) bytes.writeUInt32LE(value, at)
    else bytes.writeUInt16LE(value, at)
  }
  bytes.write('data', 36)
  bytes.writeUInt32LE(1_600, 40)
  return new Uint8Array(bytes)
}

/** The cell of a content that does not occur. */
const nothing: Cell = { refuse: undefined, mask: undefined }

async function cellOf(routers: Routers, ask: Ask): Promise<Cell> {
  const outcome = async (router: TestRouter): Promise<Outcome> => outcomeOf(await (await ask(router)).text())
  if ((await outcome(routers.none)) !== 'passed') return nothing
  const [refuse, mask] = await Promise.all([outcome(routers.refuse), outcome(routers.mask)])
  return { refuse, mask }
}

function outcomeOf(body: string): Outcome {
  const read = /^(?:\{|data:|event:|: )/.test(body) ? textsIn(body) : body
  const has = (word: string) => read.includes(word)
  if (has(marker) || has(markerData)) return 'passed'
  if (has('content_blocked')) return 'refused'
  if (has('[blocked]')) return 'masked'
  return /"(?:error|code)":/.test(body) && !/"error": ?null/.test(body) ? 'failed' : 'absent'
}

/** Returns the strings of an answer, those of the members of one name in the events of a stream as one text. */
function textsIn(body: string): string {
  const found = new Map<string, string>()
  const collect = (value: unknown, name: string) => {
    if (typeof value === 'string') found.set(name, (found.get(name) ?? '') + value)
    else if (typeof value === 'object' && value !== null)
      for (const [member, one] of Object.entries(value))
        if (!repeated.has(member)) collect(one, Array.isArray(value) ? name : member)
  }
  const lines = body.startsWith('{')
    ? [body]
    : body.split('\n').flatMap((line) => /^data: (\{.*)/.exec(line)?.[1] ?? [])
  for (const line of lines) collect(JSON.parse(line), '')
  // Arguments of tools are JSON, which may escape letters.
  const all = [...found.values()].join('\n')
  return `${all}\n${all.replace(/\\u([\da-f]{4})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))}`
}

/** Members of responses that repeat the request. */
const repeated: ReadonlySet<string> = new Set(['tools', 'tool_choice', 'instructions'])

/** Returns the cell of several formats of providers: the least that holds for all that have this content. */
function together(cells: readonly Cell[]): Cell {
  const worst = (action: Action) => {
    const outcomes = cells.map((cell) => cell[action])
    return worstFirst.find((outcome) => outcomes.includes(outcome))
  }
  return { refuse: worst('refuse'), mask: worst('mask') }
}

const worstFirst = ['passed', 'failed', 'absent', 'masked', 'refused'] as const satisfies readonly Outcome[]

/** Returns the page. */
export async function coveragePage(): Promise<string> {
  const { chats, others } = await findCoverage()
  return `# What guard-output covers

This page is generated: \`npm run docs:guards\` calls the router with every content in every API, whole and streamed, for providers of all three formats, and a test
compares the result with this page. [shipped-plugins.md](shipped-plugins.md#guard-output) describes the plugin.

- **refuse, mask**: both actions hold. **refuse**: the answer is refused, but not masked.
- **no**: the client gets it whatever the action is.
- **removed**: with the guard the client does not get this content at all.
- **–**: the API, or this form of it, does not have such content.
- Images and sound cannot be read. They are refused, all of them, only with \`unreadable: refuse\`.

## Conversations

${table(chats)}

## Other operations

${table(others)}
`
}

function table(coverage: Coverage): string {
  const columns = Object.keys(Object.values(coverage)[0] ?? {})
  const rows = Object.entries(coverage).map(([name, row]) => [
    name,
    ...columns.map((column) => shown(row[column] ?? nothing)),
  ])
  const written = [['content', ...columns], columns.concat('').map(() => '---'), ...rows]
  return written.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function shown({ refuse, mask }: Cell): string {
  if (refuse === undefined || mask === undefined) return '–'
  if (refuse === 'failed' || mask === 'failed') throw new Error('a call failed that a guard does not refuse')
  if (refuse === 'absent' && mask === 'absent') return 'removed'
  const held = [
    ...(refuse === 'refused' ? ['refuse'] : []),
    ...(mask === 'masked' ? ['mask'] : mask === 'absent' ? ['removed'] : []),
  ]
  return held.length > 0 ? held.join(', ') : 'no'
}

if (import.meta.main) process.stdout.write(await coveragePage())
