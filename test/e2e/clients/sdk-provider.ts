import type { ServerResponse } from 'node:http'
import { answerJson, loopbackProvider, pause } from '../../helpers/provider.ts'
import type { Arrived, FakeProvider, Refusal, Step, Wire } from './sdk-wire.ts'

/** Starts a server that answers in a wire format: whole or streamed, as requested. */
export async function fakeProvider(wire: Wire): Promise<FakeProvider> {
  let waiting: Step[] = []
  const server = await loopbackProvider(async ({ path, body }, response) => {
    if (path.endsWith('/count_tokens')) return answerJson(response, { input_tokens: 42 })
    const step = waiting.shift()
    if (step === undefined) return answerJson(response, { error: { message: 'nobody expected this request' } }, 500)
    if (step === 'silence') return
    if (typeof step === 'string') return await giveBeginning(response, wire, step)
    if ('refuse' in step) return refuse(response, wire, step)
    if (!wire.isStream(path, body)) return answerJson(response, wire.whole(step))
    await write(response, wire, wire.frames(step))
    response.end()
  })
  return {
    ...server,
    wire,
    play(...steps) {
      waiting = steps
      server.received.length = 0
    },
    arrived(index): Arrived {
      const request = server.received[index]
      if (!request) throw new Error(`${wire.dialect}: request ${index} did not arrive`)
      return wire.read(request.body)
    },
    done: () => waiting.length === 0,
  }
}

function refuse(response: ServerResponse, { dialect, failures }: Wire, step: Refusal): void {
  if (!failures) throw new Error(`${dialect} has no refusals`)
  const { status, headers, body } = failures.refusal(step.refuse)
  answerJson(response, body, status, { ...headers, ...(step.retryAfter && { 'retry-after': step.retryAfter }) })
}

async function giveBeginning(response: ServerResponse, wire: Wire, then: 'stay' | 'break' | 'fail'): Promise<void> {
  const frames = wire.frames({ text: 'Once upon a time' })
  const begun = frames.slice(0, frames.findIndex((frame) => frame.includes('Once')) + 1)
  await write(response, wire, [...begun, ...(then === 'fail' && wire.failures ? [wire.failures.frame] : [])])
  if (then === 'stay') return
  if (then === 'fail') return void response.end()
  await pause(20)
  response.destroy()
}

async function write(response: ServerResponse, wire: Wire, frames: (string | Buffer)[]): Promise<void> {
  response.writeHead(200, { 'content-type': wire.contentType })
  for (const frame of frames) {
    await new Promise<void>((resolve) => response.write(frame, () => resolve()))
    // Each by itself, as networks bring them: the router, in this thread or in another one, has read it.
    await pause(2)
  }
}
