import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readJsonArray } from '../../src/wire/json-array.ts'
import { cutAt, everyCut, read, readUntilFailure } from './frames.ts'

const items = [
  { text: 'für 🐧, "quoted" \\ }] [{ \u0000' },
  { nested: [{ a: [] }, [[{}]]], escaped: '\\"', last: '\\\\' },
  {},
]
const whole = (list: unknown[], indent?: number) => Buffer.from(JSON.stringify(list, null, indent))
const parsed = async (pieces: Uint8Array[]) =>
  (await read(readJsonArray, pieces)).map(({ data }) => JSON.parse(data) as unknown)

test('each object of the array is a frame, as soon as it is whole', async () => {
  const batches: string[][] = []
  const pieces = ['[', '{"n":1', '}', '\r\n,\r\n{"n":2},{"n":', '3}', ']', '\n'].map((text) => Buffer.from(text))
  const reader = readJsonArray()
  for (const piece of pieces) batches.push(reader.take(piece).map(({ data }) => data))
  expect(batches).toEqual([[], [], ['{"n":1}'], ['{"n":2}'], ['{"n":3}'], [], []])
})

test('strings with brackets and escapes do not end an object, wherever the bytes are cut', async () => {
  for (const indent of [0, 2]) {
    for (const pieces of everyCut(whole(items, indent))) expect(await parsed(pieces)).toEqual(items)
  }
})

test('any array of objects, cut anywhere, gives its objects', async () => {
  const objects = fc.array(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), { maxLength: 4 })
  const cuts = fc.array(fc.nat(200), { maxLength: 6 })
  const property = fc.asyncProperty(objects, cuts, fc.constantFrom(0, 1), async (list, at, indent) => {
    const bytes = whole(list, indent)
    const inside = at.filter((cut) => cut < bytes.length)
    expect(await parsed(cutAt(bytes, inside))).toEqual(JSON.parse(bytes.toString('utf8')))
  })
  await fc.assert(property)
})

test('a document that is one object, as failures are, is one frame', async () => {
  const text = '{"error":{"code":400}}'
  for (const pieces of everyCut(Buffer.from(text))) expect(await read(readJsonArray, pieces)).toEqual([{ data: text }])
})

test('an array that was not closed is whole as far as its objects are', async () => {
  expect(await parsed([Buffer.from('[{"a":1},')])).toEqual([{ a: 1 }])
})

test('a body that ends inside an object is cut, after the objects before it', async () => {
  const { frames, failure } = await readUntilFailure(readJsonArray, [Buffer.from('[{"a":1},{"b":"')])
  expect(frames).toEqual([{ data: '{"a":1}' }])
  expect(failure).toMatchObject({ name: 'FrameError', kind: 'cut' })
})

test('anything but an array of objects is rejected after the objects before it', async () => {
  const { frames, failure } = await readUntilFailure(readJsonArray, [Buffer.from('[{"a":1},{"b":2} oops')])
  expect(frames).toEqual([{ data: '{"a":1}' }, { data: '{"b":2}' }])
  expect(failure).toMatchObject({ name: 'FrameError', kind: 'unreadable' })
})

test.each([
  ['<html>', /found "<" where an array of objects must begin/],
  ['[1]', /found "1" where an array of objects must have its next object/],
  ['[{}{}]', /must go on or end/],
  ['[{}] x', /has ended/],
  ['{} {}', /has ended/],
])('%s is not readable', async (text, message) => {
  const { failure } = await readUntilFailure(readJsonArray, [Buffer.from(text)])
  expect(failure).toMatchObject({ name: 'FrameError', kind: 'unreadable', message: expect.stringMatching(message) })
})

test('an object that never ends is given up', async () => {
  const endless = Array.from({ length: 9 }, () => Buffer.alloc(1024 * 1024, 'a'))
  const { failure } = await readUntilFailure(readJsonArray, [Buffer.from('[{"a":"'), ...endless])
  expect(failure).toMatchObject({ name: 'FrameError', kind: 'long' })
})
