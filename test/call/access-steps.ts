import { request } from 'node:http'
import { expect } from 'vitest'
import { within } from '../helpers/provider.ts'
import { testKey } from '../helpers/router.ts'
import type { Route } from './examples.ts'
import { forms, type Scenario, type Step } from './table.ts'
import { type Answer, bodyOf, bytesOf, callWorld, plainWorld, type World } from './world.ts'

// Authentication, and the bounds of bodies.

/** The status, the code and the field of an error. */
export function refusal({ status, json }: Answer): [status: number, code: unknown, param: unknown] {
  // The Messages API has a type in place of a code, and the router's words beside it.
  return [status, json?.error?.code, json?.error?.param]
}

/** Expects that a call is refused and that no provider was asked. */
async function expectRefused(world: World, asked: Promise<Answer>, status: number, code: string): Promise<void> {
  const answer = await asked
  expect([answer.status, answer.json?.error?.code]).toEqual([status, code])
  expect(world.received).toEqual([])
}

/** Revokes a key. */
export async function revoke(world: World, id: string): Promise<void> {
  const response = await fetch(`${world.router.url}/v1/manage/apikey/${id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${testKey}` },
  })
  expect(response.status).toBe(204)
}

const who: readonly Step[] = [
  {
    fact: 'a call without a key is refused with 401',
    check: (route, world) => expectRefused(world, world.ask(route), 401, 'missing_key'),
  },
  {
    fact: 'a call with an unknown key is refused with 403',
    check: (route, world) => expectRefused(world, world.ask(route, { secret: 'ir-nobody' }), 403, 'invalid_key'),
  },
  {
    fact: 'a call with a revoked key is refused with 403',
    async check(route, world) {
      const { id, secret } = await world.key()
      await revoke(world, id)
      await expectRefused(world, world.ask(route, { secret }), 403, 'invalid_key')
    },
  },
  {
    fact: 'a call with an expired key is refused with 403',
    check: async (route, world) =>
      expectRefused(
        world,
        world.ask(route, { secret: (await world.key({ expiresAt: 1 })).secret }),
        403,
        'invalid_key',
      ),
  },
  {
    fact: 'a call with a key that may not write completions is refused with 403',
    async check(route, world) {
      for (const completions of ['none', 'read'] as const) {
        const { secret } = await world.key({ permissions: { completions, manage: 'write' } })
        await expectRefused(world, world.ask(route, { secret }), 403, 'forbidden')
      }
    },
  },
  {
    fact: 'a key that is revoked while the body is on its way is refused with 403',
    async check(route, world) {
      const { id, secret } = await world.key()
      const { bytes, type } = await bytesOf(route)
      const sent = Promise.withResolvers<number | undefined>()
      const call = request(
        world.router.url + route.path,
        {
          method: 'POST',
          headers: {
            ...{ authorization: `Bearer ${secret}`, 'content-type': type, 'content-length': bytes.length },
            expect: '100-continue',
          },
        },
        (response) => {
          response.resume()
          sent.resolve(response.statusCode)
        },
      )
      call.on('error', sent.reject)
      const begun = Promise.withResolvers<void>()
      // The router sends this when the request has reached it.
      call.on('continue', begun.resolve)
      call.flushHeaders()
      await within(5_000, 'to reach the router', begun.promise)
      call.write(bytes.subarray(0, 10))
      await revoke(world, id)
      call.end(bytes.subarray(10))
      expect(await within(5_000, 'the answer', sent.promise)).toBe(403)
      expect(world.received).toEqual([])
    },
  },
]

export const authentication: Scenario = { name: 'authentication', start: plainWorld, steps: who }

const values = (count: number) => Array.from({ length: count }, () => 0)
const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
const noDepth = forms('a form has fields, which have no levels')
const mostUnknown = 10

/** Sends a text as a body. */
async function sendText(route: Route, world: World, text: string, type?: string): Promise<Answer> {
  const { secret } = await world.key()
  return await world.ask(route, { secret, raw: { text, ...(type !== undefined && { type }) } })
}

/** A request with JSON in a text, as its API has it: the arguments of a call, a field of a form. */
function withArguments(route: Route, text: string): object | undefined {
  if (route.file) return { chunking_strategy: text }
  const call = { type: 'function_call', call_id: 'c1', name: 'f', arguments: text }
  const { input, messages } = route.body
  const turns = Array.isArray(input) || Array.isArray(messages)
  if (!turns && route.models !== 'decision') return undefined
  if (route.models === 'decision')
    return { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }, call] }
  if (Array.isArray(input)) return { input: [...input, call] }
  const chat = { id: 'c1', type: 'function', function: { name: 'f', arguments: text } }
  return { messages: [...(messages as []), { role: 'assistant', tool_calls: [chat] }] }
}

const argumentsAreJson = {
  at: (route: Route) => route.path.startsWith('/v1/messages'),
  because: 'the arguments of its calls are members of the body, which are counted with it',
}

const bodies: readonly Step[] = [
  {
    fact: 'a body that is too large is refused with 413',
    check: async (route, world) => {
      const { secret } = await world.key()
      return expectRefused(world, world.ask(route, { secret, body: { x: 'x'.repeat(300_000) } }), 413, 'too_large')
    },
    except: [
      forms('a form may be as large as its files', async (route, world) => {
        const { secret } = await world.key()
        await expectRefused(world, world.ask(route, { secret, body: { x: 'x'.repeat(1_100_000) } }), 413, 'too_large')
      }),
    ],
  },
  {
    fact: 'a body with more than max_values values is refused with 400',
    async check(route, world) {
      const { secret } = await world.key()
      const { status, json } = await world.ask(route, { secret, body: { x: values(3_000) } })
      expect([status, json?.error?.message]).toEqual([400, expect.stringMatching(/1000 values.*max_values/)])
      expect(world.received).toEqual([])
    },
    except: [
      forms('a form has at most 1,000 fields', async (route, world) => {
        const { secret } = await world.key()
        const { status } = await world.ask(route, { secret, body: { x: values(3_000) } })
        expect([400, 413]).toContain(status)
        expect(world.received).toEqual([])
      }),
    ],
  },
  {
    fact: 'a body with more than 200 levels is refused with 400',
    check: async (route, world) => {
      const { secret } = await world.key()
      return expectRefused(world, world.ask(route, { secret, body: { x: nested(201) } }), 400, 'invalid_request')
    },
    except: [noDepth],
  },
  {
    fact: 'JSON inside of a text with more than max_values values is refused with 400',
    async check(route, world) {
      const { secret } = await world.key()
      const body = withArguments(route, JSON.stringify({ type: 'server_vad', list: values(3_000) })) as Record<
        string,
        never
      >
      const { status, json } = await world.ask(route, { secret, body })
      expect([status, json?.error?.message]).toEqual([400, expect.stringMatching(/1000 values.*max_values/)])
      expect(world.received).toEqual([])
    },
    except: [
      argumentsAreJson,
      { at: (route) => withArguments(route, '{}') === undefined, because: 'no text in it is JSON' },
    ],
  },
  {
    fact: 'a body with more fields that the API does not have than max_unknown_fields is refused with 400',
    async check(route, world) {
      const { secret } = await world.key()
      const body = Object.fromEntries(values(mostUnknown + 1).map((_, index) => [`unknown_${index}`, 'x']))
      const { status, json } = await world.ask(route, { secret, body })
      expect([status, json?.error?.message]).toEqual([400, expect.stringContaining('max_unknown_fields')])
      expect(world.received).toEqual([])
    },
  },
  {
    fact: 'a body that is no JSON is refused with 400',
    async check(route, world) {
      const answer = await sendText(route, world, '{"model": ', 'application/json')
      expect(refusal(answer).slice(0, 2)).toEqual([400, 'invalid_request'])
      expect(world.received).toEqual([])
    },
    except: [forms('it takes forms alone, so that JSON of any kind is 415')],
  },
  {
    fact: 'a body of another type is refused with 415',
    async check(route, world) {
      for (const type of ['text/plain', undefined]) {
        const { body } = bodyOf(route, {})
        const text = typeof body === 'string' ? body : '{}'
        expect(refusal(await sendText(route, world, text, type)).slice(0, 2)).toEqual([415, 'unsupported_media_type'])
      }
      expect(world.received).toEqual([])
    },
  },
  {
    fact: 'a body without a model is refused with 400 that names the field',
    async check(route, world) {
      const { secret } = await world.key()
      const answer = await world.ask(route, { secret, body: { model: undefined } })
      expect(refusal(answer)).toEqual([400, 'invalid_request', 'model'])
    },
  },
  ...['x-router-strict', 'x-router-explain', 'x-router-timeout', 'x-router-tags'].map(
    (header): Step => ({
      fact: `an invalid value of ${header} is refused with 400 that names the header`,
      async check(route, world) {
        const { secret } = await world.key()
        const answer = await world.ask(route, { secret, headers: { [header]: '=?' } })
        expect(refusal(answer)).toEqual([400, 'invalid_request', header])
        expect(world.received).toEqual([])
      },
    }),
  ),
]

/** Small bounds, so that small bodies are too large. */
export const bodyBounds: Scenario = {
  name: 'bounds of bodies',
  start() {
    const server = { host: '127.0.0.1', port: 0, threads: 1 }
    const bounds = { body_limit: '200kb', max_values: 1_000, max_unknown_fields: mostUnknown }
    return callWorld({ settings: { server: { ...server, ...bounds } } })
  },
  steps: bodies,
}
