import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider, pause } from '../helpers/provider.ts'
import { type Said, type Step, type Talk, talks } from './openai-sdk-talks.ts'

/** How a provider answers: a document, or a stream that ends, stays open or breaks after its last frame. */
export type Answer =
  | { status?: number; headers?: Record<string, string>; body: object }
  | { frames: string[]; then?: 'stay' | 'break' }
  | 'nothing'

/** A wire format as its maker documents it, and the requests that must arrive in it. */
export type Wire = {
  slug: string
  models: { plain: string; thinker: string }
  /** What the greeting costs. USD. */
  cost: number
  reasoningTokens: number
  /** Pictures elsewhere are fetched for this provider, and reach it as data. */
  wantsData?: true
  /** Path and headers of a right request. */
  address(model: string, stream: boolean): { path: string; headers: Record<string, string> }
  whole(said: Said): object
  frames(said: Said): string[]
  /** The frame by which a stream reports a failure. */
  failure: string
  refusal(status: number): Answer
  /** The whole body of every request of a talk. */
  bodies: Record<Talk, object[]>
}

type Expected = { path: string; headers: Record<string, string>; body?: object }

/** A loopback server that plays one provider: it answers in order, and says whether it was asked the right things. */
export type Played = LoopbackProvider & {
  /** Answers these requests next. */
  play(talk: Talk): void
  /** Answers one greeting each. */
  answer(...answers: Answer[]): void
  greeting: { whole: Answer; frames: string[] }
  /** Every request since the last play was the expected one, and none is missing. */
  check(): void
}

/** Starts a server that plays a provider. */
export async function playProvider(wire: Wire): Promise<Played> {
  let expected: Expected[] = []
  let answers: Answer[] = []
  const server = await loopbackProvider(async (_, response) => {
    const answer = answers.shift()
    if (answer) await give(answer, response)
    else answerJson(response, { error: { message: 'nobody expected this request' } }, 500)
  })
  const expectOnly = (requests: Expected[], said: Answer[]) => {
    expected = requests
    answers = said
    server.received.length = 0
  }
  const answerOf = ({ stream, said }: Step): Answer =>
    stream ? { frames: wire.frames(said) } : { body: wire.whole(said) }
  const [greeting] = talks.create
  const model = wire.models.plain
  return {
    ...server,
    play(talk) {
      const steps: Step[] = talks[talk]
      const requests = steps.map(({ model, stream }, index) => ({
        ...wire.address(wire.models[model], stream),
        body: wire.bodies[talk][index] ?? {},
      }))
      expectOnly(requests, steps.map(answerOf))
    },
    answer(...said) {
      const requests = said.map((answer) => {
        const stream = typeof answer === 'object' && 'frames' in answer
        return wire.address(model, stream)
      })
      expectOnly(requests, said)
    },
    greeting: { whole: answerOf(greeting as Step), frames: wire.frames((greeting as Step).said) },
    check() {
      const asked = server.received.map(({ method, path, headers, body }, index) => {
        const { headers: wanted = {}, body: known } = expected[index] ?? {}
        const shown = Object.fromEntries(Object.keys(wanted).map((name) => [name, headers[name]]))
        return { method, path, headers: shown, ...(known && { body }) }
      })
      expect(asked).toEqual(expected.map((request) => ({ method: 'POST', ...request })))
      expect(answers).toEqual([])
    },
  }
}

async function give(answer: Answer, response: ServerResponse): Promise<void> {
  if (answer === 'nothing') return
  if ('body' in answer) return answerJson(response, answer.body, answer.status, answer.headers)
  beginStream(response)
  for (const frame of answer.frames) {
    await new Promise<void>((resolve) => response.write(frame, () => resolve()))
  }
  if (answer.then === 'stay') return
  if (answer.then === undefined) return void response.end()
  await pause(20)
  response.destroy()
}

/** A frame of server-sent events. */
export function frame(payload: object, event?: string): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(payload)}\n\n`
}
