import { setTimeout } from 'node:timers/promises'
import { asRouterError, errorBody, RouterError } from '../../core/errors.ts'
import { usdOf } from '../../money/usd.ts'
import type { LiveWatch } from '../../observe/live-counts.ts'
import { timeText } from '../key-entry.ts'
import type { ManagementContext, ManageRequest, ManageRoute } from '../manage.ts'
import { invalid, parametersOf } from '../read.ts'

/** Serves `/v1/manage/live`: what happens in the organization, as one server-sent event a second. */
export function liveRoutes({ live }: Pick<ManagementContext, 'live'>): ManageRoute[] {
  return [
    {
      path: '/v1/manage/live',
      handle(request) {
        const max = eventsIn(request.query)
        const watch = live.watch(request.organization)
        if (!watch) throw tooMany()
        return { body: new LiveEvents({ ...request, watch, max }, live.underWay), endless: true }
      },
    },
  ]
}

const everyMs = 1_000

type Watching = Pick<ManageRequest, 'organization' | 'recheck'> & { watch: LiveWatch; max: number }

/** Events for one watcher: the first one immediately, until the key may no longer watch. */
class LiveEvents implements AsyncIterator<string, void> {
  readonly #watching: Watching
  readonly #underWay: ManagementContext['live']['underWay']
  readonly #left = new AbortController()
  #sent = 0
  #nextAt = performance.now()

  constructor(watching: Watching, underWay: ManagementContext['live']['underWay']) {
    this.#watching = watching
    this.#underWay = underWay
  }

  async next(): Promise<IteratorResult<string, void>> {
    const { watch, max, recheck } = this.#watching
    if (this.#sent === max) return await this.return()
    const waitMs = this.#nextAt - performance.now()
    // A client that reads slowly misses events; it never gets several at once.
    this.#nextAt = Math.max(this.#nextAt, performance.now() - everyMs) + everyMs
    if (waitMs > 0) await setTimeout(waitMs, undefined, { signal: this.#left.signal, ref: false }).catch(() => {})
    if (this.#left.signal.aborted) return ended
    this.#sent++
    try {
      await recheck()
      return { done: false, value: `data: ${JSON.stringify(this.#event(watch))}\n\n` }
    } catch (thrown) {
      this.#sent = max
      return { done: false, value: `event: error\ndata: ${JSON.stringify(errorBody(asRouterError(thrown)))}\n\n` }
    }
  }

  async return(): Promise<IteratorResult<string, void>> {
    this.#left.abort()
    this.#watching.watch.close()
    return ended
  }

  #event(watch: LiveWatch) {
    const { calls, failed, inputTokens, outputTokens, nanoUsd, newest } = watch.totals()
    const running = this.#underWay(this.#watching.organization)
    return {
      at: timeText(Date.now()),
      calls,
      failed,
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      cost: usdOf(nanoUsd),
      under_way: running.calls,
      streams: running.streams,
      ...(newest !== undefined && { newest }),
    }
  }
}

const ended = { done: true, value: undefined } as const

function eventsIn(query: ManageRequest['query']): number {
  const { events } = parametersOf(query, ['events'])
  if (events === undefined) return Number.POSITIVE_INFINITY
  const most = /^\d{1,6}$/.test(events) ? Number(events) : 0
  if (most >= 1) return most
  throw invalid(`'events' must be a whole number from 1 to 999999, not '${events.slice(0, 40)}'.`, 'events')
}

function tooMany(): RouterError {
  const message =
    'Too many live streams of this organization are open. Close one of the pages that display live figures.'
  return new RouterError('rate_limited', message, { retryAfterMs: everyMs })
}
