import { expect, test } from 'vitest'
import type { Provider } from '../../src/manifest/provider.ts'
import { urlOf } from '../../src/upstream/provider-request.ts'

const provider = { slug: 'acme', baseUrl: 'https://acme.test/v1/' } as Provider

test.each([
  ['/models/{model}:run', 'm1', 'https://acme.test/v1/models/m1:run'],
  ['/models/{model}:run', 'owner/m 1', 'https://acme.test/v1/models/owner%2Fm%201:run'],
  ['/models/{+model}/predictions', 'owner/m 1', 'https://acme.test/v1/models/owner/m%201/predictions'],
  ['/models/{+model}/predictions', 'owner/a?b#c', 'https://acme.test/v1/models/owner/a%3Fb%23c/predictions'],
  ['/models/{model}', '$&', 'https://acme.test/v1/models/%24%26'],
  ['/chat', '..', 'https://acme.test/v1/chat'],
  ['/models/{model}/x', 'v1..2', 'https://acme.test/v1/models/v1..2/x'],
])('the path %s for the model %s', (path, model, url) => {
  expect(urlOf(provider, path, model)).toBe(url)
})

test.each([
  ['/models/{model}/run', '..'],
  ['/models/{model}/run', '.'],
  ['/models/{+model}/run', '../admin'],
  ['/models/{+model}/run', 'owner/../../admin'],
  ['/models/{+model}/run', 'owner/.'],
  ['/models/{+model}/run', '/admin'],
])('no model leads out of the path %s: %s', (path, model) => {
  expect(() => urlOf(provider, path, model)).toThrow(
    expect.objectContaining({ code: 'model_not_found', param: 'model' }),
  )
})
