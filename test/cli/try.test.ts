import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { run, sideBySide } from '../../src/cli/try.ts'
import { acme, folderOf, plainDialect } from '../manifest/files.ts'
import { ran } from './running.ts'

const own = resolve(import.meta.dirname, '../../providers')

function project(files: { [path: string]: string }) {
  const folder = folderOf({
    'config.yaml': '',
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': `${acme}traits: [{ match: ^big, facts: {} }]\n`,
    'catalog/acme.yaml': 'provider: acme\nmodels: { m: { api: chat, max_output_tokens: 7 } }\n',
    ...files,
  })
  const trial = async (...args: string[]) => {
    const { code, stdout, stderr } = await ran(run, ...args, '--json', '--config', join(folder, 'config.yaml'))
    return { code, stderr, trials: code === 0 ? JSON.parse(stdout) : undefined }
  }
  return { folder, at: (path: string) => join(folder, path), trial }
}

const neutral = '{"model": "m", "messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}], "seed": 1}'
const chat = '{"model": "acme/m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "frob": 1}'

test('a neutral request and one of the chat API become the provider’s request', async () => {
  const { at, trial } = project({ 'n.json': neutral, 'c.json': chat })
  expect(await trial('acme', '--request', at('n.json'))).toMatchObject({
    code: 0,
    trials: [{ steps: [{ output: { model: 'm', lines: ['hi'] } }], notes: { dropped: ['seed'] } }],
  })
  expect((await trial('acme', '--request', at('c.json'))).trials).toMatchObject([
    { steps: [{ output: { model: 'm', lines: ['hi'], limit: 5 } }], notes: { dropped: ['frob'] } },
  ])
  expect((await trial('acme', '--request', at('c.json'), '--model', 'n')).trials[0].steps[0].output.model).toBe('n')
})

test('a request of the provider\u2019s own format is edited, as the router would', async () => {
  const { at, trial } = project({ 'c.json': chat })
  expect((await trial(join(own, 'openai.yaml'), '--request', at('c.json'))).trials).toMatchObject([
    {
      name: 'request (same format: edited)',
      steps: [{ output: { frob: 1, messages: [{ role: 'user', content: 'hi' }] } }],
    },
  ])
})

test('an answer becomes a reply', async () => {
  const { at, trial } = project({ 'a.yaml': 'said: yes\nout: 3\n' })
  expect((await trial('plain', '--reply', at('a.yaml'))).trials).toMatchObject([
    { steps: [{ output: { parts: [{ type: 'text', text: 'yes' }], finish: 'stop', usage: { output: 3 } } }] },
  ])
})

test.each([
  ['server-sent events', 'data: {"kind":"piece","said":"a"}\n\ndata: {"kind":"end","out":1}\n\ndata: END\n\n'],
  ['one JSON per line', '{"kind":"piece","said":"a"}\n{"kind":"end","out":1}\n'],
  ['a list', '[{"kind":"piece","said":"a"},{"kind":"end","out":1}]'],
  ['named events', 'event: x\ndata: {"kind":"piece","said":"a"}\n\nevent: y\ndata: {"kind":"end","out":1}\n\n'],
])('a stream of %s is shown event by event, with what it adds up to', async (_, text) => {
  const { at, trial } = project({ stream: text })
  const { trials } = await trial('acme', '--stream', at('stream'))
  expect(trials[0].steps[0].output).toEqual([{ text: 'a' }])
  expect(trials[0].notes).toMatchObject({ means: { parts: [{ text: 'a' }], usage: { output: 1 } }, complete: true })
})

test('without an input the examples are tried', async () => {
  const { trial } = project({
    'providers/acme.yaml': `${acme}examples: [{ name: one, answers: { said: a }, means: { finish: stop } }]\n`,
  })
  expect((await trial('acme')).trials).toMatchObject([{ name: 'one: reply', steps: [{ input: { said: 'a' } }] }])
})

test('--explain shows the code of each mapping of the manifest and its dialect', async () => {
  const { folder, trial } = project({
    'providers/acme.yaml': `${acme}endpoints: { chat: { patch: { reply: '$eval("$")' } } }\n`,
  })
  const { trials } = await trial('acme', '--explain')
  expect(trials).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        name: 'endpoints.chat.request',
        compiled: true,
        code: expect.stringContaining('return (input, bindings) => {'),
      }),
      expect.objectContaining({ name: 'endpoints.chat.patch.reply', compiled: false, construct: '$eval' }),
    ]),
  )
  const { stdout } = await ran(run, 'acme', '--explain', '--config', join(folder, 'config.yaml'))
  expect(stdout).toMatch(/^── endpoints\.chat\.request \(plain\.yaml:7\)\nconst /)
  expect(stdout).toContain('── endpoints.chat.patch.reply (acme.yaml:6)\n// Interpreted: $eval is not compiled.\n')
})

test('the two sides are printed side by side', async () => {
  expect(sideBySide({ a: 1 }, 'b', 43)).toBe(
    '{                    │ b\n  "a": 1             │\n}                    │\n',
  )
  expect(sideBySide('x'.repeat(25), '', 43).split('\n')[1]).toMatch(/^x{5} +│$/)
  const { folder, at } = project({ 'n.json': neutral })
  const { stdout } = await ran(run, 'acme', '--request', at('n.json'), '--config', join(folder, 'config.yaml'))
  expect(stdout).toMatch(/"model": "m",\s+│ {3}"model": "m",/)
  expect(stdout).toContain('dropped: [\n  "seed"\n]')
})

test('errors are reported: exit code 1 for files, 2 for wrong usage', async () => {
  const { at, trial } = project({ 'providers/broken.yaml': 'slug: broken\n', 'bad.json': '{"a": ' })
  expect(await trial('broken')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('broken.yaml:1:1: the file needs'),
  })
  expect(await trial('acme', '--reply', at('bad.json'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('bad.json:'),
  })
  expect(await trial('acme', '--reply', at('none.json'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no file'),
  })
  expect(await trial('acme')).toMatchObject({ code: 1, stderr: expect.stringContaining('no examples') })
  expect(await trial('nobody')).toMatchObject({ code: 2 })
  expect(await trial()).toMatchObject({ code: 2 })
  expect(await ran(run, '--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('--stream FILE') })
})
