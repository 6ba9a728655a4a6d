import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isObject, type Json } from '../../src/core/json.ts'
import { type Case, readCaseFiles } from './read-cases.ts'
import { type Called, openStage, type Stage } from './stage.ts'

describe.each(readCaseFiles())('$file', (file) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage(file)
  })
  afterAll(async () => {
    await stage?.end()
  })

  test.each(file.cases)('$name', async (one) => {
    if (one.reply || !one.events) {
      const called = await stage.call(one)
      expectCall(one, called)
      if (one.path) expect(called.received?.path, 'path').toBe(one.path)
    }
    if (one.events) expectCall(one, await stage.call(one, { stream: true }))
    expectStrict(one, await stage.call(one, { strict: true }))
  })
})

/** Checks the request that the provider received, the fields that were reported as dropped, and the client's reply. */
function expectCall(one: Case, { status, dropped, answer, received }: Called): void {
  expect([status, status === 200 ? '' : answer]).toEqual([200, ''])
  expect(dropped.sort(), 'dropped').toEqual([...one.dropped].sort())
  const { body, headers } = received ?? {}
  if (one.sent) expect(body, 'sent').toMatchObject(one.sent)
  if (one.sent_exactly)
    expect({ ...body, stream: false }, 'sent_exactly').toEqual({ ...one.sent_exactly, stream: false })
  for (const place of one.not_sent) expect(at(body, place), `not_sent: ${place}`).toBeUndefined()
  if (one.sent_headers) expect(headers, 'sent_headers').toMatchObject(one.sent_headers)
  if (one.answer) expect(answer, 'answer').toMatchObject(one.answer)
}

/** Checks that a strict call is refused before the provider is called, if and only if something would be dropped. */
function expectStrict(one: Case, { status, answer, received }: Called): void {
  if (one.dropped.length === 0) {
    expect([status, status === 200 ? '' : answer], 'strict').toEqual([200, ''])
    return
  }
  expect([status, received], 'strict').toEqual([400, undefined])
  for (const field of one.dropped) expect(answer.error.message, 'strict').toContain(field)
}

/** Returns the value at a path of member names and indexes. */
function at(value: Json | undefined, place: string): Json | undefined {
  return place
    .split('.')
    .reduce<Json | undefined>(
      (part, name) => (isObject(part) || Array.isArray(part) ? (part as { [name: string]: Json })[name] : undefined),
      value,
    )
}
