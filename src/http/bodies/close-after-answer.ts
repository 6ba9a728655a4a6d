import type { IncomingMessage } from 'node:http'
import type { Response } from '../app.ts'
import { headersOf } from '../respond.ts'

/**
 * Closes the connection of a request whose body is read no further, after its answer. Whoever is still sending when a connection is closed
 * loses the answer: so what comes is thrown away for some milliseconds, and the connection is closed then.
 */
export function closeAfterAnswer(request: IncomingMessage, response: Response): void {
  headersOf(response).connection = 'close'
  const { socket } = request
  socket.destroySoon = () => {
    socket.end()
    const close = () => socket.destroy()
    request.on('end', close)
    request.resume()
    setTimeout(close, longestIgnored).unref()
  }
}

const longestIgnored = 1_000
