import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run as check } from '../../src/cli/check.ts'
import type { Out } from '../../src/cli/command.ts'
import { run as tryMapping } from '../../src/cli/try.ts'
import { readMapping } from '../../src/mapping/mapping.ts'
import { ran } from '../cli/running.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { folderOf } from '../manifest/files.ts'

// The pages for authors of manifests, followed to the letter.

const page = readFileSync(join(import.meta.dirname, '../../docs/add-a-provider.md'), 'utf8')

/** What stands between fences, by what they say: `yaml`, `sh`, `text`, `json`. */
const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, kind = '', text = '']) => ({ kind, text }))

const files: { [path: string]: string } = {}
for (const { kind, text } of blocks) {
  const [, path] = /^# (providers\/\S+\.yaml)\n/.exec(text) ?? []
  if (path) files[path] = text
  if (kind === 'json') files['hello.json'] = text
}

const commands: { [name: string]: (args: string[], out: Out) => Promise<number> } = { check, try: tryMapping }

/** The lines of the page that run the router's commands, each with what the page says it prints, where it does. */
const steps = blocks.flatMap(({ kind, text }, index) => {
  if (kind !== 'sh') return []
  const lines = text.trimEnd().split('\n')
  const next = blocks.slice(index + 1).find((block) => block.kind !== 'json')
  return lines
    .filter((line) => line.startsWith('npm run inference-router -- '))
    .map((line, at) => ({ line, prints: at === lines.length - 1 && next?.kind === 'text' ? next.text : undefined }))
})

test('the page has files and commands of all three ways', () => {
  expect(Object.keys(files).sort()).toEqual([
    'hello.json',
    'providers/hush.yaml',
    'providers/murmur.yaml',
    'providers/quiet.yaml',
  ])
  expect(files['providers/quiet.yaml']?.trimEnd().split('\n').length).toBeLessThanOrEqual(10)
  expect(steps.length).toBeGreaterThan(5)
})

test.each(steps)('$line', async ({ line, prints }) => {
  const folder = folderOf({ ...files, 'config.yaml': '{}' })
  const [name = '', ...words] = line.slice('npm run inference-router -- '.length).split(' ')
  const args = words.map((word) => (files[word] === undefined ? word : join(folder, word)))
  const run = commands[name]
  if (!run) throw new Error(`no command ${name}`)
  const { code, stdout, stderr } = await ran(run, ...args, '--config', join(folder, 'config.yaml'))
  expect([code, stderr]).toEqual([0, ''])
  if (prints !== undefined) expect(stdout.replaceAll(`${folder}/`, '')).toBe(prints)
})

describe('calls of the page', () => {
  let provider: LoopbackProvider
  let router: TestRouter
  beforeAll(async () => {
    provider = await loopbackProvider((request, response) =>
      request.path === '/utter' ? answerJson(response, murmured) : answerJson(response, answered),
    )
    const at = { base_url: provider.url }
    router = await testRouter({
      files,
      providers: { quiet: at, hush: at, murmur: at },
      env: { QUIET_API_KEY: 'quiet-secret', HUSH_API_KEY: 'hush-secret', MURMUR_API_KEY: 'murmur-secret' },
    })
  })
  afterAll(async () => {
    await router.end()
    await provider.close()
  })

  const calls = blocks
    .filter(({ kind }) => kind === 'sh')
    .flatMap(({ text }) => [...text.matchAll(/^curl \S+?:8787(\S+) .*-d '(.*)'$/gm)])
  test.each(calls.map(([line, path = '', body = '']) => ({ line, path, body })))('$line', async ({ path, body }) => {
    const response = await router.call(path, JSON.parse(body))
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      choices: [{ message: { content: 'Hello.' } }],
      usage: { cost: 13e-6 },
    })
    expect(provider.received.at(-1)).toMatchObject({
      headers: { authorization: 'Bearer quiet-secret' },
      body: { model: 'quiet-1' },
    })
  })

  test('the provider of a shape of its own searches the web, and says where it found the answer', async () => {
    const body = { model: 'murmur/murmur-2', messages: [{ role: 'user', content: 'Rain?' }], web_search_options: {} }
    const response = await router.call('/v1/chat/completions', body)
    expect(await response.json()).toMatchObject({
      choices: [
        {
          message: { content: 'It rains.', annotations: [{ url_citation: { url: 'https://a.example/', title: 'A' } }] },
        },
      ],
      usage: { cost: 9 * 5e-7 + 2 * 1.5e-6 + 0.01 },
    })
    expect(provider.received.at(-1)?.body).toMatchObject({ seek: { most: 3 } })
  })
})

const answered = {
  id: 'c1',
  object: 'chat.completion',
  model: 'quiet-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
}
const murmured = {
  utterance: { words: 'It rains.', why: 'done', from: [{ at: 'https://a.example/', called: 'A' }] },
  meter: { heard: 9, spoken: 2, sought: 1 },
}

describe('the patterns of mappings', () => {
  const mappings = readFileSync(join(import.meta.dirname, '../../docs/mapping.md'), 'utf8')
  const table = mappings.slice(mappings.indexOf('## Patterns'), mappings.indexOf('## Functions'))
  const rows = table.split('\n').flatMap((line) => {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
    const [mapping, input, output] = cells.slice(2, 5).map((cell) => /^`(.*)`$/.exec(cell)?.[1])
    return mapping && input && output ? [{ name: cells[1], mapping, input, output }] : []
  })

  test('there are some', () => expect(rows.length).toBeGreaterThan(5))

  test.each(rows)('$name', async ({ mapping, input, output }) => {
    const made = readMapping(mapping)
    expect(made.compiled).toBe(true)
    expect(JSON.parse(JSON.stringify(await made.run(JSON.parse(input))))).toEqual(JSON.parse(output))
  })
})
