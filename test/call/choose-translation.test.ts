import { expect, test } from 'vitest'
import { responses } from '../../src/api/responses/api.ts'
import { translationOf } from '../../src/call/attempt/choose-translation.ts'
import type { PreparedCall } from '../../src/call/attempt/types.ts'
import { Fold } from '../../src/core/fold.ts'
import { readEvent } from '../../src/manifest/run/translate.ts'
import { eventsIn } from '../api/responses-order.ts'
import { benchDialect, foldFacts } from '../dialects/replay.ts'

const { provider } = benchDialect('openai-chat')
const target = { provider, model: 'm' }

test('what one event of a provider says is written together: log probabilities with their text', async () => {
  const request = responses.read({ model: 'p/m', input: 'Hello', include: ['message.output_text.logprobs'] })
  const call = { clientApi: responses, id: '0198f7a2-0000-7000-8000-000000000001' }
  const { stream } = translationOf(target, { call, request, turn: {} } as unknown as PreparedCall)
  const [writer, fold] = [stream('p/m'), new Fold(foldFacts)]
  let text = ''
  for (const token of ['It', ' rains', '.']) {
    const logprobs = { content: [{ token, logprob: -0.1, bytes: null, top_logprobs: [] }] }
    const payload = { id: 'c1', choices: [{ index: 0, delta: { content: token }, logprobs, finish_reason: null }] }
    const events = await readEvent(provider, undefined, payload, { signer: 'p', traits: {} })
    text += writer.translate({ payload, events }, fold)
  }
  const deltas = eventsIn(text).filter(({ type }) => type === 'response.output_text.delta')
  expect(deltas.map(({ delta, logprobs }) => [delta, logprobs.map(({ token }: { token: string }) => token)])).toEqual([
    ['It', ['It']],
    [' rains', [' rains']],
    ['.', ['.']],
  ])
})
