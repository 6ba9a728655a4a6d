import { expect, test } from 'vitest'
import { type ErrorCode, RouterError } from '../../src/core/errors.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { attempt } from '../../src/routing/attempts.ts'

const named = (model: string) => ({ provider: {} as Provider, model })
const [a, b, c] = [named('a'), named('b'), named('c')]

/** Tries three targets that end with these errors, or succeed where there is none. */
async function tried(...codes: (ErrorCode | undefined)[]) {
  const requested: string[] = []
  const result = await attempt([a, b, c], async ({ model }) => {
    const code = codes[requested.length]
    requested.push(model)
    return { dropped: [`${model}'s`], ...(code && { error: new RouterError(code, 'It failed.') }) }
  })
  return { requested, result }
}

test('the first target that succeeds is the last one tried', async () => {
  const { requested, result } = await tried('provider_failed', undefined)
  expect(requested).toEqual(['a', 'b'])
  expect(result).toEqual({ target: b, attempts: 2, dropped: ["b's"] })
})

test('an error that every target would share ends the attempts', async () => {
  const { requested, result } = await tried('provider_failed', 'invalid_request')
  expect(requested).toEqual(['a', 'b'])
  expect(result).toMatchObject({ target: b, attempts: 2, dropped: ["b's"], error: { code: 'invalid_request' } })
})

test('when all fail the result is that of the last one, with nothing of the others', async () => {
  const { requested, result } = await tried('provider_failed', 'provider_timeout', 'rate_limited')
  expect(requested).toEqual(['a', 'b', 'c'])
  expect(result).toMatchObject({ target: c, attempts: 3, dropped: ["c's"], error: { code: 'rate_limited' } })
})
