import { expect, test } from 'vitest'
import { dataOf } from '../../src/api/media-address.ts'
import { parseDataUrl } from '../../src/mapping/functions/media.ts'
import { limit, processorTime } from '../helpers/time.ts'

test('the data of a data URL are base64, or become it', () => {
  expect(dataOf('data:image/PNG;name=a;base64,iVBO', 'url')).toEqual({ media_type: 'image/png', data: 'iVBO' })
  expect(dataOf('data:,a%20b', 'url')).toEqual({ media_type: 'text/plain', data: 'YSBi' })
  expect(dataOf('data:,a b', 'url')).toEqual({ media_type: 'text/plain', data: 'YSBi' })
  expect(dataOf('data:,50%', 'url')).toEqual({ media_type: 'text/plain', data: 'NTAl' })
  expect(() => dataOf('data:image/png', 'url')).toThrow("'url' must be a data URL")
})

test('the beginning of a data URL is bounded, however many parameters it has', async () => {
  const parameters = ';'.repeat(30 * 1024 * 1024)
  const url = `data:image/png${parameters};base64,iVBO`
  const { ms } = await processorTime(() => {
    expect(() => dataOf(url, 'url')).toThrow("'url' must be a data URL")
    expect(parseDataUrl(url)).toBeUndefined()
  })
  expect(ms).toBeLessThan(limit(200))
})
