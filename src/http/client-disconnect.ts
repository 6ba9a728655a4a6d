import type { Response } from 'express'
import { RouterError } from '../core/errors.ts'

/** Aborted, with a RouterError as reason, when the client disconnects or the process must end. */
export function abortSignalOf(response: Response, deadline: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const clientGone = () => controller.abort(new RouterError('client_gone', 'The client disconnected.'))
  const stop = () => controller.abort(new RouterError('stopping', 'The router is stopping.'))
  response.once('close', () => {
    deadline.removeEventListener('abort', stop)
    if (!response.writableFinished) clientGone()
  })
  deadline.addEventListener('abort', stop, { once: true })
  if (deadline.aborted) stop()
  return controller.signal
}
