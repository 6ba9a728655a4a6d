import { expect, test } from 'vitest'
import type { Api, NeutralRequest } from '../../src/core/request.ts'
import { demanding } from '../../src/manifest/run/unsupported.ts'

const from = (api: Api) => ({ user: 'u-1', messages: [], origin: { api, body: {} } }) as unknown as NeutralRequest

test('the metadata of Messages, which the router records, is not named as dropped', () => {
  expect(demanding(['user', 'seed'], from('messages'))).toEqual(['seed'])
  for (const api of ['chat', 'responses'] as const) expect(demanding(['user'], from(api))).toEqual(['user'])
})
