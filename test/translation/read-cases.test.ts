import { expect, test } from 'vitest'
import { readCases } from './read-cases.ts'

const good = `
  - name: hello
    client: chat
    model: openai/gpt-4o
    request: {}
    sent: { model: gpt-4o }`

test('a case file is read, with what it leaves out', () => {
  expect(readCases('x.yaml', `cases:${good}`)).toEqual({
    file: 'x.yaml',
    models: {},
    cases: [
      {
        name: 'hello',
        client: 'chat',
        model: 'openai/gpt-4o',
        request: {},
        sent: { model: 'gpt-4o' },
        not_sent: [],
        dropped: [],
      },
    ],
  })
})

test.each([
  ['a member that does not exist', good.replace('sent:', 'sends:'), /x\.yaml, case "hello": .*'sends'/],
  ['a member that is missing', good.replace('client: chat', ''), /x\.yaml, case "hello": 'client' is missing/],
  ['a client that does not exist', good.replace('chat', 'telnet'), /x\.yaml, case "hello": 'client' must be chat, /],
  [
    'a model without its provider',
    good.replace('openai/', ''),
    /x\.yaml, case "hello": 'model' must be provider\/model/,
  ],
  ['two cases of one name', good + good, /x\.yaml, case "hello": there are two/],
  [
    'a case without a name',
    good.replace('name: hello', 'client: chat').replace('    client: chat\n', ''),
    /x\.yaml, case number 1: 'name'/,
  ],
  ['a reply without an answer', `${good}\n    reply: {}`, /x\.yaml, case "hello": 'answer' goes with/],
  ['an answer without a reply', `${good}\n    answer: {}`, /x\.yaml, case "hello": 'answer' goes with/],
  ['a case that expects nothing', good.replace(/\n +sent.*/, ''), /x\.yaml, case "hello": expects nothing/],
  ['text that is not YAML', ' [', /^x\.yaml: /],
  ['no cases', ' []', /x\.yaml: 'cases' must be a list/],
])('%s is an error that names the file and the case', (_, cases, message) => {
  expect(() => readCases('x.yaml', `cases:${cases}`)).toThrow(message)
})
