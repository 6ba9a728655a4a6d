import type { IncomingMessage, ServerResponse } from 'node:http'
import { faults } from './faults.ts'
import type { Journal } from './journal.ts'

/** Until when models are down, by name. Milliseconds since 1970. */
export type Outages = Map<string, number>

/**
 * What a tester asks of the simulator: `GET /wall/requests?model=…&target=…&caller=…` (what came), `DELETE /wall/requests` (forget
 * it), `POST /wall/down {model, seconds}` (0 ends it), and `GET /wall` (what models do).
 */
export function control(
  request: IncomingMessage,
  response: ServerResponse,
  text: string,
  { journal, outages, time }: { journal: Journal; outages: Outages; time: number },
): void {
  const url = new URL(request.url ?? '/', 'http://simulator')
  const answer = (status: number, body: unknown) => answerJson(response, status, body)
  const call = `${request.method} ${url.pathname}`
  if (call === 'GET /wall') {
    answer(200, { time, models: faults.map(({ name, about }) => ({ name, about })) })
  } else if (call === 'GET /wall/requests') {
    const wanted = (name: string) => url.searchParams.get(name) ?? undefined
    const requests = journal.entries({ model: wanted('model'), target: wanted('target'), caller: wanted('caller') })
    answer(200, { count: requests.length, requests })
  } else if (call === 'DELETE /wall/requests') {
    journal.reset()
    answer(200, {})
  } else if (call === 'POST /wall/down') {
    const outage = outageIn(text)
    if (outage) outages.set(outage.model, Date.now() + outage.seconds * 1_000 * time)
    answer(outage ? 200 : 400, outage ?? { error: { message: 'The body must be {"model": "…", "seconds": 60}.' } })
  } else {
    answer(404, { error: { message: `There is no ${call}.` } })
  }
}

/** Answers with a JSON document. */
export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function outageIn(text: string): { model: string; seconds: number } | undefined {
  try {
    const { model, seconds } = JSON.parse(text)
    return typeof model === 'string' && typeof seconds === 'number' ? { model, seconds } : undefined
  } catch {
    return undefined
  }
}
