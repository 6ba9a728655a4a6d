import type { ServerResponse } from 'node:http'
import { answerJson, loopbackProvider } from '../helpers/provider.ts'
import type { Arrived, Played, Said, Wire } from './sdk-said.ts'

/** Starts a server that answers in a wire format: whole or streamed, as it is asked. */
export async function playProvider(wire: Wire): Promise<Played> {
  let waiting: (Said | 'stay')[] = []
  const server = await loopbackProvider(async ({ path, body }, response) => {
    if (path.endsWith('/count_tokens')) return answerJson(response, { input_tokens: 42 })
    const said = waiting.shift()
    if (said === undefined) return answerJson(response, { error: { message: 'nobody expected this request' } }, 500)
    if (said === 'stay')
      return await give(response, wire, wire.frames({ text: 'Once upon a time' }).slice(0, -1).slice(0, 5), false)
    if (!wire.isStream(path, body)) return answerJson(response, wire.whole(said))
    await give(response, wire, wire.frames(said), true)
  })
  return {
    ...server,
    wire,
    play(...said) {
      waiting = said
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

async function give(response: ServerResponse, wire: Wire, frames: (string | Buffer)[], ends: boolean): Promise<void> {
  response.writeHead(200, { 'content-type': wire.contentType })
  for (const frame of frames) await new Promise<void>((resolve) => response.write(frame, () => resolve()))
  if (ends) response.end()
}
