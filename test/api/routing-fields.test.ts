import { describe, expect, test } from 'vitest'
import { readRouting } from '../../src/api/routing-fields.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json.ts'

describe('what a body says of its routing', () => {
  test('is read', () => {
    const body = {
      model: 'a/b',
      models: ['c/d', 'best'],
      route: 'fallback',
      session_id: 's-1',
      provider: {
        order: ['OpenAI'],
        only: ['openai', 'azure'],
        ignore: ['groq'],
        sort: 'latency',
        max_price: { prompt: 1, completion: '2.5', request: 0, image: 0.1 },
        allow_fallbacks: false,
        require_parameters: true,
        data_collection: 'deny',
      },
    }
    expect(readRouting(body, 500)).toEqual({
      models: ['c/d', 'best'],
      sessionId: 's-1',
      order: ['openai'],
      only: ['openai', 'azure'],
      ignore: ['groq'],
      sort: 'latency',
      maxPrice: { prompt: 1, completion: 2.5, request: 0, image: 0.1 },
      allowFallbacks: false,
      requireParameters: true,
      dataCollection: 'deny',
      totalMs: 500,
    })
  })

  test('is nothing where nothing is asked for', () => {
    expect(readRouting({ model: 'a/b' })).toBeUndefined()
    expect(readRouting({ models: null, provider: null, route: null, session_id: null })).toBeUndefined()
    expect(
      readRouting({ models: [], provider: { only: [], zdr: false, quantizations: null }, session_id: '' }),
    ).toEqual({})
    expect(readRouting({ model: 'a/b' }, 500)).toEqual({ totalMs: 500 })
  })

  test.each<[JsonObject, string, string]>([
    [{ models: 'a/b' }, 'models', "'models' must be an array, not 'a/b'."],
    [{ models: ['a/b', 7] }, 'models[1]', "'models[1]' must be a string that is not empty, not 7."],
    [{ models: Array(33).fill('a/b') }, 'models', "'models' has 33 names; at most 32 are allowed."],
    [{ route: 'sort' }, 'route', "'route' must be one of 'fallback', not 'sort'."],
    [{ session_id: 7 }, 'session_id', "'session_id' must be a string, not 7."],
    [{ session_id: 'x'.repeat(257) }, 'session_id', "'session_id' must be a text of at most 256 characters, not 'x"],
    [{ provider: 'openai' }, 'provider', "'provider' must be an object, not 'openai'."],
    [{ provider: { order: 'openai' } }, 'provider.order', "'provider.order' must be an array, not 'openai'."],
    [{ provider: { only: [''] } }, 'provider.only[0]', "'provider.only[0]' must be a string that is not empty"],
    [
      { provider: { sort: 'order' } },
      'provider.sort',
      "'provider.sort' must be one of 'price', 'latency', 'throughput'",
    ],
    [{ provider: { max_price: 1 } }, 'provider.max_price', "'provider.max_price' must be an object, not 1."],
    [
      { provider: { max_price: { prompt: -1 } } },
      'provider.max_price.prompt',
      'must be a number of USD of at least 0, not -1.',
    ],
    [{ provider: { max_price: { prompt: 'free' } } }, 'provider.max_price.prompt', "not 'free'."],
    [
      { provider: { max_price: { audio: 1 } } },
      'provider.max_price.audio',
      'known here: prompt, completion, request, image.',
    ],
    [{ provider: { allow_fallbacks: 'no' } }, 'provider.allow_fallbacks', "must be true or false, not 'no'."],
    [{ provider: { require_parameters: 1 } }, 'provider.require_parameters', 'must be true or false, not 1.'],
    [
      { provider: { data_collection: 'none' } },
      'provider.data_collection',
      "must be one of 'allow', 'deny', not 'none'.",
    ],
    [
      { provider: { zdr: true } },
      'provider.zdr',
      "'provider.zdr' is not supported by this router; known: order, only, ",
    ],
  ])('%j → 400 that names the field', (body, param, message) => {
    const refusal = () => readRouting(body)
    expect(refusal).toThrow(RouterError)
    expect(refusal).toThrow(expect.objectContaining({ code: 'invalid_request', param }))
    expect(refusal).toThrow(message)
  })
})
