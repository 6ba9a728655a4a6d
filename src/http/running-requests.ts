import type { ServerResponse } from 'node:http'
import { RouterError } from '../core/errors.ts'

/** The requests that are being answered, to wait for them or to end them. */
export class RunningRequests {
  readonly #running = new Set<AbortController>()
  #mustEnd = false
  #allEnded = () => {}

  /** A request begins. Its signal is aborted, with a RouterError as reason, when its client disconnects or it must end. */
  begin(response: ServerResponse): AbortController {
    const request = new AbortController()
    this.#running.add(request)
    response.on('close', () => {
      if (!response.writableFinished) request.abort(new RouterError('client_gone', 'The client disconnected.'))
    })
    if (this.#mustEnd) abort(request)
    return request
  }

  end(request: AbortController): void {
    this.#running.delete(request)
    if (this.#running.size === 0) this.#allEnded()
  }

  /** Ends all that run, and all that begin from now on. */
  abortAll(): void {
    this.#mustEnd = true
    for (const request of this.#running) abort(request)
  }

  /** Resolves when none runs. */
  async allEnded(): Promise<void> {
    while (this.#running.size > 0) {
      await new Promise<void>((resolve) => {
        this.#allEnded = resolve
      })
    }
  }
}

function abort(request: AbortController): void {
  request.abort(new RouterError('stopping', 'The router is stopping.'))
}
