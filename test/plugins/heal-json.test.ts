import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import healJson from '../../plugins/heal-json/index.ts'
import { repairJson } from '../../plugins/heal-json/repair.ts'
import type { PluginRequest } from '../../src/plugin/contract.ts'
import { openPlugin } from '../../src/plugin/test-kit.ts'
import { says } from '../e2e/plugins/plugin-world.ts'
import { expectLinear } from '../helpers/time.ts'
import { type ShippedWorld, shippedWorld } from './shipped-world.ts'

const fence = '```'

test.each([
  [`${fence}json\n{"a": 1}\n${fence}`, { a: 1 }],
  [`Here you are:\n${fence}\n{"a": [1, 2,],}\n${fence}\nAnything else?`, { a: [1, 2] }],
  ['Sure! {"a": "b"} Hope this helps.', { a: 'b' }],
  ["{'a': 'it is \"so\"', b: True, c: None}", { a: 'it is "so"', b: true, c: null }],
  ['{"a": 1 /* one */, // two\n "b": 2 # three\n}', { a: 1, b: 2 }],
  ['{"a": 1 "b": 2}', { a: 1, b: 2 }],
  ['{"a": "x" b: "y"}', { a: 'x', b: 'y' }],
  ['{"a": "he said "hi" to me", "b": "it"s"}', { a: 'he said "hi" to me', b: 'it"s' }],
  ["{'a': 'it's so', 'b': ['x' 'y']}", { a: "it's so", b: ['x', 'y'] }],
  ['{"a": {"b": [1, {"c": "cut of', { a: { b: [1, { c: 'cut of' }] } }],
  ['{"a": 1, "b": 12', { a: 1 }],
  ['{"a": 1, "b": tr', { a: 1 }],
  ['{"a": 1, "b"', { a: 1 }],
  ['{"a": "x\\', { a: 'x' }],
  ['{"a": "line\nbreak"}', { a: 'line\nbreak' }],
  ['{“a”: .5, "b": +1}', { a: 0.5, b: 1 }],
])('repairs %j', (text, value) => expect(JSON.parse(repairJson(text) ?? '')).toEqual(value))

test.each(['I cannot do that.', '', '{hello world}', '{"a": hello there}'])('leaves %j alone', (text) =>
  expect(repairJson(text)).toBeUndefined(),
)

test('leaves JSON as it is, and closes whatever is cut off', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(), (value, cut) => {
      const text = JSON.stringify({ value })
      expect(repairJson(text)).toBe(text)
      const repaired = repairJson(text.slice(0, 1 + (cut % text.length)))
      expect(repaired).toBeDefined()
      expect(typeof JSON.parse(repaired ?? 'null')).toBe('object')
    }),
  )
})

test.each(['[', '{"a":', "{'", '/*', '```\n', '"\\'])('a megabyte of %j takes no long time', (unit) => {
  // 16 times the text: what is quadratic takes 256 times as long.
  const sizes = { small: 65_536, large: 1_048_576, slack: 5, floorMs: 750 }
  expectLinear((size) => void repairJson(`{"a": ${unit.repeat(size / unit.length)}`), sizes)
})

const request = (type: 'json' | 'text'): PluginRequest => ({
  operation: 'chat',
  chat: { model: 'acme/model', messages: [], response_format: { type } },
})

test.each([false, [3]])('only where JSON was asked for: stream %j', async (stream) => {
  await using tested = await openPlugin(healJson)
  const answer = '{"a": 1,}'
  expect((await tested.call({ request: request('json'), answer, stream })).text).toBe('{"a":1}')
  expect((await tested.call({ request: request('text'), answer, stream })).text).toBe(answer)
  expect(tested.logged.map(({ message }) => message)).toEqual(['repaired an answer that should be JSON'])
})

let world: ShippedWorld | undefined
afterAll(() => world?.end())

test.each([false, true])('heal-json through a router: stream %s', async (stream) => {
  world ??= await shippedWorld(() => [{ name: 'heal-json' }])
  const body = { messages: [{ role: 'user', content: 'JSON' }], response_format: { type: 'json_object' }, stream }
  world.steps.push(says('```json\n{"a"', ': 1,}\n', '```'), says('{"a": ', '1}'))
  const healed = await world.ask(body)
  expect([healed.content, healed.headers.get('x-router-healed')]).toEqual(['{"a":1}', stream ? null : '1'])
  const whole = await world.ask(body)
  expect([whole.content, whole.headers.get('x-router-healed')]).toEqual(['{"a": 1}', null])
})

test('the test kit tells the header of a whole answer', async () => {
  await using tested = await openPlugin(healJson)
  const { headers } = await tested.call({ request: request('json'), answer: '{a: 1}' })
  expect(headers).toEqual({ 'x-router-healed': '1' })
})
