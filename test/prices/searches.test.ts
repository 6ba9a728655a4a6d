import { expect, test } from 'vitest'
import { shippedFiles } from '../helpers/shipped.ts'

/** No list says what a search by Nova costs. */
const unknown = ['bedrock/amazon.nova-2-lite-v1:0', 'bedrock/us.amazon.nova-2-lite-v1:0']

test('a model that is listed with searches has a price for them', async () => {
  const { catalog } = await shippedFiles()
  const searching = catalog.list().filter(({ entry }) => entry.supports_web_search === true)
  const free = searching.filter(({ entry: { other_prices = {} } }) => {
    return !Object.keys(other_prices).some((name) => /^(web_search_per_call|per_request)(_|$)/.test(name))
  })
  expect(free.map(({ provider, model }) => `${provider}/${model}`)).toEqual(unknown)
  expect(searching.length).toBeGreaterThan(100)
})
