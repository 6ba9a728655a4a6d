import { describe, expect, test } from 'vitest'
import { readRouting, withFirstModel } from '../../src/api/router-fields.ts'
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
    [{ session_id: 'x'.repeat(257) }, 'session_id', "'session_id' must be a string of at most 256 characters, not 'x"],
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
      'is not a known price: prompt, completion, request, image.',
    ],
    [{ provider: { allow_fallbacks: 'no' } }, 'provider.allow_fallbacks', "must be true or false, not 'no'."],
    [{ provider: { require_parameters: 1 } }, 'provider.require_parameters', 'must be true or false, not 1.'],
    [
      { provider: { data_collection: 'none' } },
      'provider.data_collection',
      "must be one of 'allow', 'deny', not 'none'.",
    ],
    [
      { provider: { colour: 'red' } },
      'provider.colour',
      "'provider.colour' is not supported by this router; leave it out. Known: order, only, ",
    ],
    [{ provider: { zdr: 'yes' } }, 'provider.zdr', "must be true or false, not 'yes'."],
    [
      { provider: { quantizations: ['fp8'] } },
      'provider.quantizations',
      'this router does not know in which quantization',
    ],
    [{ provider: { enforce_distillable_text: true } }, 'provider.enforce_distillable_text', 'leave it out'],
    [
      { provider: { preferred_max_latency: 'low' } },
      'provider.preferred_max_latency',
      'must be a number of at least 0',
    ],
    [{ provider: { preferred_min_throughput: { p50: -1 } } }, 'provider.preferred_min_throughput.p50', 'at least 0'],
    [{ provider: { sort: { by: 'fame' } } }, 'provider.sort.by', "must be one of 'price'"],
    [
      { provider: { sort: { by: 'price', partition: 'all' } } },
      'provider.sort.partition',
      "must be one of 'model', 'none'",
    ],
  ])('%j → 400 that names the field', (body, param, message) => {
    const refusal = () => readRouting(body)
    expect(refusal).toThrow(RouterError)
    expect(refusal).toThrow(expect.objectContaining({ code: 'invalid_request', param }))
    expect(refusal).toThrow(message)
  })
})

test('members of other routers are known: what is met, what is no more than a wish, and what asks for nothing', () => {
  const nothing = { quantizations: [], enforce_distillable_text: false, zdr: false, preferred_max_latency: null }
  expect(readRouting({ provider: nothing })).toEqual({})
  expect(readRouting({ provider: { zdr: true } })).toEqual({ zeroRetention: true })
  expect(readRouting({ provider: { preferred_max_latency: { p90: 3 }, preferred_min_throughput: 50 } })).toEqual({
    ignored: ['provider.preferred_min_throughput', 'provider.preferred_max_latency'],
  })
  expect(readRouting({ provider: { sort: { by: 'price' } } })).toEqual({ sort: 'price', partition: 'model' })
  expect(readRouting({ provider: { sort: { by: 'latency', partition: 'none' } } })).toEqual({
    sort: 'latency',
    partition: 'none',
  })
})

test('a body that names its models by `models` alone asks for the first of them', () => {
  expect(withFirstModel({ models: ['a/b', 'c/d'] })).toEqual({ model: 'a/b', models: ['a/b', 'c/d'] })
  expect(withFirstModel({ model: 'x/y', models: ['a/b'] })).toEqual({ model: 'x/y', models: ['a/b'] })
  for (const body of [{ models: [] }, { models: 'a/b' }, {}, [], 'text', null])
    expect(withFirstModel(body)).toEqual(body)
})
