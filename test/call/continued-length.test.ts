import { expect, test } from 'vitest'
import { responses } from '../../src/api/responses/api.ts'
import { sentTo } from '../helpers/sent.ts'

// A response that continues a stored one is read anew from its own items: the length that the caller can pay for must survive that.

const changed = { reasoning: { effort: 'minimal' } }

test.each([
  ['openai-responses/gpt-5.4', { previous_response_id: 'resp_1' }],
  ['openai-responses/gpt-5.4', { conversation: 'conv_1' }],
])(
  'the length of a reply at %s stays what the caller can pay for where other fields are written anew: %j',
  async (id, state) => {
    const { body, names } = await sentTo(
      id,
      responses,
      { input: 'Hi', max_output_tokens: 100_000, ...changed, ...state },
      500,
    )
    expect(names).toContain('reasoning.effort')
    expect(body).toMatchObject({ max_output_tokens: 500, ...state })
  },
)
